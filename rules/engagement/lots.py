"""Lots and holds (docs/rules.md, rule 11): which points expire, which are reserved, and what has been spent
before.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from uuid import UUID, uuid5

from rules.book.point_rules import instant_of_expiry, last_expired
from rules.days import stamp, unstamp
from rules.engagement.ledger import EARNING, Draft, Entry, EntryKind

OPEN_MAX = 5  # of one user; the profile has them, and it is to stay small
HOLD_DEFAULT, HOLD_MAX = timedelta(minutes=15), timedelta(days=7)
NAMESPACE = UUID("1c1c3d5e-7a0b-5f6e-9d5c-7f7c8f3a2b10")
DATES_MAX = 40  # of one settlement, so that its entries fit into a transaction


@dataclass(frozen=True, slots=True)
class Hold:
    """Points reserved for a reward, and not spent yet.

    A hold is in the profile while it is open. It writes no ledger entry: capturing it does, as a redemption.
    At its deadline it is released without anybody's doing, because whoever reads counts only what is still
    held.
    """

    hold_id: str
    points: int
    reward_id: str
    held_at: str  # held_at, until: stamps; from `until` on they are held no more
    until: str

    def is_open(self, now: datetime) -> bool:
        """Whether the points are still reserved."""
        return now < unstamp(self.until)


@dataclass(frozen=True, slots=True)
class HoldRequest:
    """What somebody asks for."""

    points: int
    reward_id: str
    idempotency_key: str
    lasts: timedelta = HOLD_DEFAULT  # how long nobody else may spend the points


def hold_id(user_id: str, key: str) -> str:
    """Return the id of the hold that a user's key stands for: the same for every attempt."""
    return str(uuid5(NAMESPACE, f"{user_id}\x00{key}"))


def new_hold(user_id: str, asked: HoldRequest, now: datetime) -> Hold:
    """Return the hold that begins now."""
    key = hold_id(user_id, asked.idempotency_key)
    return Hold(key, asked.points, asked.reward_id, stamp(now), stamp(now + asked.lasts))


def held_points(holds: Iterable[Hold], now: datetime) -> int:
    """Return the points that open holds reserve."""
    return sum(each.points for each in holds if each.is_open(now))


def holds_without(holds: Iterable[Hold], ended: str) -> tuple[Hold, ...]:
    """Return the holds but the one with an id."""
    return tuple(each for each in holds if each.hold_id != ended)


@dataclass(frozen=True, slots=True)
class Expiry:
    """How far an account's expiry is settled."""

    next_on: date | None = None  # no lot that is not settled expires before; None: no such lot
    settled_on: date = date.min  # lots up to this date are settled, but for those from next_on on
    settled_points: int = 0  # what was earned with an expiry up to it

    def is_due(self, now: datetime) -> bool:
        """Whether a lot may have expired that is not settled."""
        return self.next_on is not None and self.next_on <= last_expired(now)

    def with_points(self, on: date, points: int) -> "Expiry":
        """Count points that expire on a date in, or out (below 0). What was settled before is due again."""
        next_on = min(on, self.next_on or on)
        settled = points if on <= self.settled_on else 0
        return Expiry(next_on, self.settled_on, self.settled_points + settled)

    def reopened(self, since: date) -> "Expiry":
        """Have lots settled again that expired on a date or later, because less was spent."""
        if since > self.settled_on:
            return self
        return replace(self, next_on=min(since, self.next_on or since))


@dataclass(frozen=True, slots=True)
class Position:
    """What a settlement goes by. The entries must all be counted into balance and total."""

    expiry: Expiry
    balance: int
    total: int  # points ever earned
    # Points by expiry, of all lots from `expiry.next_on` up to the first one that has not expired by now
    lots: Mapping[date, int]
    entries: Sequence[Entry] = ()  # those since the instant of `expiry.next_on`
    holds: Iterable[Hold] = ()  # the open ones


@dataclass(frozen=True, slots=True)
class Settlement:
    """The entries that make a ledger agree with what has expired, and how far that is settled."""

    drafts: list[Draft]
    expiry: Expiry


def settlement_of(position: Position, now: datetime, dates_max: int = DATES_MAX) -> Settlement:
    """Return what is to be written of the lots that have expired by now, of so many dates at most."""
    expiry, lots = position.expiry, position.lots
    if expiry.next_on is None:
        return Settlement([], expiry)
    first, until = expiry.next_on, last_expired(now)
    written = _expired_points(position.entries, first)
    dates = sorted({on for on in (*lots, *written) if first <= on <= until})
    if len(dates) > dates_max:
        dates = dates[:dates_max]
        until = dates[-1]
    earned = expiry.settled_points - sum(
        some for on, some in lots.items() if first <= on <= expiry.settled_on
    )
    gone = position.total - position.balance - sum(written.values())
    drafts, kept = [], None
    moved = _spendings(position.entries)
    for on, expired, is_held in expiring(dates, lots, (earned, gone), moved, position.holds):
        if is_held:
            kept = kept or on  # what is held does not expire meanwhile: to be looked at again
        if change := expired - written.get(on, 0):
            drafts.append(Draft(EntryKind.EXPIRE, -change, expires_on=on.isoformat()))
    earned += sum(lots.get(on, 0) for on in dates)
    reached = max(until, expiry.settled_on)
    rest = [on for on in lots if on > until and lots[on] > 0]
    earned += sum(some for on, some in lots.items() if until < on <= reached)
    next_on = kept or min(rest, default=None)
    # What comes back comes first: the balance is never below 0 in between.
    return Settlement(sorted(drafts, key=lambda each: -each.points), Expiry(next_on, reached, earned))


