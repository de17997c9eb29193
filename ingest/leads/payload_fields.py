"""Readers of a payload's fields: ids, times, amounts, products.

There are two kinds. Functions read what an event must have: they raise DecodeError that names the field, and
so refuse the event. `SideFields` reads everything else: what it cannot read is left out and noted, and the
event stays.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, TypeVar

from ingest.leads.decoding import DecodeContext, DecodeError, Omission
from rules.days import parse_moment, stamp
from rules.leads.orders import EXPONENTS

ID_BYTES_MAX = 256
DECIMAL = re.compile(r"\s*[+-]?(?=\.?\d)\d{0,15}(\.\d{0,12})?\s*", re.ASCII)
NUMBER_MAX = AMOUNT_MINOR_MAX = 10**15
EPOCH_SECONDS_MAX = 253_402_300_799  # the end of the year 9999
WHOLE_FLOAT_MAX = 2**53  # beyond it a double is no longer one whole number
PRODUCTS_MAX = 100
LINES_MAX = 1_000
QUANTITY_MAX = 10**9
OMISSIONS_MAX = 20  # that are noted of one event
T = TypeVar("T")
LOOSE_MOMENT = re.compile(r"^(\S{10})[ T](\d\d:\d\d:\d\d\S*?) ?([+-]\d\d):?(\d\d)$", re.ASCII)
CURRENCY = re.compile(r"[A-Z]{3}", re.ASCII)


def text_id(value: Any, name: str) -> str:
    """Read an id, a text or a whole number (7 or 7.0), of at most 256 bytes; returns text."""
    if value is None or value == "":
        raise DecodeError(name, "is missing")
    value = number_as_text(value)
    if not isinstance(value, str) or not value.isprintable() or value != value.strip():
        raise DecodeError(name, "must be text without blanks around it, or a whole number")
    if len(value.encode()) > ID_BYTES_MAX:
        raise DecodeError(name, f"is over {ID_BYTES_MAX} bytes")
    return value


def number_as_text(value: Any) -> Any:
    """Return a whole number as its digits, and anything else as it is: a sender may write 7, 7.0 or "7"."""
    if type(value) is float and value.is_integer() and abs(value) < WHOLE_FLOAT_MAX:
        value = int(value)
    return str(value) if type(value) is int else value


def moment(value: Any, name: str) -> str:
    """Read an RFC 3339 timestamp with Z or an offset; returns a stamp.

    Some senders write a blank for the T, and an offset without its colon: `2026-03-02 04:30:00 +0000`.
    """
    if value is None or value == "":
        raise DecodeError(name, "is missing")
    if not isinstance(value, str):
        raise DecodeError(name, "must be an RFC 3339 timestamp with Z or an offset")
    try:
        return stamp(parse_moment(LOOSE_MOMENT.sub(r"\1T\2\3:\4", value)).utc)
    except ValueError as error:
        raise DecodeError(name, str(error)) from None


def epoch(value: Any, name: str) -> str:
    """Read seconds since 1970, as a number or as digits in a text; returns a stamp, of whole seconds."""
    if value is None or value == "":
        raise DecodeError(name, "is missing")
    seconds = Decimal(-1)
    with suppress(DecodeError):
        seconds = decimal(value, name)
    if not 0 <= seconds <= EPOCH_SECONDS_MAX:
        raise DecodeError(name, "must be whole seconds since 1970")
    return stamp(datetime.fromtimestamp(int(seconds), UTC))


def decimal(value: Any, name: str) -> Decimal:
    """Read a number exactly, from a text or a JSON number: 0.1 is Decimal("0.1"), not the nearest float."""
    if value is None or value == "":
        raise DecodeError(name, "is missing")
    if isinstance(value, str) and DECIMAL.fullmatch(value):
        return Decimal(value)
    if type(value) in (int, float) and abs(value) < NUMBER_MAX:
        return Decimal(repr(value))
    raise DecodeError(name, "must be a decimal number of at most 15 digits and 12 decimals")


def minor_units(value: Any, currency: str, name: str) -> int:
    """Read an amount of 0 or more; returns whole minor units of its currency (11.77 USD is 1177)."""
    exponent = EXPONENTS.get(currency, 2)
    amount = decimal(value, name).scaleb(exponent)
    if amount != amount.to_integral_value():
        raise DecodeError(name, f"has more than the {exponent} decimals of {currency}")
    if not 0 <= amount <= AMOUNT_MINOR_MAX:
        raise DecodeError(name, f"must be from 0 to {AMOUNT_MINOR_MAX} minor units")
    return int(amount)


def currency_of(value: Any, name: str = "currency") -> str:
    """Read a currency by its code of ISO 4217, such as EUR, or eur."""
    if value is None or value == "":
        raise DecodeError(name, "is missing")
    value = value.strip().upper() if isinstance(value, str) else value
    if not isinstance(value, str) or CURRENCY.fullmatch(value) is None:
        raise DecodeError(name, "must be three capital letters, a code of ISO 4217")
    return value


def amount_in(currency: str, amount: int, context: DecodeContext) -> dict[str, Any]:
    """Return an amount as an event holds it: apart from those in the organization's own currency.

    Nobody can add up amounts of two currencies, so an event has one of two fields: see LeadEvent.
    """
    return {"currency": currency, "amount_minor" if currency == context.currency else "foreign_minor": amount}


def thousandths(value: Any, name: str) -> int:
    """Read a score from -1 to 1; returns whole thousandths, with halves rounded away from 0."""
    score = decimal(value, name)
    if not -1 <= score <= 1:
        raise DecodeError(name, "must be a number from -1 to 1")
    milli = int(abs(score) * 1000 + Decimal("0.5"))
    return -milli if score < 0 else milli


class SideFields:
    """Reads what an event can do without, and never raises. It notes what it leaves out."""

    def __init__(self) -> None:
        self._omissions: list[Omission] = []

    @property
    def omissions(self) -> tuple[Omission, ...]:
        """What could not be read, at most 20."""
        return tuple(self._omissions[:OMISSIONS_MAX])

    def omit(self, name: str, reason: str) -> None:
        """Note that a field is left out."""
        if len(self._omissions) < OMISSIONS_MAX:
            self._omissions.append(Omission(name, reason))

    def read(self, reader: Callable[[Any, str], T], value: Any, name: str) -> T | None:
        """Return what a reader of this module makes of a value; None if it is absent or cannot be read."""
        if value is None or value == "":
            return None
        try:
            return reader(value, name)
        except DecodeError as error:
            self.omit(error.field, error.reason)
            return None

    def items(self, value: Any, name: str, most: int) -> list[tuple[str, Any]]:
        """Return the items of a list with their paths, such as `refunds.0`; at most so many."""
        if value is None or value == "":
            return []
        if not isinstance(value, list):
            self.omit(name, "must be a list")
            return []
        if len(value) > most:
            self.omit(name, f"has more than {most} items; the first ones are read")
        return [(f"{name}.{place}", each) for place, each in enumerate(value[:most])]

    def objects(self, value: Any, name: str, most: int) -> list[tuple[str, dict[str, Any]]]:
        """Return those items of a list that are objects, with their paths."""
        found = self.items(value, name, most)
        for path, each in found:
            if not isinstance(each, dict):
                self.omit(path, "must be an object")
        return [(path, each) for path, each in found if isinstance(each, dict)]


def products(lines: Any, name: str, side: SideFields | None = None) -> list[dict[str, Any]]:
    """Read [{product_id or sku, quantity?}]; returns one entry for each product, at most the first 100.

    Lines of the same product are added up. Lines without an id, or with quantity 0, are left out. A quantity
    that cannot be read counts as one: the product was bought. Nothing is raised: side notes what is odd.
    """
    side, quantities = side or SideFields(), dict[str, int]()
    for path, line in side.objects(lines, name, LINES_MAX):
        product = _product(line, path, side)
        quantity = side.read(_quantity, line.get("quantity"), f"{path}.quantity")
        quantity = 1 if quantity is None else quantity
        if product and quantity > 0:
            quantities[product] = min(quantities.get(product, 0) + quantity, QUANTITY_MAX)
        elif product and quantity < 0:
            side.omit(f"{path}.quantity", "is below 0")
    listed = [{"product_id": each, "quantity": quantity} for each, quantity in quantities.items()]
    return listed[:PRODUCTS_MAX]


def _product(line: dict[str, Any], path: str, side: SideFields) -> str | None:
    """Return a line's product_id, or its sku; blanks around a sku that somebody typed are no part of it."""
    for name in ("product_id", "sku"):
        given = line.get(name) or None
        if found := side.read(text_id, given.strip() if isinstance(given, str) else given, f"{path}.{name}"):
            return found
    return None


def _quantity(value: Any, name: str) -> int:
    number = decimal(value, name)
    if number != number.to_integral_value() or abs(number) > QUANTITY_MAX:
        raise DecodeError(name, f"must be a whole number of at most {QUANTITY_MAX}")
    return int(number)
