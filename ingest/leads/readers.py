"""What decoders of lead sources take and return, and the readers of fields that they share.

Functions such as `moment` read what an event must have: they raise a DecodeError that names the field, which
refuses the event. `SideFields` reads everything else: it leaves out and notes what it cannot read. `name` is
always the field's path in the payload, as errors name it.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, TypeVar

from ingest.leads.spelling import identity
from ingest.web.json_schema import Schema
from ingest.web.validate import first_problem
from rules.days import parse_moment, stamp
from rules.leads.consent import consent_in
from rules.leads.identity import Identity
from rules.leads.lead_events import CAMPAIGN_UNSUBSCRIBED, NOTIFICATIONS, OFF, body_hash
from rules.leads.objections import objections_in
from rules.leads.orders import EXPONENTS, OrderState

ID_BYTES_MAX = 256
# Up to 15 digits and 12 decimals, with at least one of either.
DECIMAL = re.compile(r"\s*[+-]?(?=\.?\d)\d{0,15}(\.\d{0,12})?\s*", re.ASCII)
NUMBER_MAX = AMOUNT_MINOR_MAX = 10**15
EPOCH_SECONDS_MAX = 253_402_300_799  # the end of the year 9999
WHOLE_FLOAT_MAX = 2**53  # beyond it a double is no longer one whole number
PRODUCTS_MAX = 100
LINES_MAX = 1_000
QUANTITY_MAX = 10**9
OMISSIONS_MAX = 20  # that are noted of one event
T = TypeVar("T")
# An RFC 3339 timestamp with blanks, or without the colon of its offset.
LOOSE_MOMENT = re.compile(r"^(\S{10})[ T](\d\d:\d\d:\d\d\S*?) ?([+-]\d\d):?(\d\d)$", re.ASCII)
CURRENCY = re.compile(r"[A-Z]{3}", re.ASCII)
NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}", re.ASCII)
IDENTITIES_MAX = 20
PREFERENCES_MAX = 20
VALUE_CHARACTERS_MAX = 128
REASON_CHARACTERS_MAX = 200
OFF_WORDS = (OFF, "false", "no", "none")
# Begins the id of an opt-out that came without one. Two with one such id are the same, whatever else differs.
OPT_OUT_ID = "opt-out:"
# The type of an event that asks for an erasure. It is carried out, and never stored.
ERASURE_REQUESTED = "erasure_requested"


class DecodeError(ValueError):
    """A payload that is no event of its source. field: the path of the bad field; reason: what is wrong."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field} {reason}")
        self.field, self.reason = field, reason


@dataclass(frozen=True, slots=True)
class Omission:
    """A side field that an event goes without."""

    field: str  # its path in the payload
    reason: str  # what is wrong


@dataclass(frozen=True, slots=True)
class DecodeContext:
    """What a decoder needs beside the payload."""

    organization_id: str
    integration: str
    currency: str  # ISO 4217, the organization's own
    received_at: str  # a stamp
    # ISO 3166: the country of telephone numbers without a country code. None: such numbers are refused
    region: str | None = None
    topic: str = ""  # the kind of webhook, if a header says it
    delivery_id: str = ""  # the vendor's name for this delivery
    # Whether a secret of the organization signed the payload, so that no stranger can have sent it
    is_signed: bool = False

    @property
    def source(self) -> str:
        """The scope of external event ids: `acme/ecommerce`."""
        return f"{self.organization_id}/{self.integration}"


@dataclass(frozen=True, slots=True)
class OrderPart:
    """What a payload says of a shop's order."""

    order_id: str
    state: OrderState
    products: tuple[Mapping[str, Any], ...] = ()  # as rules.leads.lead_events lists them


