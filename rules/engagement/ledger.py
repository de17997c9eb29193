"""The rewards ledger (docs/rules.md, rule 6): append-only, a running balance, one active head. Several
entries may be written at once: one is written dearly, and names those before it in a packed form.
"""

import re
import struct
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from itertools import zip_longest
from typing import Any
from uuid import UUID

from rules.book.point_rules import Cap
from rules.days import EPOCH, MICROSECOND, stamp, unstamp

OPENED_AT = stamp(EPOCH)
AppliedEvents = dict[str, tuple[date, int]]  # event id -> the date that it counts for, its points
PASSIVE = "passive"
LASTS = "+"
MEASURED = "#"
FORM = 2
STAMP_LENGTH = len(stamp(EPOCH))
DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
ID = re.compile(
    DATE.pattern + r"T\d\d:\d\d:\d\d\.\d{6}Z#[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII
)
_HEADER = struct.Struct(">BBB7s")
_CASE = struct.Struct(">BbH")
_RECORD = struct.Struct(">5s16sB")
HEADER_BYTES, CASE_BYTES, RECORD_BYTES = _HEADER.size, _CASE.size, _RECORD.size
SPAN_MAX = 2**40 - 1  # microseconds between the earliest and the latest moment: twelve days
WRITE_UNIT_BYTES = 1024  # a write is billed in steps of this many bytes
# Of each carrier: its attributes' names, the values whose length is known, and its hash and place in the
# stream, which come later.
OWN_BYTES = 265
OPTIONAL = (
    *("cap", "is_passive", "expires_on", "measures"),
    *("reward_id", "reverses", "freeze", "freeze_date", "held_at", "reason", "brand"),
)


class EntryKind(StrEnum):
    """What an entry does to the balance."""

    OPEN = "OPEN"
    EARN = "EARN"
    REDEEM = "REDEEM"
    REVERSE = "REVERSE"
    EXPIRE = "EXPIRE"
    ADJUST = "ADJUST"
    CLAWBACK = "CLAWBACK"
    RERATE = "RERATE"


# Their points are what was ever earned, and belong to a date. All others spend, give back, or expire.
EARNING = frozenset({EntryKind.EARN, EntryKind.CLAWBACK, EntryKind.RERATE})
# What may leave less than nothing behind it, and so an account in debt (rule 12).
INTO_DEBT = frozenset({EntryKind.CLAWBACK, EntryKind.RERATE})


class FreezeNote(StrEnum):
    """What an entry does to the account's streak freezes."""

    GRANTED = "freeze_granted"
    REVOKED = "freeze_revoked"
    SPENT = "freeze_spent"
    REFUNDED = "freeze_refunded"


class InsufficientBalance(Exception):
    """Somebody wants to spend more than there is."""

    def __init__(self, balance: int, wanted: int) -> None:
        super().__init__(f"balance {balance} does not cover {wanted} points")
        self.balance, self.wanted = balance, wanted


@dataclass(frozen=True, slots=True)
class Draft:
    """An entry that has no place in the ledger yet."""

    kind: EntryKind
    points: int  # signed: a redemption of 15 has -15
    event_id: str | None = None
    event_type: str | None = None
    activity_date: str | None = None
    reward_id: str | None = None
    reverses: str | None = None  # created_at of another entry
    freeze: FreezeNote | None = None
    freeze_date: str | None = None
    # The version of the book: of an EARN its event's, of a REDEEM the one whose price it is, of a RERATE the
    # newest one by which it was rated.
    rules_version: int | None = None
    # An EARN's event has these two and measures; the CLAWBACK that reverses it repeats them.
    cap: Cap | None = None
    is_passive: bool = False
    expires_on: str | None = None  # the date on which an EARN's points expire, or an EXPIRE's have
    held_at: str | None = None  # of a REDEEM that captures a hold: when that began
    reason: str | None = None  # of a CLAWBACK or RERATE
    brand: str | None = None  # of the reward of a REDEEM or its REVERSE
    measures: str | None = None  # what the event adds to streaks (goals/measures.py)


@dataclass(frozen=True, slots=True)
class Head:
    """What the next entry builds on: the newest one."""

    created_at: str  # its place
    seq: int
    balance: int
    chain: bytes = b""  # its hash, and the salt of its chain (rules/engagement/proving); b"": it has none


