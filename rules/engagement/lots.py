"""Lots and holds (docs/rules.md, rule 11).

A lot is a number of points that expire on one date. Points are spent from the lot that expires first. A hold
reserves points for a reward; meanwhile they do not expire.

A lot expires at an instant, and its entry is written later: at the next command, or in the next night. That
is a *settlement*. In this order: holds; how far an account is settled; settlements; what becomes of lots; how
far all entries say that an account is settled; the lots that have not expired.

`lots` are points by date: all that were earned with an expiry on it, spent or not. What is left of a lot is
stored nowhere (decision 48).
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import NamedTuple
from uuid import UUID, uuid5

from rules.book.point_rules import instant_of_expiry, last_expired
from rules.days import stamp, unstamp
from rules.engagement.ledger import EARNING, Draft, Entry, EntryKind

OPEN_MAX = 5  # open holds of one user: they are in the profile, which must stay small
HOLD_DEFAULT, HOLD_MAX = timedelta(minutes=15), timedelta(days=7)
NAMESPACE = UUID("1c1c3d5e-7a0b-5f6e-9d5c-7f7c8f3a2b10")
DATES_MAX = 40  # dates of one settlement, so that its entries fit into a transaction


@dataclass(frozen=True, slots=True)
class Hold:
    """Points reserved for a reward, and not spent yet.

    A hold is in the profile while it is open. It has no ledger entry: capturing it writes one, a redemption.
    At its deadline it ends by itself, because readers count only open holds.
    """

    hold_id: str
    points: int
    reward_id: str
    held_at: str  # a stamp
    until: str  # a stamp: the deadline

    def is_open(self, now: datetime) -> bool:
        """Whether the points are still reserved."""
        return now < unstamp(self.until)


@dataclass(frozen=True, slots=True)
class HoldRequest:
    """A request to hold points."""

    points: int
    reward_id: str
    idempotency_key: str
    lasts: timedelta = HOLD_DEFAULT  # how long nothing else may spend the points


def hold_id(user_id: str, key: str) -> str:
    """Return the id of the hold that a user's key stands for: the same for every attempt."""
    return str(uuid5(NAMESPACE, f"{user_id}\x00{key}"))


def new_hold(user_id: str, request: HoldRequest, now: datetime) -> Hold:
    """Return the hold that begins now."""
    key = hold_id(user_id, request.idempotency_key)
    return Hold(key, request.points, request.reward_id, stamp(now), stamp(now + request.lasts))


def held_points(holds: Iterable[Hold], now: datetime) -> int:
    """Return the points that open holds reserve."""
    return sum(hold.points for hold in holds if hold.is_open(now))


def holds_without(holds: Iterable[Hold], ended_id: str) -> tuple[Hold, ...]:
    """Return all holds except the one with an id."""
    return tuple(hold for hold in holds if hold.hold_id != ended_id)


@dataclass(frozen=True, slots=True)
class Expiry:
    """How far an account's lots are settled: a settled lot's expiry is in the ledger."""

    next_on: date | None = None  # the date of the first lot that may not be settled; None: all are
    settled_on: date = date.min  # lots up to this date are settled, except those from next_on on
    settled_points: int = 0  # points that were earned with an expiry up to settled_on

    def is_due(self, now: datetime) -> bool:
        """Whether a lot may have expired that is not settled."""
        return self.next_on is not None and self.next_on <= last_expired(now)

    def with_points(self, day: date, points: int) -> "Expiry":
        """Add points that expire on a date (below 0: remove them). A lot that was settled is due again."""
        next_on = min(day, self.next_on or day)
        settled_points = self.settled_points + (points if day <= self.settled_on else 0)
        return Expiry(next_on, self.settled_on, settled_points)

    def reopened(self, since: date) -> "Expiry":
        """Make lots due again that expired on a date or later, because a spending was taken back."""
        if since > self.settled_on:
            return self
        return replace(self, next_on=min(since, self.next_on or since))


