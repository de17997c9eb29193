"""Events are reversed, through the real handlers on a real engine (rule 12)."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import count
from typing import Any

import pytest

from adapters import book_store
from adapters.book_store import BookStore
from adapters.engagement.account_store import AccountStore
from adapters.engagement.claims import ClaimStore
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.expiry import Settler
from adapters.engagement.ledger_store import LedgerStore
from ingest.engagement.points.clawbacks import Clawbacks
from ingest.engagement.points.commands import Commands
from tests.integration.test_expiry import Shop
from tests.support.dying import FAILURES, Dying, Killed
from tests.support.effort import effort
from tests.support.memory import forget
from tests.support.site import FULFILMENT, PRODUCERS, Site

KEYS = count()
DAY = timedelta(days=1)


class Desk(Shop):
    """A shop with somebody who reverses."""

    def earn_one(self, kind: str = "LESSON_COMPLETED", ago: timedelta = timedelta(0)) -> str:
        """Return the id of an event that has been applied."""
        before = self.earned()
        self.earn(kind, ago)
        (found,) = self.earned() - before
        return found

    def earned(self) -> set[str]:
        return {each["event_id"] for each in self.entries() if each["kind"] == "EARN"}

    def reverse(self, event_id: str, key: str = "", group: str = FULFILMENT, **other: Any) -> tuple[int, Any]:
        body = {"event_id": event_id, "reason": "refunded", "idempotency_key": key or f"c{next(KEYS)}"}
        return self.ask("POST", "/clawbacks", body | other, group)

    def dying(self, dynamodb: Any) -> Clawbacks:
        """Return what reverses, by a client of the test's."""
        ledger = LedgerStore(dynamodb, "RewardsLedger")
        accounts = AccountStore(dynamodb, "UserStreaks", "DailyActivity", ledger, 2)
        books, table = BookStore(dynamodb, "RuleBooks"), "IdempotencyKeys"
        settler = Settler(accounts, books)
        commands = Commands(accounts, ClaimStore(dynamodb, table), table, EngagementCache(""), settler)
        return Clawbacks(commands, books)

    def told(self) -> tuple[int, int, int]:
        """Return balance, debt and what can be spent; the profile says the same."""
        told, profile = self.balance(), self.api.profile(self.user)
        assert (profile["balance"], profile["debt"]) == (told["balance"], told["debt"])
        return told["balance"], told["debt"], told["available"]