@dataclass(frozen=True, slots=True)
class ErasurePart:
    """A request to erase the lead of the event's identities, and of these orders of the source."""

    order_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DecodedEvent:
    """One event of a payload."""

    external_event_id: str  # unique in its integration, and the same in every resend
    event_type: str
    occurred_at: str  # a stamp
    identities: tuple[Identity, ...]
    object_id: str | None = None  # what the event is about (an order, a message, a campaign)
    object_id_ref: str | None = None  # what kind of thing that is
    # Its fields depend on the event type, see rules.leads.lead_events.LeadEvent
    payload: Mapping[str, Any] = field(default_factory=dict)
    # If it is about an order. Then the changes of the order's state are stored, instead of this event.
    order: OrderPart | None = None
    erasure: ErasurePart | None = None  # if it asks for an erasure
    omissions: tuple[Omission, ...] = ()  # side fields that could not be read

    @property
    def is_opt_out(self) -> bool:
        """Whether it says that somebody wants no more messages, or none of a campaign's kind.

        Such an event hangs on no field that it does not need (docs/rules.md, "Who wants no more messages").
        """
        consent = self.payload.get("consent", {})
        return self.event_type == CAMPAIGN_UNSUBSCRIBED or consent.get(NOTIFICATIONS) == OFF


@dataclass(frozen=True, slots=True)
class PayloadPart:
    """The piece of a payload that holds one event."""

    payload: Any  # a payload of the source's shape that has this event alone
    # The event's path in the whole payload, which errors name: `entry.0.changes.0.value.messages.3`
    path: str = ""
    # The path within `payload`, with which the decoder's errors begin: `entry.0.changes.0.value.messages.0`
    inner: str = ""


def checked(schema: Schema, payload: Any) -> dict[str, Any]:
    """Return the payload if it is an object that the schema accepts; raises DecodeError if not."""
    if problem := first_problem(schema, payload):
        raise DecodeError("" if problem[0] == "body" else problem[0], problem[1])
    return dict(payload)


def text_id(value: Any, name: str) -> str:
    """Read an id, a text or a whole number (7 or 7.0), of at most 256 bytes; returns text."""
    _require(value, name)
    value = number_as_text(value)
    if not isinstance(value, str) or not value.isprintable() or value != value.strip():
        raise DecodeError(name, "must be text without blanks around it, or a whole number")
    if len(value.encode()) > ID_BYTES_MAX:
        raise DecodeError(name, f"is over {ID_BYTES_MAX} bytes")
    return value


def is_absent(value: Any) -> bool:
    """Whether a sender has left a field out, or empty."""
    return value is None or value == ""


def _require(value: Any, name: str) -> None:
    if is_absent(value):
        raise DecodeError(name, "is missing")


def number_as_text(value: Any) -> Any:
    """Return a whole number as its digits, and anything else as it is: a sender may write 7, 7.0 or "7"."""
    if type(value) is float and value.is_integer() and abs(value) < WHOLE_FLOAT_MAX:
        value = int(value)
    return str(value) if type(value) is int else value


def moment(value: Any, name: str) -> str:
    """Read an RFC 3339 timestamp with Z or an offset; returns a stamp.

    Some senders write a blank for the T, and an offset without its colon: `2026-03-02 04:30:00 +0000`.
    """
    _require(value, name)
    if not isinstance(value, str):
        raise DecodeError(name, "must be an RFC 3339 timestamp with Z or an offset")
    try:
        return stamp(parse_moment(LOOSE_MOMENT.sub(r"\1T\2\3:\4", value)).utc)
    except ValueError as error:
        raise DecodeError(name, str(error)) from None


def epoch(value: Any, name: str) -> str:
    """Read seconds since 1970, as a number or as digits in a text; returns a stamp, of whole seconds."""
    _require(value, name)
    seconds = Decimal(-1)
    with suppress(DecodeError):
        seconds = decimal(value, name)
    if not 0 <= seconds <= EPOCH_SECONDS_MAX:
        raise DecodeError(name, "must be whole seconds since 1970")
    return stamp(datetime.fromtimestamp(int(seconds), UTC))


def decimal(value: Any, name: str) -> Decimal:
    """Read a number exactly, from a text or a JSON number: 0.1 is Decimal("0.1"), not the nearest float."""
    _require(value, name)
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
    _require(value, name)
    value = value.strip().upper() if isinstance(value, str) else value
    if not isinstance(value, str) or CURRENCY.fullmatch(value) is None:
        raise DecodeError(name, "must be three capital letters, a code of ISO 4217")
    return value


