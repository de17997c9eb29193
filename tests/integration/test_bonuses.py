"""Points for achievements through the real handlers: paid once, whoever comes first, and taken back (rule 15)."""

import copy
import random
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from adapters.book_store import BookStore, shipped_document
from adapters.engagement.account_items import ACHIEVEMENTS
from adapters.engagement.account_store import AccountStore
from adapters.engagement.achievements import AchievementStore
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.expiry import Settler
from adapters.engagement.ledger_store import LedgerStore
from adapters.engagement.projections import Projections
from adapters.platform.items import decode_item, encode_item
from adapters.platform.tables import query_all
from analytics.reconcile.reconcile_user import Reconciler
from local.move_in.positions import PositionImporter
from local.rerate import Rerater
from processors import expiry
from processors.ranks import _scores_of
from rules.engagement.opening_positions import OpeningPosition
from rules.user_ids import kept_partition
from tests.support.dying import FAILURES, Dying, Killed
from tests.support.effort import effort
from tests.support.gateway import CONTEXT
from tests.support.moved_site import KEYS, Move, event, published, send
from tests.support.site import FULFILMENT, PRODUCERS, Site

BEGIN = datetime(2026, 3, 2, 12, tzinfo=UTC)
MONDAY = datetime(2026, 3, 9, 12, tzinfo=UTC)
DAY = timedelta(days=1)
PAYS = {"withdrawn": "when_untrue"}
BONUSES: dict[str, Any] = {
    "three": {"all": [{"count": "WORKOUT_COMPLETED", "at_least": 3}], "points": 50, **PAYS},
    "rich": {"all": [{"points_earned": 60}], "points": 500, **PAYS},
    "richer": {"all": [{"points_earned": 500}], "points": 7, **PAYS},
    "weeks": {"all": [{"streak": "weeks", "at_least": 2}], "points": 20, "secret": True, **PAYS},
    "free": {"all": [{"count": "WORKOUT_COMPLETED", "at_least": 1}]},
}