Spending = tuple[datetime, int]  # when points were spent, and how many; below 0: given back


def expiring(
    dates: Iterable[date],
    lots: Mapping[date, int],
    before: tuple[int, int],
    moved: Iterable[Spending],
    holds: Iterable[Hold] = (),
) -> Iterator[tuple[date, int, bool]]:
    """Yield what expires of each lot, and whether some of it is held, so that it does not yet.

    dates: those of the lots, ascending. before: what was earned with an earlier expiry; and what expired
    earlier, with all that was ever spent. moved: all that was spent since the first of these dates.
    """
    (earned, gone), spendings = before, sorted(moved)
    later, index = sum(points for _, points in spendings), 0
    reserved = [(unstamp(each.held_at), each.points) for each in holds]
    for on in dates:
        earned += lots.get(on, 0)
        at = instant_of_expiry(on)
        while index < len(spendings) and spendings[index][0] <= at:
            later -= spendings[index][1]
            index += 1
        held = sum(points for since, points in reserved if since <= at) if reserved else 0
        left = earned - gone + later
        expired = max(0, left - held)
        gone += expired
        yield on, expired, held > 0 and left > 0


def expired_points(lots: Mapping[date, int], moved: Sequence[Spending], now: datetime) -> int:
    """Return what has expired by an instant of an account that has spent so much in all."""
    until = last_expired(now)
    dates = sorted(on for on in lots if on <= until)
    spent = sum(points for _, points in moved)
    return sum(expired for _, expired, _ in expiring(dates, lots, (0, spent), moved)) if dates else 0


def expiry_of(entries: Sequence[Entry], holds: Iterable[Hold], former: Expiry, updated_at: str) -> Expiry:
    """Return how far an account's expiry is settled, by all of its entries.

    former: what the profile says of it. settled_on does not follow from entries, because a lot of which
    nothing was left has none; and next_on may well be earlier than it must be. updated_at: when the profile
    was written: that decides which holds were open.
    """
    if not entries or not updated_at:
        return former
    written_at = max(datetime.fromisoformat(updated_at), unstamp(entries[-1].created_at))
    if former.settled_on > last_expired(written_at):
        former = replace(former, settled_on=date.min, next_on=None)
    still_open = [each for each in holds if each.is_open(written_at)]
    drafts = [each.draft for each in entries]
    lots = _lots_of(drafts)
    if not lots:
        return former
    balance = sum(each.points for each in drafts)
    total = sum(each.points for each in drafts if each.kind in EARNING)
    rest = [on for on in lots if on > former.settled_on and lots[on] > 0]
    due = min(rest, default=None)
    if former.settled_on > date.min:
        before = Position(Expiry(min(lots)), balance, total, lots, entries, still_open)
        done = settlement_of(before, instant_of_expiry(former.settled_on), len(entries))
        wrong = [date.fromisoformat(each.expires_on) for each in done.drafts if each.expires_on]
        due = min([*wrong, *filter(None, [done.expiry.next_on])], default=None)
    settled_points = sum(points for on, points in lots.items() if on <= former.settled_on)
    next_on = min(filter(None, [due, former.next_on]), default=None)
    return Expiry(next_on, former.settled_on, settled_points)


def _lots_of(drafts: Iterable[Draft]) -> Counter[date]:
    lots: Counter[date] = Counter()
    for draft in drafts:
        if draft.expires_on and draft.kind is not EntryKind.EXPIRE:
            lots[date.fromisoformat(draft.expires_on)] += draft.points
    return lots


def _expired_points(entries: Iterable[Entry], first: date) -> dict[date, int]:
    """Return what entries say has expired, by expiry, of lots from a date on."""
    written: Counter[date] = Counter()
    for draft in (each.draft for each in entries):
        if draft.kind is EntryKind.EXPIRE and draft.expires_on:
            written[date.fromisoformat(draft.expires_on)] -= draft.points
    return {on: points for on, points in written.items() if on >= first and points}


def _spendings(entries: Iterable[Entry]) -> list[Spending]:
    """Return when points were spent, and how many.

    Points that were held are spent from the moment when they were held. A reversal counts, below 0, when what
    it undoes does: that is as if it had never been.
    """
    return [
        (unstamp(each.draft.held_at or each.draft.reverses or each.created_at), -each.draft.points)
        for each in entries
        if each.draft.kind in (EntryKind.REDEEM, EntryKind.REVERSE) and not each.draft.event_id
    ]


def open_lots(lots: Mapping[date, int], balance: int, lasting: int) -> dict[date, int]:
    """Return what is left of the lots that have not expired, by expiry.

    What was spent came from those that expire first, so the balance is made of the last ones. lasting: points
    that never expire; they are spent last.
    """
    left: dict[date, int] = {}
    balance -= max(0, min(lasting, balance))
    for on in sorted(lots, reverse=True):
        some = max(0, min(lots[on], balance))
        balance -= some
        if some:
            left[on] = some
    return dict(sorted(left.items()))
