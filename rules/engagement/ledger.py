"""The rewards ledger (docs/rules.md, rule 6): append-only, a running balance, one active head.

Several entries may be written at once. The transaction then writes only the carriers among them. A carrier
names EARN entries just before it, the carried entries. The writer puts those afterwards, at half the price.
If it dies first, the next one rebuilds them from their carrier (`split_carriers`, `unfold_carrier`). Example:
twenty events are three carriers and seventeen carried entries.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from datetime import date, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from itertools import zip_longest
from typing import Any

from rules.book.point_rules import Cap
from rules.days import EPOCH, MICROSECOND, stamp, unstamp

OPENED_AT = stamp(EPOCH)
AppliedEvents = dict[str, tuple[date, int]]  # event id -> the date that it counts for, its points
PASSIVE = "passive"
LASTS = "+"
MEASURED = "#"
DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
FRAME_BYTES = 30  # of the lists that hold kinds and lines, and of their names
WRITE_UNIT_BYTES = 1024  # a write is billed in steps of this many bytes
CARRIERS_MAX = 50  # of entries that can be carried; a transaction takes 100 actions
CARRIER_BYTES_MAX = 2**18  # an item may have 400 KB
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
    measures: str | None = None  # what the event adds to streaks (rules/engagement/events.py)


# Fields of a draft that a table and the lake have as they are, if at all.
PLAIN_FIELDS = tuple(
    each.name for each in fields(Draft) if each.name not in ("kind", "points", "freeze", "cap", "is_passive")
)


def draft_values(draft: Draft) -> dict[str, Any]:
    """Return a draft's fields as plain values; None for what it does not have."""
    return {
        "kind": draft.kind.value,
        "points": draft.points,
        **{name: getattr(draft, name) for name in PLAIN_FIELDS},
        "freeze": draft.freeze and draft.freeze.value,
        "cap": draft.cap and draft.cap.text,
        "is_passive": draft.is_passive or None,
    }


def draft_from(values: Mapping[str, Any]) -> Draft:
    """Return the draft that has these plain values, among others. Raises KeyError, ValueError."""
    freeze = values.get("freeze")
    return Draft(
        kind=EntryKind(values["kind"]),
        points=values["points"],
        **{name: values.get(name) for name in PLAIN_FIELDS},
        freeze=FreezeNote(freeze) if freeze else None,
        cap=Cap.of(values.get("cap")),
        is_passive=bool(values.get("is_passive")),
    )


@dataclass(frozen=True, slots=True)
class Head:
    """What the next entry builds on: the newest one."""

    created_at: str  # its place
    seq: int
    balance: int
    chain: bytes = b""  # its hash, and the salt of its chain (rules/engagement/seals.py); b"": it has none


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


def active_dates(entries: Iterable[Entry]) -> set[date]:
    """Return the dates that entries make active ones: those of events that none of them reverses."""
    drafts = [entry.draft for entry in entries if entry.draft.activity_date and not entry.draft.is_passive]
    gone = {each.event_id for each in drafts if each.kind is EntryKind.CLAWBACK}
    return {
        date.fromisoformat(each.activity_date or "")
        for each in drafts
        if each.kind is EntryKind.EARN and each.event_id not in gone
    }


def active_events(entries: Iterable[Entry]) -> Counter[date]:
    """Return how many events more, or fewer, make each date an active one by some entries."""
    counts: Counter[date] = Counter()
    for each in entries:
        draft = each.draft
        change = {EntryKind.EARN: 1, EntryKind.CLAWBACK: -1}.get(draft.kind, 0)
        if change and draft.activity_date and not draft.is_passive:
            counts[date.fromisoformat(draft.activity_date)] += change
    return counts


def debt_of(balance: int) -> int:
    """Return what an account owes: what is earned next pays it."""
    return max(0, -balance)


def kind_of(draft: Draft) -> str:
    """Return an entry's event type and what its event was judged by, as one text.

    Example: `CHECK_IN v2 5/day +90 #n` has the version, the cap, after how many days the points expire, and
    what the event adds to streaks.
    """
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
    found: dict[str, Any] = {"event_type": event_type}
    for each in judged:
        if each.startswith("v"):
            found["rules_version"] = int(each[1:])
        elif each == PASSIVE:
            found["is_passive"] = True
        elif each.startswith(LASTS):
            found["lasts"] = int(each.removeprefix(LASTS))
        elif each.startswith(MEASURED):
            found["measures"] = each.removeprefix(MEASURED)
        else:
            found["cap"] = Cap.of(each)
    return found


