"""The memory of a lead: entries, the evidence for them, and which events give evidence.

An entry is a bounded set of pieces of evidence. Value, confidence, source and times all follow from them.
Joining two entries is commutative, associative and idempotent. So an older event never overwrites newer
knowledge, a repeated event changes nothing, and any order gives the same entry. `kept_evidence` decides
which pieces stay: the newest few, and the newest one in each named slot. Joining never brings back a piece
that was dropped.

In this order: types; evidence, which pieces of it stay, and how value and confidence follow from it; entries;
the evidence that an event gives (`DERIVATIONS` lists it by event type).
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from functools import partial
from typing import Any

from rules.days import DAY, EPOCH, unstamp
from rules.leads.features import Contact
from rules.leads.lead_events import (
    CAMPAIGN_BOUNCED,
    CAMPAIGN_SENT,
    CAMPAIGN_TYPES,
    CAMPAIGN_UNSUBSCRIBED,
    FORM_SUBMITTED,
    MESSAGE_RECEIVED,
    OBJECTION_RAISED,
    OFF,
    PAGE_VIEWED,
    PREFERENCE_STATED,
    PURCHASE_COMPLETED,
    LeadEvent,
    MalformedLeadEvent,
    campaign_of,
    sentiment_of,
)

EVIDENCE_MAX = 8  # pieces of an entry, besides those in named slots (_slot)
MILLI = 1000
SECOND = timedelta(seconds=1)
KEY_CHARACTERS_MAX = 150
VALUE_CHARACTERS_MAX = 100
KeyValues = Iterator[tuple[str, str]]  # (key, value)


class ValueRule(StrEnum):
    """How an entry's value follows from its evidence, and which evidence agrees with it."""

    LATEST = "latest"  # the newest value; pieces with the same value agree
    FACT = "fact"  # the newest value; all pieces agree that there was something
    MEAN = "mean"  # the mean of thousandths; pieces with the same sign agree
    REACTIONS = "reactions"  # the newest date of each value; all pieces agree
    # The newest value; but a piece about one channel ("on sms") lifts no more than an older one about it
    CONSENT = "consent"


@dataclass(frozen=True, slots=True)
class MemoryType:
    """A type of memories, with the rules that hold for all of them."""

    name: str
    value_rule: ValueRule
    half_life_days: int  # after so many days a piece of evidence weighs half
    retention_days: int  # an entry expires so many days after its newest evidence


PREFERENCE = MemoryType("preference", ValueRule.LATEST, half_life_days=180, retention_days=730)
PURCHASE = MemoryType("purchase", ValueRule.FACT, half_life_days=365, retention_days=1095)
SENTIMENT = MemoryType("sentiment", ValueRule.MEAN, half_life_days=30, retention_days=180)
# Kept for five years, so that an old reaction still shows that the lead did not ignore the campaign.
CAMPAIGN_CONTACT = MemoryType("campaign_contact", ValueRule.REACTIONS, half_life_days=90, retention_days=1826)
OBJECTION = MemoryType("objection", ValueRule.FACT, half_life_days=90, retention_days=365)
# It practically never expires: a person who said "stop" must not have to say it again.
CONSENT = MemoryType("consent", ValueRule.CONSENT, half_life_days=36_500, retention_days=36_500)
TYPES = {kind.name: kind for kind in (PREFERENCE, PURCHASE, SENTIMENT, CAMPAIGN_CONTACT, OBJECTION, CONSENT)}


@dataclass(frozen=True, slots=True, order=True)
class Evidence:
    """One piece of evidence."""

    at: str  # the stamp of its event
    id: str  # the event's id
    value: str  # short text
    weight_milli: int  # the confidence that this piece alone gives, in thousandths
    source: str  # the event's source
    leaf: str  # the event's leaf, a lead_organization_id


def kept_evidence(kind: MemoryType, pieces: Iterable[Evidence]) -> tuple[Evidence, ...]:
    """Return the evidence that stays, newest first, one piece for each event.

    A named slot (`_slot`) keeps its newest piece, however old. Of all other pieces the newest EVIDENCE_MAX
    stay, but none that is older than the newest piece of all by more than the type's retention.
    """
    by_id: dict[str, Evidence] = {}
    for piece in pieces:
        by_id[piece.id] = max(piece, by_id.get(piece.id, piece))
    newest_first = sorted(by_id.values(), reverse=True)
    newest_at, counts = unstamp(newest_first[0].at), Counter[tuple[str, ...]]()
    kept: list[Evidence] = []
    for piece in newest_first:
        slot = _slot(kind, piece)
        if slot == () and newest_at - unstamp(piece.at) > kind.retention_days * DAY:
            continue
        if counts[slot] < (1 if slot else EVIDENCE_MAX):
            counts[slot] += 1
            kept.append(piece)
    return tuple(kept)


def _slot(kind: MemoryType, piece: Evidence) -> tuple[str, ...]:
    """Return the named slot of a piece; () if it has none.

    A reaction has one, and a consent to one channel, so that only a newer piece in the same slot replaces it.
    """
    if kind.value_rule is ValueRule.CONSENT:
        channel = piece.value.partition(" ")[2]
        return (channel,) if channel else ()
    return (piece.value, piece.leaf) if kind.value_rule is ValueRule.REACTIONS else ()


