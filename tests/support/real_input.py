"""Two real histories (tests/data/README.md)."""

import csv
from dataclasses import dataclass
from datetime import date

from tests.support.template import ROOT

COMMITS = ROOT / "tests" / "data" / "commits.csv"
PURCHASES = ROOT / "tests" / "data" / "purchases.csv"
CUSTOMERS = 4_714


@dataclass(frozen=True, slots=True)
class Purchase:
    """One row. number: of the customer's rows; occurred_at: noon UTC, a stamp."""

    customer: str
    number: int
    day: date
    cents: int
    event_id: str

    @property
    def occurred_at(self) -> str:
        return f"{self.day.isoformat()}T12:00:00.000000Z"


def purchases() -> list[Purchase]:
    """Return all rows in the file's order."""
    numbers: dict[str, int] = {}
    found = []
    with PURCHASES.open(newline="") as lines:
        for row in csv.DictReader(lines):
            customer, text = row["customer_id"], row["date"]
            number = numbers[customer] = numbers.get(customer, 0) + 1
            whole, _, part = row["amount"].partition(".")
            day = date(int(text[:4]), int(text[4:6]), int(text[6:]))
            cents = int(whole) * 100 + int(part.ljust(2, "0"))
            found.append(Purchase(customer, number, day, cents, f"{hash_of(customer, number):032x}"))
    return found


def hash_of(customer: str, number: int) -> int:
    """A number that is spread like a UUID, and quick to make."""
    return (int(customer) * 1_000 + number) * 0x9E3779B97F4A7C15F39CC0605CEDC835 % (1 << 128)
