"""The access patterns of the documents of streaks and of the ledger, each asked of DynamoDB as it is written there.

Each test is a row of a document's table: its operation, its index, its key condition, and the attributes that
the document names. Where a row cannot hold as it is written, the test says why and shows what does instead.
"""

import json
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from boto3.dynamodb.conditions import Attr, Key
from botocore.exceptions import ClientError

from adapters.platform.redis import Redis
from local.api import Api
from local.cloud.patience import drain
from local.stack import Stack
from rules.days import STAMP, STAMP_KEY
from rules.user_ids import kept_partition
from tests.e2e.test_questions import settled
from tests.support.stack_tables import Table, has, query

# There is one cloud: one process runs all of these.
pytestmark = pytest.mark.xdist_group("cloud")
DAYS = 3
ZONE = "America/Sao_Paulo"
INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:.*")


@pytest.fixture(scope="module")
def ana(stack: Stack) -> str:
    """A user with three days of the documents' event types, who has moved twice and spent 5 points."""
    user, api = f"ana{time.time_ns()}", Api(stack)
    now = datetime.now(UTC)
    sent = [
        {
            "user_id": user,
            "idempotency_key": f"{kind}-{back}",
            "event_type": kind,
            "occurred_at": (now - timedelta(days=back, seconds=number)).isoformat(),
            "timezone": ZONE,
            "source": source,
        }
        for back in range(DAYS)
        for number, (kind, source) in enumerate(
            (("DAILY_OPEN", "mobile_app"), ("CONVERSATION_START", "whatsapp"), ("TOOL_USE", "web"))
        )
    ]
    status, told = api.call("POST", "/v1/events", {"events": sent})
    assert (status, {each["status"] for each in told["results"]}) == (202, {"accepted"})
    for zone in ("Europe/Lisbon", ZONE):
        assert api.call("PUT", f"/v1/users/{user}/timezone", {"timezone": zone})[0] == 200
    drain(stack)
    body = {"idempotency_key": "spent", "reward_id": "sticker", "points": 5}
    assert api.call("POST", f"/v1/users/{user}/redemptions", body)[0] == 201
    drain(stack)
    return user


# ---- the document of streaks


def test_a_user_s_current_streak_and_points_by_get_item(table: Table, ana: str) -> None:
    profile = table("UserStreaks").get_item(Key={"user_id": ana})["Item"]
    has(profile, current_streak=Decimal, longest_streak=Decimal, last_activity_date=str, timezone=str)
    has(profile, total_bestie_points=Decimal, streak_updated_at=str, version=Decimal)
    has(profile, recent_tz_changes=list, leaderboard_partition=str)
    assert (profile["current_streak"], profile["longest_streak"]) == (DAYS, DAYS)
    assert (profile["timezone"], profile["total_bestie_points"]) == (ZONE, DAYS * (1 + 2 + 3))
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", profile["last_activity_date"])
    assert STAMP.fullmatch(profile["streak_updated_at"])
    moves = [each.partition(" ") for each in profile["recent_tz_changes"]]
    assert [zone for _, _, zone in moves] == ["Europe/Lisbon", ZONE]
    assert all(STAMP.fullmatch(at) for at, _, _ in moves)


def test_a_streak_is_updated_on_a_condition(table: Table, ana: str) -> None:
    """`version` is the lock: an update that names the one that was read holds, a second one does not."""
    of, key = table("UserStreaks"), {"user_id": ana}
    profile = of.get_item(Key=key)["Item"]

    def update() -> None:
        of.update_item(
            Key=key,
            UpdateExpression="SET current_streak = :streak, version = version + :one",
            ConditionExpression=Attr("version").eq(profile["version"]),
            ExpressionAttributeValues={":streak": profile["current_streak"], ":one": 1},
        )

    update()
    with pytest.raises(ClientError, match="ConditionalCheckFailed"):
        update()


