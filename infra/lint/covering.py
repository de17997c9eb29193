"""Few sets of values in which every small combination occurs that is allowed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

Row = dict[str, str]
Combination = tuple[tuple[str, str], ...]  # names in the order of the domains
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
    reach = {item: _flipped(dict([item]), usual, space) for (item,) in _combinations(space, 1)}
    impossible: dict[Combination, bool] = {}
    while left:
        wanted = next(iter(left))
        changes = dict(item for each in wanted for item in reach[each].items() - usual.items())
        row = _over(dict(wanted), [{**usual, **changes}, *rows], space)
        if not row and not any(
            _impossible(each, usual, space, impossible) for each in combinations(wanted, 2)
        ):
            row = _flipped(dict(wanted), {**usual, **changes}, space)
        if row:
            rows.append(_filled(row, wanted, space, left))
            _cover(rows[-1], left, strength)
        left.pop(wanted, None)
    return rows


def _combinations(space: Space, size: int) -> Iterator[Combination]:
    for names in combinations(space.domains, size):
        yield from (tuple(zip(names, values, strict=True)) for values in _products(names, space))


def _products(names: Sequence[str], space: Space) -> Iterator[tuple[str, ...]]:
    return product(*(space.domains[name] for name in names))


def _cover(row: Row, left: dict[Combination, None], strength: int) -> None:
    for each in combinations(row.items(), strength):
        left.pop(each, None)


def _over(fixed: Row, bases: Sequence[Row], space: Space) -> Row:
    """Return the first of some rows that is allowed with the fixed values put over it; {} for none."""
    return next(filter(space.allowed, ({**base, **fixed} for base in bases)), {})


def _flipped(fixed: Row, base: Row, space: Space) -> Row:
    """Return an allowed row that has the fixed values and else differs little from a base; {} for none."""
    free = [name for name in space.domains if name not in fixed]
    flips = (
        dict(zip(names, values, strict=True))
        for size in range(FLIPS_MAX + 1)
        for names in combinations(free, size)
        for values in _products(names, space)
    )
    return next(filter(space.allowed, ({**base, **each, **fixed} for each in flips)), {})


def _impossible(pair: Combination, usual: Row, space: Space, known: dict[Combination, bool]) -> bool:
    """Tell whether a pair is never allowed. Rules mostly refuse pairs, which are in many combinations."""
    if pair not in known:
        known[pair] = not _flipped(dict(pair), usual, space)
    return known[pair]


def _filled(row: Row, wanted: Combination, space: Space, left: Mapping[Combination, None]) -> Row:
    """Give each free name, one after another, the value that covers most of what is left and is allowed."""
    place = {name: number for number, name in enumerate(space.domains)}
    for name in [each for each in space.domains if each not in dict(wanted)]:
        others = [item for item in row.items() if item[0] != name]
        near = [
            (sum(place[each] < place[name] for each, _ in some), some)
            for some in combinations(others, len(wanted) - 1)
        ]
        gains = {
            value: sum((*some[:at], (name, value), *some[at:]) in left for at, some in near)
            for value in space.domains[name]
        }
        for value in sorted(gains, key=gains.__getitem__, reverse=True):
            if value == row[name] or space.allowed({**row, name: value}):
                row = {**row, name: value}
                break
    return row
