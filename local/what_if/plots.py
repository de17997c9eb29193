"""Plots as inline SVG, before and after: bars beside each other, and steps. They need no script."""

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

WIDTH, LEFT, RIGHT, TOP, BOTTOM = 360, 8, 8, 24, 28
# A text is 13 high, and "100%" 32 wide.
BAR, GAP, AXIS_WIDTH = 16, 10, 40
HEIGHT = 200
LABELS_MAX = 6
LEGEND = (
    f'<text class="before" x="{LEFT}" y="12">before</text>'
    f'<text class="after" x="{LEFT + 60}" y="12">after</text>'
)


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot of values before and after."""

    key: str  # begins the ids of its elements
    title: str
    text: str  # what it shows, for those who hear the page
    # A name, a value before, and one after. The value before is None where there is one alone.
    rows: Sequence[tuple[str, float | None, float]]
    unit: str = ""  # "%" for shares of 1
    is_steps: bool = False  # two lines, and no bars

    def svg(self) -> str:
        """Return the plot."""
        body, height = self._steps() if self.is_steps else self._bars()
        names = f"{self.key}-title {self.key}-text"
        return (
            f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="{names}">'
            f'<title id="{self.key}-title">{html.escape(self.title)}</title>'
            f'<desc id="{self.key}-text">{html.escape(self.text)}</desc>{body}</svg>'
        )

    def shown(self, value: float) -> str:
        """Return a value with its unit."""
        return f"{value:.1%}" if self.unit == "%" else f"{value:,.0f}"

    @property
    def is_pair(self) -> bool:
        """Whether there are values before and after."""
        return any(before is not None for _, before, _ in self.rows)

    def _bars(self) -> tuple[str, int]:
        """Return horizontal bars, and the plot's height. Below each name are its bars with their values."""
        most = max((max(before or 0, after) for _, before, after in self.rows), default=0) or 1
        parts, y = [LEGEND] if self.is_pair else [], TOP if self.is_pair else 4
        for name, before, after in self.rows:
            parts.append(f'<text x="{LEFT}" y="{y + 10}">{html.escape(name)}</text>')
            y += 14
            for kind, value in (("before", before), ("after", after)):
                if value is not None:
                    size = max(0, value) / most * (WIDTH - LEFT - RIGHT - 80)
                    at = f'x="{LEFT}" y="{y}" width="{size:.1f}" height="{BAR - 2}"'
                    parts.append(f'<rect class="{kind}" {at}/>')
                    x = LEFT + size + 4
                    parts.append(f'<text x="{x:.1f}" y="{y + BAR - 4}">{self.shown(value)}</text>')
                    y += BAR
            y += GAP
        return "".join(parts), y

    def _steps(self) -> tuple[str, int]:
        """Return two lines over names at even distances, and the plot's height. Values are shares of 1."""
        return LEGEND + "".join(self._axes()) + "".join(self._lines()), HEIGHT

    def _x(self, index: int) -> float:
        """Return where a row is, by its index."""
        width = WIDTH - LEFT - RIGHT - AXIS_WIDTH - 14
        return LEFT + AXIS_WIDTH + index * width / max(1, len(self.rows) - 1)

    @staticmethod
    def _y(value: float) -> float:
        return TOP + (1 - value) * (HEIGHT - TOP - BOTTOM)

    def _axes(self) -> Iterator[str]:
        for share in (0.0, 0.5, 1.0):
            y = self._y(share)
            ends = f'x1="{LEFT + AXIS_WIDTH}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"'
            yield f'<line class="grid" {ends}/>'
            yield f'<text x="{LEFT}" y="{y + 4:.1f}">{share:.0%}</text>'
        every = -(-len(self.rows) // LABELS_MAX)
        for index, (name, _, _) in enumerate(self.rows):
            if index % every == 0:
                at = f'x="{self._x(index):.1f}" y="{HEIGHT - 8}"'
                yield f'<text {at} text-anchor="middle">{html.escape(name)}</text>'

    def _lines(self) -> Iterator[str]:
        for kind, column in (("before", 1), ("after", 2)):
            points = " ".join(
                f"{self._x(index):.1f},{self._y(float(row[column] or 0)):.1f}"
                for index, row in enumerate(self.rows)
            )
            yield f'<polyline class="line {kind}" points="{points}"/>'
