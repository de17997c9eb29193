"""Attacks: a town whose points expire, and what a night makes of it."""

import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from adapters.book_store import shipped_version
from adapters.engagement.expiry import Settler
from adapters.platform.items import decode_item
from ingest.engagement.points.commands import Commands, SpendingCommands
from ingest.engagement.points.holds import Holds
from ingest.web.caller import ApiError
from rules.engagement.lots import HoldRequest
from tests.integration.test_attacks_on_points import simulated
from tests.support.books import SHIPPED, KnownBooks
from tests.support.corruptions import edit, edit_day, value, without
from tests.support.effort import effort
from tests.support.engine import Engine
from tests.support.town import Town

pytestmark = pytest.mark.xdist_group("reconcile")
RULES = ("2d", "month", "5d", None)
BOOKS = KnownBooks(
    [
        replace(shipped_version(), number=n, read=partial(replace, SHIPPED, expiry=rule))
        for n, rule in enumerate(RULES, 1)
    ]
)


class Expiring(Town):
    def __post_init__(self) -> None:
        super().__post_init__()
        old = self.rewards.commands
        self.settler = Settler(self.accounts, BOOKS)
        made = Commands(self.accounts, old.claims, "IdempotencyKeys", self.redis, self.settler)
        self.rewards, self.holds = SpendingCommands(made, BOOKS), Holds(made)

    def event(self, user: str, number: int, days_ago: int) -> Any:
        made = super().event(user, number, days_ago)
        return replace(made, expiry=self.chance.choice(RULES))

    def command(self, user: str) -> None:
        super().command(user)
        asked = HoldRequest(self.chance.randrange(1, 9), "m", f"h{self.tick()}", timedelta(hours=1))
        try:
            held = self.holds.hold(user, asked, self.tick())
            step = self.chance.randrange(3)
            if step == 0:
                entry = self.holds.capture(user, held.hold.hold_id, None, self.tick()).entry
                if self.chance.random() < 0.5:
                    self.rewards.reverse(user, entry.created_at, self.tick())
            elif step == 1:
                self.holds.release(user, held.hold.hold_id, self.tick())
        except ApiError:
            pass

    def settle_all(self) -> None:
        for user in self.users:
            self.settler.settle(user, self.tick())

    def written(self, user: str) -> dict[date, int]:
        gone: Counter[date] = Counter()
        for each in map(decode_item, self.entries(user)):
            if each["kind"] == "EXPIRE":
                gone[date.fromisoformat(each["expires_on"])] -= each["points"]
        return {on: points for on, points in gone.items() if points}

    def wrong(self) -> list[str]:
        return [
            user
            for user in self.users
            if self.written(user) != simulated([decode_item(each) for each in self.entries(user)], self.now)
        ]


@pytest.fixture
def town(engine: Engine, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Expiring]:
    size = (
        effort(16, soak=24) if "names" in request.fixturenames else 6
    )  # a third has what each corruption changes
    made = Expiring(engine.client("dynamodb"), tmp_path, f"x{zlib.crc32(request.node.name.encode())}", size)
    made.clear()
    made.live()
    made.curate()
    yield made


def test_a_night_keeps_open_holds(town: Expiring) -> None:
    """What a repair kept lacked `holds` and the three values of expiry. So the
    night takes every account with a hold for a wrong one, and its repair drops the hold: the points are free
    to spend while they are being shipped, and the capture answers 404. The book needs no expiry for that.
    """
    user = max(town.users, key=lambda each: town.accounts.profile(each).balance)
    free = town.accounts.profile(user).balance
    free -= sum(each.points for each in town.accounts.profile(user).holds)
    assert free > 0
    asked = HoldRequest(free, "m", "kept", timedelta(days=7))
    held = town.holds.hold(user, asked, town.tick()).hold
    town.curate()
    told = town.reconcile("night", everybody=True)
    print(free, told["counts"], told["differences"])
    assert (user in told["different"], held in town.accounts.profile(user).holds) == (False, True)
    with pytest.raises(ApiError):
        town.rewards.redeem(user, free, "mug", "again", town.tick())


def test_a_healthy_town_whose_points_expire_is_named_by_nobody(town: Expiring) -> None:
    """As above: each account that was ever settled is named, and its expiry is forgotten, each night."""
    told = town.reconcile("early")
    assert (told["different"], told["disagreements"]) == ([], [])
    town.settle_all()
    town.curate()
    told = town.reconcile("settled", everybody=True)
    assert (told["different"], told["disagreements"]) == ([], [])


def test_a_healthy_town_is_named_by_nobody_some_days_later(town: Expiring) -> None:
    """Holds that have lapsed over an expiry."""
    town.settle_all()
    town.now += timedelta(days=9)
    town.settle_all()
    town.curate()
    assert town.wrong() == []
    told = town.reconcile("settled", everybody=True)
    assert (told["different"], told["disagreements"]) == ([], [])


CORRUPT: dict[str, Callable[[Town, str], None]] = {
    "no next": edit(without("expires_next", "expiry_shard")),
    "no shard": edit(without("expiry_shard")),
    "next ahead": edit(value("expires_next", {"S": "2029-01-01"})),
    "next garbage": edit(value("expires_next", {"S": "soon"})),
    "settled ahead": edit(value("expiry_settled_on", {"S": "2029-01-01"})),
    "settled behind": edit(value("expiry_settled_on", {"S": "2020-01-01"})),
    "settled gone": edit(
        without("expiry_settled_on", "expires_next", "expiry_shard", "expiry_settled_points")
    ),
    "settled garbage": edit(value("expiry_settled_on", {"S": "soon"})),
    "settled points": edit(value("expiry_settled_points", {"N": "777"})),
    "settled points garbage": edit(value("expiry_settled_points", {"S": "x"})),
    "holds garbage": edit(value("holds", {"L": [{"S": "x"}]})),
    "holds number": edit(value("holds", {"N": "1"})),
    "lots": edit_day(value("lots", {"M": {"2026-03-02": {"N": "500"}}})),
    "lots garbage": edit_day(value("lots", {"M": {"soon": {"N": "5"}}})),
    "lots number": edit_day(value("lots", {"N": "5"})),
    "lots gone": edit_day(lambda each: each.update({"lots": {"M": {"2027-01-01": {"N": "1"}}}})),
}


# Each is of another user. Those that only soak tries are other values of the same attributes.
NAMED = ("next ahead", "settled ahead", "settled points garbage", "holds garbage", "lots")
OTHERS = sorted(CORRUPT.keys() - {*NAMED})


@pytest.mark.parametrize(
    "names", [NAMED, OTHERS[:4], OTHERS[4:8], OTHERS[8:]][: effort(1, soak=4)], ids=lambda names: names[0]
)
def test_what_is_corrupted_is_healed(town: Expiring, names: Sequence[str]) -> None:
    """What a night makes of it; `wrong` says whether anything false was written."""
    town.settle_all()
    town.curate()
    users = (
        each
        for each in town.users
        if town.written(each) and "expires_next" in decode_item(town.profile(each))
    )
    corrupted = dict(zip(names, users, strict=False))
    assert corrupted.keys() == {*names}
    for name, user in corrupted.items():
        CORRUPT[name](town, user)
    for night in ("one", "two"):
        town.reconcile(night, everybody=True)
    for _ in range(4):
        town.now += timedelta(days=9)
        town.settle_all()
    town.curate()
    for name, user in corrupted.items():
        assert decode_item(town.profile(user)).get("expiry_settled_on", "") < "2028", name
    assert town.wrong() == []
    assert town.reconcile("last", everybody=True)["different"] == []
