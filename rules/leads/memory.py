"""What an event leaves in memory: `DERIVATIONS` says, by event type, everything that is worth remembering.

Example: an order of two pieces of product 7 leaves the entry `purchase#product:7`, "2 on 2026-03-01".
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rules.leads.evidence import Evidence, MemoryEntry, join_entries, memory_entry
from rules.leads.features import Contact
from rules.leads.lead_events import (
    CAMPAIGN_SENT,
    CAMPAIGN_TYPES,
    FORM_SUBMITTED,
    MESSAGE_RECEIVED,
    OBJECTION_RAISED,
    PAGE_VIEWED,
    PREFERENCE_STATED,
    PURCHASE_COMPLETED,
    LeadEvent,
    MalformedLeadEvent,
)
from rules.leads.memory_types import (
    CAMPAIGN_CONTACT,
    CONSENT,
    OBJECTION,
    PREFERENCE,
    PURCHASE,
    SENTIMENT,
    MemoryType,
)

KEY_CHARACTERS_MAX = 150
VALUE_CHARACTERS_MAX = 100
SENTIMENT_MILLI_MAX = 1000

Found = Iterator[tuple[str, str]]  # (key, value)


@dataclass(frozen=True, slots=True)
class Derivation:
    """How one event type tells something of one memory type.

    weight_milli: the confidence that one such piece gives, in thousandths. read: yields its keys and values.
    """

    kind: MemoryType
    weight_milli: int
    read: Callable[[LeadEvent], Found]


def _preferences(event: LeadEvent) -> Found:
    for name, value in _map(event, "preferences").items():
        yield name, _text(value)


def _consent(event: LeadEvent) -> Found:
    for name, value in _map(event, "consent").items():
        yield name, _text(value)


def _category(event: LeadEvent) -> Found:
    if category := event.payload.get("category"):
        yield "category", _text(category)


def _products(event: LeadEvent) -> Found:
    quantities: dict[str, int] = {}
    for each in _list(event, "products"):
        if not isinstance(each, Mapping) or not each.get("product_id"):
            raise MalformedLeadEvent("products holds one without product_id")
        quantity = each.get("quantity", 1)
        if type(quantity) is not int:
            raise MalformedLeadEvent("products holds a quantity that is no whole number")
        product = _text(each["product_id"])
        quantities[product] = quantities.get(product, 0) + quantity
    for product, quantity in quantities.items():
        yield f"product:{product}", f"{quantity} on {event.occurred_at[:10]}"


def _sentiment(event: LeadEvent) -> Found:
    milli = event.payload.get("sentiment_milli")
    if milli is None:
        return
    if type(milli) is not int or abs(milli) > SENTIMENT_MILLI_MAX:
        raise MalformedLeadEvent("sentiment_milli is no whole number from -1000 to 1000")
    yield "overall", str(milli)


def _objections(event: LeadEvent) -> Found:
    for topic in sorted({_text(each) for each in _list(event, "objections")}):
        yield topic, f"raised on {event.occurred_at[:10]}"


def _reaction(event: LeadEvent) -> Found:
    campaign = event.payload.get("campaign_id")
    if not isinstance(campaign, str) or not campaign:
        raise MalformedLeadEvent("campaign_id is no text")
    yield campaign, event.event_type.removeprefix("campaign_")


DERIVATIONS: Mapping[str, tuple[Derivation, ...]] = {
    PREFERENCE_STATED: (Derivation(PREFERENCE, 800, _preferences), Derivation(CONSENT, 1000, _consent)),
    PAGE_VIEWED: (Derivation(PREFERENCE, 150, _category),),
    OBJECTION_RAISED: (Derivation(OBJECTION, 800, _objections),),
    PURCHASE_COMPLETED: (Derivation(PURCHASE, 950, _products),),
    **dict.fromkeys(
        (FORM_SUBMITTED, MESSAGE_RECEIVED),
        (
            Derivation(PREFERENCE, 600, _preferences),
            Derivation(SENTIMENT, 400, _sentiment),
            Derivation(OBJECTION, 500, _objections),
            Derivation(CONSENT, 1000, _consent),
        ),
    ),
    **dict.fromkeys(CAMPAIGN_TYPES, (Derivation(CAMPAIGN_CONTACT, 1000, _reaction),)),
}


def derive_entries(event: LeadEvent) -> list[MemoryEntry]:
    """Return the memories that an event gives, each with one piece of evidence: this event.

    Raises MalformedLeadEvent.
    """
    found: dict[str, MemoryEntry] = {}
    for each in DERIVATIONS.get(event.event_type, ()):
        for key, value in each.read(event):
            piece = Evidence(
                event.occurred_at,
                event.id,
                value[:VALUE_CHARACTERS_MAX],
                each.weight_milli,
                event.source,
                event.lead_organization_id,
            )
            made = memory_entry(each.kind, short_key(key), (piece,))
            found[made.name] = made
    return list(found.values())


def remembered_entries(events: Iterable[LeadEvent]) -> dict[str, MemoryEntry]:
    """Return all that events leave in memory, by name. A malformed event leaves nothing.

    The memory processor put such an event into its failure queue, with the reason, when it first came.
    """
    result: dict[str, MemoryEntry] = {}
    for event in events:
        try:
            given = derive_entries(event)
        except MalformedLeadEvent:
            continue
        for each in given:
            result[each.name] = join_entries(result[each.name], each) if each.name in result else each
    return result


def campaign_contact(found: MemoryEntry) -> Contact:
    """Return when a campaign was sent and whether the lead reacted, for the feature campaign_ignored."""
    kinds = {each.value: each.at for each in reversed(found.evidence)}
    sent = kinds.pop(CAMPAIGN_SENT.removeprefix("campaign_"), None)
    return Contact(datetime.fromisoformat(sent).toordinal() if sent else None, reacted=bool(kinds))


def short_key(key: str) -> str:
    """Return a key; if it is too long, its beginning and a digest of the whole."""
    if len(key) <= KEY_CHARACTERS_MAX:
        return key
    return f"{key[:KEY_CHARACTERS_MAX]}~{hashlib.sha256(key.encode()).hexdigest()[:16]}"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _map(event: LeadEvent, name: str) -> Mapping[str, Any]:
    found = event.payload.get(name) or {}
    if not isinstance(found, Mapping):
        raise MalformedLeadEvent(f"{name} is no object")
    return found


def _list(event: LeadEvent, name: str) -> list[Any]:
    found = event.payload.get(name) or []
    if not isinstance(found, list):
        raise MalformedLeadEvent(f"{name} is no list")
    return found