@dataclass(frozen=True, slots=True)
class Entry:
    """A draft in its place."""

    account_id: str
    created_at: str  # the place, a stamp
    seq: int
    balance: int
    draft: Draft
    folded: tuple[Draft, ...] = ()  # of a carrier: the entries that it names
    active: bool = False  # whether it is the head
    reversed_by: str | None = None  # created_at of the entry that reversed this one
    applied_through: str = ""  # of a head: see Profile
    chain: bytes = b""  # hash and salt; b"" of a carried entry, whose hash follows from its carrier
    begins: bytes = b""  # of the first entry of a chain: its salt

    @property
    def head(self) -> Head:
        """This entry as the one to build on."""
        return Head(self.created_at, self.seq, self.balance, self.chain)


def opening_entry(account_id: str) -> Entry:
    """Return an account's first entry, of 0 points.

    Its place is fixed, so two writers that open the same account collide, and one of them fails.
    """
    return Entry(account_id, OPENED_AT, 0, 0, Draft(EntryKind.OPEN, 0))


def entry_id(created_at: str) -> str:
    """Return an entry's place as an id that fits into a path.

    Example: 2026-03-03T00:20:00.000002Z becomes 20260303T002000000002Z.
    """
    return created_at.translate(str.maketrans("", "", "-:."))


def append_drafts(
    account_id: str, head: Head | None, drafts: Sequence[Draft], now: datetime, after: datetime = EPOCH
) -> list[Entry]:
    """Give drafts their places, a microsecond apart, after a head (None: open the account first).

    after: the latest arrival among the events applied. The first place is now, or just after the head or
    `after` if that is later. So places increase strictly, whatever the clocks of two writers say.
    Raises InsufficientBalance for a REDEEM that the balance does not cover. No other entry asks for anything.
    """
    entries = [] if head else [opening_entry(account_id)]
    place = head or entries[0].head
    moment = max(now, after + MICROSECOND, unstamp(place.created_at) + MICROSECOND)
    for draft in drafts:
        balance = place.balance + draft.points
        if balance < 0 and draft.kind is EntryKind.REDEEM and draft.points:
            raise InsufficientBalance(place.balance, -draft.points)
        entries.append(Entry(account_id, stamp(moment), place.seq + 1, balance, draft))
        place, moment = entries[-1].head, moment + MICROSECOND
    return entries


def applied_events(entries: Iterable[Entry]) -> AppliedEvents:
    """Return what entries say of the events that earned them."""
    return {
        draft.event_id: (date.fromisoformat(draft.activity_date), draft.points)
        for draft in (entry.draft for entry in entries)
        if draft.kind is EntryKind.EARN and draft.event_id and draft.activity_date
    }


def debt_of(balance: int) -> int:
    """Return what an account owes: what is earned next pays it."""
    return max(0, -balance)


# An entry's kind as one text: its event type, and what its event was judged by.
#
# Example: `CHECK_IN v2 5/day +90 #n` has the version, the cap, after how many days the points expire, and
# what the event adds to streaks.


def kind_of(draft: Draft) -> str:
    """Return an entry's event type and what its event was judged by, as one text."""
    lasts = _days_between(draft.activity_date or "", draft.expires_on) if draft.expires_on else None
    more = lasts, draft.measures
    return _kind(draft.event_type or "", draft.rules_version, draft.cap, draft.is_passive, more)


@lru_cache(maxsize=2048)  # a writer asks for each entry, and there are few dates
def _days_between(first: str, last: str) -> int:
    return date.fromisoformat(last).toordinal() - date.fromisoformat(first).toordinal()


@lru_cache(maxsize=1024)  # a writer asks for each entry, and there are few kinds
def _kind(
    event_type: str,
    version: int | None,
    cap: Cap | None,
    is_passive: bool,
    more: tuple[int | None, str | None],
) -> str:
    lasts, measures = more
    judged = [
        "" if version is None else f"v{version}",
        cap.text if cap else "",
        PASSIVE if is_passive else "",
        "" if lasts is None else f"{LASTS}{lasts}",
        "" if measures is None else f"{MEASURED}{measures}",
    ]
    return " ".join([event_type, *filter(None, judged)])


def fields_of_kind(kind: str) -> dict[str, Any]:
    """Return the fields of a draft that a kind contains; raises ValueError."""
    event_type, *judged = kind.split(" ")
    fields: dict[str, Any] = {"event_type": event_type}
    for each in judged:
        if each.startswith("v"):
            fields["rules_version"] = int(each[1:])
        elif each == PASSIVE:
            fields["is_passive"] = True
        elif each.startswith(LASTS):
            fields["lasts"] = int(each.removeprefix(LASTS))
        elif each.startswith(MEASURED):
            fields["measures"] = each.removeprefix(MEASURED)
        else:
            fields["cap"] = Cap.of(each)
    return fields


def kind_bytes(kind: str) -> int:
    """Return the bytes that a kind takes in the list of kinds."""
    return 1 + len(kind.encode())


