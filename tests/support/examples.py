"""How many examples a property is tried with."""

from hypothesis import settings

FULL = 100  # of hypothesis itself


def examples(number: int) -> int:
    """Return a profile's share of the number: of 100 examples `make check` tries 5, `make test` 10, `make soak` 500.

    At least two: the first one of hypothesis is the simplest, the same each time.
    """
    return max(2, number * settings().max_examples // FULL)
