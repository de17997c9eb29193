"""Nobody misses a message, or gets it twice, because something is away, unsure, late or poison."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace

import pytest

from adapters.platform.aws import client
from adapters.questions.push import PushReceipt, PushStatus
from processors import notify
from processors.messages import Told
from rules.days import stamp
from rules.questions.notifications import quiet_hours
from tests.integration.test_sample_events import CONTEXT
from tests.support.engine import Engine
from tests.support.subscribers import NOW, World, subscriber, world


@pytest.fixture
def town(engine: Engine) -> Iterator[World]:
    with world(engine) as made:
        yield made


def test_a_push_service_that_is_away_loses_nothing(town: World) -> None:
    last = stamp(NOW - timedelta(hours=2))
    town.fill(
        subscriber(n, min_interval_minutes=60, audience=("a",), last_notified_at=last) for n in range(3)
    )
    before, asked = town.scan(), town.ask()
    town.phones.away = True
    assert town.notifier().notify([asked]).again == ["1"]
    assert town.scan() == before
    town.phones.away = False
    arns = [town.phones.prepare(f"t{n}").endpoint for n in range(3)]
    town.phones.prepare = lambda token: PushReceipt(PushStatus.SENT, arns[int(token[1:])])  # type: ignore[method-assign]
    town.phones.away = True
    assert town.notifier().notify([asked]).again == ["1"]
    assert town.scan() == before, "claims have been undone"
    town.phones.away = False
    assert town.notifier().notify([asked]).told == {Told.SENT: 3}
    assert town.notifier().notify([asked]).told == {}


def test_a_run_short_of_time_stops_between_messages_and_comes_again(
    town: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notify, "CHUNK", 2)
    town.fill(subscriber(n) for n in range(6))
    asked = town.ask()
    slow = replace(town.notifier(), now=lambda: NOW + timedelta(minutes=town.phones.got.total()))
    stopped = slow.notify([asked], NOW + timedelta(minutes=3))
    assert (stopped.told, stopped.again) == ({Told.SENT: 4, Told.AGAIN: 1}, ["1"])
    assert slow.announcements.claims.sending(NOW + timedelta(hours=1)) == []
    assert town.notifier().notify([asked]).told == {Told.SENT: 2, Told.DUPLICATE: 4}
    assert town.phones.got == {f"t{n}": 1 for n in range(6)}


def test_what_may_have_been_sent_is_not_sent_again(town: World, monkeypatch: pytest.MonkeyPatch) -> None:
    town.fill([subscriber(1)])
    asked = town.ask()
    monkeypatch.setattr(town.phones, "send", lambda *_: PushReceipt(PushStatus.UNSURE, "arn"))
    assert town.notifier().notify([asked]).told == {Told.UNSURE: 1}
    monkeypatch.undo()
    assert town.notifier().notify([asked]).told == {Told.DUPLICATE: 1}
    assert len(town.notifier().announcements.claims.sending(NOW + timedelta(hours=1))) == 1


def test_a_subscription_that_cannot_be_told_leaves_the_others_alone(town: World) -> None:
    quiet = quiet_hours("22:00", "07:00")
    town.fill(subscriber(n, quiet_hours=quiet, timezone="UTC") for n in range(3))
    town.dynamodb.update_item(
        TableName=town.subscriptions,
        Key={"subscription_id": {"S": subscriber(1).subscription_id}},
        UpdateExpression="SET #zone = :none",
        ExpressionAttributeNames={"#zone": "timezone"},
        ExpressionAttributeValues={":none": {"S": "Europe/Atlantis"}},
    )
    outcome = town.notifier().notify([town.ask()])
    assert outcome.told == {Told.SENT: 2, Told.FAILED: 1}
    assert [reason for _, reason in outcome.poison] == ["subscriptions that could not be told: 1"]


def test_the_handler_keeps_poison_and_goes_on(
    town: World, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    sns = engine.client("sns")
    arn = sns.create_platform_application(Name="handler", Platform="GCM", Attributes={})
    wanted = {
        **engine.environment(),
        "QUESTIONS_TABLE": town.questions,
        "SUBSCRIPTIONS_TABLE": town.subscriptions,
        "PLATFORM_APPLICATION_ARN": arn["PlatformApplicationArn"],
        "WRITERS": "2",
    }
    for name, value in wanted.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("adapters.clock.now", lambda: NOW)
    client.cache_clear()
    notify._parts.cache_clear()
    town.fill(subscriber(n) for n in range(3))
    asked, bad = town.ask(), town.ask()
    del bad["dynamodb"]["NewImage"]["prompt"]
    engine.client("sqs").purge_queue(QueueUrl=engine.queue_url)
    assert notify.handler({"Records": [bad, asked]}, CONTEXT) == {"batchItemFailures": []}
    stored = town.store().get_many(subscriber(n).subscription_id for n in range(3))
    assert all(each.endpoint_arn and each.last_notified_at == stamp(NOW) for each in stored)
    kept = engine.client("sqs").receive_message(QueueUrl=engine.queue_url)["Messages"][0]
    engine.client("sqs").delete_message(QueueUrl=engine.queue_url, ReceiptHandle=kept["ReceiptHandle"])
    body = json.loads(kept["Body"])
    assert (body["consumer"], body["reason"]) == ("notify", "KeyError: 'prompt'")
    again = {"Records": [bad], "streakline_redrive": True}
    told = {"itemIdentifier": "1", "reason": "KeyError: 'prompt'"}
    assert notify.handler(again, CONTEXT) == {"batchItemFailures": [told]}
    hurried = SimpleNamespace(**{**vars(CONTEXT), "get_remaining_time_in_millis": lambda: 1_000})
    assert notify.handler({"Records": [asked]}, hurried) == {"batchItemFailures": [{"itemIdentifier": "1"}]}
    monkeypatch.setenv("PLATFORM_APPLICATION_ARN", "")
    notify._parts.cache_clear()
    assert notify.handler({"Records": [asked]}, CONTEXT) == {"batchItemFailures": []}
    notify._parts.cache_clear()
