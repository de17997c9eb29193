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
from rules.engagement.ledger import EVER_EARNED, Draft, Entry, EntryKind

OPEN_MAX = 5  # open holds of one user: they are in the profile, which must stay small
HOLD_DEFAULT, HOLD_MAX = timedelta(minutes=15), timedelta(days=7)
NAMESPACE = UUID("1c1c3d5e-7a0b-5f6e-9d5c-7f7c8f3a2b10")
DATES_MAX = 40  # dates of one settlement, so that its entries fit into a transaction


@dataclass(frozen=True, slots=True)
class Hold:
    """Points reserved for a reward, and not spent yet.

    A hold is in the profile while it is open. A SETTING entry begins it, and another one ends it, or the
    redemption that captures it. At its deadline it ends by itself, because readers count only open holds.
    """

    hold_id: str
    points: int
    reward_id: str
    held_at: str  # a stamp
    until: str  # a stamp: the deadline

    def is_open(self, now: datetime) -> bool:
        """Whether the points are still reserved."""
        return now < unstamp(self.until)

    @property
    def text(self) -> str:
        """The hold as it is stored, in a profile and in an entry."""
        return f"{self.hold_id} {self.held_at} {self.until} {self.points} {self.reward_id}"

    @classmethod
    def of(cls, text: str) -> "Hold":
        """Read a text; raises ValueError."""
        hold_id, held_at, until, points, reward_id = text.split(" ", 4)
        return cls(hold_id, int(points), reward_id, held_at, until)


@dataclass(frozen=True, slots=True)
class HoldRequest:
    """A request to hold points."""

    points: int
    reward_id: str
    idempotency_key: str
    lasts: timedelta = HOLD_DEFAULT  # how long nothing else may spend the points


def hold_id_of(user_id: str, key: str) -> str:
    """Return the id of the hold that a user's key stands for: the same for every attempt."""
    return str(uuid5(NAMESPACE, f"{user_id}\x00{key}"))


def new_hold(user_id: str, request: HoldRequest, now: datetime) -> Hold:
    """Return the hold that begins now."""
    hold_id = hold_id_of(user_id, request.idempotency_key)
    return Hold(hold_id, request.points, request.reward_id, stamp(now), stamp(now + request.lasts))


def held_points(holds: Iterable[Hold], now: datetime) -> int:
    """Return the points that open holds reserve."""
    return sum(hold.points for hold in holds if hold.is_open(now))


def holds_after(holds: Iterable[Hold], draft: Draft) -> tuple[Hold, ...]:
    """Return holds without the one that a redemption has captured: it says when that one began."""
    captured = (draft.held_at, draft.reward_id) if draft.kind is EntryKind.REDEEM and draft.held_at else None
    return tuple(hold for hold in holds if (hold.held_at, hold.reward_id) != captured)


def holds_without(holds: Iterable[Hold], ended_id: str) -> tuple[Hold, ...]:
    """Return all holds except the one with an id."""
    return tuple(hold for hold in holds if hold.hold_id != ended_id)


@dataclass(frozen=True, slots=True)
class Expiry:
    """How far an account is settled: a settled lot's expiry is in the ledger, and so are bonuses."""

    first_unsettled: date | None = None  # the date of the first lot that may not be settled; None: all are
    settled_on: date = date.min  # lots up to this date are settled, except those from first_unsettled on
    settled_points: int = 0  # points that were earned with an expiry up to settled_on
    bonuses_due: bool = False  # whether bonuses may be missing or too many (bonuses.py)

    def is_due(self, now: datetime) -> bool:
        """Whether a lot may have expired that is not settled, or bonuses are not."""
        return self.bonuses_due or self.are_lots_due(now)

    def are_lots_due(self, now: datetime) -> bool:
        """Whether a lot may have expired that is not settled."""
        return self.first_unsettled is not None and self.first_unsettled <= last_expired(now)

    def with_points(self, day: date, points: int) -> "Expiry":
        """Add points that expire on a date (below 0: remove them). A lot that was settled is due again."""
        first_unsettled = min(day, self.first_unsettled or day)
        settled_points = self.settled_points + (points if day <= self.settled_on else 0)
        return replace(self, first_unsettled=first_unsettled, settled_points=settled_points)

    def reopened(self, since: date) -> "Expiry":
        """Make lots due again that expired on a date or later, because a spending was taken back."""
        if since > self.settled_on:
            return self
        return replace(self, first_unsettled=min(since, self.first_unsettled or since))