def _value(kind: MemoryType, evidence: tuple[Evidence, ...]) -> str:
    if kind.value_rule is ValueRule.MEAN:
        total, count = sum(int(piece.value) for piece in evidence), len(evidence)
        return str(_thousandths((2 * total + count) // (2 * count)))  # halves are rounded up
    if kind.value_rule is ValueRule.REACTIONS:
        newest_dates = {piece.value: piece.at[:10] for piece in reversed(evidence)}
        return ", ".join(f"{reaction} {day}" for reaction, day in sorted(newest_dates.items()))
    return _consent_value(evidence) if kind.value_rule is ValueRule.CONSENT else evidence[0].value


def _consent_value(evidence: Iterable[Evidence]) -> str:
    """Return "off" if the newest word about all channels, or a newer one about any channel, says so.

    evidence: newest first.
    """
    words: list[str] = []
    for piece in evidence:
        word, _, channel = piece.value.partition(" ")
        words.append(word)
        if not channel:  # what is older is replaced by this
            break
    return OFF if OFF in words else words[0]


def _confidence(kind: MemoryType, evidence: tuple[Evidence, ...]) -> int:
    """Return the confidence as of the newest evidence, in thousandths.

    Pieces count as independent. So the confidence is 1 - product(1 - weight) over the pieces that agree with
    the value, times product(1 - weight) over the others.
    """
    newest_at, value = unstamp(evidence[0].at), _value(kind, evidence)
    all_agreeing_fail, all_others_fail = 1.0, 1.0
    for piece in evidence:
        weight = piece.weight_milli / MILLI * _decay(kind, newest_at - unstamp(piece.at))
        if _agrees(kind, piece.value, value):
            all_agreeing_fail *= 1 - weight
        else:
            all_others_fail *= 1 - weight
    return round((1 - all_agreeing_fail) * all_others_fail * MILLI)


def _agrees(kind: MemoryType, piece: str, value: str) -> bool:
    if kind.value_rule is ValueRule.LATEST:
        return piece == value
    if kind.value_rule is ValueRule.CONSENT:
        return piece.partition(" ")[0] == value
    if kind.value_rule is ValueRule.MEAN:
        number, mean = Decimal(piece), Decimal(value)
        return (number > 0, number < 0) == (mean > 0, mean < 0)
    return True


def _decay(kind: MemoryType, age: timedelta) -> float:
    return float(0.5 ** (max(age, timedelta()) / DAY / kind.half_life_days))


def _thousandths(number: int) -> Decimal:
    return Decimal(number).scaleb(-3)


@dataclass(frozen=True, slots=True)
class MemoryEntry:
    """One thing that is remembered of a lead."""

    kind: MemoryType
    key: str
    evidence: tuple[Evidence, ...]  # newest first, at least one piece
    created_at: str  # stamp of the earliest piece, also if that piece has been dropped

    @property
    def memory_type(self) -> str:
        """The type's name."""
        return self.kind.name

    @property
    def name(self) -> str:
        """The entry's key in the table."""
        return f"{self.kind.name}#{self.key}"

    @property
    def value(self) -> str:
        """The remembered value, as text."""
        return _value(self.kind, self.evidence)

    @property
    def confidence(self) -> Decimal:
        """From 0 to 1, with three decimals, as of the newest evidence."""
        return _thousandths(_confidence(self.kind, self.evidence))

    @property
    def source(self) -> str:
        """The source of the newest evidence."""
        return self.evidence[0].source

    @property
    def source_event_ids(self) -> tuple[str, ...]:
        """The ids of the evidence, newest first."""
        return tuple(piece.id for piece in self.evidence)

    @property
    def updated_at(self) -> str:
        """The newest evidence's time."""
        return self.evidence[0].at

    @property
    def expires_at(self) -> int:
        """The instant at which the entry expires, in epoch seconds."""
        return (unstamp(self.updated_at) - EPOCH) // SECOND + self.kind.retention_days * 86400


def memory_entry(
    kind: MemoryType, key: str, pieces: Iterable[Evidence], created_at: str = "~"
) -> MemoryEntry:
    """Make an entry of at least one piece of evidence.

    created_at: stamp of the earliest piece known before; "~" sorts after every stamp.
    """
    evidence = list(pieces)
    earliest = min(created_at, *(piece.at for piece in evidence))
    return MemoryEntry(kind, key, kept_evidence(kind, evidence), earliest)


def join_entries(one: MemoryEntry, other: MemoryEntry) -> MemoryEntry:
    """Return one entry with the evidence of both, as far as `kept_evidence` keeps it."""
    created_at = min(one.created_at, other.created_at)
    return memory_entry(one.kind, one.key, (*one.evidence, *other.evidence), created_at)


def entry_of_leaves(entry: MemoryEntry, leaves: Iterable[str]) -> MemoryEntry | None:
    """Return an entry with only the evidence of these leaves; None if there is none."""
    wanted = frozenset(leaves)
    pieces = tuple(piece for piece in entry.evidence if piece.leaf in wanted)
    return replace(entry, evidence=pieces) if pieces else None


def confidence_at(entry: MemoryEntry, now: datetime) -> Decimal:
    """Return an entry's confidence at an instant: it halves with each half-life since the newest evidence."""
    age = now - unstamp(entry.updated_at)
    return _thousandths(round(float(entry.confidence) * _decay(entry.kind, age) * MILLI))


@dataclass(frozen=True, slots=True)
class Derivation:
    """How one event type is evidence of one memory type."""

    kind: MemoryType
    weight_milli: int  # the confidence that one such piece gives, in thousandths
    read: Callable[[LeadEvent], KeyValues]  # yields its keys and values


def _stated(field: str, event: LeadEvent) -> KeyValues:
    stated = event.payload.get(field) or {}
    if not isinstance(stated, Mapping):
        raise MalformedLeadEvent(f"{field} is no object")
    return ((name, _text(value)) for name, value in stated.items())


def _category(event: LeadEvent) -> KeyValues:
    if category := event.payload.get("category"):
        yield "category", _text(category)


def _products(event: LeadEvent) -> KeyValues:
    quantities: dict[str, int] = {}
    for line in _list(event, "products"):
        if not isinstance(line, Mapping) or not line.get("product_id"):
            raise MalformedLeadEvent("products holds one without product_id")
        quantity = line.get("quantity", 1)
        if type(quantity) is not int:
            raise MalformedLeadEvent("products holds a quantity that is no whole number")
        product = _text(line["product_id"])
        quantities[product] = quantities.get(product, 0) + quantity
    for product, quantity in quantities.items():
        yield f"product:{product}", f"{quantity} on {event.occurred_at[:10]}"


def _sentiment(event: LeadEvent) -> KeyValues:
    milli = sentiment_of(event)
    if milli is not None:
        yield "overall", str(milli)


def _objections(event: LeadEvent) -> KeyValues:
    for topic in sorted(set(map(_text, _list(event, "objections")))):
        yield topic, f"raised on {event.occurred_at[:10]}"


def _reaction(event: LeadEvent) -> KeyValues:
    yield campaign_of(event), event.event_type.removeprefix("campaign_")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _list(event: LeadEvent, name: str) -> list[Any]:
    value = event.payload.get(name) or []
    if not isinstance(value, list):
        raise MalformedLeadEvent(f"{name} is no list")
    return value


def _consent(event: LeadEvent) -> KeyValues:
    channel = event.payload.get("consent_channel")
    for name, value in _stated("consent", event):
        yield name, f"{value} {channel}" if channel else value


_preferences = partial(_stated, "preferences")
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
    # Who has unsubscribed before may be told by a mail that was not sent for that.
    **dict.fromkeys(
        (CAMPAIGN_UNSUBSCRIBED, CAMPAIGN_BOUNCED),
        (Derivation(CAMPAIGN_CONTACT, 1000, _reaction), Derivation(CONSENT, 1000, _consent)),
    ),
}


def derive_entries(event: LeadEvent) -> list[MemoryEntry]:
    """Return the memories that an event gives, each with one piece of evidence: this event.

    Raises MalformedLeadEvent.
    """
    entries: dict[str, MemoryEntry] = {}
    for derivation in DERIVATIONS.get(event.event_type, ()):
        for key, value in derivation.read(event):
            piece = Evidence(
                at=event.occurred_at,
                id=event.id,
                value=value[:VALUE_CHARACTERS_MAX],
                weight_milli=derivation.weight_milli,
                source=event.source,
                leaf=event.lead_organization_id,
            )
            entry = memory_entry(derivation.kind, short_key(key), (piece,))
            entries[entry.name] = entry
    return list(entries.values())


def short_key(key: str) -> str:
    """Return a key; if it is too long, its beginning and a digest of the whole."""
    if len(key) <= KEY_CHARACTERS_MAX:
        return key
    return f"{key[:KEY_CHARACTERS_MAX]}~{hashlib.sha256(key.encode()).hexdigest()[:16]}"


def remembered_entries(events: Iterable[LeadEvent]) -> dict[str, MemoryEntry]:
    """Return the entries that events give together, by name. A malformed event gives none.

    The memory processor put such an event into its failure queue, with the reason, when it first came.
    """
    entries: dict[str, MemoryEntry] = {}
    for event in events:
        with suppress(MalformedLeadEvent):
            for entry in derive_entries(event):
                known = entries.get(entry.name)
                entries[entry.name] = join_entries(known, entry) if known else entry
    return entries


def campaign_contact(entry: MemoryEntry) -> Contact:
    """Return when a campaign was sent and whether the lead reacted, for the feature campaign_ignored."""
    reactions = {piece.value: piece.at for piece in reversed(entry.evidence)}
    sent = reactions.pop(CAMPAIGN_SENT.removeprefix("campaign_"), None)
    return Contact(datetime.fromisoformat(sent).toordinal() if sent else None, reacted=bool(reactions))