@pytest.fixture
def desk(api: Site, user: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    monkeypatch.setattr(book_store, "FRESH_SECONDS", 0)
    forget()
    yield Desk(api, user, monkeypatch)
    dynamodb = api.engine.client("dynamodb")
    for each in dynamodb.scan(TableName="RuleBooks")["Items"]:
        dynamodb.delete_item(TableName="RuleBooks", Key={name: each[name] for name in ("book", "version")})
    forget()


def test_what_an_event_earned_goes_and_the_ledger_says_why(desk: Desk) -> None:
    first, _ = desk.earn_one(), desk.earn_one("CONTRIBUTION")
    status, told = desk.reverse(first)
    assert (status, told["kind"], told["points"], told["balance"]) == (201, "CLAWBACK", -10, 10)
    assert (told["reason"], told["event_id"]) == ("refunded", first)
    profile = desk.api.profile(desk.user)
    assert (profile["total_bestie_points"], profile["current_streak"], profile["active_days"]) == (10, 1, 1)


def test_once_whoever_asks_and_the_same_key_gets_the_first_answer(desk: Desk) -> None:
    event = desk.earn_one()
    status, first = desk.reverse(event, "k")
    assert status == 201
    status, again = desk.reverse(event, "k")
    assert (status, again) == (201, first | {"duplicate": True})
    assert [desk.reverse(event, "k", reason="fraud")[1]["error"]["code"]] == ["conflict"]
    status, refused = desk.reverse(event)
    assert (status, refused["error"]["code"]) == (409, "already_reversed")


@pytest.mark.parametrize("event_id", ["2027-01-30T09:00:00.000000Z#no-such-event", "x" * 30])
def test_what_is_not_there_is_not_found(desk: Desk, event_id: str) -> None:
    desk.earn()
    assert desk.reverse(event_id)[0] == 404


def test_users_and_producers_reverse_nothing(desk: Desk) -> None:
    event = desk.earn_one()
    assert [desk.reverse(event, group=group)[0] for group in ("", PRODUCERS)] == [403, 403]
    assert desk.told() == (10, 0, 10)
    assert desk.reverse(event, reason=" ")[0] == 422


def test_what_was_spent_is_owed_and_the_next_points_pay_it(desk: Desk) -> None:
    first, _ = desk.earn_one(), desk.earn_one()
    assert desk.spend(15)
    status, entry = desk.reverse(first)
    assert (status, entry["balance"], entry["debt"]) == (201, -5, 5)
    assert desk.told() == (-5, 5, 0)
    assert not desk.spend(1)
    desk.hold(1)
    assert desk.holds == []
    desk.earn()
    assert desk.told() == (5, 0, 5)
    assert desk.spend(5)


def test_free_freezes_are_taken_in_debt_and_others_are_not(desk: Desk) -> None:
    event = desk.earn_one()
    desk.spend(10)
    desk.reverse(event)
    assert [desk.ask("POST", "/freezes", {})[0] for _ in range(3)] == [201, 201, 409]


def test_a_capture_is_served_as_far_as_the_balance_goes(desk: Desk) -> None:
    first, _ = desk.earn_one(), desk.earn_one()
    desk.hold(8)
    desk.hold(12)
    desk.reverse(first)
    assert desk.told() == (10, 0, 0)
    path = [f"/holds/{each}/capture" for each in desk.holds]
    assert desk.ask("POST", path[0], {}, FULFILMENT)[0] == 201
    status, told = desk.ask("POST", path[1], {}, FULFILMENT)
    assert (status, told["error"]["code"]) == (409, "insufficient_balance")
    assert desk.ask("POST", path[1], {"points": 2}, FULFILMENT)[0] == 201
    assert desk.told() == (0, 0, 0)


def test_a_date_without_events_is_no_active_one_and_the_streak_follows(desk: Desk) -> None:
    for _ in range(2):
        desk.earn_one()
        desk.now += DAY
    assert [desk.ask("POST", "/freezes", {})[0] for _ in range(1)] == [201]
    middle = desk.earn_one()
    desk.now += DAY
    desk.earn_one()
    assert desk.api.profile(desk.user)["current_streak"] == 4
    desk.reverse(middle)
    profile = desk.api.profile(desk.user)
    assert (profile["current_streak"], profile["active_days"], profile["freezes_available"]) == (3, 3, 0)
    assert len(desk.ask("GET", "/activity")[1]["activity"]) == 3
    entries = desk.entries()
    marked = {each["event_id"]: each.get("reversed_by") for each in entries if each["kind"] == "EARN"}
    (place,) = [each["created_at"] for each in entries if each["kind"] == "CLAWBACK"]
    assert (marked[middle], entries[-1]["freeze"]) == (place, "freeze_spent")
    desk.earn_one("CONTRIBUTION", DAY)
    profile = desk.api.profile(desk.user)
    assert (profile["current_streak"], profile["active_days"], profile["freezes_available"]) == (4, 4, 1)


def test_who_has_nothing_left_has_no_streak(desk: Desk) -> None:
    desk.reverse(desk.earn_one())
    profile = desk.api.profile(desk.user)
    assert (profile["current_streak"], profile["active_days"], profile["streak_status"]) == (0, 0, "none")
    desk.earn()
    assert desk.api.profile(desk.user)["current_streak"] == 1


def test_a_capped_event_takes_the_place_of_a_reversed_one(desk: Desk) -> None:
    first, second = desk.earn_one("CHECK_IN"), desk.earn_one("CHECK_IN")
    assert desk.told()[0] == 5
    assert desk.reverse(first)[1]["points"] == 0
    assert desk.told()[0] == 5
    assert desk.reverse(second)[1]["points"] == -5
    assert desk.told()[0] == 0
    desk.earn("CHECK_IN")
    assert desk.told()[0] == 5


def test_what_had_expired_is_not_taken_twice(desk: Desk) -> None:
    desk.publish(after_days=2)
    event = desk.earn_one()
    desk.now += 3 * DAY
    assert desk.told() == (0, 0, 0)
    assert desk.reverse(event)[0] == 201
    assert desk.told() == (0, 0, 0)
    assert desk.written() == {}
    desk.check()


def test_a_lot_that_was_emptied_hides_no_later_one(desk: Desk) -> None:
    desk.publish(after_days=3)
    events = []
    for _ in range(3):
        events.append(desk.earn_one())
        desk.now += DAY
    desk.reverse(events[1])
    desk.now += DAY
    assert desk.told()[0] == 10, "the first lot is gone, the second is empty"
    desk.now += 2 * DAY
    assert desk.told()[0] == 0
    desk.check()


@pytest.mark.parametrize("how", FAILURES[: effort(1, soak=len(FAILURES))])
def test_killed_at_any_call_and_asked_again_it_is_reversed_once(desk: Desk, how: str) -> None:
    desk.publish(after_days=9)
    for number in range(1, 30):
        event, key = desk.earn_one("CHECK_IN"), f"k{number}"
        real = desk.api.engine.client("dynamodb")
        try:
            desk.dying(Dying(real, number, how)).claw_back(desk.user, event, "refunded", key, desk.now)
            died = False
        except (Killed, Exception):
            died = True
        status, told = desk.reverse(event, key)
        assert (status, told["kind"], told["event_id"]) == (201, "CLAWBACK", event)
        kinds = [each["kind"] for each in desk.entries()]
        assert kinds.count("CLAWBACK") == kinds.count("EARN")
        desk.check()
        assert (desk.told()[0], desk.api.profile(desk.user)["active_days"]) == (0, 0)
        if not died:
            break
        desk.now += DAY
    else:
        pytest.fail("it never ends")


def test_many_at_once_reverse_once(desk: Desk) -> None:
    events = [desk.earn_one() for _ in range(3)]
    with ThreadPoolExecutor(8) as pool:
        same = list(pool.map(lambda _: desk.reverse(events[0], "same"), range(4)))
        other = list(pool.map(lambda n: desk.reverse(events[1], f"o{n}"), range(6)))
    assert {status for status, _ in same} <= {201, 503}
    assert len({told["entry_id"] for status, told in same if status == 201}) == 1
    assert sorted(status for status, _ in other).count(201) == 1
    assert {told["error"]["code"] for status, told in other if status != 201} <= {
        "already_reversed",
        "unavailable",
    }
    assert desk.told()[0] == 10
