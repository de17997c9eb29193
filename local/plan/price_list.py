"""A dated list of prices, and facts about AWS with where each is from."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from local.paths import ROOT

PRICES = ROOT / "local" / "plan" / "prices" / "us-east-1.json"
FACTS = ROOT / "local" / "plan" / "facts.json"


class BadPriceList(ValueError):
    """A price list cannot be used; the text says why."""


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars for `per` units; the first `free` units of a month cost nothing."""

    dollars: float
    per: float
    unit: str
    free: float = 0.0

    def __post_init__(self) -> None:
        if not (self.per > 0 and self.dollars >= 0 and self.free >= 0):
            raise ValueError(f"{self.unit}: dollars and free must not be below 0, per must be above 0")


@dataclass(frozen=True, slots=True)
class PriceList:
    """The prices of a region."""

    region: str
    dated: str  # when they were written down
    source: str
    prices: Mapping[str, Price]  # by name, such as `dynamodb.write`

    def dollars(self, amounts: Mapping[str, float]) -> dict[str, float]:
        """Return what amounts cost, by name; raises BadPriceList for a name that has no price."""
        if missing := sorted(set(amounts) - set(self.prices)):
            raise BadPriceList(f"the price list of {self.region} lacks {', '.join(missing)}")
        prices = {name: self.prices[name] for name in amounts}
        return {
            name: max(0.0, amounts[name] - price.free) * price.dollars / price.per
            for name, price in prices.items()
        }


def read_prices(path: Path = PRICES) -> PriceList:
    """Return the list of a file. Raises BadPriceList."""
    try:
        content = json.loads(path.read_text())
        prices = {name: Price(**price) for name, price in content["prices"].items()}
        return PriceList(content["region"], content["dated"], content["source"], prices)
    except (AttributeError, KeyError, TypeError, ValueError, OSError) as error:
        raise BadPriceList(f"--prices: {path}: {type(error).__name__}: {error}") from None


@cache
def _facts() -> Mapping[str, float]:
    return {name: float(content["value"]) for name, content in json.loads(FACTS.read_text())["facts"].items()}


def fact(name: str) -> float:
    """Return one figure of facts.json."""
    return _facts()[name]
