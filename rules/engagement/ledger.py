"""The rewards ledger (docs/rules.md, rule 6): append-only, a running balance, one active head.

An entry's place is its `created_at`. Places of one account increase strictly.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date, datetime
from enum import StrEnum
from typing import Any, NamedTuple

from rules.book.point_rules import Cap
from rules.days import EPOCH, MICROSECOND, stamp, unstamp

OPENED_AT = stamp(EPOCH)
SALT_BYTES = 16


class AppliedEvent(NamedTuple):
    """What an entry has made of an event."""

    day: date  # the date that it counts for
    points: int


AppliedEvents = dict[str, AppliedEvent]  # by event id


class AppliedSince(NamedTuple):
    """What entries have made of some events, and what came after."""

    events: AppliedEvents
    earned_later: int  # points that other events have earned in entries after the newest of these


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
    BONUS = "BONUS"
    SETTING = "SETTING"


# Their points belong to a date, and are summed up as points ever earned. All others spend, give back, or
# expire. A bonus is ever earned, too, but no event earns it: it counts for no achievement, date or board.
EARNING = frozenset({EntryKind.EARN, EntryKind.CLAWBACK, EntryKind.RERATE})
EVER_EARNED = EARNING | {EntryKind.BONUS}
CORRECTIONS = frozenset({EntryKind.CLAWBACK, EntryKind.RERATE})  # of what events have earned
# These may make the balance negative, and so put the account into debt (rule 12).
INTO_DEBT = CORRECTIONS | {EntryKind.BONUS}


class FreezeNote(StrEnum):
    """What an entry does to the account's streak freezes."""

    GRANTED = "freeze_granted"
    REVOKED = "freeze_revoked"
    SPENT = "freeze_spent"
    REFUNDED = "freeze_refunded"


class Setting(StrEnum):
    """What a SETTING entry sets; rules/engagement/account_settings.py reads and writes what it is set to."""

    ZONE = "zone"  # the zone that the user has chosen
    ZONE_SEEN = "zone_seen"  # another zone than before, which an event named
    CLOCK = "clock"  # another error of a device's clock
    PAUSE = "pause"
    REST_DAYS = "rest_days"  # the weekdays that the user has chosen, and from which date on
    SKIPPED = "skipped"  # dates that the user's zones left out
    AMNESTIES = "amnesties"  # all dates that amnesties make neutral
    OPENING = "opening"  # the streak that came from another system
    REVIEW = "review"  # a reason why an admin must look at the account
    RELEASE = "release"  # the end of a review
    BOARDS = "boards"  # a group, or whether the user has left the boards
    HOLD = "hold"  # points are reserved
    HOLD_ENDED = "hold_ended"  # and are so no more, without having been spent


class InsufficientBalance(Exception):
    """A command wants to spend more points than the balance has."""

    def __init__(self, balance: int, wanted: int) -> None:
        super().__init__(f"balance {balance} does not cover {wanted} points")
        self.balance, self.wanted = balance, wanted


def check_covered(points: int, available: int) -> None:
    """Raise InsufficientBalance unless available points cover a price. A price of 0 is no debt, even in one.

    available: rules.engagement.spending.spendable.
    """
    if points and points > available:
        raise InsufficientBalance(available, points)


@dataclass(frozen=True, slots=True)
class Draft:
    """An entry that has no place in the ledger yet."""

    kind: EntryKind
    points: int  # signed: a redemption of 15 has -15
    event_id: str | None = None
    event_type: str | None = None
    activity_date: str | None = None
    reward_id: str | None = None  # of a BONUS: the achievement
    reverses: str | None = None  # created_at of another entry
    freeze: FreezeNote | None = None
    freeze_date: str | None = None
    # The version of the book: that which judged the event of an EARN, that which has the price of a REDEEM,
    # the newest one that a RERATE applies.
    rules_version: int | None = None
    # An EARN has cap, is_passive, expires_on, measures and timezone of its event. The CLAWBACK that reverses
    # it repeats them. A RERATE has the cap and expires_on of the points that it changes.
    cap: Cap | None = None
    is_passive: bool = False
    expires_on: str | None = None  # the date on which the points expire; of an EXPIRE: on which they did
    held_at: str | None = None  # of a REDEEM that captures a hold, or its REVERSE: when it began
    reason: str | None = None  # of a CLAWBACK or RERATE
    brand: str | None = None  # of the reward of a REDEEM or its REVERSE
    measures: str | None = None  # what the event adds to streaks (rules/engagement/events.py)
    timezone: str | None = None  # the zone that the event itself named
    setting: Setting | None = None  # of a SETTING
    set_to: str | None = None  # of a SETTING: to what

    @property
    def day(self) -> date:
        """The activity date. Raises ValueError for an entry that has none."""
        return date.fromisoformat(self.activity_date or "")


