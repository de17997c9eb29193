"""How sums over events are counted: in whole thousandths, so they are exact in any order of their parts."""

from decimal import Decimal

UNIT = 1000
COUNTED = "n"  # what stands first in every event's measures


def thousandths(number: float) -> int:
    """Return a number in thousandths, rounded half to even: exact for one with up to three decimals."""
    return round(Decimal(str(number)) * UNIT)
