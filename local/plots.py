"""Files of plots: inline SVG, each plot with a sentence and the figures behind it.

No script is needed: a browser shows the figures of what is under the pointer (`title`). Widths are shares
of the figure, and heights are pixels, so a text is as large on a phone as elsewhere. Colours: page/theme.css.
"""

import html
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise

from local.paths import ROOT

STYLES = (ROOT / "page" / "theme.css", ROOT / "local" / "plots.css")
POINTS_MIN = 3  # with fewer dates there is no picture: a sentence says so, and the table has them
HEIGHT, TOP, BOTTOM = 200, 22, 24  # of columns and lines, in pixels
LABELS_MAX = 4  # below columns and lines: as many as fit on a phone
INTERVALS_MAX = 4  # of an axis
COLUMN_MAX, BAR_MAX = 12.0, 68.0  # widths in percent; beside the longest bar stands its value
BAR, NAME, GAP = 16, 15, 9  # heights in pixels: of a bar, of its name, and below it
INSTANT = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d)[\d:.]*(?:\+00:00|Z)")
DATE = re.compile(r"\d{4}-\d\d-\d\d")
NUMBER = re.compile(r"[-+\d.,%→ ]*")
COLUMNS_MAX = 3  # of a table, or 2 with texts; with more a phone shows each row as a block
Format = Callable[[float], str]  # returns a value as people read it


def whole(value: float) -> str:
    """Return a number as people write it."""
    return f"{value:,.0f}"


def share(value: float) -> str:
    """Return a share of 1 in percent."""
    return f"{value:.0%}" if value >= 0.1 else f"{value:.1%}".replace(".0%", "%")


def spoken(name: str) -> str:
    """Return words for a name of the book: "Lesson completed" for LESSON_COMPLETED."""
    return name.replace("_", " ").capitalize()


def readable(text: str) -> str:
    """Return a text with its instants (RFC 3339, of UTC) as people read them."""
    return INSTANT.sub(r"\1 \2 UTC", text)


def file_page(title: str, body: str) -> str:
    """Return a file of HTML that needs no other file."""
    style = "".join(path.read_text() for path in STYLES)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
{style}</style></head><body><main>
{body}
</main></body></html>
"""


def table(label: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table that scrolls by itself where it is too wide. Each row begins with its name."""
    classes = [
        "" if all(NUMBER.fullmatch(cell) for cell in column) else ' class="text"'
        for column in zip(*rows, strict=True)
    ]
    heads = "".join(
        f'<th scope="col"{column_class}>{html.escape(name)}</th>'
        for name, column_class in zip(head, classes or [""] * len(head), strict=True)
    )
    lines = ""
    for name, *cells in rows:
        texts = "".join(
            f'<td{column_class} data-label="{html.escape(column)}">{html.escape(cell or "none")}</td>'
            for cell, column, column_class in zip(cells, head[1:], classes[1:], strict=True)
        )
        lines += f'<tr><th scope="row">{html.escape(name)}</th>{texts}</tr>'
    has_texts = any(classes[1:])
    table_class = ' class="wide"' if len(head) > COLUMNS_MAX - has_texts else ""
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{html.escape(label)}">'
        f"<table{table_class}><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table></div>"
    )


@dataclass(frozen=True, slots=True)
class Figure:
    """A plot with its title, a sentence, and the table behind it."""

    title: str  # what it shows
    sentence: str  # what that means
    head: Sequence[str]  # of the table: the names of its columns
    rows: Sequence[Sequence[str]]  # of the table: each begins with its name
    svg: str = ""  # the plot; "" where the table says it all, or where there is too little for a picture

    def html(self) -> str:
        """Return the figure; its table is open where there is no plot."""
        figures = table(self.title, self.head, self.rows) if self.rows else ""
        if self.svg and self.rows:
            figures = f"<details><summary>The figures behind it</summary>{figures}</details>"
        words = f"<h3>{html.escape(self.title)}</h3>"
        words += f"<p>{html.escape(self.sentence)}</p>" if self.sentence else ""
        return f'<figure class="plot"><figcaption>{words}</figcaption>{self.svg}{figures}</figure>'