def test_an_event_is_put(table: Table, ana: str) -> None:
    """Each event that was sent is an item, with what the document names in it."""
    stored = query(table("BPEvents"), Key("user_id").eq(ana))
    assert len(stored) == 3 * DAYS
    for each in stored:
        has(each, event_id=str, event_type=str, points_awarded=Decimal, source=str, idempotency_key=str)
        has(each, created_at=str, ttl=Decimal)
        assert re.fullmatch(rf"{STAMP_KEY.pattern}#[0-9a-f-]{{36}}", each["event_id"])
        arrived = datetime.fromisoformat(each["created_at"]).timestamp()
        assert int(each["ttl"]) == int(arrived + timedelta(days=90).total_seconds())
    assert {each["event_type"] for each in stored} == {"DAILY_OPEN", "CONVERSATION_START", "TOOL_USE"}
    assert {each["source"] for each in stored} == {"mobile_app", "whatsapp", "web"}


def test_the_last_30_days_of_points_by_user_and_range(table: Table, ana: str) -> None:
    """An event_id begins with its time, so dates bound it as texts."""
    now = datetime.now(UTC)
    last = Key("event_id").between(
        f"{now - timedelta(days=30):%Y-%m-%d}", f"{now + timedelta(days=1):%Y-%m-%d}"
    )
    found = query(table("BPEvents"), Key("user_id").eq(ana) & last, ScanIndexForward=False)
    assert len(found) == 3 * DAYS
    assert [each["event_id"] for each in found] == sorted((each["event_id"] for each in found), reverse=True)
    newest = found[0]["event_id"][: len("2026-01-15T14:00:00")]
    since_own_second = Key("user_id").eq(ana) & Key("event_id").gte(f"{newest}Z")
    assert found[0] in query(table("BPEvents"), since_own_second)
    before = Key("event_id").lt(f"{now - timedelta(days=30):%Y-%m-%d}")
    assert query(table("BPEvents"), Key("user_id").eq(ana) & before) == []


def test_the_best_streaks_of_a_region(table: Table, ana: str) -> None:
    """The first shard of a region has the region's own name, and the smallest size has no other.

    A row names its user by the table's key. The index has what a list needs, and no other attributes.
    """
    region = Key("leaderboard_partition").eq("america")
    best = query(table("UserStreaks"), region, IndexName="StreakLeaderboard", ScanIndexForward=False)
    assert [each["current_streak"] for each in best] == sorted(
        (each["current_streak"] for each in best), reverse=True
    )
    (mine,) = [each for each in best if each["user_id"] == ana]
    has(mine, leaderboard_partition=str, current_streak=Decimal, lapses_at=Decimal)
    assert mine["current_streak"] == DAYS


def test_a_duplicate_by_its_key(table: Table, ana: str, stack: Stack) -> None:
    """IdempotencyIndex, an index of events by key, is there only if CreateIdempotencyIndex asks for it.

    An index is eventually consistent, so it cannot refuse the second of two posts at the same time. What the
    document wants of it is done by the table IdempotencyKeys, whose key is user and idempotency key: GetItem,
    before the event is written, and strongly consistent.
    """
    of = table("BPEvents")
    assert of.global_secondary_indexes is None
    with pytest.raises(ClientError, match="ValidationException"):
        query(of, Key("idempotency_key").eq("TOOL_USE-0"), IndexName="IdempotencyIndex")
    key = {"user_id": ana, "idempotency_key": "TOOL_USE-0"}
    claim = table("IdempotencyKeys").get_item(Key=key, ConsistentRead=True)["Item"]
    event = of.get_item(Key={"user_id": ana, "event_id": claim["target"]})["Item"]
    assert event["idempotency_key"] == "TOOL_USE-0"
    again = {
        **{name: event[name] for name in ("user_id", "idempotency_key", "event_type", "occurred_at")},
        **{name: event[name] for name in ("timezone", "source")},
    }
    _, told = Api(stack).call("POST", "/v1/events", {"events": [again]})
    assert told["results"][0]["status"] == "duplicate"
    assert len(query(of, Key("user_id").eq(ana))) == 3 * DAYS