def amount_in(currency: str, amount: int, context: DecodeContext) -> dict[str, Any]:
    """Return the payload fields of an amount: `amount_minor` if it is in the organization's currency.

    Otherwise it is `foreign_minor`, because amounts of two currencies cannot be added up.
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
    """Reads fields that an event can do without. It never raises, and notes what it leaves out."""

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
        if is_absent(value):
            return None
        try:
            return reader(value, name)
        except DecodeError as error:
            self.omit(error.field, error.reason)
            return None

    def items(self, value: Any, name: str, most: int) -> list[tuple[str, Any]]:
        """Return the items of a list with their paths, such as `refunds.0`; the first `most` of them."""
        if is_absent(value):
            return []
        if not isinstance(value, list):
            self.omit(name, "must be a list")
            return []
        if len(value) > most:
            self.omit(name, f"has more than {most} items; the first ones are read")
        return [(f"{name}.{index}", item) for index, item in enumerate(value[:most])]

    def objects(self, value: Any, name: str, most: int) -> list[tuple[str, dict[str, Any]]]:
        """Return those items of a list that are objects, with their paths."""
        objects: list[tuple[str, dict[str, Any]]] = []
        for path, item in self.items(value, name, most):
            if isinstance(item, dict):
                objects.append((path, item))
            else:
                self.omit(path, "must be an object")
        return objects


def products(lines: Any, name: str, side: SideFields) -> list[dict[str, Any]]:
    """Read [{product_id or sku, quantity?}]; returns one entry for each product, at most the first 100.

    Lines of the same product are added up. Lines without an id, or with quantity 0, are left out. A quantity
    that cannot be read counts as one: the product was bought. Nothing is raised: side notes what is odd.
    """
    quantities = dict[str, int]()
    for path, line in side.objects(lines, name, LINES_MAX):
        product = _product(line, path, side)
        quantity = side.read(_quantity, line.get("quantity"), f"{path}.quantity")
        quantity = 1 if quantity is None else quantity
        if product and quantity > 0:
            quantities[product] = min(quantities.get(product, 0) + quantity, QUANTITY_MAX)
        elif product and quantity < 0:
            side.omit(f"{path}.quantity", "is below 0")
    bought = [{"product_id": product, "quantity": quantity} for product, quantity in quantities.items()]
    return bought[:PRODUCTS_MAX]


def _product(line: dict[str, Any], path: str, side: SideFields) -> str | None:
    """Return a line's product_id, or its sku. Blanks around it are left out: somebody may have typed it."""
    for name in ("product_id", "sku"):
        raw = line.get(name) or None
        if product := side.read(text_id, raw.strip() if isinstance(raw, str) else raw, f"{path}.{name}"):
            return product
    return None


def _quantity(value: Any, name: str) -> int:
    number = decimal(value, name)
    if number != number.to_integral_value() or abs(number) > QUANTITY_MAX:
        raise DecodeError(name, f"must be a whole number of at most {QUANTITY_MAX}")
    return int(number)


def identities(
    pairs: Iterable[tuple[str, Any]],
    context: DecodeContext,
    at: str,
    *,
    are_verified: bool,
    side: SideFields | None = None,
) -> tuple[Identity, ...]:
    """Return the identities in (channel, raw value) pairs as `usable_identities` does.

    Raises DecodeError that names the field `at` if there are none.
    """
    side = side or SideFields()
    usable = usable_identities(pairs, context, at, are_verified=are_verified, side=side)
    if not usable:
        raise DecodeError(at, "has no usable identity")
    return usable


def usable_identities(
    pairs: Iterable[tuple[str, Any]],
    context: DecodeContext,
    at: str,
    *,
    are_verified: bool,
    side: SideFields,
) -> tuple[Identity, ...]:
    """Return the identities in (channel, raw value) pairs, each once, in order, at most 20.

    are_verified: whether the source proves that they are this person's (docs/rules.md, "Who is who").
    Other systems often send values that identify nobody, such as an empty text or `n/a`. These are left out,
    and side notes them under `at`.
    """
    usable = dict[Identity, None]()
    for channel, raw in pairs:
        if is_absent(raw):
            continue
        try:
            usable.setdefault(read_identity(channel, raw, context, is_verified=are_verified))
        except ValueError as error:
            side.omit(f"{at}.{channel}", str(error)[:REASON_CHARACTERS_MAX])
    return tuple(usable)[:IDENTITIES_MAX]