def columns(
    title: str,
    sentence: str,
    names: Sequence[str],
    series: Mapping[str, Sequence[float]],
    *,
    shown: Format = whole,
    head: str = "Date",
) -> Figure:
    """Return standing columns, one for each date; several series stand on each other.

    With fewer than POINTS_MIN names there is no plot, and the sentence says so.
    """
    points = list(zip(*series.values(), strict=True))  # for each name, a value of each series
    rows = [(name, *map(shown, values)) for name, values in zip(names, points, strict=True)]
    if len(names) < POINTS_MIN:
        few = f"Too little for a picture yet: {len(names)} of {POINTS_MIN} {head.lower()}s."
        return Figure(title, f"{sentence} {few}", (head, *series), rows)
    ticks = _ticks(max(map(sum, points)), shown)
    step = 100 / len(names)
    parts = [_grid(ticks, shown), _legend(list(series)) if len(series) > 1 else ""]
    for index, (name, values) in enumerate(zip(names, points, strict=True)):
        texts = [f"{shown(value)} {label}" for label, value in zip(series, values, strict=True)]
        text = ", ".join(texts) if len(series) > 1 else shown(values[0])
        # The whole height answers the pointer, and not the column alone.
        pointer_area = _rect("hit", index * step, TOP, step, HEIGHT - TOP - BOTTOM)
        shapes = _column((index + 0.5) * step, min(0.9 * step, COLUMN_MAX), values, ticks[-1])
        parts.append(f"<g>{shapes}{pointer_area}<title>{html.escape(f'{name}: {text}')}</title></g>")
    parts.append(_names(names, [(index + 0.5) * step for index in range(len(names))]))
    return Figure(title, sentence, (head, *series), rows, _svg(title, HEIGHT, parts, 'class="axes"'))


def bars(
    title: str,
    sentence: str,
    names: Sequence[str],
    series: Mapping[str, Sequence[float]],
    *,
    shown: Format = whole,
    head: str = "",
) -> Figure:
    """Return lying bars: a name above, and below it a bar of each series with its value.

    Two series are `before` and `after`.
    """
    points = list(zip(*series.values(), strict=True))
    most = max((max(values) for values in points), default=0) or 1
    kinds = list(series) if len(series) > 1 else ["s0"]
    parts, y = ([_coloured_legend(kinds)], TOP) if len(series) > 1 else ([], 2)
    for name, values in zip(names, points, strict=True):
        parts.append(_text("0", y + 10, name))
        y += NAME
        for kind, value in zip(kinds, values, strict=True):
            width = max(0.0, value) / most * BAR_MAX
            parts.append(_rect(kind, 0, y, width, BAR - 2))
            parts.append(_text(f"{width:.2f}%", y + BAR - 5, shown(value), 'dx="5"'))
            y += BAR
        y += GAP
    rows = [(name, *map(shown, values)) for name, values in zip(names, points, strict=True)]
    return Figure(title, sentence, (head, *map(str.capitalize, series)), rows, _svg(title, y, parts))


def lines(
    title: str, sentence: str, names: Sequence[str], series: Mapping[str, Sequence[float]], *, head: str
) -> Figure:
    """Return a line for each series (`before` and `after`) of shares of 1, over names at even distances."""
    ticks = _ticks(1, share)
    xs = [100 * index / max(1, len(names) - 1) for index in range(len(names))]
    parts = [_grid(ticks, share), _coloured_legend(list(series)), _names(names, xs)]
    for kind, values in series.items():
        ends = [(f"{x:.2f}%", f"{_y_of(value, 1):.1f}") for x, value in zip(xs, values, strict=True)]
        parts += [
            f'<line class="line {kind}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>'
            for (x1, y1), (x2, y2) in pairwise(ends)
        ]
    rows = list(zip(names, *(map(share, values) for values in series.values()), strict=True))
    width = xs[1] if len(xs) > 1 else 100.0
    for x, (name, *cells) in zip(xs, rows, strict=True):
        text = ", ".join(f"{kind} {cell}" for kind, cell in zip(series, cells, strict=True))
        left, right = max(0.0, x - width / 2), min(100.0, x + width / 2)
        pointer_area = _rect("hit", left, TOP, right - left, HEIGHT - TOP - BOTTOM)
        parts.append(f"<g>{pointer_area}<title>{html.escape(f'{name}: {text}')}</title></g>")
    capitalized = (head, *map(str.capitalize, series))
    return Figure(title, sentence, capitalized, rows, _svg(title, HEIGHT, parts, 'class="axes"'))