def test_days_by_user_and_range_of_dates(table: Table, ana: str, stack: Stack) -> None:
    """What is no day, `goals` and `totals`, is in a partition of its own."""
    assert Api(stack).call("GET", f"/v1/users/{ana}/streaks", None)[0] == 200
    assert Api(stack).call("GET", f"/v1/users/{ana}/achievements", None)[0] == 200
    of, mine, now = table("DailyActivity"), Key("user_id").eq(ana), datetime.now(UTC)
    kept = query(of, Key("user_id").eq(kept_partition(ana)))
    assert {"goals", "totals"} <= {each["activity_date"] for each in kept}
    dates = Key("activity_date").between(f"{now - timedelta(days=30):%Y-%m-%d}", f"{now:%Y-%m-%d}")
    found = query(of, mine & dates)
    assert [bool(re.fullmatch(r"\d{4}-\d\d-\d\d", each["activity_date"])) for each in found] == [True] * DAYS
    for each in found:
        has(each, first_event_id=str, events_count=Decimal, points_earned=Decimal, created_at=str)
        assert (each["events_count"], each["points_earned"]) == (3, 6)
    since = Key("activity_date").gte(f"{now - timedelta(days=30):%Y-%m-%d}")
    assert query(of, mine) == query(of, mine & since) == found


def test_the_keys_of_the_cache(stack: Stack, ana: str) -> None:
    """`active:` is the day itself, which the first event writes and later ones of the date count up.

    A function that finds the cache busy does without it for a moment: so reads and events are repeated.
    """
    redis, api, busy = Redis(stack.redis_url), Api(stack), f"busy{time.time_ns()}"

    def stored() -> Any:
        api.get(f"/v1/users/{ana}")
        return redis.call("GET", f"streak:{ana}")

    def key_of_day() -> str:
        key, now = f"{time.time_ns()}", datetime.now(UTC).isoformat()
        sent = {"user_id": busy, "idempotency_key": key, "event_type": "DAILY_OPEN", "occurred_at": now}
        assert api.call("POST", "/v1/events", {"events": [sent]})[0] == 202
        drain(stack)
        name = f"active:{busy}:{api.get(f'/v1/users/{busy}')['last_activity_date']}"
        return name if redis.call("GET", name) else ""

    profile = json.loads(settled(stack, stored))
    assert (profile["current_streak"], profile["total_bestie_points"]) == (DAYS, DAYS * 6)
    assert 0 < redis.call("TTL", f"streak:{ana}") <= 5 * 60
    day = settled(stack, key_of_day)
    assert day.endswith(json.loads(redis.call("GET", day))["activity_date"])
    assert 0 < redis.call("TTL", day) <= 24 * 3600
    redis.call("DEL", "leaderboard:america")

    def is_listed() -> bool:
        Api(stack).get("/v1/leaderboards/streaks?region=america")
        kept = json.loads(redis.call("GET", "leaderboard:america") or "{}")
        return ana in {each["user_id"] for each in kept.get("entries", ())}

    settled(stack, is_listed)
    assert 0 < redis.call("TTL", "leaderboard:america") <= 75, "a minute, and what a refresh may be late"


# ---- the document of the ledger


def test_a_customer_s_rewards_and_balances_in_their_order(table: Table, ana: str) -> None:
    """An event's reward and the balance that it leads to are one item; amounts begin with an entry of 0."""
    entries = query(table("RewardsLedger"), Key("account_id").eq(ana))
    assert [each["created_at"] for each in entries] == sorted(each["created_at"] for each in entries)
    for each in entries:
        has(each, created_at=str, kind=str, points=Decimal, balance=Decimal)
        assert STAMP_KEY.fullmatch(each["created_at"])
        second = f"{each['created_at'][: len('2026-01-15T14:00:00')]}Z"
        assert each in query(
            table("RewardsLedger"), Key("account_id").eq(ana) & Key("created_at").gte(second)
        )
    assert (entries[0]["points"], entries[0]["balance"]) == (0, 0)
    balances = [sum(each["points"] for each in entries[: place + 1]) for place in range(len(entries))]
    assert [each["balance"] for each in entries] == balances
    assert entries[-1]["balance"] == DAYS * 6 - 5
    assert None not in [value for each in entries for value in each.values()]


