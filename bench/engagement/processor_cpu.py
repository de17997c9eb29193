"""CPU an event of the engagement processor, compared with the naive handler. The network is a stub.

Batches of 100 stream records of users with open accounts and activity on the date already. Both pay for
building, signing and parsing requests; neither pays for the socket. Then: which share of ours the hashing of
ledger entries is (rule 19).
"""

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import boto3

from adapters import clock
from adapters.engagement.account_items import day_attributes, entry_item, profile_attributes
from adapters.platform.aws import client
from adapters.platform.items import Item, encode_item
from bench.engagement.naive import Naive
from bench.engagement.stub import Stub, batch_get_answer
from bench.engagement.workload import BATCH, DAY, DAY_ONE, KIND, POINTS, Record, bodies, record, users
from bench.figure import Figure, ratio
from rules.days import parse_moment, stamp
from rules.engagement import seals
from rules.engagement.account_state import Day, Profile
from rules.engagement.events import Event, event_id, to_item
from rules.engagement.ledger import Draft, Entry, EntryKind
from rules.engagement.seals import DIGEST_BYTES, SALT_BYTES, seal_entries
from rules.engagement.streak import Streak

BUDGETS = {5: 0.25, 20: 0.10}
HASHING_BUDGET = 0.05
ROUNDS = 9
OURS_PER_ROUND = 4
HOUR = timedelta(hours=1)
ARRIVED = DAY_ONE + DAY + 6 * HOUR
# When the newest entry and the day's first event were written: an hour before this batch arrived.
BEGUN = stamp(ARRIVED - HOUR)
CONTEXT = SimpleNamespace(
    function_name="bench", memory_limit_in_mb=1024, invoked_function_arn="arn", aws_request_id="1"
)
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "bench",
    "AWS_SECRET_ACCESS_KEY": "bench",
    "AWS_DEFAULT_REGION": "us-east-1",
    "USER_STREAKS_TABLE": "UserStreaks",
    "BP_EVENTS_TABLE": "BPEvents",
    "DAILY_ACTIVITY_TABLE": "DailyActivity",
    "REWARDS_LEDGER_TABLE": "RewardsLedger",
    "REDIS_URL": "",
    "LEADERBOARD_SHARDS": "4",
    "FAILURE_QUEUE_URL": "http://127.0.0.1:1/none",
    "RULE_BOOKS_TABLE": "RuleBooks",
    "ERASURES_TABLE": "Erasures",
    "ERASURE_SECRET_ARN": "none",
}
Handler = Callable[[Any], Any]


def run() -> Iterator[Figure]:
    """Yield the ratios."""
    os.environ.update(ENVIRONMENT)
    os.environ.pop("AWS_ENDPOINT_URL", None)
    # The handler pays for its log that nobody sees. (Powertools keeps the stdout that it finds at import.)
    nowhere = Path(os.devnull).open("w")  # noqa: SIM115
    with contextlib.redirect_stdout(nowhere):
        from processors import engagement
    for per_user, budget in BUDGETS.items():
        ours, naive = _compare(engagement.handler, per_user)
        detail = f"{median(ours) * 1e6:.0f} against {median(naive) * 1e6:.0f} us an event"
        claim = f"processor CPU, {per_user} a user and batch, of naive"
        yield ratio(claim, ours, naive, "<=", budget, detail)
    for per_user in BUDGETS:
        hashing, everything = _hashing(engagement.handler, per_user)
        detail = f"{median(hashing) * 1e6:.1f} of {median(everything) * 1e6:.0f} us an event"
        claim = f"hashing, {per_user} a user and batch, of our CPU"
        yield ratio(claim, hashing, everything, "<=", HASHING_BUDGET, detail)


def _compare(handler: Callable[[Any, Any], Any], per_user: int) -> tuple[list[float], list[float]]:
    """Return CPU seconds an event, ours and naive, of rounds that alternate."""
    who = users(per_user)
    event = {"Records": _records(who, per_user)}
    ours, naive = _ours(handler, who), _naive()
    pairs = [(_cpu(ours, event, OURS_PER_ROUND), _cpu(naive, event, 1)) for _ in range(ROUNDS + 1)][1:]
    return [each for each, _ in pairs], [each for _, each in pairs]


def _hashing(handler: Callable[[Any, Any], Any], per_user: int) -> tuple[list[float], list[float]]:
    """Return CPU seconds an event, of the hashing and of everything, of some rounds."""
    who = users(per_user)
    event, ours = {"Records": _records(who, per_user)}, _ours(handler, who)
    spent = 0

    def timed(*arguments: Any) -> list[Entry]:
        nonlocal spent
        started = time.thread_time_ns()
        try:
            return seal_entries(*arguments)
        finally:
            spent += time.thread_time_ns() - started

    hashing, everything = [], []
    with patch.object(seals, "seal_entries", timed):
        for _ in range(ROUNDS + 1):
            spent = 0
            everything.append(_cpu(ours, event, OURS_PER_ROUND))
            hashing.append(spent / 1e9 / OURS_PER_ROUND / BATCH)
    return hashing[1:], everything[1:]


