"""The rewards ledger (docs/rules.md, rule 6): append-only, a running balance, one active head.

`points` is signed, so balance[n] = balance[n-1] + points[n] and seq[n] = seq[n-1] + 1.
How several are appended at once: rules.engagement.carrying.carriers.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum

from rules.book.caps import Cap
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
    """An entry that has no place in the ledger yet.

    points: signed; a redemption of 15 has -15. rules_version, cap, is_passive, measures: those of an EARN's
    event, and of the CLAWBACK that reverses it. rules_version of a REDEEM: the version whose price it is;
    of a RERATE: the newest one by which it was told. expires_on: the date on which an EARN's points expire,
    or an EXPIRE's have. held_at: of a REDEEM that captures a hold, when that began. reason: of a CLAWBACK or
    RERATE, why. brand: of the reward of a REDEEM or its REVERSE.
    """

    kind: EntryKind
    points: int
    event_id: str | None = None
    event_type: str | None = None
    activity_date: str | None = None
    reward_id: str | None = None
    reverses: str | None = None
    freeze: FreezeNote | None = None
    freeze_date: str | None = None
    rules_version: int | None = None
    cap: Cap | None = None
    is_passive: bool = False
    expires_on: str | None = None
    held_at: str | None = None
    reason: str | None = None
    brand: str | None = None
    measures: str | None = None


@dataclass(frozen=True, slots=True)
class Head:
    """What the next entry builds on: the newest entry's place and balance.

    chain: the newest entry's hash, and the salt of its chain (rules/engagement/proving); b"": it has none.
    """

    created_at: str
    seq: int
    balance: int
    chain: bytes = b""


@dataclass(frozen=True, slots=True)
class Entry:
    """A draft in its place.

    created_at: the place, a stamp. folded: of a carrier, the entries that it names. active: whether it is
    the head. reversed_by: created_at of the entry that reversed this one. applied_through: of a head, how
    far into the stream the account's events are applied with it (see Profile). chain: the entry's hash and
    the salt of its chain; b"" for a carried entry, whose hash follows from its carrier, and for one of an
    earlier version. begins: that salt, on the first entry of a chain.
    """

    account_id: str
    created_at: str
    seq: int
    balance: int
    draft: Draft
    folded: tuple[Draft, ...] = ()
    active: bool = False
    reversed_by: str | None = None
    applied_through: str = ""
    chain: bytes = b""
    begins: bytes = b""

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