def test_one_item_of_an_account_is_active(table: Table, ana: str) -> None:
    """`active` is a Boolean of one item, and absent from all others. A Boolean can be no index key."""
    entries = query(table("RewardsLedger"), Key("account_id").eq(ana))
    assert [each.get("active") for each in entries] == [None] * (len(entries) - 1) + [True]
    filtered = query(
        table("RewardsLedger"), Key("account_id").eq(ana), FilterExpression=Attr("active").eq(True)
    )
    assert filtered == entries[-1:]


def test_the_latest_balance_by_a_descending_query_of_two_items(table: Table, ana: str) -> None:
    """Strongly consistent and limited to two: a write in its prepare stage may hide the newest one."""
    newest = query(
        table("RewardsLedger"),
        Key("account_id").eq(ana),
        ScanIndexForward=False,
        ConsistentRead=True,
        Limit=2,
    )
    active = [each for each in newest if each.get("active")]
    assert len(newest) == 2
    assert [each["balance"] for each in active] == [DAYS * 6 - 5]


def test_of_writers_of_one_balance_one_succeeds(table: Table, stack: Stack, ana: str) -> None:
    """A transaction puts the new active entry and takes `active` off the old one if it still is true."""
    of = table("RewardsLedger")
    (head,) = query(of, Key("account_id").eq(ana), ScanIndexForward=False, ConsistentRead=True, Limit=1)
    body = {"reward_id": "sticker", "points": 1}

    def spend(number: int) -> int:
        path = f"/v1/users/{ana}/redemptions"
        return int(Api(stack).call("POST", path, {**body, "idempotency_key": f"one-{number}"})[0])

    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(spend, range(8)))
    drain(stack)
    entries = query(of, Key("account_id").eq(ana), ConsistentRead=True)
    spent = told.count(201)
    assert spent > 0
    assert entries[-1]["balance"] == head["balance"] - spent
    assert [each["balance"] for each in entries[-spent:]] == [
        head["balance"] - n for n in range(1, spent + 1)
    ]
    assert [each.get("active") for each in entries] == [None] * (len(entries) - 1) + [True]


# ---- all tables


def instants(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield the instants in a stored value, each with where it stands."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield from instants(each, f"{path}.{name}")
    elif isinstance(value, list | set):
        for each in value:
            yield from instants(each, path)
    elif isinstance(value, str) and INSTANT.fullmatch(value):
        yield path, value


ID = re.compile(rf"{STAMP_KEY.pattern}#")  # an event's, which is a sort key
# What a sender said is kept as it was said; a place in a stream begins with the stream's own label.
AS_SAID = re.compile(
    r"(BPEvents|IdempotencyKeys)\.(occurred_at|device_time|offline_since)|\w+\.applied_through"
)


def test_stored_instants_have_one_spelling(table: Table, stack: Stack, ana: str) -> None:
    """In all tables, whatever other tests have left in them: `2026-03-09T05:16:00.000000Z`, first in its text.

    In sort keys, of tables and of indexes, it is `2026-03-09T05:16:00Z`, with the fraction behind it; an event's
    id is one.
    """
    odd = set()
    for name in stack.tables:
        of = table(name)
        indexes = of.global_secondary_indexes or []
        schemas = [of.key_schema, *(index["KeySchema"] for index in indexes)]
        sort_keys = {
            f"{name}.{key['AttributeName']}" for keys in schemas for key in keys if key["KeyType"] == "RANGE"
        }
        for each in of.scan()["Items"]:
            for path, text in instants(each, name):
                is_key = path in sort_keys - {"Boards.part"}  # a snapshot's name begins with its instant
                is_right = STAMP_KEY.match(text) if is_key else STAMP.match(text) or ID.match(text)
                if not AS_SAID.fullmatch(path) and not is_right:
                    odd.add((path, text))
    assert odd == set()
    assert ana in {each["user_id"] for each in table("UserStreaks").scan()["Items"]}
