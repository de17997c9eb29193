"""Points expire, through the real handlers on a real engine, whatever else happens (rule 11)."""

import copy
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from itertools import count
from typing import Any

import pytest

from adapters import book_store, clock
from adapters.book_store import shipped_document
from adapters.platform.items import decode_item, encode_item
from adapters.platform.tables import query_all
from processors import expiry
from rules.book.point_rules import instant_of_expiry, last_expired
from rules.days import stamp_of_key
from tests.support.effort import effort
from tests.support.gateway import CONTEXT
from tests.support.memory import forget
from tests.support.plain_lots import EARNING, Plain
from tests.support.site import FULFILMENT, PRODUCERS, Site

KEYS = count()
BEGIN = datetime(2027, 1, 30, 9, tzinfo=UTC)
KINDS = ("LESSON_COMPLETED", "CONTRIBUTION", "CHALLENGE_COMPLETED")


@dataclass
class Shop:
    """One user of a site, at a time that the test sets."""

    api: Site
    user: str
    patch: pytest.MonkeyPatch
    now: datetime = BEGIN
    holds: list[str] = field(default_factory=list)
    spent: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.patch.setattr(clock, "now", lambda: self.now)

    @property
    def path(self) -> str:
        return f"/v1/users/{self.user}"

    def publish(self, **expiry: Any) -> None:
        made = copy.deepcopy(shipped_document()) | ({"expiry": expiry} if expiry else {})
        status, told = self.api.admin("POST", "/v1/rules", {"book": made, "effective": "now"})
        assert status == 201, told

    def earn(self, kind: str = "LESSON_COMPLETED", ago: timedelta = timedelta(0)) -> None:
        key, at = f"k{next(KEYS)}", (self.now - ago).isoformat()
        sent = {"idempotency_key": key, "event_type": kind, "occurred_at": at, "user_id": self.user}
        self.api.send("server", sent, groups=(PRODUCERS,))

    def ask(self, method: str, path: str, body: Any = None, group: str = "") -> tuple[int, Any]:
        # Who names a number of points is trusted with it.
        group = group or (FULFILMENT if path in ("/redemptions", "/holds") else "")
        who = "desk" if group else self.user
        return self.api.call(who, method, f"{self.path}{path}", body, *([group] if group else []))

    def spend(self, points: int) -> bool:
        body = {"points": points, "reward_id": "mug", "idempotency_key": f"k{next(KEYS)}"}
        status, told = self.ask("POST", "/redemptions", body)
        if status == 201:
            self.spent.append(told["entry_id"])
        return status == 201

    def hold(self, points: int, seconds: int = 500_000) -> None:
        body = {"points": points, "reward_id": "mug", "idempotency_key": f"k{next(KEYS)}", "seconds": seconds}
        status, told = self.ask("POST", "/holds", body)
        if status == 201:
            self.holds.append(told["hold_id"])

    def end(self, how: str, place: int) -> None:
        if self.holds:
            body: Any = {} if how == "capture" else None
            status, told = self.ask(
                "POST", f"/holds/{self.holds.pop(place % len(self.holds))}/{how}", body, FULFILMENT
            )
            assert status in (200, 201, 409)
            if how == "capture" and status == 201:
                self.spent.append(told["entry_id"])

    def give_back(self, place: int) -> None:
        if self.spent:
            entry = self.spent.pop(place % len(self.spent))
            assert self.ask("POST", f"/redemptions/{entry}/reversal", {}, FULFILMENT)[0] == 201

    def balance(self) -> Any:
        status, told = self.ask("GET", "/balance")
        assert status == 200
        return told

    def sweep(self) -> dict[str, Any]:
        return expiry.handler({}, CONTEXT)

    def entries(self) -> list[dict[str, Any]]:
        found = query_all(
            self.api.engine.client("dynamodb"),
            TableName="RewardsLedger",
            KeyConditionExpression="account_id = :user",
            ExpressionAttributeValues=encode_item({":user": self.user}),
        )
        return [each | {"created_at": stamp_of_key(each["created_at"])} for each in map(decode_item, found)]

    def written(self) -> dict[date, int]:
        gone: dict[date, int] = {}
        for each in self.entries():
            if each["kind"] == "EXPIRE":
                on = date.fromisoformat(each["expires_on"])
                gone[on] = gone.get(on, 0) - each["points"]
        return {on: points for on, points in gone.items() if points}

    def check(self) -> None:
        """What the rule says, by a plain reading of the ledger's own entries."""
        told, entries = self.balance(), self.entries()
        read = Plain.of(entries)
        assert told["balance"] == sum(each["points"] for each in entries) == entries[-1]["balance"]
        assert told["debt"] == max(0, -told["balance"])
        assert not told["debt"] or {each["kind"] for each in entries} & {"CLAWBACK", "RERATE"}
        if not told["holds"]:
            assert self.written() == read.expired(self.now)
        lasting = sum(
            each["points"] for each in entries if each["kind"] in EARNING and "expires_on" not in each
        )
        open_ = sum(each["points"] for each in told["expiring"])
        assert told["balance"] - lasting <= open_ + told["held"] <= told["balance"] + told["held"]
        assert all(datetime.fromisoformat(each["at"]) > self.now for each in told["expiring"])


