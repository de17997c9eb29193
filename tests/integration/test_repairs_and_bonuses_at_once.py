"""Threads race for a repair or a bonus, each through the real handlers: one answer, and a ledger whose sum is the balance."""

import copy
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from threading import Barrier
from typing import Any

import pytest

from adapters.book_store import BookStore, shipped_document
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.projections import Projections
from adapters.platform.items import decode_item, encode_item
from adapters.platform.tables import query_all
from analytics.reconcile.reconcile_user import Reconciler
from processors import engagement, expiry
from tests.integration.test_bonuses import PAYS, settler
from tests.support.effort import effort
from tests.support.gateway import CONTEXT
from tests.support.moved_site import KEYS, Move, event, published
from tests.support.site import FULFILMENT, PRODUCERS, Site

DAY = timedelta(days=1)
FIRST = datetime(2026, 3, 2, 12, tzinfo=UTC)
TODAY = FIRST + 4 * DAY
PRICE = 20  # points of a repaired date
SPREAD_SECONDS = 0.15  # an act takes about a third of it
TIMES = range(effort(2, soak=60))
Act = Callable[[], Any]


@pytest.fixture
def move(api: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[Move]:
    """A book that sells repairs and pays for what repairs and events make true."""
    book: Any = copy.deepcopy(shipped_document())
    book["repairs"] = {"price_points": PRICE, "within_days": 3, "dates_max": 2, "a_year": 3}
    book["streaks"] = {"runs": {"per": "day", "needs": {"events": 1}, "freezes": True}}
    book["achievements"] = {
        "three": {"all": [{"count": "LESSON_COMPLETED", "at_least": 3}], "points": 50, **PAYS},
        "run": {"all": [{"streak": "runs", "at_least": 3}], "points": 7, **PAYS},
    }
    with published(api, book, datetime(2026, 2, 20, tzinfo=UTC), monkeypatch) as moved:
        moved(TODAY)
        yield moved


class Racer:
    """A user with ten contributions on each of these dates after the first, and what may happen at once."""

    def __init__(self, api: Site, *days: int) -> None:
        self.api, self.user = api, f"racer{next(KEYS)}"
        self.dynamodb = api.engine.client("dynamodb")
        self.path = f"/v1/users/{self.user}"
        for day in days:
            api.send(self.user, *(contribution(day) for _ in range(10)), groups=(PRODUCERS,))
        self.balance()
        self.hourly()  # now no process begins: that would take longer than all acts

    def at_once(self, *acts: Act) -> list[Any]:
        """Let each act run on a thread of its own, any of them first; returns what each returned."""
        start = Barrier(len(acts))
        pauses = [random.uniform(0, SPREAD_SECONDS) for _ in acts]

        def run(act: Act, pause: float) -> Any:
            start.wait()
            time.sleep(pause)
            return act()

        with ThreadPoolExecutor(len(acts)) as pool:
            return list(pool.map(run, acts, pauses))

    # ---- acts

    def asked(self, who: str, path: str, body: Any, *groups: str) -> tuple[int, Any]:
        """What becomes of a command. Whoever loses too often against others is told to come again."""
        for _ in range(20):
            status, told = self.api.call(who, "POST", path, body, *groups)
            if status != 503:
                break
        return status, told

    def repair(self, **body: Any) -> tuple[int, Any]:
        return self.asked(self.user, f"{self.path}/streak/repair", body)

    def balance(self) -> int:
        status, told = self.api.call(self.user, "GET", f"{self.path}/balance")
        assert status in {200, 503}, told
        return int(told.get("balance", -1))

    def hourly(self) -> Any:
        return expiry.handler({}, CONTEXT)

    def stored(self, *events: dict[str, Any]) -> list[Act]:
        """Accept events; returns acts that apply them, each as a batch of its own."""
        body = {"events": [{**each, "user_id": self.user} for each in events]}
        status, told = self.api.call("shop", "POST", "/v1/events", body, PRODUCERS)
        assert status == 202, told
        ids = [each["event_id"] for each in told["results"]]
        items = {each["event_id"]: each for each in self.rows("BPEvents", "user_id")}
        batches = [
            [
                {
                    "eventName": "INSERT",
                    "dynamodb": {"SequenceNumber": "1", "NewImage": encode_item(items[each])},
                }
            ]
            for each in ids
        ]
        return [partial(self.apply, each) for each in batches]

    def apply(self, records: list[Any]) -> None:
        while engagement.handler({"Records": records}, CONTEXT)["batchItemFailures"]:
            pass  # Lambda sends the batch again

    def take_back(self, sent: dict[str, Any]) -> Any:
        (found,) = [
            each["event_id"]
            for each in self.rows("BPEvents", "user_id")
            if each["idempotency_key"] == sent["idempotency_key"]
        ]
        body = {"event_id": found, "reason": "a refund", "idempotency_key": f"k{next(KEYS)}"}
        status, told = self.asked("desk", f"{self.path}/clawbacks", body, FULFILMENT)
        assert status == 201, told

    # ---- what it has come to

    def rows(self, table: str, key: str) -> list[dict[str, Any]]:
        wanted = encode_item({":user": self.user})
        condition = {"KeyConditionExpression": f"{key} = :user", "ExpressionAttributeValues": wanted}
        return list(map(decode_item, query_all(self.dynamodb, TableName=table, **condition)))

    def ends(self) -> Any:
        """Look once more, and hold profile, balance, ledger and night against each other; returns the profile."""
        self.api.settle()  # the stream delivers once more what was applied
        seen = self.balance()
        profile, ledger = self.api.profile(self.user), self.rows("RewardsLedger", "account_id")
        sums = [sum(each["points"] for each in ledger[: number + 1]) for number in range(len(ledger))]
        assert [each["balance"] for each in ledger] == sums
        assert [each["seq"] for each in ledger] == list(range(len(ledger)))
        assert seen == profile["balance"] == sums[-1]
        books = BookStore(self.dynamodb, "RuleBooks")
        items = Projections(self.dynamodb, "UserStreaks", "DailyActivity")
        night = Reconciler(
            settler(self.dynamodb, books).accounts, items, EngagementCache(""), False, books.look
        )
        assert night.examine(self.user, None, TODAY).differences == []
        self.ledger = ledger
        return profile

    def bonuses(self) -> dict[tuple[str, str], int]:
        """What is left of them, by name and date."""
        found = Counter[tuple[str, str]]()
        for each in self.ledger:
            if each["kind"] == "BONUS":
                found[each["reward_id"], each["activity_date"]] += each["points"]
        return {key: points for key, points in found.items() if points}

    def paid_for_repairs(self) -> int:
        """The points that the user has paid, without those that came back."""
        return -int(sum(each["points"] for each in self.ledger if each.get("reward_id") == "streak_repair"))


def contribution(day: float) -> dict[str, Any]:
    return event("CONTRIBUTION", FIRST + day * DAY)


def lesson(day: float) -> dict[str, Any]:
    return event("LESSON_COMPLETED", FIRST + day * DAY)


@pytest.mark.parametrize("_", TIMES)
def test_of_many_who_buy_a_repair_one_pays(api: Site, move: Move, _: int) -> None:
    racer = Racer(api, 0, 1)
    bodies: list[dict[str, Any]] = [
        *[{"idempotency_key": "same"}] * 3,
        {"idempotency_key": "other"},
        {},
        {"price_points": 40},
    ]
    *told, _seen = racer.at_once(*(partial(racer.repair, **body) for body in bodies), racer.balance)
    assert {status for status, _ in told} == {201}, told
    assert len({str(each["entries"]) for _, each in told}) == 1
    assert sum(not each.get("duplicate") for _, each in told) == 1
    assert racer.ends()["current_streak"] == 2
    assert racer.paid_for_repairs() == 2 * PRICE
    assert racer.bonuses() == {}


@pytest.mark.parametrize("days", [(2,), (3,), (2, 3)])
@pytest.mark.parametrize("_", TIMES)
def test_a_repair_and_events_on_missed_dates(api: Site, move: Move, days: tuple[int, ...], _: int) -> None:
    """In whatever order they come: in the end only those dates are paid that have no event."""
    racer = Racer(api, 0, 1)
    acts = racer.stored(*map(contribution, days))
    first, second, *_others = racer.at_once(racer.repair, lambda: racer.repair(idempotency_key="r"), *acts)
    assert {first[0], second[0]} <= ({201} if len(days) == 1 else {201, 409}), (first, second)
    profile = racer.ends()
    assert racer.paid_for_repairs() == (2 - len(days)) * PRICE
    assert profile["current_streak"] == 2 + len(days)
    assert racer.bonuses() == {("run", f"2026-03-0{2 + min(days, default=0)}"): 7}


@pytest.mark.parametrize("_", TIMES)
def test_events_that_all_make_an_achievement_pay_it_once(api: Site, move: Move, _: int) -> None:
    racer = Racer(api, 0)
    acts = racer.stored(*map(lesson, (0, 1, 2, 3)))
    racer.at_once(*acts, racer.hourly, racer.balance, racer.balance, racer.hourly)
    racer.ends()
    assert racer.bonuses() == {("three", "2026-03-04"): 50, ("run", "2026-03-04"): 7}


@pytest.mark.parametrize("_", TIMES)
def test_a_bonus_that_is_lost_and_earned_again_while_it_is_paid(api: Site, move: Move, _: int) -> None:
    racer, early = Racer(api, 0), lesson(0.1)
    for act in racer.stored(early, lesson(1), lesson(2)):
        act()
    (again,) = racer.stored(lesson(3))
    acts = (racer.balance, racer.hourly, lambda: racer.take_back(early), again, racer.balance, racer.balance)
    racer.at_once(*acts)
    racer.ends()
    assert racer.bonuses() == {("three", "2026-03-05"): 50, ("run", "2026-03-04"): 7}


@pytest.mark.parametrize("_", TIMES)
def test_one_of_a_repair_and_a_redemption_has_the_points(api: Site, move: Move, _: int) -> None:
    racer = Racer(api, 0, 1)
    spend = {"points": 170, "reward_id": "mug", "idempotency_key": "mug"}

    def redeem() -> tuple[int, Any]:
        return racer.asked("desk", f"{racer.path}/redemptions", spend, FULFILMENT)

    told = racer.at_once(racer.repair, redeem, racer.balance, redeem)
    profile, statuses = racer.ends(), [each[0] for each in (told[0], told[1], told[3])]
    is_repaired = statuses[0] == 201
    assert statuses == ([201, 409, 409] if is_repaired else [409, 201, 201]), told
    assert profile["balance"] == 200 - (2 * PRICE if is_repaired else 170)


@pytest.mark.parametrize("_", TIMES)
def test_a_repair_comes_back_once_by_hand_or_by_an_event(api: Site, move: Move, _: int) -> None:
    racer = Racer(api, 0, 1)
    status, told = racer.repair()
    assert status == 201, told
    path = f"{racer.path}/redemptions/{told['entries'][0]['entry_id']}/reversal"
    (late,) = racer.stored(contribution(2))

    def by_hand() -> tuple[int, Any]:
        return racer.asked("desk", path, {}, FULFILMENT)

    answers = [
        each for each in racer.at_once(by_hand, late, by_hand, racer.balance) if isinstance(each, tuple)
    ]
    assert {status for status, _ in answers} <= {201, 409}, answers
    assert racer.ends()["balance"] == 200 + 10 + 7 - PRICE, "the run of three pays"
    back = [each for each in racer.ledger if each.get("reverses") and each["kind"] != "CLAWBACK"]
    assert len({each["reverses"] for each in back}) == len(back)