@dataclass(frozen=True, slots=True)
class SettlementBasis:
    """The state of an account that a settlement follows from."""

    expiry: Expiry
    balance: int  # with all entries counted in
    total: int  # points ever earned, with all entries counted in
    # All lots from `expiry.next_on` up to the first one that has not expired by now
    lots: Mapping[date, int]
    entries: Sequence[Entry] = ()  # all entries since the instant of `expiry.next_on`
    holds: Iterable[Hold] = ()  # the open holds


@dataclass(frozen=True, slots=True)
class Settlement:
    """The entries that make a ledger agree with what has expired, and how far its expiry is settled then."""

    drafts: list[Draft]
    expiry: Expiry


class Spending(NamedTuple):
    """Points that were spent."""

    at: datetime
    points: int  # below 0: given back


def settlement_of(basis: SettlementBasis, now: datetime, dates_max: int = DATES_MAX) -> Settlement:
    """Return the settlement of the lots that have expired by now, of at most `dates_max` dates."""
    expiry, lots = basis.expiry, basis.lots
    if expiry.next_on is None:
        return Settlement([], expiry)
    first, last = expiry.next_on, last_expired(now)
    recorded = _recorded_expiries(basis.entries, first)
    dates = sorted(day for day in lots.keys() | recorded.keys() if first <= day <= last)
    if len(dates) > dates_max:
        dates = dates[:dates_max]
        last = dates[-1]
    earned_before = expiry.settled_points - _points_between(lots, first, expiry.settled_on)
    # Points that were earned and are not in the balance are gone. What is recorded of these lots is left out,
    # because it is computed anew.
    gone_before = basis.total - basis.balance - sum(recorded.values())
    drafts, first_held = [], None
    spendings = _spendings(basis.entries)
    for lot in _expired_lots(dates, lots, earned_before, gone_before, spendings, basis.holds):
        if lot.is_held:
            first_held = first_held or lot.day  # held points do not expire yet, so this lot stays due
        if change := lot.expired - recorded.get(lot.day, 0):
            drafts.append(Draft(EntryKind.EXPIRE, -change, expires_on=lot.day.isoformat()))
    settled_on = max(last, expiry.settled_on)
    settled_points = earned_before + _points_between(lots, first, settled_on)
    next_on = first_held or min((day for day in lots if day > last and lots[day] > 0), default=None)
    # Gains come first, so that the balance is never below 0 between two entries.
    drafts.sort(key=lambda draft: -draft.points)
    return Settlement(drafts, Expiry(next_on, settled_on, settled_points))


def _recorded_expiries(entries: Iterable[Entry], first: date) -> dict[date, int]:
    """Return the points that entries record as expired, by the lot's date, of lots from a date on."""
    recorded: Counter[date] = Counter()
    for draft in (entry.draft for entry in entries):
        if draft.kind is EntryKind.EXPIRE and draft.expires_on:
            recorded[date.fromisoformat(draft.expires_on)] -= draft.points
    return {day: points for day, points in recorded.items() if day >= first and points}


def _points_between(lots: Mapping[date, int], first: date, last: date) -> int:
    """Return the points of the lots from one date to another, both included."""
    return sum(points for day, points in lots.items() if first <= day <= last)


def _spendings(entries: Iterable[Entry]) -> list[Spending]:
    """Return what entries say was spent, and when."""
    return [
        Spending(_spent_at(entry), -entry.draft.points)
        for entry in entries
        if entry.draft.kind in (EntryKind.REDEEM, EntryKind.REVERSE) and not entry.draft.event_id
    ]


def _spent_at(entry: Entry) -> datetime:
    """Return when the points of a redemption were spent, or those of a reversal given back.

    Points that were held count as spent from the beginning of the hold. A reversal gives the points back at
    the instant of the redemption that it reverses, as if there had been no redemption.
    """
    return unstamp(entry.draft.held_at or entry.draft.reverses or entry.created_at)


class ExpiredLot(NamedTuple):
    """What becomes of a lot at its instant."""

    day: date  # the lot's
    expired: int  # the points that expire
    is_held: bool  # whether a hold keeps points from expiring


