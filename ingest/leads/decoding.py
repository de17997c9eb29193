"""What the decoders of lead sources share: their values, and reading fields that name themselves when bad."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from ingest.web.json_schema import Schema
from ingest.web.validate import first_problem
from rules.days import parse_moment, stamp
from rules.leads.identity import Identity, identity
from rules.leads.language import read_text

ID_BYTES_MAX = 256
DECIMAL = re.compile(r"-?\d{1,15}(\.\d{1,12})?", re.ASCII)
NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}", re.ASCII)
NUMBER_MAX = AMOUNT_MINOR_MAX = 10**15
EPOCH_SECONDS_MAX = 253_402_300_799  # the end of the year 9999
IDENTITIES_MAX = 20
PREFERENCES_MAX = 20
VALUE_CHARACTERS_MAX = 128
PRODUCTS_MAX = 100
# ISO 4217's currencies whose minor unit is not a hundredth.
WHOLE = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF"
THOUSANDTHS = "BHD IQD JOD KWD LYD OMR TND"
EXPONENTS = dict.fromkeys(WHOLE.split(), 0) | dict.fromkeys(THOUSANDTHS.split(), 3)


class DecodeError(ValueError):
    """A payload that is no event of its source: the field at fault (a path from the payload) and a reason."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field} {reason}")
        self.field, self.reason = field, reason


@dataclass(frozen=True, slots=True)
class DecodeContext:
    """What a payload does not say itself. currency: ISO 4217, of all amounts; received_at: a stamp."""

    organization_id: str
    integration: str
    currency: str
    received_at: str

    @property
    def source(self) -> str:
        """The scope of external event ids."""
        return f"{self.organization_id}/{self.integration}"


@dataclass(frozen=True, slots=True)
class DecodedEvent:
    """One event of a payload. external_event_id is unique in its integration, the same in every resend.

    occurred_at: a stamp; payload: by event type, see rules.leads.lead_events.LeadEvent.
    """

    external_event_id: str
    event_type: str
    occurred_at: str
    identities: tuple[Identity, ...]
    object_id: str | None = None
    object_id_ref: str | None = None
    payload: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PayloadPart:
    """The piece of a payload that holds one event, in a shape that its decoder takes by itself.

    path: where the event is in the whole payload; inner: where it is in the piece.
    """

    payload: Any
    path: str = ""
    inner: str = ""


def checked(schema: Schema, payload: Any) -> dict[str, Any]:
    """Return the payload, an object of this schema; raises DecodeError."""
    if problem := first_problem(schema, payload):
        raise DecodeError("" if problem[0] == "body" else problem[0], problem[1])
    return dict(payload)


def text_id(value: Any, name: str) -> str:
    """Read an id: text, or a whole number."""
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
    """Read whole seconds since 1970, a number or digits; returns a stamp."""
    if value is None or value == "":
        raise DecodeError(name, "is missing")
    seconds = int(value) if isinstance(value, str) and re.fullmatch(r"[0-9]{1,12}", value) else value
    if type(seconds) is not int or not 0 <= seconds <= EPOCH_SECONDS_MAX:
        raise DecodeError(name, "must be whole seconds since 1970")
    return stamp(datetime.fromtimestamp(seconds, UTC))


def decimal(value: Any, name: str) -> Decimal:
    """Read a number exactly: decimal text, or a JSON number by its shortest text."""
    if value is None or value == "":
        raise DecodeError(name, "is missing")
    if isinstance(value, str) and DECIMAL.fullmatch(value):
        return Decimal(value)
    if type(value) in (int, float) and abs(value) < NUMBER_MAX:
        return Decimal(repr(value))
    raise DecodeError(name, "must be a decimal number of at most 15 digits and 12 decimals")


def minor_units(value: Any, currency: str, name: str) -> int:
    """Read an amount, not below 0, in whole minor units of its currency (11.77 USD is 1177)."""
    exponent = EXPONENTS.get(currency, 2)
    amount = decimal(value, name).scaleb(exponent)
    if amount != amount.to_integral_value():
        raise DecodeError(name, f"has more than the {exponent} decimals of {currency}")
    if not 0 <= amount <= AMOUNT_MINOR_MAX:
        raise DecodeError(name, f"must be from 0 to {AMOUNT_MINOR_MAX} minor units")
    return int(amount)


