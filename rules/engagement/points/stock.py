"""How many of a reward are left, so that all may take at once (docs/rules.md, rule 13).

A stock lies in slices, and each slice counts what was taken of its share. A share follows from the stock
alone, and what was taken only grows. So a slice that is full stays full until the stock is raised, and who
has seen all of them full need not ask them again. What comes back by a reversal is no slice's: it is in a
place of its own, the spares, and is taken last. So when somebody looks at the spares, nothing else can be
left: one look decides.
"""

from collections.abc import Mapping

# A thousand redemptions a second are four for each item: with transactions of 15 ms, one in 16 meets another.
SLICES = 256
# Partitions of the table. One takes a thousand write units a second; a piece that is taken costs two.
GROUPS = 4
SPARES = -1  # in the place of a slice's number


def share(stock: int, number: int) -> int:
    """Return how many of a stock belong to a slice: all shares are the stock, and differ by one at most."""
    return (stock + SLICES - 1 - number) // SLICES


def group_of(number: int) -> int:
    """Return the partition of a slice."""
    return number % GROUPS


def open_slices(stock: int, taken: Mapping[int, int]) -> tuple[int, ...]:
    """Return the slices of which something is left. taken: by slice; nothing of those it lacks."""
    return tuple(number for number in range(SLICES) if taken.get(number, 0) < share(stock, number))


def pieces_left(stock: int, taken: Mapping[int, int], spares: int) -> int:
    """Return how many are left in all."""
    return spares + sum(max(0, share(stock, number) - taken.get(number, 0)) for number in range(SLICES))
