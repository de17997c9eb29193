"""How many examples a property is tried with."""

from hypothesis import settings

FULL = 100  # of hypothesis itself


def examples(number: int) -> int:
    """Return the number, or in the gate's profile its share of it (tests/conftest.py)."""
    return max(1, number * settings().max_examples // FULL)
