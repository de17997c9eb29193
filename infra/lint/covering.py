"""Few sets of values in which every small combination occurs that is allowed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

Row = dict[str, str]
Item = tuple[str, str]
FLIPS_MAX = 2  # how many further values may have to change so that a combination is allowed


@dataclass(frozen=True, slots=True)
class Space:
    """domains: name -> values, the first is the usual one. allowed: tells whether a whole row is allowed."""

    domains: Mapping[str, Sequence[str]]
    allowed: Callable[[Row], bool]


def covering(space: Space, strength: int) -> list[Row]:
    """Return rows (name -> value) in which each allowed combination of `strength` values occurs.

    The first row has the usual values, which must be allowed.
    """
    usual = {name: values[0] for name, values in space.domains.items()}
    rows = [usual]
    left = dict.fromkeys(_combinations(space, strength))
    _cover(usual, left, strength)
    reached = {item: _nearest(dict([item]), [usual], space) for (item,) in _combinations(space, 1)}
    while left:
        wanted = next(iter(left))
        changes = {
            name: value for item in wanted for name, value in reached[item].items() if value != usual[name]
        }
        row = _nearest(dict(wanted), [{**usual, **changes}, *rows], space)
        if row:
            rows.append(_filled(row, wanted, space, left))
            _cover(rows[-1], left, strength)
        left.pop(wanted, None)
    return rows


def _combinations(space: Space, size: int) -> Iterator[tuple[Item, ...]]:
    for names in combinations(space.domains, size):
        yield from (tuple(zip(names, values, strict=True)) for values in _products(names, space))


def _products(names: Sequence[str], space: Space) -> Iterator[tuple[str, ...]]:
    if not names:
        yield ()
        return
    for rest in _products(names[1:], space):
        yield from ((value, *rest) for value in space.domains[names[0]])


def _cover(row: Row, left: dict[tuple[Item, ...], None], strength: int) -> None:
    for each in combinations(row.items(), strength):
        left.pop(each, None)


def _nearest(fixed: Row, bases: Sequence[Row], space: Space) -> Row:
    """Return an allowed row that has the fixed values and differs little from a base; {} for none."""
    free = [name for name in space.domains if name not in fixed]
    rows = ({**base, **fixed} for base in bases)
    flipped = (
        {**bases[0], **fixed, **dict(zip(names, values, strict=True))}
        for flips in range(1, FLIPS_MAX + 1)
        for names in combinations(free, flips)
        for values in _products(names, space)
    )
    for candidates in (rows, flipped):
        found = next(filter(space.allowed, candidates), None)
        if found:
            return found
    return {}


def _filled(row: Row, wanted: tuple[Item, ...], space: Space, left: Mapping[tuple[Item, ...], None]) -> Row:
    """Give each free name, one after another, the value that covers most of what is left and is allowed."""
    for name in [each for each in space.domains if each not in dict(wanted)]:
        rows = [{**row, name: value} for value in space.domains[name]]
        gains = [_gain(each, name, len(wanted), left) for each in rows]
        best = [rows[number] for number in sorted(range(len(rows)), key=gains.__getitem__, reverse=True)]
        row = next((each for each in best if each == row or space.allowed(each)), row)
    return row


def _gain(row: Row, name: str, strength: int, left: Mapping[tuple[Item, ...], None]) -> int:
    """Count what a row covers of what is left, by combinations that the name is part of."""
    return sum(each in left for each in combinations(row.items(), strength) if (name, row[name]) in each)