def _svg(title: str, height: float, parts: Sequence[str], kind: str = "") -> str:
    label = html.escape(title)
    return (
        f'<svg {kind} width="100%" height="{height}" role="img" aria-label="{label}">{"".join(parts)}</svg>'
    )


def _ticks(highest: float, shown: Format) -> list[float]:
    """Return round numbers at even distances, from 0 to at least the highest value."""
    least = 0.01 if shown is share else 1
    power = 10 ** math.floor(math.log10(max(highest / INTERVALS_MAX, least)))
    step = next(size for size in (power, 2 * power, 5 * power, 10 * power) if size * INTERVALS_MAX >= highest)
    return [number * step for number in range(max(1, math.ceil(round(highest / step, 6))) + 1)]


def _column(middle: float, width: float, values: Sequence[float], highest: float) -> str:
    """Return a rectangle for each value, which stand on each other. highest: the value at the top."""
    rectangles, base = "", 0.0
    for number, value in enumerate(values):
        top = _y_of(base + value, highest)
        rectangles += _rect(f"s{number}", middle - width / 2, top, width, _y_of(base, highest) - top)
        base += value
    return rectangles


def _rect(kind: str, x: float, y: float, width: float, height: float) -> str:
    """Return a rectangle; x and width are percents."""
    size = f'width="{width:.2f}%" height="{height:.1f}"'
    return f'<rect class="{kind}" x="{x:.2f}%" y="{y:.1f}" {size}/>'


def _text(x: str, y: float, text: str, attributes: str = "") -> str:
    return f'<text x="{x}" y="{y:.1f}" {attributes}>{html.escape(text)}</text>'


def _y_of(value: float, highest: float) -> float:
    """Return the height in pixels, from above, at which a value is drawn."""
    return TOP + (1 - value / highest) * (HEIGHT - TOP - BOTTOM)


def _grid(ticks: Sequence[float], shown: Format) -> str:
    """Return a line at each tick, with its value in the margin."""
    shapes = ""
    for tick in ticks:
        y = _y_of(tick, ticks[-1])
        shapes += f'<line class="grid" x1="0" x2="100%" y1="{y:.1f}" y2="{y:.1f}"/>'
        shapes += _text("-6", y + 4, shown(tick), 'text-anchor="end"')
    return shapes


def _names(names: Sequence[str], xs: Sequence[float]) -> str:
    """Return at most LABELS_MAX names below the axis, the last one among them."""
    step = math.ceil(len(names) / LABELS_MAX) or 1
    return "".join(
        _text(f"{xs[index]:.2f}%", HEIGHT - 7, _short(names[index]), 'text-anchor="middle"')
        for index in range(len(names) - 1, -1, -step)
    )


def _short(name: str) -> str:
    """Return a date as "1 Mar", and all else as it is."""
    if not DATE.fullmatch(name):
        return name
    day = date.fromisoformat(name)
    return f"{day.day} {day:%b}"


def _legend(names: Sequence[str]) -> str:
    """Return a legend of names, each behind a square in its colour."""
    shapes, x = "", 0.0
    for number, name in enumerate(names):
        shapes += f'<rect class="s{number}" x="{x:.0f}" y="0" width="9" height="9"/>'
        shapes += _text(f"{x + 13:.0f}", 9, name)
        x += 30 + 6.6 * len(name)  # about the width of a letter
    return shapes


def _coloured_legend(kinds: Sequence[str]) -> str:
    """Return a legend of words in the colours of what they name."""
    return "".join(_text(f"{60 * place}", 10, kind, f'class="{kind}"') for place, kind in enumerate(kinds))
