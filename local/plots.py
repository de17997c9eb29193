"""Plots of columns as inline SVG, each with a sentence and the figures behind it.

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
        shapes = _column(x, step, values, highest) + pointer_area
        parts.append(f"<g>{shapes}<title>{html.escape(f'{name}: {text}')}</title></g>")
    parts += [
        _text(LEFT + (index + 0.5) * step, HEIGHT - 7, _short(names[index]), "middle")
        for index in range(0, len(names), -(-len(names) // LABELS_MAX))
    ]
    label = html.escape(title)
    svg = f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{"".join(parts)}</svg>'
    return Figure(title, sentence, (head, *series), rows, svg)


def _column(x: float, step: float, values: Sequence[float], highest: float) -> str:
    rectangles, base = "", 0.0
    for number, value in enumerate(values):
        top = _y_of(base + value, highest)
        rectangles += _rect(f"s{number}", x, top, max(step - 1.5, 0.8), _y_of(base, highest) - top)
        base += value
    return rectangles


def _rect(kind: str, x: float, y: float, width: float, height: float) -> str:
    size = f'width="{width:.1f}" height="{height:.1f}"'
    return f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" {size}/>'


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(text)}</text>'


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
    return name[5:] if len(name) == len("2026-03-01") and name[4] == name[7] == "-" else name