@dataclass(slots=True)
class CarriedDrafts:
    """EARN drafts that one carrier names, as texts that an operator can read."""

    drafts: list[Draft] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)  # see kind_of; each once
    # For each draft the number of its kind, its points, its date and its event's id, such as
    # `0 10 2026-06-01 2026-06-01T08:30:00.000000Z#ac815fe5-92f6-5c51-9d3e-0c6a6d0f7f8e`
    lines: list[str] = field(default_factory=list)
    size: int = FRAME_BYTES  # how many bytes all of them take in a table

    def takes(self, draft: Draft, room: int) -> bool:
        """Add a draft if all of them then take `room` bytes at most; whether it was added."""
        if not _is_carriable(draft):
            return False
        kind = kind_of(draft)
        is_known = kind in self.kinds
        number = self.kinds.index(kind) if is_known else len(self.kinds)
        line = f"{number} {draft.points} {draft.activity_date} {draft.event_id}"
        more = 1 + len(line.encode()) + (0 if is_known else 1 + len(kind.encode()))
        if self.size + more > room:
            return False
        self.drafts.append(draft)
        self.lines.append(line)
        if not is_known:
            self.kinds.append(kind)
        self.size += more
        return True


def carried_text(drafts: Iterable[Draft]) -> dict[str, list[str]]:
    """Return drafts as {"kinds", "lines"}; raises ValueError for one that no carrier can name."""
    carried = CarriedDrafts()
    for draft in drafts:
        if not carried.takes(draft, 2**20):
            raise ValueError(f"no carrier can name {draft}")
    return {"kinds": carried.kinds, "lines": carried.lines}


def carried_drafts(text: Mapping[str, Sequence[str]]) -> list[Draft]:
    """Read what carried_text returned; raises ValueError, IndexError or KeyError for anything else."""
    kinds = [fields_of_kind(each) for each in text["kinds"]]
    drafts = []
    for line in text["lines"]:
        number, points, activity_date, event_id = line.split(" ")
        judged = dict(kinds[int(number)])
        if (lasts := judged.pop("lasts", None)) is not None:
            judged["expires_on"] = (date.fromisoformat(activity_date) + timedelta(lasts)).isoformat()
        drafts.append(Draft(EntryKind.EARN, int(points), event_id, activity_date=activity_date, **judged))
    return drafts


def _is_carriable(draft: Draft) -> bool:
    """Whether a draft's line and kind are read as the same draft."""
    event_id, activity_date, expires_on = draft.event_id, draft.activity_date, draft.expires_on
    if draft.kind is not EntryKind.EARN or not (event_id and activity_date and draft.event_type):
        return False
    if draft.reward_id or draft.reverses or draft.freeze or draft.freeze_date or draft.held_at or draft.brand:
        return False
    if draft.reason or " " in event_id or " " in draft.event_type:
        return False
    return all(map(_is_date, filter(None, (activity_date, expires_on))))


@lru_cache(maxsize=1024)  # there are few dates
def _is_date(text: str) -> bool:
    with suppress(ValueError):
        return bool(DATE.fullmatch(text) and date.fromisoformat(text))
    return False


def split_carriers(entries: Sequence[Entry]) -> tuple[list[Entry], list[Entry]]:
    """Split appended entries into the carriers, which the transaction writes, and the carried entries.

    A carrier names as many as fit beside its own attributes into one write unit; of many entries at least so
    many that a transaction holds all carriers. The last entry is always a carrier, and becomes the head.
    """
    least = len(entries) // CARRIERS_MAX
    carriers: list[Entry] = []
    rest: list[Entry] = []
    carried = CarriedDrafts()
    for entry, follower in zip_longest(entries, entries[1:]):
        # What begins a chain has its salt itself.
        room = CARRIER_BYTES_MAX if len(carried.drafts) < least or not follower else _free_bytes(follower)
        if follower and not entry.begins and carried.takes(entry.draft, room):
            rest.append(entry)
            continue
        carriers.append(replace(entry, folded=tuple(carried.drafts), active=follower is None))
        carried = CarriedDrafts()
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