@pytest.fixture
def at(api: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[Move]:
    """A site at another time, whose book pays for achievements since a week."""
    book: Any = copy.deepcopy(shipped_document())
    book["streaks"] = {"weeks": {"per": "week", "needs": {"active_days": 2}}}
    book["achievements"] = BONUSES
    with published(api, book, BEGIN, monkeypatch) as move:
        move(MONDAY)
        yield move


@pytest.fixture
def user(at: Move) -> str:
    return f"bonus{next(KEYS)}-{id(at)}"


def workouts(*days: float) -> list[dict[str, Any]]:
    """15 points each."""
    return [event("WORKOUT_COMPLETED", MONDAY + day * DAY) for day in days]


def balance(api: Site, user: str) -> int:
    status, told = api.call(user, "GET", f"/v1/users/{user}/balance")
    assert status == 200, told
    return int(told["balance"])


def entries(api: Site, user: str) -> list[dict[str, Any]]:
    found = query_all(
        api.engine.client("dynamodb"),
        TableName="RewardsLedger",
        KeyConditionExpression="account_id = :user",
        ExpressionAttributeValues=encode_item({":user": user}),
    )
    return list(map(decode_item, found))


def bonuses(api: Site, user: str) -> list[tuple[str, int, str]]:
    return [
        (each["reward_id"], each["points"], each["activity_date"])
        for each in entries(api, user)
        if each["kind"] == "BONUS"
    ]


def stored(api: Site, user: str) -> dict[str, Any]:
    key = encode_item({"user_id": user})
    return decode_item(api.engine.client("dynamodb").get_item(TableName="UserStreaks", Key=key)["Item"])


def reverse(api: Site, user: str, sent: dict[str, Any]) -> None:
    (found,) = [
        each["event_id"]
        for each in entries(api, user)
        if each["kind"] == "EARN" and each["event_id"].startswith(sent["occurred_at"][:19])
    ]
    body = {"event_id": found, "reason": "a refund", "idempotency_key": f"k{next(KEYS)}"}
    status, told = api.call("desk", "POST", f"/v1/users/{user}/clawbacks", body, FULFILMENT)
    assert status == 201, told


def test_it_is_paid_once_with_the_next_look_and_counts_as_ever_earned(api: Site, at: Move, user: str) -> None:
    at(MONDAY + 3 * DAY)
    send(api, user, *workouts(0, 1, 2))
    assert bonuses(api, user) == [], "events write no bonus"
    assert stored(api, user)["expiry_shard"].startswith("bonus#")
    profile = api.profile(user)
    assert profile["total_bestie_points"] == profile["balance"] == 95
    assert profile["level"]["name"] == "starter"
    assert bonuses(api, user) == [("three", 50, "2026-03-11")]
    assert "expiry_shard" not in stored(api, user)
    assert balance(api, user) == 95
    assert len(bonuses(api, user)) == 1
    status, told = api.call(user, "GET", f"/v1/users/{user}/achievements")
    found = {each["name"]: each for each in told["achievements"]}
    assert (status, found["three"]["points"], found["three"]["paid"]) == (200, 50, 50)
    assert (found["rich"]["points"], found["rich"]["paid"]) == (500, 0)
    assert "points" not in found["free"]


def test_a_bonus_leads_to_no_bonus_and_to_no_place_on_a_board(api: Site, at: Move, user: str) -> None:
    at(MONDAY + 5 * DAY)
    send(api, user, *workouts(0, 1, 2, 3))
    assert balance(api, user) == 60 + 50 + 500
    assert {name for name, _, _ in bonuses(api, user)} == {"three", "rich"}, "richer needs 500 of events"
    at(MONDAY + 6 * DAY)
    send(api, user, *workouts(4))
    assert balance(api, user) == 75 + 550
    assert stored(api, user)["bonus_points"] == 550
    item = encode_item(stored(api, user))
    scores = _scores_of(item)
    assert scores is not None
    assert scores["points"] == 75


def test_the_hourly_run_pays_who_stays_away(api: Site, at: Move, user: str) -> None:
    at(MONDAY + 3 * DAY)
    send(api, user, *workouts(0, 1, 2))
    assert expiry.handler({}, CONTEXT)["settled"] >= 1
    assert bonuses(api, user) == [("three", 50, "2026-03-11")]
    assert expiry.handler({}, CONTEXT)["settled"] == 0, "nobody is due"


def test_a_late_event_moves_it_and_a_reversal_takes_it_back_even_into_debt(
    api: Site, at: Move, user: str
) -> None:
    at(MONDAY + 3 * DAY)
    first, second, third = workouts(0, 1, 2)
    send(api, user, first, third, *workouts(3 - 1 / 24))
    assert balance(api, user) == 95
    assert bonuses(api, user) == [("three", 50, "2026-03-12")]
    send(api, user, second)
    assert balance(api, user) == 60 + 550
    assert [each for each in bonuses(api, user) if each[0] == "three"] == [
        ("three", 50, "2026-03-12"),
        ("three", 50, "2026-03-11"),
        ("three", -50, "2026-03-12"),
    ]
    body = {"points": 610, "reward_id": "mug", "idempotency_key": f"k{next(KEYS)}"}
    assert api.call("desk", "POST", f"/v1/users/{user}/redemptions", body, FULFILMENT)[0] == 201
    reverse(api, user, second)
    reverse(api, user, third)
    assert balance(api, user) == -30 - 550, "a debt"
    send(api, user, *workouts(3 - 2 / 24))
    assert balance(api, user) == -15 - 500
    assert sum(points for name, points, _ in bonuses(api, user) if name == "three") == 50


def test_a_streak_pays_and_a_command_sees_it(api: Site, at: Move, user: str) -> None:
    at(MONDAY + 9 * DAY)
    send(api, user, *workouts(0, 1, 7, 8))
    body = {"points": 60 + 550 + 20, "reward_id": "mug", "idempotency_key": f"k{next(KEYS)}"}
    status, told = api.call("desk", "POST", f"/v1/users/{user}/redemptions", body, FULFILMENT)
    assert (status, told["balance"]) == (201, 0)
    assert ("weeks", 20, "2026-03-17") in bonuses(api, user)


def test_many_at_once_pay_once(api: Site, at: Move, user: str) -> None:
    at(MONDAY + 3 * DAY)
    send(api, user, *workouts(0, 1, 2))
    dynamodb = api.engine.client("dynamodb")

    def settle(number: int) -> int:
        if number % 2:
            return balance(api, user)
        books = BookStore(dynamodb, "RuleBooks")
        return settler(dynamodb, books).settle(user, MONDAY + 3 * DAY).balance

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(settle, range(8))) == {95}
    assert bonuses(api, user) == [("three", 50, "2026-03-11")]


def settler(dynamodb: Any, books: BookStore) -> Settler:
    ledger = LedgerStore(dynamodb, "RewardsLedger")
    accounts = AccountStore(
        *(dynamodb, "UserStreaks", "DailyActivity", ledger, 2),
        daily_terms=books.daily_terms,
        pay_bonuses=books.pay_bonuses,
    )
    return Settler(accounts, books)


