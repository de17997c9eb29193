"""The measured units of each path (units.json), and what is measured between two sizes of a path.

A path has functions, a function has counts: {"EventsApiFunction": {"write.BPEvents": 5, ...}}. The name of a
path that was measured at several sizes ends with the size: `events.again.5`.
"""

import json
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from local.paths import ROOT

UNITS = ROOT / "local" / "plan" / "units.json"
HERE = ROOT / "local" / "plan" / "here.json"
Counts = Mapping[str, float]
Functions = Mapping[str, Counts]
Spent = dict[str, dict[str, float]]


def add(to: Spent, functions: Functions, times: float = 1.0) -> Spent:
    """Add a path's counts, so many times, to others; returns these."""
    for function, counts in functions.items():
        sofar = to.setdefault(function, {})
        for name, count in counts.items():
            sofar[name] = sofar.get(name, 0.0) + times * count
    return to


def minus(left: Functions, right: Functions) -> Spent:
    """Return the difference of two paths."""
    return add(add({}, left), right, -1.0)


@dataclass(frozen=True)
class MeasuredUnits:
    """What was measured.

    paths: by name. rows: by table, the bytes of a row of the lake and how often it has a sender's texts.
    here: figures that depend on the machine, such as `raw_bytes.BPEvents`.
    """

    paths: Mapping[str, Functions]
    rows: Mapping[str, Counts]
    here: Mapping[str, float] = field(default_factory=dict)

    @cached_property
    def sizes(self) -> Mapping[str, list[int]]:
        """The sizes that a path was measured at, ascending, by the path's name without its size."""
        found: dict[str, list[int]] = {}
        for name in self.paths:
            stem, _, size = name.rpartition(".")
            if size.isdigit():
                found.setdefault(stem, []).append(int(size))
        return {stem: sorted(sizes) for stem, sizes in found.items()}

    def at(self, stem: str, size: float) -> Spent:
        """Return a path's counts at a size: on a straight line between the two sizes measured around it.

        Beyond the largest size the line goes on with the slope from the smallest size to the largest but one,
        which spans whole steps of the ledger's carriers. Raises KeyError for a path without sizes.
        """
        sizes = self.sizes[stem]
        above = bisect_left(sizes, size)
        if above < len(sizes) and (sizes[above] == size or above == 0):
            return add({}, self.paths[f"{stem}.{sizes[above]}"])
        if above == len(sizes):
            low, high, base = sizes[0], sizes[max(len(sizes) - 2, 1 if len(sizes) > 1 else 0)], sizes[-1]
        else:
            low, high, base = sizes[above - 1], sizes[above], sizes[above - 1]
        if low == high:
            return add({}, self.paths[f"{stem}.{base}"])
        slope = minus(self.paths[f"{stem}.{high}"], self.paths[f"{stem}.{low}"])
        return add(add({}, self.paths[f"{stem}.{base}"]), slope, (size - base) / (high - low))


def with_cache(units: MeasuredUnits, hits: Mapping[str, float]) -> MeasuredUnits:
    """Return what paths cost where there is a cache.

    hits: by the beginning of a path's name, such as `read`, the share of times that the cache answers. A post
    also writes through.
    """
    paths = dict(units.paths)
    cached = {
        name.removeprefix("cached."): each for name, each in paths.items() if name.startswith("cached.")
    }
    for name, plain in units.paths.items():
        kind, stem = name.partition(".")[0], name.rstrip("0123456789").rstrip(".")
        if kind in hits and stem in cached:
            paths[name] = together([(hits[kind], cached[stem]), (1 - hits[kind], plain)])
        elif kind == "events":
            size = float(name.rpartition(".")[2])
            paths[name] = add(add({}, plain), _of_redis(units.at("cached.events.again", size)))
    return replace(units, paths=paths)


def _of_redis(functions: Functions) -> Spent:
    return {
        function: {name: count for name, count in counts.items() if "redis" in name}
        for function, counts in functions.items()
    }


def load_units(units: Path = UNITS, here: Path = HERE) -> MeasuredUnits:
    """Read what AWS counts, and what was measured on a machine: CPU milliseconds come in as `cpu_ms`."""
    found = json.loads(units.read_text())
    machine = json.loads(here.read_text()) if here.exists() else {"cpu_ms": {}, "figures": {}}
    times: Mapping[str, Functions] = machine["cpu_ms"]
    paths = {
        path: {
            function: {**counts, "cpu_ms": times.get(path, {}).get(function, 0.0)}
            for function, counts in functions.items()
        }
        for path, functions in found["paths"].items()
    }
    return MeasuredUnits(paths, found["rows"], machine["figures"])


def total(functions: Functions, prefix: str) -> float:
    """Return the sum of all counts, over all functions, whose names begin with a prefix."""
    return sum(
        count
        for counts in functions.values()
        for name, count in counts.items()
        if name == prefix or name.startswith(f"{prefix}.")
    )


def tables_of(functions: Functions, kind: str) -> dict[str, float]:
    """Return the counts of a kind, such as `write`, by table or `table/index`."""
    found: dict[str, float] = {}
    for counts in functions.values():
        for name, count in counts.items():
            head, _, place = name.partition(".")
            if head == kind:
                found[place] = found.get(place, 0.0) + count
    return found


def together(parts: Iterable[tuple[float, Functions]]) -> Spent:
    """Return the sum of paths, each so many times."""
    found: Spent = {}
    for times, functions in parts:
        add(found, functions, times)
    return found
