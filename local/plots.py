"""Plots as inline SVG, each with a sentence and the figures behind it.

They need no script: what is under the pointer says itself (`title`). Colours are those of page/theme.css.
"""

import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from local.paths import ROOT

THEME = ROOT / "page" / "theme.css"
POINTS_MIN = 3  # fewer make no picture: a sentence says so, and the table has them
WIDTH, HEIGHT = 480, 200
LEFT, RIGHT, TOP, BOTTOM = 46, 6, 22, 24
LABELS_MAX = 6
BAR = 18  # the height of a lying bar, and of its name above it
CELL = 22
NAMES = 60  # the width of a grid's names
Shown = Callable[[float], str]


def whole(value: float) -> str:
    """Return a number as people write it."""
    return f"{value:,.0f}"


def share(value: float) -> str:
    """Return a share of 1 in percent."""
    return f"{value:.0%}" if value in (0, 1) or value >= 0.1 else f"{value:.1%}"


@dataclass(frozen=True, slots=True)
class Figure:
    """title, sentence: what it shows, and what that means. head, rows: the table behind it, names first.

    svg: the plot; "" where the table alone says it, or where there is too little for a picture.
    """

    title: str
    sentence: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    svg: str = ""

    def html(self) -> str:
        """Return the figure; its table is open where there is no plot."""
        label = html.escape(self.title)
        head = "".join(f'<th scope="col">{html.escape(each)}</th>' for each in self.head)
        rows = "".join(
            f'<tr><th scope="row">{html.escape(first)}</th>'
            + "".join(f"<td>{html.escape(each)}</td>" for each in rest)
            + "</tr>"
            for first, *rest in self.rows
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
    shown: Shown = whole,
    head: str = "Date",
) -> Figure:
    """Return standing columns, one a name; several series stand on each other. Needs POINTS_MIN names."""
    values = list(zip(*series.values(), strict=True))
    rows = [(name, *map(shown, some)) for name, some in zip(names, values, strict=True)]
    if len(names) < POINTS_MIN:
        sentence = f"Too little for a picture yet: {len(names)} of {POINTS_MIN} points. {sentence}"
        return Figure(title, sentence, (head, *series), rows)
    most = max(map(sum, values)) or 1
    step = (WIDTH - LEFT - RIGHT) / len(names)
    parts = [_axis(most, shown), _legend(list(series)) if len(series) > 1 else ""]
    for place, (name, some) in enumerate(zip(names, values, strict=True)):
        x, low, drawn = LEFT + place * step, 0.0, ""
        for number, value in enumerate(some):
            top = _down(low + value, most)
            drawn += _rect(f"s{number}", x, top, max(step - 1.5, 0.8), _down(low, most) - top)
            low += value
        hit = _rect("hit", x, TOP, step, HEIGHT - TOP - BOTTOM)
        each = [f"{shown(value)} {of}" for of, value in zip(series, some, strict=True)]
        parts.append(_hover(f"{name}: {', '.join(each) if len(series) > 1 else shown(some[0])}", drawn + hit))
    every = -(-len(names) // LABELS_MAX)
    parts += [
        _text(LEFT + (place + 0.5) * step, HEIGHT - 7, _short(names[place]), "middle")
        for place in range(0, len(names), every)
    ]
    return Figure(title, sentence, (head, *series), rows, _svg(title, HEIGHT, parts))


def bars(
    title: str,
    sentence: str,
    rows: Sequence[tuple[str, float]],
    shown: Shown = whole,
    heads: tuple[str, str] = ("", ""),
) -> Figure:
    """Return lying bars, each with its name above it and its value behind it."""
    most = max((value for _, value in rows), default=0) or 1
    parts, y = [], 0
    for name, value in rows:
        size = max(0.0, value) / most * (WIDTH - 90)
        bar = _rect("s0", 0, y + BAR, size, BAR - 4)
        words = _text(0, y + 13, name) + _text(size + 6, y + BAR + 11, shown(value))
        parts.append(_hover(f"{name}: {shown(value)}", bar + words))
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
    shown: Shown = whole,
    has_numbers: bool = False,
) -> Figure:
    """Return a grid of cells, the darker the more; None is a cell that cannot have a value yet."""
    most = max((value or 0 for row in cells for value in row), default=0) or 1
    wide = (WIDTH - NAMES) / len(heads)
    every = 1 if has_numbers else -(-len(heads) // 8)
    parts = [
        _text(NAMES + (place + 0.5) * wide, 12, heads[place], "middle")
        for place in range(0, len(heads), every)
    ]
    for down, (name, row) in enumerate(zip(names, cells, strict=True)):
        y = 18 + down * CELL
        parts.append(_text(0, y + 15, name))
        for place, value in enumerate(row):
            if value is None:
                continue
            x = NAMES + place * wide
            drawn = _rect("none", x, y, wide - 2, CELL - 2)
            drawn += _rect("s0", x, y, wide - 2, CELL - 2, opacity=value / most)
            if has_numbers:
                kind = "over" if value > most / 2 else "in"
                drawn += _text(x + wide / 2 - 1, y + 14, shown(value), "middle", kind)
            parts.append(_hover(f"{name}, {heads[place]}: {shown(value)}", drawn))
    table = [
        (name, *("" if value is None else shown(value) for value in row))
        for name, row in zip(names, cells, strict=True)
    ]
    return Figure(title, sentence, ("", *heads), table, _svg(title, 18 + len(names) * CELL, parts))


def _svg(title: str, height: int, parts: Sequence[str]) -> str:
    body = "".join(parts)
    return f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{html.escape(title)}">{body}</svg>'


def _rect(kind: str, x: float, y: float, width: float, height: float, *, opacity: float = 1) -> str:
    strength = f' fill-opacity="{opacity:.2f}"' if opacity < 1 else ""
    size = f'width="{width:.1f}" height="{height:.1f}"'
    return f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" {size}{strength}/>'


def _text(x: float, y: float, text: str, anchor: str = "start", kind: str = "") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(text)}</text>'


def _hover(words: str, drawn: str) -> str:
    return f"<g>{drawn}<title>{html.escape(words)}</title></g>"


def _down(value: float, most: float) -> float:
    return TOP + (1 - value / most) * (HEIGHT - TOP - BOTTOM)


def _axis(most: float, shown: Shown) -> str:
    drawn = ""
    for value in (0.0, most / 2, most):
        y = _down(value, most)
        drawn += f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        drawn += _text(LEFT - 5, y + 4, shown(value), "end")
    return drawn


def _legend(names: Sequence[str]) -> str:
    drawn, x = "", float(LEFT + 4)
    for number, name in enumerate(names):
        drawn += _rect(f"s{number}", x, 0, 9, 9) + _text(x + 13, 9, name)
        x += 30 + 6.6 * len(name)
    return drawn


def _short(name: str) -> str:
    """Return a date without its year, which the table has; any other name as it is."""
    return name[5:] if len(name) == len("2026-03-01") and name[4] == name[7] == "-" else name