def _cpu(handler: Handler, event: Any, repeat: int) -> float:
    started = time.process_time()
    for _ in range(repeat):
        handler(event)
    return (time.process_time() - started) / repeat / BATCH


def _ours(handler: Callable[[Any, Any], Any], who: Sequence[str]) -> Handler:
    from processors.engagement import _parts

    client.cache_clear()
    _parts.cache_clear()
    stub = Stub(_answers(who))
    stub.attach(client("dynamodb"))
    # Of each user: the ledger's transaction, the entries that it carries, the day, the profile.
    users = len(who)
    expected = {
        "BatchGetItem": 2,
        "TransactWriteItems": users,
        "BatchWriteItem": users,
        "PutItem": 2 * users,
    }

    def apply(event: Any) -> None:
        stub.calls.clear()
        with patch.object(clock, "now", lambda: ARRIVED):  # by today's clock their keys would have expired
            assert handler(event, CONTEXT) == {"batchItemFailures": []}
        del stub.calls["Query"]  # what is known of amnesties and tombstones is read once, then twice a minute
        assert stub.calls == expected, stub.calls

    return apply


def _answers(who: Sequence[str]) -> dict[tuple[str, bytes], bytes]:
    """Return what the tables hold of these users: the profile and the day of an hour before."""
    days = [encode_item(day_attributes(_day(user))) for user in who]
    profiles = [encode_item(profile_attributes(_profile(user))) for user in who]
    return {
        ("BatchGetItem", b'"UserStreaks"'): batch_get_answer("UserStreaks", profiles),
        ("BatchGetItem", b'"DailyActivity"'): batch_get_answer("DailyActivity", days),
        ("Query", b""): b'{"Items": [], "Count": 0, "ScannedCount": 0}',
        ("TransactWriteItems", b""): b"{}",
        ("BatchWriteItem", b""): b'{"UnprocessedItems": {}}',
        ("PutItem", b""): b"{}",
    }


def _naive() -> Handler:
    resource = boto3.resource("dynamodb")
    counted: dict[str, Item] = {"Attributes": encode_item({"events_count": 7, "points_earned": 65})}
    newest = {"Items": [entry_item(replace(_entry("user"), chain=b""))], "Count": 1, "ScannedCount": 1}
    answers = {
        ("UpdateItem", b"DailyActivity"): json.dumps(counted).encode(),
        ("UpdateItem", b"UserStreaks"): b"{}",
        ("Query", b""): json.dumps(newest).encode(),
        ("TransactWriteItems", b""): b"{}",
    }
    stub = Stub(answers)
    stub.attach(resource.meta.client)
    naive = Naive(resource, "")

    def apply(event: Any) -> None:
        stub.calls.clear()
        naive.handler(event)
        assert stub.calls == {"UpdateItem": 2 * BATCH, "Query": BATCH, "TransactWriteItems": BATCH}

    return apply


def _records(who: Sequence[str], per_user: int) -> list[Record]:
    sent = bodies(who, per_user, DAY_ONE + DAY)
    images = [encode_item(to_item(_stored(body))) for body in sent]
    return [record(number, image) for number, image in enumerate(images)]


def _stored(body: dict[str, Any]) -> Event:
    moment = parse_moment(body["occurred_at"])
    return Event(
        user_id=body["user_id"],
        event_id=event_id(body["user_id"], body["idempotency_key"], moment),
        idempotency_key=body["idempotency_key"],
        event_type=body["event_type"],
        occurred_at=body["occurred_at"],
        activity_date=datetime.fromisoformat(body["occurred_at"]).date(),
        zone=body["timezone"],
        points_awarded=POINTS,
        source=body["source"],
        created_at=stamp(ARRIVED),
        timezone=body["timezone"],
        properties=json.dumps(body["properties"]),
    )


def _entry(user: str) -> Entry:
    draft = Draft(EntryKind.EARN, 5, f"{BEGUN}#{user}", "CHECK_IN", (DAY_ONE + DAY).date().isoformat())
    return Entry(user, BEGUN, 41, 1235, draft, active=True, chain=bytes(DIGEST_BYTES + SALT_BYTES))


def _profile(user: str) -> Profile:
    streak = Streak(last=(DAY_ONE + DAY).date(), length=12, longest=30, active_days=80)
    return Profile(
        user,
        version=57,
        head=_entry(user).head,
        total_points=2400,
        streak=streak,
        observed_zone="Europe/Berlin",
        observed_at=BEGUN,
        updated_at=BEGUN,
    )


def _day(user: str) -> Day:
    """Return a day with one check-in, an hour before the first event of the batch.

    The batch has another type, which so stays under its daily cap.
    """
    date = (DAY_ONE + DAY).date()
    assert KIND != "CHECK_IN"
    return Day(user, date, f"{stamp(DAY_ONE + DAY - HOUR)}#{user}", 1, 5, {"CHECK_IN": 5}, BEGUN, BEGUN)