@pytest.fixture
def shop(api: Site, user: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    monkeypatch.setattr(book_store, "FRESH_SECONDS", 0)
    forget()
    yield Shop(api, user, monkeypatch)
    dynamodb = api.engine.client("dynamodb")
    for each in dynamodb.scan(TableName="RuleBooks")["Items"]:
        dynamodb.delete_item(TableName="RuleBooks", Key={name: each[name] for name in ("book", "version")})
    forget()


def test_points_are_gone_at_noon_of_their_date_also_before_anybody_has_written_it(shop: Shop) -> None:
    shop.publish(after_days=3)
    shop.earn()
    expires = instant_of_expiry(date(2027, 2, 2))
    assert shop.balance()["expiring"] == [{"at": "2027-02-02T12:00:00.000000Z", "points": 10}]
    shop.now = expires - timedelta(microseconds=1)
    assert shop.balance()["available"] == 10
    shop.now = expires
    assert not shop.spend(1)
    assert (shop.balance()["balance"], shop.balance()["expiring"]) == (0, [])
    last = shop.entries()[-1]
    assert (last["kind"], last["points"], last["expires_on"]) == ("EXPIRE", -10, "2027-02-02")
    shop.check()


def test_what_is_spent_comes_from_the_lot_that_expires_first(shop: Shop) -> None:
    shop.publish(after_days=3)
    for _ in range(4):
        shop.earn()
        shop.now += timedelta(days=1)
    assert shop.balance()["balance"] == 30, "the first ten have expired"
    assert shop.spend(15)
    assert [each["points"] for each in shop.balance()["expiring"]] == [5, 10]
    shop.check()


def test_a_sweep_writes_what_nobody_asks_for_and_says_so_once(shop: Shop) -> None:
    shop.publish(end_of="month")
    shop.earn()
    shop.now = datetime(2027, 2, 1, 11, 59, tzinfo=UTC)
    shop.sweep()  # other tests' users are swept, too
    assert shop.written() == {}
    shop.now += timedelta(minutes=1)
    told = shop.sweep()
    assert (told["settled"] > 0, told["failed"], told["is_whole"]) == (True, 0, True)
    entries = shop.entries()
    shop.sweep()
    assert shop.entries() == entries
    assert shop.written() == {date(2027, 2, 1): 10}
    assert shop.api.profile(shop.user)["balance"] == 0
    assert shop.api.profile(shop.user)["total_bestie_points"] == 10
    shop.check()


def test_held_points_do_not_expire_meanwhile(shop: Shop) -> None:
    shop.publish(after_days=1)
    shop.earn()
    shop.earn()
    shop.hold(5)
    shop.hold(5)
    shop.now += timedelta(days=2)
    told = shop.balance()
    assert (told["balance"], told["held"], told["available"]) == (10, 10, 0)
    shop.end("capture", 0)
    shop.end("release", 0)
    assert shop.balance()["balance"] == 0
    assert shop.written() == {date(2027, 1, 31): 15}
    shop.check()


def test_a_late_event_and_a_reversal_are_as_if_they_had_come_in_time(shop: Shop) -> None:
    shop.publish(after_days=2)
    shop.now += timedelta(days=1)
    shop.earn()
    assert shop.spend(10)
    shop.now += timedelta(days=1, hours=6)
    shop.earn(ago=timedelta(days=2))  # its ten would have been spent first, and those of the second day left
    assert shop.balance()["balance"] == 10
    assert [each["at"][:10] for each in shop.balance()["expiring"]] == ["2027-02-02"]
    shop.give_back(0)  # what the first lot had would have expired
    assert shop.balance()["balance"] == 10
    shop.check()


def test_as_of_tells_what_was_known_and_what_was_true(shop: Shop) -> None:
    shop.publish(after_days=2)
    shop.earn()
    first = shop.now
    shop.now += timedelta(hours=5)
    shop.earn(ago=timedelta(hours=4))  # it happened after the first one, and is late
    shop.now += timedelta(hours=1)
    assert shop.spend(5)
    shop.now += timedelta(days=5)

    def at(instant: datetime) -> tuple[int, int]:
        status, told = shop.ask("GET", f"/balance?as_of={instant:%Y-%m-%dT%H:%M:%SZ}")
        assert status == 200, told
        return told["known_balance"], told["true_balance"]

    noon = instant_of_expiry(date(2027, 2, 1))
    assert at(first - timedelta(seconds=1)) == (0, 0)
    assert at(first) == (0, 10), "an entry is later than its event"
    assert at(first + timedelta(seconds=1)) == (10, 10)
    assert at(first + timedelta(hours=2)) == (10, 20)
    assert at(first + timedelta(hours=5, seconds=1)) == (20, 20)
    assert at(first + timedelta(hours=7)) == (15, 15)
    assert at(noon) == (15, 0), "it had expired, and nobody had written it yet"
    assert at(shop.now) == (0, 0)
    for bad in ("tomorrow", "2027-01-30T09:00:00"):
        assert shop.ask("GET", f"/balance?as_of={bad}")[0] == 400
    for beyond in ("2999-01-01T00:00:00Z", "2025-01-01T00:00:00Z"):
        assert shop.ask("GET", f"/balance?as_of={beyond}")[0] == 422


def test_a_book_without_expiry_stores_nothing_of_it(shop: Shop) -> None:
    shop.publish()
    shop.earn()
    stored = shop.api.engine.client("dynamodb").get_item(
        TableName="UserStreaks", Key={"user_id": {"S": shop.user}}
    )
    assert not {name for name in stored["Item"] if "expir" in name}
    assert all("expires_on" not in each for each in shop.entries())


@pytest.mark.parametrize("seed", range(effort(1, soak=400)))
def test_whatever_happens_in_any_order_there_is_one_answer(shop: Shop, seed: int) -> None:
    chance = random.Random(seed)
    shop.publish(after_days=chance.randrange(1, 5))
    shop.earn()
    for _ in range(30):
        shop.now += timedelta(hours=chance.randrange(1, 20))
        step = chance.randrange(12)
        if step < 4:
            shop.earn(chance.choice(KINDS), timedelta(hours=chance.choice([0, 0, 5, 30, 70, 200])))
        elif step < 6:
            shop.spend(chance.randrange(1, 40))
        elif step == 6:
            shop.hold(chance.randrange(1, 20), chance.choice([3600, 100_000, 500_000]))
        elif step == 7:
            shop.end(chance.choice(["capture", "release"]), chance.randrange(9))
        elif step == 8:
            shop.give_back(chance.randrange(9))
        elif step == 9:
            shop.sweep()
        elif step == 10:
            rules: list[dict[str, Any]] = [
                {},
                {"after_days": chance.randrange(1, 9)},
                {"end_of": chance.choice(["month", "next_month"])},
            ]
            shop.publish(**chance.choice(rules))
        else:
            shop.check()
    shop.now += timedelta(days=8)
    shop.check()
    assert last_expired(shop.now) >= max(shop.written(), default=date.min)