@dataclass(frozen=True, slots=True)
class SettlementBasis:
    """The state of an account that a settlement follows from."""

    expiry: Expiry
    balance: int  # with all entries counted in
    total: int  # points ever earned, with all entries counted in
    # All lots from `expiry.first_unsettled` up to the first one that has not expired by now
    lots: Mapping[date, int]
    entries: Sequence[Entry] = ()  # all entries since the instant of `expiry.first_unsettled`
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
    first, lots = basis.expiry.first_unsettled, basis.lots
    if first is None:
        return Settlement([], basis.expiry)
    recorded, spendings = _recorded_expiries(basis.entries, first), _spendings(basis.entries)
    last = last_expired(now)
    dates, last = _cut(sorted(day for day in {*lots, *recorded} if first <= day <= last), last, dates_max)
    earned_before = basis.expiry.settled_points - _points_between(lots, first, basis.expiry.settled_on)
    # Points that were earned and are not in the balance have been spent or have expired.
    spent_or_expired_before = basis.total - basis.balance
    spent_or_expired_before -= sum(recorded.values()) + sum(spending.points for spending in spendings)
    outcomes = [*_lot_outcomes(dates, lots, earned_before, spent_or_expired_before, spendings, basis.holds)]
    # All expiries are computed anew, and entries are written where they differ from what is recorded.
    changes = [(lot.day, lot.expired - recorded.get(lot.day, 0)) for lot in outcomes]
    drafts = [Draft(EntryKind.EXPIRE, -more, expires_on=day.isoformat()) for day, more in changes if more]
    # Gains come first, so that the balance is never below 0 between two entries.
    drafts.sort(key=lambda draft: -draft.points)
    first_held = next((lot.day for lot in outcomes if lot.is_held), None)
    return Settlement(drafts, _expiry_after(basis, last, first_held, earned_before))


def _cut(dates: list[date], last: date, dates_max: int) -> tuple[list[date], date]:
    """Return the first `dates_max` of some dates, and the last date up to which they are all."""
    return (dates, last) if len(dates) <= dates_max else (dates[:dates_max], dates[dates_max - 1])


def _expiry_after(basis: SettlementBasis, last: date, first_held: date | None, earned_before: int) -> Expiry:
    """Return how far an account is settled, once its lots up to `last` are.

    first_held: the first of them that a hold keeps from expiring, so it is due again. earned_before: points
    earned with an expiry before `first_unsettled`.
    """
    before, lots = basis.expiry, basis.lots
    settled_on = max(last, before.settled_on)
    settled_points = earned_before + _points_between(lots, before.first_unsettled or last, settled_on)
    next_lot = min((day for day in lots if day > last and lots[day] > 0), default=None)
    return replace(
        before,
        first_unsettled=first_held or next_lot,
        settled_on=settled_on,
        settled_points=settled_points,
    )


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


class LotOutcome(NamedTuple):
    """What becomes of a lot at its instant."""

    day: date  # the lot's
    expired: int  # the points that expire
    is_held: bool  # whether a hold keeps points from expiring