def read_identity(channel: str, raw: Any, context: DecodeContext, *, is_verified: bool) -> Identity:
    """Return the identity of one channel in its one spelling; raises ValueError with the reason."""
    text = number_as_text(raw)
    if not isinstance(text, str):
        raise ValueError("must be text or a whole number")  # noqa: TRY004 (a sender's fault)
    scope = (context.organization_id, context.integration)
    return identity(channel, text, *scope, is_verified=is_verified, region=context.region)


def derived_from_text(
    text: Any, sentiment: Any, side: SideFields, objections: Any = None, preferences: Any = None
) -> dict[str, Any]:
    """Return the payload fields that follow from a person's words, without the words. It never raises.

    sentiment (-1 to 1), objections, preferences: as the integration says. Objections are found in the text if
    it says none; a sentiment is never made up.
    """
    topics = objections_in(text if isinstance(text, str) else "")
    derived = {
        "sentiment_milli": side.read(thousandths, sentiment, "sentiment"),
        "objections": (list(topics) if objections is None else topics_of(objections, side)) or None,
        "preferences": preferences_of(preferences, side) or None,
    }
    return {name: value for name, value in derived.items() if value is not None}


def typed_opt_out(text: Any) -> dict[str, Any]:
    """Return the payload field of a text that says "stop" and nothing else; {} for any other text.

    Only an opt-out counts, because anybody can type another person's address beside a word such as START.
    """
    consent = consent_in(text) if isinstance(text, str) else {}
    return {"consent": dict(consent)} if consent.get(NOTIFICATIONS) == OFF else {}


def preferred_opt_out(preferences: Any) -> dict[str, Any]:
    """Return the same field of preferences that say {"notifications": "off"} (or false); {} for others."""
    value = preferences.get(NOTIFICATIONS) if isinstance(preferences, Mapping) else None
    is_off = value is False or (isinstance(value, str) and value.strip().casefold() in OFF_WORDS)
    return {"consent": {NOTIFICATIONS: OFF}} if is_off else {}


def opt_out_time(
    value: Any, name: str, context: DecodeContext, side: SideFields, reader: Callable[[Any, str], str] = epoch
) -> tuple[str, str]:
    """Return when somebody opted out (a stamp), and the text that names this time in the opt-out's id.

    An opt-out whose time cannot be read counts from its arrival, and the date names it. So it is the same one
    if it is delivered again.
    """
    stated_at = side.read(reader, value, name)
    return (stated_at, stated_at) if stated_at else (context.received_at, context.received_at[:10])


def opt_out_id(value: Any, name: str, side: SideFields, **what_names_it: Any) -> str:
    """Read the id of an opt-out; without one that can be read, return one made of what names it."""
    return side.read(text_id, value, name) or f"{OPT_OUT_ID}{body_hash(what_names_it)}"


def topics_of(value: Any, side: SideFields) -> list[str]:
    """Read topics; returns at most 20, each once, sorted by name. side: notes those that are none."""
    topics = set[str]()
    for path, topic in side.items(value, "objections", PREFERENCES_MAX):
        if isinstance(topic, str) and NAME.fullmatch(topic):
            topics.add(topic)
        else:
            side.omit(path, "must be a name: lower case letters, digits, _ . -")
    return sorted(topics)


def preferences_of(value: Any, side: SideFields) -> dict[str, Any]:
    """Read {name: value}; returns at most 20. side: notes those that are none.

    A value is a short text, a whole number or a flag.
    """
    if value is None:
        return {}
    if not isinstance(value, dict):
        side.omit("preferences", "must be an object")
        return {}
    good: dict[str, Any] = {}
    for key, stated in value.items():
        if NAME.fullmatch(key) is None:
            side.omit("preferences", "must have names of lower case letters, digits, _ . -")
        elif type(stated) not in (str, int, bool) or len(str(stated)) > VALUE_CHARACTERS_MAX:
            reason = f"must be text of at most {VALUE_CHARACTERS_MAX} characters, a whole number or a flag"
            side.omit(f"preferences.{key}", reason)
        elif len(good) == PREFERENCES_MAX:
            side.omit("preferences", f"has more than {PREFERENCES_MAX} names; the first ones are read")
            break
        else:
            good[key] = stated
    return good
