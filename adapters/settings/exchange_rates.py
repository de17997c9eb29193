"""What one unit of a currency is worth in the organizations' own."""

import re
from collections.abc import Mapping
from decimal import Decimal
from functools import cache

RATE = re.compile(r"([A-Z]{3})=(\d{1,9}(?:\.\d{1,9})?)", re.ASCII)


@cache
def exchange_rates(setting: str) -> Mapping[str, Decimal]:
    """Read the setting ExchangeRates: `EUR=1.08 JPY=0.0067`; returns the rate by ISO 4217 code.

    Raises ValueError that names the bad part: one that is no rate, 0, or a currency's second rate.
    """
    found: dict[str, Decimal] = {}
    for part in setting.split():
        match = RATE.fullmatch(part)
        if match is None or not Decimal(match[2]) or match[1] in found:
            raise ValueError(f"ExchangeRates: {part} is not one rate above 0, such as EUR=1.08")
        found[match[1]] = Decimal(match[2])
    return found
