"""Whatever happens to an account and in whatever order, points and streak are what a plain reading says."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import permutations
from typing import Any

import pytest

from adapters import book_store
from rules.engagement.ledger import entry_id
from tests.integration.test_rerate import Bureau, wipe
from tests.support.effort import effort
from tests.support.plain_points import Edition, PlainPoints, Price
from tests.support.site import FULFILMENT, Site

KINDS = ("LESSON_COMPLETED", "CONTRIBUTION", "CHECK_IN")
LONG_AGO = datetime(2026, 12, 1, tzinfo=UTC)


class Life:
    """A user's weeks, and the same told plainly."""

    def __init__(self, bureau: Bureau, seed: int) -> None:
        self.bureau, self.chance = bureau, random.Random(seed)
        self.told = PlainPoints([])
        self.holds: dict[str, tuple[datetime, int]] = {}
        self.publish(LONG_AGO)

    def publish(self, since: datetime) -> None:
        chance = self.chance
        lasts = chance.choice([None, chance.randrange(1, 9)])
        prices = {kind: Price(chance.randrange(1, 20), chance.choice([20, 25, 40])) for kind in KINDS}
        self.told.editions.append(Edition(since.date(), prices, lasts))
        book = self.bureau.book() | ({"expiry": {"after_days": lasts}} if lasts else {})
        for kind, each in prices.items():
            book["event_types"][kind] = {"points": each.points, "cap": {"points": each.cap, "per": "day"}}
        status, said = self.bureau.publish_since(since, book, rerate=True)
        assert status == 201, said

    def earn(self) -> None:
        kind = self.chance.choice(KINDS)
        ago = timedelta(hours=self.chance.choice([0, 0, 1, 5, 26, 50, 120, 200]))
        event = self.bureau.earn_one(kind, ago)
        self.told.events[event] = kind, self.bureau.now - ago

    def claw_back(self) -> None:
        if self.told.events:
            event = self.chance.choice(sorted(self.told.events))
            status, said = self.bureau.reverse(event)
            assert status == 201, said
            del self.told.events[event]

    def spend(self) -> None:
        points = self.chance.randrange(1, 40)
        if self.bureau.spend(points):
            self.told.spent[self.bureau.spent[-1]] = self.bureau.now, points

    def give_back(self) -> None:
        if self.bureau.spent:
            entry = self.chance.choice(self.bureau.spent)
            self.bureau.spent.remove(entry)
            assert self.bureau.ask("POST", f"/redemptions/{entry}/reversal", {}, FULFILMENT)[0] == 201
            del self.told.spent[entry]

    def hold(self) -> None:
        points = self.chance.randrange(1, 20)
        before = len(self.bureau.holds)
        self.bureau.hold(points, self.chance.choice([3600, 100_000, 500_000]))
        for each in self.bureau.holds[before:]:
            self.holds[each] = self.bureau.now, points

    def end(self) -> None:
        if self.bureau.holds:
            hold = self.bureau.holds.pop(self.chance.randrange(len(self.bureau.holds)))
            how = self.chance.choice(["capture", "release"])
            body: Any = {} if how == "capture" else None
            status, said = self.bureau.ask("POST", f"/holds/{hold}/{how}", body, FULFILMENT)
            assert status in (200, 201, 409), said
            if how == "capture" and status == 201:
                self.bureau.spent.append(said["entry_id"])
                self.told.spent[said["entry_id"]] = self.holds[hold]

    def rewrite(self) -> None:
        midnight = self.bureau.now.replace(hour=0, minute=0)
        self.publish(midnight - timedelta(days=self.chance.randrange(0, 12)))
        if self.chance.random() < 0.6:
            self.bureau.rate()

    def sweep(self) -> None:
        self.bureau.sweep()

    def check(self) -> None:
        self.bureau.rate()
        now, profile = self.bureau.now, self.bureau.api.profile(self.bureau.user)
        balance, _, _ = self.bureau.told()
        assert (profile["total_bestie_points"], balance) == (self.told.total(), self.told.balance(now))
        assert self.bureau.written() == self.told.expired(now)
        streak = (profile["active_days"], profile["longest_streak"])
        assert streak == (len(self.told.dates()), self.told.longest())

    def check_past(self, instant: datetime) -> None:
        """What was true then: of what had happened by then, and of what had expired."""
        status, said = self.bureau.ask("GET", f"/balance?as_of={instant:%Y-%m-%dT%H:%M:%SZ}")
        assert status == 200, said
        occurred = {event: told for event, told in self.told.events.items() if told[1] <= instant}
        earned = PlainPoints(self.told.editions, occurred).total()
        written = {entry_id(each["created_at"]): each["created_at"] for each in self.bureau.entries()}
        places = {entry: datetime.fromisoformat(written[entry]) for entry in self.told.spent}
        spent = sum(points for entry, (_, points) in self.told.spent.items() if places[entry] <= instant)
        expired = sum(self.told.expired(instant).values())
        assert said["true_balance"] == earned - spent - expired, instant


@pytest.fixture
def bureau(api: Site, user: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bureau]:
    monkeypatch.setattr(book_store, "FRESH_SECONDS", 0)
    wipe(api)
    yield Bureau(api, user, monkeypatch)
    wipe(api)


@pytest.mark.parametrize("seed", range(effort(1, soak=400)))
def test_there_is_one_answer(bureau: Bureau, seed: int) -> None:
    bureau.now += timedelta(minutes=30)  # nothing happens at the very instant at which points expire
    life = Life(bureau, seed)
    steps = [life.earn] * 6 + [life.claw_back] * 3 + [life.spend] * 3
    steps += [life.give_back, life.hold, life.hold, life.end, life.rewrite, life.sweep]
    life.earn()
    instants = []
    for _ in range(40):
        instants.append(bureau.now + timedelta(minutes=7))
        bureau.now += timedelta(hours=life.chance.randrange(1, 15))
        life.chance.choice(steps)()
    bureau.now += timedelta(days=9)  # no hold is open any more
    life.check()
    for instant in life.chance.sample(instants, 8):
        life.check_past(instant)


def test_what_a_cap_over_a_week_leaves_expires_at_one_time_in_any_order(bureau: Bureau, user: str) -> None:
    book = bureau.book() | {"expiry": {"after_days": 2}}
    kind = "LESSON_COMPLETED"
    book["event_types"][kind] = {"points": 10, "cap": {"points": 20, "per": "week"}}
    assert bureau.publish_since(LONG_AGO, book, rerate=True)[0] == 201
    bureau.now = datetime(2027, 2, 5, 9, tzinfo=UTC)  # a Friday
    hours_ago = (90, 40, 20)  # Monday, Wednesday, Thursday
    seen = set()
    for number, order in enumerate(permutations(hours_ago)):
        bureau.user = f"{user}-{number}"
        for ago in order:
            bureau.earn(kind, timedelta(hours=ago))
        seen.add(str([(each["at"], each["points"]) for each in bureau.balance()["expiring"]]))
    assert seen == {"[('2027-02-09T12:00:00.000000Z', 20)]"}, "two days after the week's last date"