# Fields of a draft that a table and the lake store without a change.
PLAIN_FIELDS = tuple(
    each.name
    for each in fields(Draft)
    if each.name not in ("kind", "points", "freeze", "cap", "is_passive", "setting")
)


def draft_values(draft: Draft) -> dict[str, Any]:
    """Return a draft's fields as plain values; None for a field that it does not have."""
    return {
        "kind": draft.kind.value,
        "points": draft.points,
        **{name: getattr(draft, name) for name in PLAIN_FIELDS},
        "freeze": draft.freeze and draft.freeze.value,
        "cap": draft.cap and draft.cap.text,
        "is_passive": draft.is_passive or None,
        "setting": draft.setting and draft.setting.value,
    }


def draft_from(values: Mapping[str, Any]) -> Draft:
    """Return the draft that has these plain values, among others. Raises KeyError, ValueError."""
    freeze, setting = values.get("freeze"), values.get("setting")
    return Draft(
        kind=EntryKind(values["kind"]),
        points=values["points"],
        **{name: values.get(name) for name in PLAIN_FIELDS},
        freeze=FreezeNote(freeze) if freeze else None,
        cap=Cap.of(values.get("cap")),
        is_passive=bool(values.get("is_passive")),
        setting=Setting(setting) if setting else None,
    )


@dataclass(frozen=True, slots=True)
class Head:
    """The newest entry of an account, as the next one needs it."""

    created_at: str  # its place
    seq: int
    balance: int


@dataclass(frozen=True, slots=True)
class Entry:
    """A draft with its place in the ledger."""

    account_id: str  # the user's id
    created_at: str  # the place, a stamp
    seq: int
    balance: int
    draft: Draft
    carried: tuple[Draft, ...] = ()  # of a carrier: what it names (carriers.py)
    active: bool = False  # whether it is the head
    reversed_by: str | None = None  # created_at of the entry that reversed this one
    applied_through: str = ""  # of a head: see Profile
    salt: bytes = b""  # of the first entry: a secret of the account's proofs (proof.py)

    @property
    def head(self) -> Head:
        """This entry as a head."""
        return Head(self.created_at, self.seq, self.balance)


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
    Raises InsufficientBalance for a REDEEM that the balance does not cover. No other kind needs a balance.
    """
    entries = [] if head else [opening_entry(account_id)]
    place = head or entries[0].head
    moment = max(now, after + MICROSECOND, unstamp(place.created_at) + MICROSECOND)
    for draft in drafts:
        if draft.kind is EntryKind.REDEEM:
            check_covered(-draft.points, place.balance)
        balance = place.balance + draft.points
        entries.append(Entry(account_id, stamp(moment), place.seq + 1, balance, draft))
        place, moment = entries[-1].head, moment + MICROSECOND
    return entries


def applied_events(entries: Iterable[Entry]) -> AppliedEvents:
    """Return what each event that entries are for has become."""
    return {
        draft.event_id: AppliedEvent(draft.day, draft.points)
        for draft in (entry.draft for entry in entries)
        if draft.kind is EntryKind.EARN and draft.event_id and draft.activity_date
    }


def active_dates(entries: Iterable[Entry]) -> set[date]:
    """Return the dates of the active events that entries are for, without those that entries reverse."""
    drafts = [entry.draft for entry in entries if entry.draft.activity_date and not entry.draft.is_passive]
    gone = {draft.event_id for draft in drafts if draft.kind is EntryKind.CLAWBACK}
    return {draft.day for draft in drafts if draft.kind is EntryKind.EARN and draft.event_id not in gone}


def active_events(entries: Iterable[Entry]) -> Counter[date]:
    """Return by date how many active events entries add; below 0 if they reverse more than they add."""
    counts: Counter[date] = Counter()
    for entry in entries:
        draft = entry.draft
        change = {EntryKind.EARN: 1, EntryKind.CLAWBACK: -1}.get(draft.kind, 0)
        if change and draft.activity_date and not draft.is_passive:
            counts[draft.day] += change
    return counts


def debt_of(balance: int) -> int:
    """Return the points that an account owes. Points that it earns next pay the debt."""
    return max(0, -balance)
