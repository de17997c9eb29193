"""The operators' view: gauges in Redis, depths of queues and freshness of the lake. A null has a reason."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from adapters.platform.aws import client
from adapters.platform.gauges import Gauges, GaugesUnavailable
from adapters.platform.queues import QueueDepths
from adapters.platform.redis import Redis
from ingest import operations_api
from tests.support.engine import Engine
from tests.support.gateway import ask, token

NOW = datetime(2026, 3, 10, 6, 0, 59, 400_000, tzinfo=UTC)
NOWHERE = "redis://127.0.0.1:9/0"


def record(arrived: datetime) -> dict[str, Any]:
    return {"dynamodb": {"ApproximateCreationDateTime": arrived.timestamp()}}


@pytest.fixture
def gauges(redis_url: str) -> Gauges:
    Redis(redis_url).call("FLUSHALL")
    return Gauges(redis_url)


def test_the_newest_event_of_a_batch_tells_how_far_behind_a_consumer_is(gauges: Gauges) -> None:
    old, new = record(NOW - timedelta(seconds=90)), record(NOW - timedelta(seconds=2.5))
    gauges.note_applied("engagement", 2, [new, old], NOW)
    gauges.note_applied("answers", 1, [record(NOW + timedelta(seconds=1))], NOW)
    answers, engagement = gauges.lags()
    assert (engagement.consumer, engagement.behind_seconds, engagement.last_batch_at) == (
        "engagement",
        2.5,
        NOW,
    )
    assert (answers.consumer, answers.behind_seconds) == ("answers", 0.0), "a clock that is ahead"


def test_events_are_counted_by_the_second_over_the_turn_of_a_minute(gauges: Gauges) -> None:
    for second, applied in ((0, 5), (1, 3), (1, 4), (58, 1), (59, 100)):
        at = NOW + timedelta(seconds=second)
        gauges.note_applied("engagement", applied, [record(at)], at)
    series = gauges.applied_per_second("engagement", NOW + timedelta(seconds=59))
    assert len(series) == 60
    assert [(place, applied) for place, applied in enumerate(series) if applied] == [(1, 5), (2, 7), (59, 1)]
    assert gauges.applied_per_second("engagement", NOW + timedelta(seconds=62))[-4:] == [1, 100, 0, 0]
    assert not any(gauges.applied_per_second("other", NOW))


def test_gauges_end_by_themselves(gauges: Gauges, redis_url: str) -> None:
    gauges.note_applied("engagement", 1, [record(NOW)], NOW)
    redis = Redis(redis_url)
    lives = {key: redis.call("TTL", key) for key in redis.call("KEYS", "*")}
    assert len(lives) == 2
    assert all(0 < seconds <= 24 * 3600 for seconds in lives.values())


def test_without_redis_gauges_are_dropped_and_reading_them_says_why(redis_url: str) -> None:
    for url, why in (("", "no Redis"), (NOWHERE, "does not answer")):
        away = Gauges(url)
        away.note_applied("engagement", 1, [record(NOW)], NOW)
        away.note_stored(NOW)
        with pytest.raises(GaugesUnavailable, match=why):
            away.lags()


@pytest.fixture
def queues(engine: Engine) -> Iterator[dict[str, str]]:
    sqs = engine.client("sqs")
    urls = {
        name: sqs.create_queue(QueueName=f"ops-{name}")["QueueUrl"] for name in ("WorkQueue", "WorkFailures")
    }
    yield urls
    for url in urls.values():
        sqs.delete_queue(QueueUrl=url)


def test_queues_tell_what_waits_and_what_is_in_hand(engine: Engine, queues: dict[str, str]) -> None:
    sqs = engine.client("sqs")
    for _ in range(3):
        sqs.send_message(QueueUrl=queues["WorkFailures"], MessageBody="{}")
    sqs.receive_message(QueueUrl=queues["WorkFailures"], VisibilityTimeout=30)
    gone = {"Gone": queues["WorkQueue"] + "-gone"}
    told = QueueDepths(lambda: sqs, {**queues, **gone}).read()
    assert [(each["name"], each["kind"], each["waiting"], each["in_flight"]) for each in told] == [
        ("Gone", "work", None, None),
        ("WorkFailures", "failure", 2, 1),
        ("WorkQueue", "work", 0, 0),
    ]
    assert "NonExistent" in told[0]["reason"]


@pytest.fixture
def door(engine: Engine, redis_url: str, queues: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Any:
    for name, value in {**engine.environment(redis_url), "QUEUE_URLS": json.dumps(queues)}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("adapters.clock.now", lambda: NOW)

    def get(bearer: str, **environment: str) -> Any:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        client.cache_clear()
        operations_api._parts.cache_clear()
        answered = ask("GET", "/v1/operations", {"Authorization": f"Bearer {bearer}"} if bearer else {})
        return answered.status, json.loads(answered.body)

    yield get
    client.cache_clear()
    operations_api._parts.cache_clear()


def test_only_admins_look(door: Any) -> None:
    assert door("")[0] == 401
    assert door(token("u"))[0] == 403
    assert door(token("u", "streakline/agents", "streakline/leads"))[0] == 403
    assert door(token("u", "streakline/admin"))[0] == 200


def test_the_view_has_every_part(door: Any, gauges: Gauges) -> None:
    before = NOW - timedelta(seconds=3)
    gauges.note_applied("engagement", 20, [record(before - timedelta(seconds=1))], before)
    status, told = door(token("u", "streakline/admin"))
    assert status == 200
    assert told["throughput"]["events_per_second"] == 2.0
    assert told["throughput"]["per_second"][-3:] == [20, 0, 0]
    assert told["consumers"] == [
        {
            "name": "engagement",
            "behind_seconds": 1.0,
            "waiting_since": None,
            "last_batch_at": before.isoformat(),
        }
    ]
    assert [each["name"] for each in told["queues"]] == ["WorkFailures", "WorkQueue"]
    assert told["lake"] is None
    assert "nothing is curated" in told["unknown"]["lake"]
    assert set(told["unknown"]) == {"lake", "nightly"}


def test_what_cannot_be_told_is_null_with_a_reason_and_hides_nothing(door: Any) -> None:
    status, told = door(token("u", "streakline/admin"), REDIS_URL=NOWHERE, LAKE_BUCKET="no-such-bucket")
    assert status == 200
    assert [told[part] for part in ("throughput", "consumers", "lake", "nightly")] == [None] * 4
    assert len(told["queues"]) == 2
    assert "Redis does not answer" in told["unknown"]["throughput"]
    assert not [each for each in told["unknown"].values() if "Errno" in each]
    assert "bucket" in told["unknown"]["lake"].lower()


# ---- what the consumer has not had


def consumer(door: Any) -> Any:
    (told,) = door(token("u", "streakline/admin"))[1]["consumers"]
    return told


def test_what_is_stored_and_not_applied_makes_a_stopped_consumer_late(door: Any, gauges: Gauges) -> None:
    applied = NOW - timedelta(minutes=30)
    gauges.note_stored(applied + timedelta(seconds=0.6))  # a stream says in which second
    gauges.note_applied("engagement", 1, [record(applied)], applied + timedelta(seconds=0.7))
    assert (consumer(door)["behind_seconds"], consumer(door)["waiting_since"]) == (0.0, None), (
        "a lag that is over"
    )
    for minutes in (20, 20, 5, 0):
        gauges.note_stored(NOW - timedelta(minutes=minutes))
    told = consumer(door)
    assert told["behind_seconds"] == 1200
    assert datetime.fromisoformat(told["waiting_since"]) == NOW - timedelta(minutes=20)
    gauges.note_applied("engagement", 4, [record(NOW)], NOW)
    assert (consumer(door)["behind_seconds"], consumer(door)["waiting_since"]) == (0.0, None)


def test_a_late_batch_counts_for_a_minute_and_then_only_what_waits(door: Any, gauges: Gauges) -> None:
    for seconds, behind in ((59, 90.0), (61, 0.0)):
        batch_at = NOW - timedelta(seconds=seconds)
        gauges.note_applied("engagement", 1, [record(batch_at - timedelta(seconds=90))], batch_at)
        assert consumer(door)["behind_seconds"] == behind


def test_a_consumer_that_never_worked_is_late_too(door: Any, gauges: Gauges) -> None:
    gauges.note_stored(NOW - timedelta(minutes=3))
    told = consumer(door)
    assert (told["name"], told["behind_seconds"], told["last_batch_at"]) == ("engagement", 180, None)


def test_events_of_the_minute_in_which_the_consumer_stopped_are_seen(door: Any, gauges: Gauges) -> None:
    stopped = NOW - timedelta(seconds=50)
    gauges.note_stored(stopped)
    gauges.note_applied("engagement", 1, [record(stopped)], stopped)
    gauges.note_stored(stopped + timedelta(seconds=2))
    assert consumer(door)["behind_seconds"] == 48