def same_currency(value: Any, context: DecodeContext, name: str = "currency") -> str:
    """Read a currency, which must be the one that amounts are in."""
    if value is None or value == "":
        raise DecodeError(name, "is missing")
    if value != context.currency:
        raise DecodeError(name, f"must be {context.currency}")
    return context.currency


def identities(found: Iterable[tuple[str, Any]], context: DecodeContext, at: str) -> tuple[Identity, ...]:
    """Return those of (channel, raw) pairs that identify somebody, each once, in order.

    A foreign system's forms hold much that identifies nobody: an empty text, `n/a`. It is passed over; raises
    DecodeError where nothing is left. at: the field that is named then.
    """
    usable: dict[Identity, None] = {}
    for channel, raw in found:
        try:
            usable.setdefault(_identity(channel, raw, context))
        except ValueError:
            continue
    if not usable:
        raise DecodeError(at, "has no usable identity")
    return tuple(usable)[:IDENTITIES_MAX]


def strict_identities(given: Mapping[str, Any], context: DecodeContext, at: str) -> tuple[Identity, ...]:
    """Read {channel: id or [ids]}, all of which must be good; raises DecodeError that names the bad one."""
    found: dict[Identity, None] = {}
    for channel, ids in given.items():
        for raw in ids if isinstance(ids, list) else [ids]:
            try:
                found.setdefault(_identity(channel, raw, context))
            except ValueError as error:
                raise DecodeError(f"{at}.{channel}"[:100], str(error)[:200]) from None
    if not 1 <= len(found) <= IDENTITIES_MAX:
        raise DecodeError(at, f"must hold 1 to {IDENTITIES_MAX} identities")
    return tuple(found)


def _identity(channel: str, raw: Any, context: DecodeContext) -> Identity:
    if type(raw) not in (str, int):
        raise ValueError("must be text or a whole number")
    return identity(channel, str(raw), context.organization_id, context.integration)


def derived_from_text(
    text: Any, sentiment: Any = None, objections: Any = None, preferences: Any = None
) -> dict[str, Any]:
    """Return what is derived from a person's words; the words themselves are not in it.

    sentiment (-1 to 1), objections, preferences: as the integration has them; they win over our reading.
    """
    reading = read_text(text if isinstance(text, str) else "")
    topics = topics_of(objections) if objections is not None else list(reading.objections)
    milli = reading.sentiment_milli if sentiment is None else thousandths(sentiment, "sentiment")
    derived = {
        "sentiment_milli": milli,
        "objections": topics or None,
        "preferences": preferences_of(preferences) if preferences is not None else None,
    }
    return {name: value for name, value in derived.items() if value is not None and value != {}}


def thousandths(value: Any, name: str) -> int:
    """Read a score from -1 to 1 in whole thousandths, rounded half away from 0."""
    score = decimal(value, name)
    if not -1 <= score <= 1:
        raise DecodeError(name, "must be a number from -1 to 1")
    milli = int(abs(score) * 1000 + Decimal("0.5"))
    return -milli if score < 0 else milli


def topics_of(value: Any, name: str = "objections") -> list[str]:
    """Read a list of topics, each once, in the order of their names."""
    if not isinstance(value, list) or len(value) > PREFERENCES_MAX:
        raise DecodeError(name, f"must be a list of at most {PREFERENCES_MAX} topics")
    for topic in value:
        if not isinstance(topic, str) or NAME.fullmatch(topic) is None:
            raise DecodeError(name, "must hold names: lower case letters, digits, _ . -")
    return sorted(set(value))


def preferences_of(value: Any, name: str = "preferences") -> dict[str, Any]:
    """Read {name: value}; a value is a short text, a whole number or a flag."""
    if not isinstance(value, dict) or len(value) > PREFERENCES_MAX:
        raise DecodeError(name, f"must be an object of at most {PREFERENCES_MAX} names")
    for key, each in value.items():
        if NAME.fullmatch(key) is None:
            raise DecodeError(name, "must have names of lower case letters, digits, _ . -")
        if type(each) not in (str, int, bool) or len(str(each)) > VALUE_CHARACTERS_MAX:
            reason = f"must be text of at most {VALUE_CHARACTERS_MAX} characters, a whole number or a flag"
            raise DecodeError(f"{name}.{key}", reason)
    return value


def products(lines: Any, name: str) -> list[dict[str, Any]]:
    """Read [{product_id or sku, quantity?}], an entry a product, the first 100.

    Lines without an id are left out.
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
