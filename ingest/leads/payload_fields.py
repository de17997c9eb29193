"""Readers of a payload's fields: ids, times, amounts, products.

They raise DecodeError that names the field.
"""

import re
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from ingest.leads.decoding import DecodeContext, DecodeError
from rules.days import parse_moment, stamp
from rules.leads.orders import EXPONENTS

ID_BYTES_MAX = 256
DECIMAL = re.compile(r"-?\d{1,15}(\.\d{1,12})?", re.ASCII)
NUMBER_MAX = AMOUNT_MINOR_MAX = 10**15
EPOCH_SECONDS_MAX = 253_402_300_799  # the end of the year 9999
PRODUCTS_MAX = 100
CURRENCY = re.compile(r"[A-Z]{3}", re.ASCII)


def text_id(value: Any, name: str) -> str:
    """Read an id, a text or a whole number, of at most 256 bytes; returns text."""
    if value is None or value == "":
        raise DecodeError(name, "is missing")
    if type(value) is int:
        value = str(value)
    if not isinstance(value, str) or not value.isprintable() or value != value.strip():
        raise DecodeError(name, "must be text without blanks around it, or a whole number")
    if len(value.encode()) > ID_BYTES_MAX:
        raise DecodeError(name, f"is over {ID_BYTES_MAX} bytes")
    return value


def moment(value: Any, name: str) -> str:
    """Read an RFC 3339 timestamp with Z or an offset; returns a stamp."""
    if value is None or value == "":
        raise DecodeError(name, "is missing")
    if not isinstance(value, str):
        raise DecodeError(name, "must be an RFC 3339 timestamp with Z or an offset")
    try:
        return stamp(parse_moment(value).utc)
    except ValueError as error:
        raise DecodeError(name, str(error)) from None


def epoch(value: Any, name: str) -> str:
    """Read whole seconds since 1970, as a number or as digits in a text; returns a stamp."""
    if value is None or value == "":
        raise DecodeError(name, "is missing")
    seconds = int(value) if isinstance(value, str) and re.fullmatch(r"[0-9]{1,12}", value) else value
    if type(seconds) is not int or not 0 <= seconds <= EPOCH_SECONDS_MAX:
        raise DecodeError(name, "must be whole seconds since 1970")
    return stamp(datetime.fromtimestamp(seconds, UTC))


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
    """Read a currency by its code of ISO 4217, such as EUR."""
    if value is None or value == "":
        raise DecodeError(name, "is missing")
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


def products(lines: Any, name: str) -> list[dict[str, Any]]:
    """Read [{product_id or sku, quantity?}]; returns one entry for each product, at most the first 100.

    Lines of the same product are added up. Lines without an id, or with quantity 0, are left out.
    """
    if not isinstance(lines, list):
        raise DecodeError(name, "must be a list")
    quantities: dict[str, int] = {}
    for place, line in enumerate(lines):
        if not isinstance(line, dict):
            raise DecodeError(f"{name}.{place}", "must be an object")
        product = line.get("product_id") or line.get("sku")
        quantity = line.get("quantity", 1)
        if type(quantity) is not int or not 0 <= quantity <= 10**9:
            raise DecodeError(f"{name}.{place}.quantity", "must be a whole number from 0")
        if product and quantity:
            key = text_id(product, f"{name}.{place}.product_id")
            quantities[key] = quantities.get(key, 0) + quantity
    listed = [{"product_id": each, "quantity": quantity} for each, quantity in quantities.items()]
    return listed[:PRODUCTS_MAX]
