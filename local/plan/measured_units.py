"""The measured units of each path (units.json), and sums of them.

A path has functions, a function has counts: {"EventsApiFunction": {"write.BPEvents": 5, ...}}. The name of a
path that was measured at several sizes ends with the size: `events.again.5`. A size of the template has what
stands idle, by the names of prices, and its settings.
"""

import json
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from local.paths import ROOT

UNITS = ROOT / "local" / "plan" / "units.json"
Counts = Mapping[str, float]
Functions = Mapping[str, Counts]
Spent = dict[str, dict[str, float]]


class UnknownSize(ValueError):
    """The template has no such size."""


@dataclass(frozen=True)
class TemplateSize:
    """A size of the template.

    idle: a month's amounts in which nobody does anything, by the names of prices. settings: what decides how
    often something is done, and limits. concurrency: executions at once that a function may have or keeps.
    """

    name: str
    idle: Counts
    settings: Counts
    concurrency: Counts

    @property
    def has_cache(self) -> bool:
        """Whether functions are given a Redis of the stack."""
        return "valkey.gb_hours" in self.idle


@dataclass(frozen=True)
class MeasuredUnits:
    """What was measured: paths by name, and sizes of the template."""

    paths: Mapping[str, Functions]
    sizes: Mapping[str, TemplateSize]

    def size(self, name: str) -> TemplateSize:
        """Return a size of the template; `default` is small. Raises UnknownSize."""
        found = self.sizes.get("small" if name == "default" else name)
        if found is None:
            raise UnknownSize(f"--environment: there is no {name}: there are {', '.join(sorted(self.sizes))}")
        return found

    def at(self, stem: str, size: float) -> Spent:
        """Return a path's counts at a size: on a line between the two sizes measured around it.

        Beyond the largest size what has grown grows on. Raises KeyError for a path without sizes.
        """
        names = {name: name.removeprefix(f"{stem}.") for name in self.paths if name.startswith(f"{stem}.")}
        sizes = sorted(int(each) for each in names.values() if each.isdigit())
        place = bisect_left(sizes, size)
        if place == 0 or len(sizes) == 1:
            return add({}, self.paths[f"{stem}.{sizes[0]}"])
        is_beyond = place == len(sizes)
        low, high = sizes[place - 1 - is_beyond], sizes[place - is_beyond]
        slope = add(add({}, self.paths[f"{stem}.{high}"]), self.paths[f"{stem}.{low}"], -1)
        if is_beyond:
            slope = {
                function: {name: each for name, each in counts.items() if each > 0}
                for function, counts in slope.items()
            }
        base = high if is_beyond else low
        return add(add({}, self.paths[f"{stem}.{base}"]), slope, (size - base) / (high - low))


def add(to: Spent, functions: Functions, times: float = 1.0) -> Spent:
    """Add a path's counts, so many times, to others; returns these."""
    for function, counts in functions.items():
        sums = to.setdefault(function, {})
        for name, count in counts.items():
            sums[name] = sums.get(name, 0.0) + times * count
    return to


def together(parts: Iterable[tuple[float, Functions]]) -> Spent:
    """Return the sum of paths, each so many times."""
    found: Spent = {}
    for times, functions in parts:
        add(found, functions, times)
    return found


def load_units(path: Path = UNITS) -> MeasuredUnits:
    """Read the file."""
    found = json.loads(path.read_text())
    sizes = {name: TemplateSize(name, **each) for name, each in found["sizes"].items()}
    return MeasuredUnits(found["paths"], sizes)


def total(functions: Functions, kind: str) -> float:
    """Return the sum of all counts of a kind, such as `write`, over all functions and tables."""
    return sum(by_place(functions, kind).values())


def by_place(functions: Functions, kind: str) -> dict[str, float]:
    """Return the counts of a kind, such as `write`, by what follows in their names: `table/index`."""
    found: dict[str, float] = {}
    for counts in functions.values():
        for name, count in counts.items():
            head, _, place = name.partition(".")
            if head == kind:
                found[place] = found.get(place, 0.0) + count
    return found


def by_table(functions: Functions, kind: str) -> dict[str, float]:
    """Return the counts of a kind by table, those of its indexes included."""
    found: dict[str, float] = {}
    for place, count in by_place(functions, kind).items():
        name = place.partition("/")[0]
        found[name] = found.get(name, 0.0) + count
    return found