def _lot_outcomes(  # noqa: PLR0913, PLR0917 (the state of an account)
    dates: Iterable[date],
    lots: Mapping[date, int],
    earned_before: int,
    spent_or_expired_before: int,
    spendings: Iterable[Spending],
    holds: Iterable[Hold] = (),
) -> Iterator[LotOutcome]:
    """Yield what becomes of each lot.

    dates: of the lots, ascending. earned_before: points earned with an earlier expiry.
    spent_or_expired_before: points that expired earlier, or were spent and are not among `spendings`.

    Example: there are lots of 10, 20 and 30 points, and nothing before them. Between the instants of the
    first two, 15 points are spent and then 2 are held:

        lot   earned   spent or expired   unspent   held   expires
        10    10       0                  10        0      10
        20    30       10 + 15 = 25       5         2      3
        30    60       25 + 3 = 28        32        2      30

    Points that are spent after a lot's instant are not from that lot. At the end, the 2 held points are left.
    """
    earned, spent_or_expired = earned_before, spent_or_expired_before
    later_spendings = deque(sorted(spendings))
    held_since = [(unstamp(hold.held_at), hold.points) for hold in holds]
    for day in dates:
        expires_at = instant_of_expiry(day)
        earned += lots.get(day, 0)
        while later_spendings and later_spendings[0].at <= expires_at:
            spent_or_expired += later_spendings.popleft().points
        unspent = earned - spent_or_expired
        held = sum(points for since, points in held_since if since <= expires_at)
        expired = max(0, unspent - held)
        spent_or_expired += expired
        yield LotOutcome(day, expired, held > 0 and unspent > 0)


def expired_points(lots: Mapping[date, int], spendings: Sequence[Spending], now: datetime) -> int:
    """Return how many points have expired by an instant. spendings: all of the account."""
    last = last_expired(now)
    dates = sorted(day for day in lots if day <= last)
    return sum(lot.expired for lot in _lot_outcomes(dates, lots, 0, 0, spendings))


def expiry_of(entries: Sequence[Entry], holds: Iterable[Hold], stored: Expiry, updated_at: str) -> Expiry:
    """Return how far an account's expiry is settled, by all of its entries.

    stored: the profile's. Its settled_on is taken over, because it does not follow from entries: a lot that
    was spent before it expired has none. Its first_unsettled may be too early, which is no fault.
    updated_at: when the profile was written, which decides which holds were open.
    """
    if not entries or not updated_at:
        return stored
    written_at = max(datetime.fromisoformat(updated_at), unstamp(entries[-1].created_at))
    if stored.settled_on > last_expired(written_at):  # a damaged profile: nobody can settle the future
        stored = replace(stored, settled_on=date.min, first_unsettled=None)
    lots: Counter[date] = Counter()
    for draft in (entry.draft for entry in entries):
        if draft.expires_on and draft.kind is not EntryKind.EXPIRE:
            lots[date.fromisoformat(draft.expires_on)] += draft.points
    if not lots:
        return stored
    open_holds = [hold for hold in holds if hold.is_open(written_at)]
    due = _dates_still_due(entries, lots, open_holds, stored.settled_on)
    if stored.first_unsettled:
        due.append(stored.first_unsettled)
    settled_points = _points_between(lots, date.min, stored.settled_on)
    return replace(stored, first_unsettled=min(due, default=None), settled_points=settled_points)


def _dates_still_due(
    entries: Sequence[Entry], lots: Mapping[date, int], open_holds: Sequence[Hold], settled_on: date
) -> list[date]:
    """Return the dates of the lots that a settlement of all up to `settled_on` would still change."""
    if settled_on == date.min:  # nothing was ever settled, so all lots are due
        return [day for day in lots if lots[day] > 0]
    drafts = [entry.draft for entry in entries]
    from_beginning = SettlementBasis(
        expiry=Expiry(min(lots)),
        balance=sum(draft.points for draft in drafts),
        total=sum(draft.points for draft in drafts if draft.kind in EVER_EARNED),
        lots=lots,
        entries=entries,
        holds=open_holds,
    )
    settlement = settlement_of(from_beginning, instant_of_expiry(settled_on), len(entries))
    due = [date.fromisoformat(draft.expires_on) for draft in settlement.drafts if draft.expires_on]
    return [*due, settlement.expiry.first_unsettled] if settlement.expiry.first_unsettled else due


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
