"""The rewards ledger (docs/rules.md, rule 6): append-only, a running balance, one active head.

`points` is signed, so balance[n] = balance[n-1] + points[n] and seq[n] = seq[n-1] + 1.
How several are appended at once: rules.engagement.carrying.carriers.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum

from rules.book.point_rules import Cap
from rules.days import EPOCH, MICROSECOND, stamp, unstamp

OPENED_AT = stamp(EPOCH)
Applied = dict[str, tuple[date, int]]  # event id -> the date that it counts for, its points


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


def opening(account_id: str) -> Entry:
    """Return an account's first entry, of 0 points.

    Its place is fixed, so two writers that open the same account collide, and one of them fails.
    """
    return Entry(account_id, OPENED_AT, 0, 0, Draft(EntryKind.OPEN, 0))


def entry_id(created_at: str) -> str:
    """Return an entry's place as an id that fits into a path.

    Example: 2026-03-03T00:20:00.000002Z becomes 20260303T002000000002Z.
    """
    return created_at.translate(str.maketrans("", "", "-:."))


def append(
    account_id: str, head: Head | None, drafts: Sequence[Draft], now: datetime, after: datetime = EPOCH
) -> list[Entry]:
    """Give drafts their places, a microsecond apart, after a head (None: open the account first).

    after: the latest arrival among the events applied. The first place is now, or just after the head or
    `after` if that is later. So places increase strictly, whatever the clocks of two writers say.
    Raises InsufficientBalance for a REDEEM that the balance does not cover. No other entry asks for anything.
    """
    entries = [] if head else [opening(account_id)]
    place = head or entries[0].head
    moment = max(now, after + MICROSECOND, unstamp(place.created_at) + MICROSECOND)
    for draft in drafts:
        balance = place.balance + draft.points
        if balance < 0 and draft.kind is EntryKind.REDEEM and draft.points:
            raise InsufficientBalance(place.balance, -draft.points)
        entries.append(Entry(account_id, stamp(moment), place.seq + 1, balance, draft))
        place, moment = entries[-1].head, moment + MICROSECOND
    return entries


def applied_by(entries: Iterable[Entry]) -> Applied:
    """Return what entries say of the events that earned them."""
    return {
        draft.event_id: (date.fromisoformat(draft.activity_date), draft.points)
        for draft in (entry.draft for entry in entries)
        if draft.kind is EntryKind.EARN and draft.event_id and draft.activity_date
    }


def debt_of(balance: int) -> int:
    """Return what an account owes: what is earned next pays it."""
    return max(0, -balance)
