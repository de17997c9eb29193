"""What is remembered of a lead, and the evidence for it.

An entry is a bounded set of pieces of evidence; value, confidence, source and times all follow from them.
Joining two entries is commutative, associative and idempotent. So an older event never overwrites newer
knowledge, a repeated event changes nothing, and any order gives the same entry. `kept_evidence` decides which
pieces stay: the newest few, and the newest one in each named slot. What it drops once, it would drop again.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal

from rules.days import DAY, EPOCH, unstamp
from rules.leads.memory_types import MemoryType, ValueRule

EVIDENCE_MAX = 8
MILLI = 1000
SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, order=True)
class Evidence:
    """One piece of evidence.

    at: stamp of the event. id: of the event. value: short text.
    weight_milli: the confidence that this piece alone gives, in thousandths. home: the event's leaf.
    """

    at: str
    id: str
    value: str
    weight_milli: int
    source: str
    home: str


@dataclass(frozen=True, slots=True)
class MemoryEntry:
    """One thing that is remembered of a lead.

    evidence: newest first, at least one piece. created_at: stamp of the earliest piece ever seen, kept or
    not.
    """

    kind: MemoryType
    key: str
    evidence: tuple[Evidence, ...]
    created_at: str

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
        """What is remembered, as text."""
        return _value(self.kind, self.evidence)

    @property
    def confidence(self) -> Decimal:
        """From 0 to 1, with three decimals, as of the newest evidence."""
        return _thousandths(_confidence(self.kind, self.evidence))

    @property
    def source(self) -> str:
        """Where the newest evidence came from."""
        return self.evidence[0].source

    @property
    def source_event_ids(self) -> tuple[str, ...]:
        """The ids of the evidence, newest first."""
        return tuple(each.id for each in self.evidence)

    @property
    def updated_at(self) -> str:
        """The newest evidence's time."""
        return self.evidence[0].at

    @property
    def expires_at(self) -> int:
        """When it is forgotten, in epoch seconds."""
        return (unstamp(self.updated_at) - EPOCH) // SECOND + self.kind.retention_days * 86400


def memory_entry(
    kind: MemoryType, key: str, pieces: Iterable[Evidence], created_at: str = "~"
) -> MemoryEntry:
    """Make an entry of at least one piece of evidence.

    created_at: stamp of the earliest piece known before; "~" sorts after every stamp.
    """
    listed = list(pieces)
    earliest = min(created_at, *(each.at for each in listed))
    return MemoryEntry(kind, key, kept_evidence(kind, listed), earliest)


def join_entries(one: MemoryEntry, other: MemoryEntry) -> MemoryEntry:
    """Return one entry with the evidence of both, as far as `kept_evidence` keeps it."""
    created_at = min(one.created_at, other.created_at)
    return memory_entry(one.kind, one.key, (*one.evidence, *other.evidence), created_at)


def supported_by(found: MemoryEntry, homes: Iterable[str]) -> MemoryEntry | None:
    """Return an entry with only the evidence of some leaves; None if there is none."""
    leaves = frozenset(homes)
    pieces = tuple(each for each in found.evidence if each.home in leaves)
    return replace(found, evidence=pieces) if pieces else None


def kept_evidence(kind: MemoryType, pieces: Iterable[Evidence]) -> tuple[Evidence, ...]:
    """Return the evidence to keep, newest first, one piece an id.

    A named slot (`_slot`) keeps its newest piece, however old. Of all other pieces the newest EVIDENCE_MAX
    stay, but none that is older than the newest piece of all by more than the type's retention.
    """
    by_id: dict[str, Evidence] = {}
    for each in pieces:
        by_id[each.id] = max(each, by_id.get(each.id, each))
    ordered = sorted(by_id.values(), reverse=True)
    newest, taken = unstamp(ordered[0].at), Counter[tuple[str, ...]]()
    result: list[Evidence] = []
    for each in ordered:
        slot = _slot(kind, each)
        if slot == () and newest - unstamp(each.at) > kind.retention_days * DAY:
            continue
        if taken[slot] < (1 if slot else EVIDENCE_MAX):
            taken[slot] += 1
            result.append(each)
    return tuple(result)


def _slot(kind: MemoryType, piece: Evidence) -> tuple[str, ...]:
    """Return the named slot of a piece; () if it has none.

    A reaction has one, so that only a newer piece in the same slot replaces it.
    """
    return (piece.value, piece.home) if kind.value_rule is ValueRule.REACTIONS else ()


def _value(kind: MemoryType, evidence: tuple[Evidence, ...]) -> str:
    if kind.value_rule is ValueRule.MEAN:
        total, count = sum(int(each.value) for each in evidence), len(evidence)
        return str(_thousandths((2 * total + count) // (2 * count)))
    if kind.value_rule is ValueRule.REACTIONS:
        newest = {each.value: each.at[:10] for each in reversed(evidence)}
        return ", ".join(f"{name} {newest[name]}" for name in sorted(newest))
    return evidence[0].value


def _confidence(kind: MemoryType, evidence: tuple[Evidence, ...]) -> int:
    """Return (1 - product(1 - weight) of what agrees) * product(1 - weight) of the others, in thousandths."""
    newest, value = unstamp(evidence[0].at), _value(kind, evidence)
    doubt, held = 1.0, 1.0
    for each in evidence:
        weight = each.weight_milli / MILLI * _decay(kind, newest - unstamp(each.at))
        if _agrees(kind, each.value, value):
            doubt *= 1 - weight
        else:
            held *= 1 - weight
    return round((1 - doubt) * held * MILLI)


def _agrees(kind: MemoryType, piece: str, value: str) -> bool:
    if kind.value_rule is ValueRule.LATEST:
        return piece == value
    if kind.value_rule is ValueRule.MEAN:
        return _sign(Decimal(piece)) == _sign(Decimal(value))
    return True


def _sign(number: Decimal) -> int:
    return (number > 0) - (number < 0)


def _decay(kind: MemoryType, age: timedelta) -> float:
    return float(0.5 ** (max(age, timedelta()) / DAY / kind.half_life_days))


def confidence_at(found: MemoryEntry, now: datetime) -> Decimal:
    """Return an entry's confidence at an instant: it halves with each half-life since the newest evidence."""
    age = now - unstamp(found.updated_at)
    return _thousandths(round(float(found.confidence) * _decay(found.kind, age) * MILLI))


def _thousandths(number: int) -> Decimal:
    return Decimal(number).scaleb(-3)
