"""Plots as inline SVG, each with a sentence and the figures behind it.

They need no script: a browser shows the figures of what is under the pointer (`title`). Colours are those of
page/theme.css.
"""

import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from local.paths import ROOT

THEME = ROOT / "page" / "theme.css"
POINTS_MIN = 3  # with fewer points there is no picture: a sentence says so, and the table has them
# Lengths are in units of the SVG, which is scaled to the width of the page.
WIDTH, HEIGHT = 480, 200
LEFT, RIGHT, TOP, BOTTOM = 46, 6, 22, 24  # margins around standing columns
LABELS_MAX = 6  # below the columns
BAR = 18  # the height of a lying bar, and of its name above it
BAR_VALUE = 90  # the room for the value behind the longest bar
CELL = 22  # the height of a grid's row
GRID_NAMES, GRID_HEADS = 60, 18  # the width of a grid's names; the height of its heads
GRID_LABELS_MAX = 8
Format = Callable[[float], str]  # returns a value as people read it


def whole(value: float) -> str:
    """Return a number as people write it."""
    return f"{value:,.0f}"


def share(value: float) -> str:
    """Return a share of 1 in percent."""
    return f"{value:.0%}" if value in (0, 1) or value >= 0.1 else f"{value:.1%}"


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
        label = html.escape(self.title)
        head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in self.head)
        rows = "".join(
            f'<tr><th scope="row">{html.escape(name)}</th>'
            + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells)
            + "</tr>"
            for name, *cells in self.rows
        )
        table = (
            f'<div class="scroll" tabindex="0" role="region" aria-label="{label}">'
            f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
        )
        if not self.rows:
            table = ""
        elif self.svg:
            table = f"<details><summary>The figures behind it</summary>{table}</details>"
        words = f"<h3>{label}</h3><p>{html.escape(self.sentence)}</p>"
        return f'<figure class="plot"><figcaption>{words}</figcaption>{self.svg}{table}</figure>'


def columns(
    title: str,
    sentence: str,
    names: Sequence[str],
    series: Mapping[str, Sequence[float]],
    *,
    shown: Format = whole,
    head: str = "Date",
) -> Figure:
    """Return standing columns, one for each name; several series stand on each other.

    With fewer than POINTS_MIN names there is no plot, and the sentence says so.
    """
    points = list(zip(*series.values(), strict=True))  # for each name, a value of each series
    rows = [(name, *map(shown, values)) for name, values in zip(names, points, strict=True)]
    if len(names) < POINTS_MIN:
        sentence = f"Too little for a picture yet: {len(names)} of {POINTS_MIN} points. {sentence}"
        return Figure(title, sentence, (head, *series), rows)
    highest = max(map(sum, points)) or 1
    step = (WIDTH - LEFT - RIGHT) / len(names)
    parts = [_axis(highest, shown), _legend(list(series)) if len(series) > 1 else ""]
    for index, (name, values) in enumerate(zip(names, points, strict=True)):
        x = LEFT + index * step
        texts = [f"{shown(value)} {label}" for label, value in zip(series, values, strict=True)]
        text = ", ".join(texts) if len(series) > 1 else shown(values[0])
        # The whole height answers the pointer, and not the column alone.
        pointer_area = _rect("hit", x, TOP, step, HEIGHT - TOP - BOTTOM)
        parts.append(_with_title(f"{name}: {text}", _column(x, step, values, highest) + pointer_area))
    parts += [
        _text(LEFT + (index + 0.5) * step, HEIGHT - 7, _short(names[index]), "middle")
        for index in _labelled(len(names), LABELS_MAX)
    ]
    return Figure(title, sentence, (head, *series), rows, _svg(title, HEIGHT, parts))


def bars(
    title: str,
    sentence: str,
    rows: Sequence[tuple[str, float]],
    shown: Format = whole,
    heads: tuple[str, str] = ("", ""),
) -> Figure:
    """Return lying bars, each with its name above it and its value behind it."""
    longest = max((value for _, value in rows), default=0) or 1
    parts, y = [], 0
    for name, value in rows:
        length = max(0.0, value) / longest * (WIDTH - BAR_VALUE)
        bar = _rect("s0", 0, y + BAR, length, BAR - 4)
        words = _text(0, y + 13, name) + _text(length + 6, y + BAR + 11, shown(value))
        parts.append(_with_title(f"{name}: {shown(value)}", bar + words))
        y += 2 * BAR + 4
    table = [(name, shown(value)) for name, value in rows]
    return Figure(title, sentence, heads, table, _svg(title, y, parts) if rows else "")