@pytest.mark.parametrize("seed", range(effort(3, soak=100)))
def test_any_journey_ends_with_the_bonuses_that_the_events_earn(
    api: Site, at: Move, user: str, seed: int
) -> None:
    """Events come late and in any order, some are reversed, and somebody looks now and then."""
    chance, left = random.Random(seed), dict[str, dict[str, Any]]()
    for day in range(4, 24):
        at(MONDAY + day * DAY)
        for _ in range(chance.randrange(3)):
            (sent,) = workouts(day - chance.choice((0, 0.25, 1, 2.5)) - chance.random() / 10)
            send(api, user, sent)
            left[sent["idempotency_key"]] = sent
        if left and chance.random() < 0.3:
            key = chance.choice(sorted(left))
            reverse(api, user, left.pop(key))
        look = chance.random()
        if look < 0.3:
            balance(api, user)
        elif look < 0.5:
            expiry.handler({}, CONTEXT)
    told = balance(api, user)
    kept = sorted((each["occurred_at"], 15) for each in left.values())
    points, expected = 0, dict[str, tuple[int, str]]()
    earned = {each["event_id"][:19]: each for each in entries(api, user) if each["kind"] == "EARN"}
    totals = Counter(each["activity_date"] for each in earned.values())
    assert max(totals.values(), default=0) <= 4, "no cap of 60 a day"
    for number, (occurred, worth) in enumerate(kept, 1):
        points += worth
        for name, is_true, bonus in (("three", number >= 3, 50), ("rich", points >= 60, 500)):
            if is_true and name not in expected:
                expected[name] = bonus, occurred[:10]
        if points >= 500 and "richer" not in expected:
            expected["richer"] = 7, occurred[:10]
    sums = Counter[tuple[str, str]]()
    for name, change, day_paid in bonuses(api, user):
        sums[name, day_paid] += change
    paid = {name: (change, day_paid) for (name, day_paid), change in sums.items() if change}
    paid.pop("weeks", None)
    assert paid == expected
    streak = sum(change for (name, _), change in sums.items() if name == "weeks")
    assert told == points + sum(change for change, _ in expected.values()) + streak
    assert streak in {0, 20}


@pytest.mark.parametrize("how", FAILURES)
def test_whoever_dies_at_any_call_pays_once(api: Site, at: Move, how: str) -> None:
    at(MONDAY + 3 * DAY)
    real = api.engine.client("dynamodb")
    for number in range(1, 40):
        name = f"bonus{next(KEYS)}-{id(at)}"
        send(api, name, *workouts(0, 1, 2))
        dying = Dying(real, number, how)
        with suppress(Killed, Exception):
            settler(dying, BookStore(dying, "RuleBooks")).settle(name, MONDAY + 3 * DAY)
        assert settler(real, BookStore(real, "RuleBooks")).settle(name, MONDAY + 3 * DAY).balance == 95
        assert bonuses(api, name) == [("three", 50, "2026-03-11")]
        if dying._left > 0:  # it came to its end without that call
            assert number > 6
            break
    else:
        raise AssertionError("it makes more calls")


@pytest.mark.parametrize("lost", ["snapshot", "profile", "both"])
def test_what_is_lost_pays_nobody_twice(api: Site, at: Move, user: str, lost: str) -> None:
    at(MONDAY + 3 * DAY)
    send(api, user, *workouts(0, 1, 2))
    assert balance(api, user) == 95
    at(MONDAY + 60 * DAY)
    send(api, user, *workouts(59))
    assert balance(api, user) == 60 + 550
    dynamodb = api.engine.client("dynamodb")
    if lost != "profile":
        key = encode_item({"user_id": kept_partition(user), "activity_date": ACHIEVEMENTS})
        assert "Item" in dynamodb.get_item(TableName="DailyActivity", Key=key)
        dynamodb.delete_item(TableName="DailyActivity", Key=key)
    if lost != "snapshot":
        dynamodb.delete_item(TableName="UserStreaks", Key=encode_item({"user_id": user}))
    send(api, user, *workouts(59.5))
    assert balance(api, user) == 75 + 550
    assert (stored(api, user)["total_bestie_points"], stored(api, user)["bonus_points"]) == (625, 550)
    assert len(bonuses(api, user)) == 2


