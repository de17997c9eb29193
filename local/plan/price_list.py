"""A dated list of prices, and facts about AWS with where each is from."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from local.paths import ROOT

FOLDER = ROOT / "local" / "plan" / "prices"
FACTS = ROOT / "local" / "plan" / "facts.json"
Amounts = Mapping[str, float]


class BadPriceList(ValueError):
    """A price list cannot be used; the text says why."""


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars for `per` units; the first `free` units of a month cost nothing."""

    dollars: float
    per: float
    unit: str
    free: float = 0.0

    def of(self, amount: float) -> float:
        """Return the dollars of so many units."""
        return max(0.0, amount - self.free) * self.dollars / self.per


@dataclass(frozen=True, slots=True)
class PriceList:
    """The prices of a region."""

    region: str
    dated: str  # when they were written down
    source: str
    prices: Mapping[str, Price]  # by name, such as `dynamodb.write`

    def dollars(self, amounts: Amounts) -> dict[str, float]:
        """Return what amounts cost, by name; raises BadPriceList for a name that has no price."""
        if missing := sorted(set(amounts) - set(self.prices)):
            raise BadPriceList(f"the price list of {self.region} lacks {', '.join(missing)}")
        return {name: self.prices[name].of(amount) for name, amount in amounts.items()}


def regions() -> list[str]:
    """Return the regions with a price list."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def prices_of(region: str, file: Path | None = None) -> PriceList:
    """Return a region's list, or that of a file of your own. Raises BadPriceList."""
    path = file or FOLDER / f"{region}.json"
    if file is None and region not in regions():
        known = ", ".join(regions())
        raise BadPriceList(
            f"--region: no prices of {region} (there are {known}); give yours with --prices FILE"
        )
    try:
        content = json.loads(path.read_text())
        prices = {name: _price(name, price) for name, price in content["prices"].items()}
        return PriceList(content["region"], content["dated"], content["source"], prices)
    except (KeyError, TypeError, ValueError, OSError) as error:
        raise BadPriceList(f"--prices: {path}: {type(error).__name__}: {error}") from None


def _price(name: str, content: Mapping[str, Any]) -> Price:
    price = Price(
        dollars=float(content["dollars"]),
        per=float(content["per"]),
        unit=str(content["unit"]),
        free=float(content.get("free", 0)),
    )
    if price.per <= 0 or price.dollars < 0:
        raise BadPriceList(f"{name}: dollars must not be below 0, per must be above 0")
    return price


@cache
def facts() -> Mapping[str, float]:
    """Return the figures of facts.json by name."""
    return {name: float(content["value"]) for name, content in json.loads(FACTS.read_text())["facts"].items()}


def fact(name: str) -> float:
    """Return one figure of facts.json."""
    return facts()[name]