def grid(
    title: str,
    sentence: str,
    names: Sequence[str],
    heads: Sequence[str],
    cells: Sequence[Sequence[float | None]],
    *,
    shown: Format = whole,
    has_numbers: bool = False,
) -> Figure:
    """Return a grid of cells, the darker the more.

    names, heads: of the rows and columns. cells: by row; None cannot have a value yet. has_numbers: the
    values are written into the cells.
    """
    highest = max((value or 0 for row in cells for value in row), default=0) or 1
    width = (WIDTH - GRID_NAMES) / len(heads)
    labelled = range(len(heads)) if has_numbers else _labelled(len(heads), GRID_LABELS_MAX)
    parts = [_text(GRID_NAMES + (index + 0.5) * width, 12, heads[index], "middle") for index in labelled]
    for row_number, (name, row) in enumerate(zip(names, cells, strict=True)):
        y = GRID_HEADS + row_number * CELL
        parts.append(_text(0, y + 15, name))
        for column_number, (head, value) in enumerate(zip(heads, row, strict=False)):
            if value is not None:
                x = GRID_NAMES + column_number * width
                cell = _cell(x, y, width, value / highest, shown(value) if has_numbers else "")
                parts.append(_with_title(f"{name}, {head}: {shown(value)}", cell))
    table = [
        (name, *("" if value is None else shown(value) for value in row))
        for name, row in zip(names, cells, strict=True)
    ]
    return Figure(title, sentence, ("", *heads), table, _svg(title, GRID_HEADS + len(names) * CELL, parts))


def _column(x: float, step: float, values: Sequence[float], highest: float) -> str:
    """Return a column: a rectangle for each value, one on the other."""
    rectangles, base = "", 0.0
    for number, value in enumerate(values):
        top = _y_of(base + value, highest)
        rectangles += _rect(f"s{number}", x, top, max(step - 1.5, 0.8), _y_of(base, highest) - top)
        base += value
    return rectangles


def _cell(x: float, y: float, width: float, part: float, text: str) -> str:
    """Return a cell of a grid. part: of the highest value, from 0 to 1. text: within it, or ""."""
    cell = _rect("none", x, y, width - 2, CELL - 2)
    cell += _rect("s0", x, y, width - 2, CELL - 2, opacity=part)
    if text:
        cell += _text(x + width / 2 - 1, y + 14, text, "middle", "over" if part > 0.5 else "in")
    return cell


def _labelled(count: int, labels_max: int) -> range:
    """Return the indexes that get a label, at even distances."""
    return range(0, count, -(-count // labels_max))


def _svg(title: str, height: int, parts: Sequence[str]) -> str:
    body = "".join(parts)
    return f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{html.escape(title)}">{body}</svg>'


def _rect(kind: str, x: float, y: float, width: float, height: float, *, opacity: float = 1) -> str:
    strength = f' fill-opacity="{opacity:.2f}"' if opacity < 1 else ""
    size = f'width="{width:.1f}" height="{height:.1f}"'
    return f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" {size}{strength}/>'


def _text(x: float, y: float, text: str, anchor: str = "start", kind: str = "") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(text)}</text>'


def _with_title(words: str, shapes: str) -> str:
    """Return shapes that show some words under the pointer."""
    return f"<g>{shapes}<title>{html.escape(words)}</title></g>"


def _y_of(value: float, highest: float) -> float:
    return TOP + (1 - value / highest) * (HEIGHT - TOP - BOTTOM)


def _axis(highest: float, shown: Format) -> str:
    """Return lines at 0, at the highest value and between both, each with its value."""
    shapes = ""
    for value in (0.0, highest / 2, highest):
        y = _y_of(value, highest)
        shapes += f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        shapes += _text(LEFT - 5, y + 4, shown(value), "end")
    return shapes


def _legend(names: Sequence[str]) -> str:
    shapes, x = "", float(LEFT + 4)
    for number, name in enumerate(names):
        shapes += _rect(f"s{number}", x, 0, 9, 9) + _text(x + 13, 9, name)
        x += 30 + 6.6 * len(name)  # about the width of a letter
    return shapes


def _short(name: str) -> str:
    """Return a date without its year, which the table has; any other name as it is."""
    return name[5:] if len(name) == len("2026-03-01") and name[4] == name[7] == "-" else name