def test_a_night_finds_nothing_wrong_and_a_repair_looks_again(api: Site, at: Move, user: str) -> None:
    now = MONDAY + 3 * DAY
    at(now)
    send(api, user, *workouts(0, 1, 2))
    dynamodb = api.engine.client("dynamodb")
    books = BookStore(dynamodb, "RuleBooks")
    accounts = settler(dynamodb, books).accounts
    items = Projections(dynamodb, "UserStreaks", "DailyActivity")
    night = Reconciler(accounts, items, EngagementCache(""), may_repair=True, books=books.look)
    assert night.examine(user, None, now).differences == [], "bonuses are due"
    assert stored(api, user)["expiry_shard"].startswith("bonus#")
    assert balance(api, user) == 95
    assert night.examine(user, None, now).differences == []
    wrong = {"Key": encode_item({"user_id": user}), "UpdateExpression": "SET bonus_points = :wrong"}
    values = encode_item({":wrong": 7})
    dynamodb.update_item(TableName="UserStreaks", ExpressionAttributeValues=values, **wrong)
    found = night.examine(user, None, now)
    assert found.differences
    assert found.is_repaired
    assert stored(api, user)["bonus_points"] == 50
    assert balance(api, user) == 95
    assert len(bonuses(api, user)) == 1


def test_what_another_system_has_paid_is_shown_and_never_paid_here(api: Site, at: Move, user: str) -> None:
    at(MONDAY + 3 * DAY)
    dynamodb = api.engine.client("dynamodb")
    books = BookStore(dynamodb, "RuleBooks")
    shown = AchievementStore(dynamodb, "DailyActivity")
    importer = PositionImporter(*(settler(dynamodb, books).accounts, EngagementCache(""), shown), books.look)
    brought = {"three": "2025-01-01T00:00:00.000000Z"}
    position = OpeningPosition(user, (MONDAY - 9 * DAY).date(), lots={None: 50}, achievements=brought)
    assert importer.move(position, MONDAY + 3 * DAY)
    assert not importer.move(position, MONDAY + 3 * DAY)
    send(api, user, *workouts(0, 1, 2, 3 - 1 / 24))
    assert balance(api, user) == 50 + 60 + 500
    assert [each for each in bonuses(api, user) if each[0] == "three"] == [("three", 0, "2026-02-28")]
    _, told = api.call(user, "GET", f"/v1/users/{user}/achievements")
    (three,) = (each for each in told["achievements"] if each["name"] == "three")
    assert (three["achieved"], three["points"], three["paid"]) == (True, 50, 0)


def test_a_book_without_points_marks_nobody(api: Site) -> None:
    name = f"plain{next(KEYS)}"
    sent = event("CHECK_IN", datetime.now(UTC))
    api.send(name, sent, groups=(PRODUCERS,))
    assert "expiry_shard" not in stored(api, name)


def test_a_version_of_the_past_with_amounts_moves_points_and_bonuses_once(
    api: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A point for each 5 minutes becomes four; what was stored of 29 minutes says how many that are."""
    contract: dict[str, Any] = {
        "type": "object",
        "properties": {"minutes": {"type": "number", "minimum": 0, "maximum": 90}},
    }

    def by_minutes(earns: int) -> dict[str, Any]:
        book: dict[str, Any] = copy.deepcopy(shipped_document())
        points = {"base": 0, "of": "minutes", "each": 5, "earns": earns}
        book["event_types"]["LISTENED"] = {"points": points, "properties": contract}
        book["achievements"] = {"rich": {"all": [{"points_earned": 40}], "points": 500, **PAYS}}
        return book

    name, dynamodb = f"bonus{next(KEYS)}-{id(api)}", api.engine.client("dynamodb")
    with published(api, by_minutes(1), BEGIN, monkeypatch) as move:
        move(MONDAY + 3 * DAY)
        sent = [event("LISTENED", MONDAY + day * DAY, minutes=29) for day in range(3)]
        send(api, name, *sent)
        assert (balance(api, name), bonuses(api, name)) == (15, [])
        body = {"book": by_minutes(4), "effective": (BEGIN + DAY).isoformat(), "rerate": True}
        status, told = api.admin("POST", "/v1/rules", body)
        assert status == 201, told
        books = BookStore(dynamodb, "RuleBooks")
        settles = settler(dynamodb, books)
        rerater = Rerater(settles.accounts, settles, EngagementCache(""), books.look(), BEGIN.date(), "test")
        for _ in range(2):
            rerater.rerate(name, MONDAY + 4 * DAY)
            move(MONDAY + 4 * DAY)
            assert balance(api, name) == 60 + 500
        assert bonuses(api, name) == [("rich", 500, "2026-03-10")], "two events of 20 points make 40"
        reverse(api, name, sent[0])
        assert balance(api, name) == 40 + 500
        assert bonuses(api, name)[1:] == [("rich", 500, "2026-03-11"), ("rich", -500, "2026-03-10")]
        reverse(api, name, sent[1])
        assert balance(api, name) == 20
