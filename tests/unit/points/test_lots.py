"""Lots against a plain reading of rule 11: a list of lots, and what happens to them one thing after another."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from rules.book.point_rules import last_expired
from rules.days import stamp, unstamp
from rules.engagement.ledger import Draft, Entry, EntryKind
from rules.engagement.lots import (
    Expiry,
    Hold,
    HoldRequest,
    SettlementBasis,
    expiry_of,
    new_hold,
    open_lots,
    settlement_of,
)
from tests.support.plain_lots import Plain

BEGIN = datetime(2026, 1, 1, 12, tzinfo=UTC)
FIRST = date(2026, 1, 1)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


class Account:
    """Keeps what a profile keeps, and the entries."""

    def __init__(self) -> None:
        self.plain = Plain([], [])
        self.entries: list[Entry] = []
        self.expiry, self.total, self.balance = Expiry(), 0, 0
        self.holds: list[Hold] = []
        self.spent: list[tuple[Entry, tuple[datetime, int]]] = []

    def write(self, draft: Draft, now: datetime) -> None:
        place = stamp(now + len(self.entries) * timedelta(microseconds=1))
        self.balance += draft.points
        self.entries.append(Entry("ann", place, len(self.entries), self.balance, draft))

    def earn(self, on: date | None, points: int, now: datetime) -> None:
        self.write(Draft(EntryKind.EARN, points, "e", expires_on=on.isoformat() if on else None), now)
        self.total += points
        if on:
            self.expiry = self.expiry.with_points(on, points)
            self.plain.earned.append((on, points))

    def spend(self, points: int, now: datetime, held_at: datetime | None = None) -> None:
        self.write(Draft(EntryKind.REDEEM, -points, held_at=stamp(held_at) if held_at else None), now)
        self.plain.moved.append((held_at or unstamp(self.entries[-1].created_at), points))
        self.spent.append((self.entries[-1], self.plain.moved[-1]))

    def give_back(self, place: int, now: datetime) -> None:
        entry, moved = self.spent.pop(place % len(self.spent))
        self.plain.moved.remove(moved)
        draft, points = entry.draft, -entry.draft.points
        self.write(Draft(EntryKind.REVERSE, points, reverses=entry.created_at, held_at=draft.held_at), now)
        self.expiry = self.expiry.reopened(moved[0].date())

    def position(self) -> SettlementBasis:
        first = self.expiry.first_unsettled or date.max
        lots: dict[date, int] = {}
        for on, points in self.plain.earned:
            if on >= first:
                lots[on] = lots.get(on, 0) + points
        since = stamp(datetime(first.year, first.month, first.day, 12, tzinfo=UTC))
        entries = [each for each in self.entries if each.created_at >= since]
        return SettlementBasis(self.expiry, self.balance, self.total, lots, entries, self.holds)

    def settle(self, now: datetime) -> None:
        while self.expiry.is_due(now):
            before = self.expiry
            done = settlement_of(self.position(), now)
            self.expiry = done.expiry
            for draft in done.drafts:
                self.write(draft, now)
            if not done.drafts and before == self.expiry:
                break

    def written(self) -> dict[date, int]:
        gone: dict[date, int] = {}
        for draft in (each.draft for each in self.entries):
            if draft.kind is EntryKind.EXPIRE and draft.expires_on:
                on = date.fromisoformat(draft.expires_on)
                gone[on] = gone.get(on, 0) - draft.points
        return {on: points for on, points in gone.items() if points}


STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["earn", "late", "lasting", "spend", "return", "settle", "hold", "capture", "release"]
        ),
        st.integers(1, 60),  # hours later
        st.integers(1, 30),  # points
        st.integers(1, 12),  # days until they expire
    ),
    max_size=40,
)


@given(STEPS)
def test_whatever_happens_what_expired_is_what_the_plain_reading_says(
    steps: list[tuple[str, int, int, int]],
) -> None:
    account, now = Account(), BEGIN
    for what, hours, points, days in steps:
        now += hours * HOUR
        if what == "settle":
            account.settle(now)
        if what == "earn":
            account.earn((now + days * DAY).date(), points, now)
        if what == "late":  # its lot may have expired before it came
            account.earn((now - days * DAY).date(), points, now)
        if what == "lasting":
            account.earn(None, points, now)
        free = account.balance - sum(each.points for each in account.holds)
        if what in ("spend", "hold"):
            account.settle(now)
            free = account.balance - sum(each.points for each in account.holds)
            if 0 < points <= free and what == "spend":
                account.spend(points, now)
            elif 0 < points <= free:
                account.holds.append(Hold("h", points, "mug", stamp(now), stamp(now + 99 * DAY)))
        if what == "return" and account.spent:
            account.give_back(points, now)
        if what == "capture" and account.holds:
            hold = account.holds.pop(0)
            account.spend(hold.points, now, datetime.fromisoformat(hold.held_at))
        if what == "release" and account.holds:
            account.holds.pop(0)
        assert account.balance >= 0
    account.holds.clear()
    now += DAY
    account.settle(now)
    assert account.written() == account.plain.expired(now)
    assert account.expiry.first_unsettled == min(
        (on for on, _ in account.plain.earned if on > last_expired(now)), default=None
    )


@given(STEPS)
def test_it_does_not_matter_when_it_is_settled(steps: list[tuple[str, int, int, int]]) -> None:
    often, once, now = Account(), Account(), BEGIN
    for what, hours, points, days in steps:
        now += hours * HOUR
        for each in (often, once):
            if what in ("earn", "late"):
                each.earn((now + (days if what == "earn" else -days) * DAY).date(), points, now)
            elif what == "lasting":
                each.earn(None, points, now)
        often.settle(now)
    now += 2 * DAY
    often.settle(now)
    once.settle(now)
    assert often.written() == once.written()
    assert often.balance == once.balance
    assert replace(often.expiry, settled_on=once.expiry.settled_on) == once.expiry


LOT, LATER = date(2026, 1, 10), date(2026, 1, 20)


def test_held_points_stay_and_their_lot_is_looked_at_again() -> None:
    hold = new_hold("ann", HoldRequest(4, "mug", "k", 31 * DAY), datetime(2026, 1, 9, tzinfo=UTC))
    assert (hold.held_at[:10], hold.until[:10]) == ("2026-01-09", "2026-02-09")
    done = settlement_of(
        SettlementBasis(Expiry(LOT), 10, 10, {LOT: 10}, (), [hold]), datetime(2026, 1, 12, tzinfo=UTC)
    )
    assert ([each.points for each in done.drafts], done.expiry.first_unsettled) == ([-6], LOT)


def test_ninety_lots_take_three_settlements() -> None:
    account = Account()
    for day in range(90):
        account.earn(FIRST + day * DAY, 1, BEGIN)
    now = BEGIN + 100 * DAY
    done = settlement_of(account.position(), now)
    assert len(done.drafts) == 40
    account.settle(now)
    assert (account.balance, len(account.written())) == (0, 90)
    assert expiry_of(account.entries, [], account.expiry, stamp(now)) == account.expiry
    assert expiry_of(account.entries, [], Expiry(), stamp(now)) == Expiry(FIRST), "nothing was settled"


def test_what_is_left_of_lots_is_the_last_of_them() -> None:
    lots = {FIRST: 10, FIRST + DAY: 20, FIRST + 2 * DAY: 30}
    assert open_lots(lots, 60, 0) == lots
    assert open_lots(lots, 45, 0) == {FIRST + DAY: 15, FIRST + 2 * DAY: 30}
    assert open_lots(lots, 45, 20) == {FIRST + 2 * DAY: 25}
    assert open_lots(lots, -5, 20) == {}