def _expired_lots(  # noqa: PLR0913, PLR0917 (the state of an account)
    dates: Iterable[date],
    lots: Mapping[date, int],
    earned_before: int,
    gone_before: int,
    spendings: Iterable[Spending],
    holds: Iterable[Hold] = (),
) -> Iterator[ExpiredLot]:
    """Yield what becomes of each lot.

    dates: of the lots, ascending. earned_before: the points earned with an earlier expiry. gone_before: the
    points that expired earlier, and all that were ever spent. spendings: all since the first of these dates.
    """
    earned, gone = earned_before, gone_before
    # Points spent after a lot's instant were not spent from it. They are in `gone`, so they are added again.
    later_spendings = deque(sorted(spendings))
    spent_later = sum(spending.points for spending in later_spendings)
    reserved = [(unstamp(hold.held_at), hold.points) for hold in holds]
    for day in dates:
        earned += lots.get(day, 0)
        expires_at = instant_of_expiry(day)
        while later_spendings and later_spendings[0].at <= expires_at:
            spent_later -= later_spendings.popleft().points
        held = sum(points for since, points in reserved if since <= expires_at)
        unspent = earned - gone + spent_later
        expired = max(0, unspent - held)
        gone += expired
        yield ExpiredLot(day, expired, held > 0 and unspent > 0)


def expired_points(lots: Mapping[date, int], spendings: Sequence[Spending], now: datetime) -> int:
    """Return how many points have expired by an instant. spendings: all of the account."""
    last = last_expired(now)
    dates = sorted(day for day in lots if day <= last)
    spent = sum(spending.points for spending in spendings)
    return sum(lot.expired for lot in _expired_lots(dates, lots, 0, spent, spendings))


def expiry_of(entries: Sequence[Entry], holds: Iterable[Hold], stored: Expiry, updated_at: str) -> Expiry:
    """Return how far an account's expiry is settled, by all of its entries.

    stored: the profile's. Its settled_on is taken over, because it does not follow from entries: a lot that
    was spent before it expired has none. Its next_on may be earlier than necessary, which is no fault.
    updated_at: when the profile was written, which decides which holds were open.
    """
    if not entries or not updated_at:
        return stored
    written_at = max(datetime.fromisoformat(updated_at), unstamp(entries[-1].created_at))
    if stored.settled_on > last_expired(written_at):  # a damaged profile: nobody can settle the future
        stored = replace(stored, settled_on=date.min, next_on=None)
    drafts = [entry.draft for entry in entries]
    lots: Counter[date] = Counter()
    for draft in drafts:
        if draft.expires_on and draft.kind is not EntryKind.EXPIRE:
            lots[date.fromisoformat(draft.expires_on)] += draft.points
    if not lots:
        return stored
    due = [day for day in lots if lots[day] > 0]
    if stored.settled_on > date.min:
        # Due are the lots that a settlement from the beginning would still change.
        basis = SettlementBasis(
            expiry=Expiry(min(lots)),
            balance=sum(draft.points for draft in drafts),
            total=sum(draft.points for draft in drafts if draft.kind in EARNING),
            lots=lots,
            entries=entries,
            holds=[hold for hold in holds if hold.is_open(written_at)],
        )
        settlement = settlement_of(basis, instant_of_expiry(stored.settled_on), len(entries))
        due = [date.fromisoformat(draft.expires_on) for draft in settlement.drafts if draft.expires_on]
        due += filter(None, [settlement.expiry.next_on])
    settled_points = _points_between(lots, date.min, stored.settled_on)
    next_on = min([*due, *filter(None, [stored.next_on])], default=None)
    return Expiry(next_on, stored.settled_on, settled_points)


def open_lots(lots: Mapping[date, int], balance: int, lasting: int) -> dict[date, int]:
    """Return the unspent points of the lots that have not expired, by date.

    Points were spent from the lots that expire first. So the balance consists of the lots that expire last.
    lasting: points that never expire; they are spent last.
    """
    unspent: dict[date, int] = {}
    balance -= max(0, min(lasting, balance))
    for day in sorted(lots, reverse=True):
        points = max(0, min(lots[day], balance))
        balance -= points
        if points:
            unspent[day] = points
    return dict(sorted(unspent.items()))