# The packed form of what a carrier names: 22 bytes an entry, where the text of an event's id alone has 64.
#
# An event's id is a moment and a uuid (rules.engagement.events), so it is written as numbers. After the
# form's number, two counts and the earliest moment come the kinds (`entry_kinds`), each once, with their
# lengths. Then come the cases, each once: the place of a kind, how many days an entry's date is after its
# moment's date in UTC, and points. Last comes a record for each entry: its microseconds after the earliest
# moment, its uuid, and the place of its case. An entry that does not go into a record is not carried.


@dataclass(slots=True)
class DraftPack:
    """Drafts that are packed together."""

    drafts: list[Draft] = field(default_factory=list)
    size: int = HEADER_BYTES  # how many bytes they take, all of them
    _kinds: dict[str, int] = field(default_factory=dict)
    _cases: dict[tuple[int, int, int], int] = field(default_factory=dict)
    _records: list[tuple[int, bytes, int]] = field(default_factory=list)
    _first: int = 0
    _last: int = 0

    def takes(self, draft: Draft, room: int) -> bool:
        """Add a draft if all of them then take `room` bytes at most; whether it was added."""
        parts = _record_parts(draft)
        if parts is None:
            return False
        kind, micros, unique, days = parts
        first = min(micros, self._first) if self.drafts else micros
        last = max(micros, self._last)
        case = self._kinds.get(kind, len(self._kinds)), days, draft.points
        more = RECORD_BYTES
        more += 0 if kind in self._kinds else kind_bytes(kind)
        more += 0 if case in self._cases else CASE_BYTES
        if self.size + more > room or last - first > SPAN_MAX or len(self._cases) == 2**8 - 1:
            return False
        self._first, self._last = first, last
        self._kinds.setdefault(kind, len(self._kinds))
        place = self._cases.setdefault(case, len(self._cases))
        self._records.append((micros, unique, place))
        self.drafts.append(draft)
        self.size += more
        return True

    def packed(self) -> bytes:
        """Return the packed form of all drafts."""
        first = self._first
        return b"".join(
            [
                _HEADER.pack(FORM, len(self._kinds), len(self._cases), first.to_bytes(7, "big")),
                *(bytes([len(each.encode())]) + each.encode() for each in self._kinds),
                *(_CASE.pack(*case) for case in self._cases),
                *(
                    _RECORD.pack((micros - first).to_bytes(5, "big"), unique, place)
                    for micros, unique, place in self._records
                ),
            ]
        )


def pack_drafts(drafts: Iterable[Draft]) -> bytes:
    """Pack drafts; raises ValueError for one that is not packable, or not together with those before it."""
    packing = DraftPack()
    for draft in drafts:
        if not packing.takes(draft, 2**20):
            raise ValueError(f"not packable: {draft}")
    return packing.packed()


def _record_parts(draft: Draft) -> tuple[str, int, bytes, int] | None:
    """Return a draft's kind, moment, uuid and days, if its record would be read as the same draft."""
    event_id, activity_date, expires_on = draft.event_id, draft.activity_date, draft.expires_on
    if draft.kind is not EntryKind.EARN or not (event_id and activity_date and draft.event_type):
        return None
    if draft.reward_id or draft.reverses or draft.freeze or draft.freeze_date or draft.held_at or draft.brand:
        return None
    if expires_on and not DATE.fullmatch(expires_on):
        return None
    numbers = _numbers(event_id, activity_date)
    if numbers is None or not 0 <= draft.points < 2**16 or " " in draft.event_type:
        return None
    kind = kind_of(draft)
    return None if kind_bytes(kind) > 2**8 else (kind, *numbers)


@lru_cache(maxsize=4096)  # of an entry, hashing, carrying and packing ask
def _numbers(event_id: str, activity_date: str) -> tuple[int, bytes, int] | None:
    """Return an event's moment in microseconds, its uuid, and its date's days after the moment's."""
    if not (ID.fullmatch(event_id) and DATE.fullmatch(activity_date)):
        return None
    with suppress(ValueError):
        moment = unstamp(event_id[:STAMP_LENGTH])
        days = date.fromisoformat(activity_date).toordinal() - moment.toordinal()
        if moment >= EPOCH and -128 <= days < 128:
            unique = bytes.fromhex(event_id[STAMP_LENGTH + 1 :].replace("-", ""))
            return (moment - EPOCH) // MICROSECOND, unique, days
    return None


