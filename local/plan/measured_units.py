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
    """A size of the template."""

    name: str
    idle: Counts  # amounts of a month in which nobody does anything, by the names of prices
    settings: Counts  # they decide how often something is done; and limits
    concurrency: Counts  # by function: the executions at once that it may have, or that are kept for it

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
        size = self.sizes.get("small" if name == "default" else name)
        if size is None:
            raise UnknownSize(f"--environment: there is no {name}: there are {', '.join(sorted(self.sizes))}")
        return size

    def at(self, stem: str, size: float) -> Spent:
        """Return a path's counts at a size: on a line between the two sizes measured around it.

        Beyond the largest size, counts that grow go on growing. Raises IndexError for a path without sizes.
        """
        suffixes = [name.removeprefix(f"{stem}.") for name in self.paths if name.startswith(f"{stem}.")]
        sizes = sorted(int(suffix) for suffix in suffixes if suffix.isdigit())
        index = bisect_left(sizes, size)
        if index == 0 or len(sizes) == 1:
            return add({}, self.paths[f"{stem}.{sizes[0]}"])
        is_beyond = index == len(sizes)
        low, high = sizes[index - 1 - is_beyond], sizes[index - is_beyond]
        slope = add(add({}, self.paths[f"{stem}.{high}"]), self.paths[f"{stem}.{low}"], -1)
        if is_beyond:
            slope = {
                function: {name: count for name, count in counts.items() if count > 0}
                for function, counts in slope.items()
            }
        base = high if is_beyond else low
        return add(add({}, self.paths[f"{stem}.{base}"]), slope, (size - base) / (high - low))


def add(sums: Spent, functions: Functions, times: float = 1.0) -> Spent:
    """Add a path's counts, so many times, to `sums`, which is changed and returned."""
    for function, counts in functions.items():
        function_sums = sums.setdefault(function, {})
        for name, count in counts.items():
            function_sums[name] = function_sums.get(name, 0.0) + times * count
    return sums


def sum_of_paths(parts: Iterable[tuple[float, Functions]]) -> Spent:
    """Return the sum of paths, each so many times."""
    sums: Spent = {}
    for times, functions in parts:
        add(sums, functions, times)
    return sums


def load_units(path: Path = UNITS) -> MeasuredUnits:
    """Return what the file of measured units has."""
    document = json.loads(path.read_text())
    sizes = {name: TemplateSize(name, **size) for name, size in document["sizes"].items()}
    return MeasuredUnits(document["paths"], sizes)


def total(functions: Functions, kind: str) -> float:
    """Return the sum of all counts of a kind, such as `write`, over all functions and tables."""
    return sum(by_target(functions, kind).values())


def by_target(functions: Functions, kind: str) -> dict[str, float]:
    """Return the counts of a kind, such as `write`, by what follows in their names, such as `table/index`."""
    sums: dict[str, float] = {}
    for counts in functions.values():
        for name, count in counts.items():
            count_kind, _, target = name.partition(".")
            if count_kind == kind:
                sums[target] = sums.get(target, 0.0) + count
    return sums


def by_table(functions: Functions, kind: str) -> dict[str, float]:
    """Return the counts of a kind by table, those of its indexes included."""
    sums: dict[str, float] = {}
    for target, count in by_target(functions, kind).items():
        table = target.partition("/")[0]
        sums[table] = sums.get(table, 0.0) + count
    return sums