def unpack_drafts(packed: bytes) -> list[Draft]:
    """Read what pack() wrote; raises ValueError or IndexError for what it cannot have written."""
    form, kind_count = packed[:2]
    if form != FORM:
        raise ValueError(f"entries packed in form {form}, which this version does not know")
    if len(packed) < HEADER_BYTES:
        raise ValueError(f"packed entries of {len(packed)} bytes, which are cut off")
    _, _, case_count, first = _HEADER.unpack_from(packed)
    kinds, offset = _kinds_from(packed, HEADER_BYTES, kind_count)
    end = offset + case_count * CASE_BYTES
    if len(packed) < end or (len(packed) - end) % RECORD_BYTES:
        raise ValueError(f"packed entries of {len(packed)} bytes, which are cut off")
    cases = list(_CASE.iter_unpack(packed[offset:end]))
    drafts = []
    for after, unique, case in _RECORD.iter_unpack(packed[end:]):
        of, days, points = cases[case]
        micros = int.from_bytes(first, "big") + int.from_bytes(after, "big")
        drafts.append(_draft(micros, unique, days, kinds[of], points))
    return drafts


def _kinds_from(packed: bytes, offset: int, count: int) -> tuple[list[dict[str, Any]], int]:
    """Return the fields of `count` kinds from an offset on, and the offset after them."""
    kinds = []
    for _ in range(count):
        end = offset + 1 + packed[offset]
        kinds.append(fields_of_kind(packed[offset + 1 : end].decode()))
        offset = end
    return kinds, offset


def _draft(micros: int, unique: bytes, days: int, kind: dict[str, Any], points: int) -> Draft:
    moment = EPOCH + micros * MICROSECOND
    when = moment.date() + timedelta(days)
    fields = dict(kind)
    lasts = fields.pop("lasts", None)
    expires = None if lasts is None else (when + timedelta(lasts)).isoformat()
    event_id = f"{stamp(moment)}#{UUID(bytes=unique)}"
    return Draft(
        EntryKind.EARN, points, event_id, activity_date=when.isoformat(), expires_on=expires, **fields
    )


# Several ledger entries at once (docs/rules.md, rule 6): one is written dearly, and names those before it.
#
# The transaction writes only the carriers among the new entries. A carrier names EARN entries just before it,
# the carried entries. The writer puts those afterwards, at half the price. If it dies first, the next one
# rebuilds them from their carrier (`split_carriers`, `unfold`). Example: twenty events are one carrier and
# nineteen carried entries.


def split_carriers(entries: Sequence[Entry]) -> tuple[list[Entry], list[Entry]]:
    """Split appended entries into the carriers, which the transaction writes, and the carried entries.

    A carrier names as many as fit beside its own attributes into one write unit. The last entry is always a
    carrier, and becomes the active head.
    """
    carriers: list[Entry] = []
    rest: list[Entry] = []
    packing = DraftPack()
    for entry, follower in zip_longest(entries, entries[1:]):
        # What begins a chain has its salt itself.
        if follower and not entry.begins and packing.takes(entry.draft, _free_bytes(follower)):
            rest.append(entry)
            continue
        carriers.append(replace(entry, folded=tuple(packing.drafts), active=follower is None))
        packing = DraftPack()
    return carriers, rest


def _free_bytes(entry: Entry) -> int:
    """Return the bytes that an entry has for what it names, in the write unit that it takes itself."""
    draft = entry.draft
    values = (entry.account_id, draft.event_id, draft.event_type, draft.activity_date)
    own = OWN_BYTES + sum(len(each.encode()) for each in values if each)
    for name in OPTIONAL:
        if each := getattr(draft, name):
            own += len(name) + (1 if each is True else len(str(getattr(each, "text", each)).encode()))
    return WRITE_UNIT_BYTES - own


def unfold_carrier(carrier: Entry) -> list[Entry]:
    """Return the carried entries that a carrier names, oldest first."""
    entries: list[Entry] = []
    seq, moment = carrier.seq, unstamp(carrier.created_at)
    balance = carrier.balance - carrier.draft.points
    for draft in reversed(carrier.folded):
        seq, moment = seq - 1, moment - MICROSECOND
        entries.append(Entry(carrier.account_id, stamp(moment), seq, balance, draft))
        balance -= draft.points
    return entries[::-1]


def with_carried(stored: Iterable[Entry]) -> tuple[list[Entry], list[Entry]]:
    """Return stored and carried entries, oldest first; and those of them that are not stored yet."""
    by_place = {entry.created_at: entry for entry in stored}
    missing = [
        entry
        for carrier in list(by_place.values())
        for entry in unfold_carrier(carrier)
        if entry.created_at not in by_place
    ]
    everything = {**by_place, **{entry.created_at: entry for entry in missing}}
    return [everything[key] for key in sorted(everything)], missing
