"""Nobody misses a message, or gets it twice, because something is away, unsure, late or poison."""

import json
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from datetime import timedelta

import pytest

from adapters.platform.aws import client
from adapters.platform.queues import PoisonMessage
from adapters.questions.announcements import AnnouncementPage, AnnouncementQueue
from adapters.questions.push import PushReceipt, PushStatus
from processors.questions import fan_out, notify
from processors.questions.fan_out import PAGE_ATTEMPTS_MAX
from processors.questions.messages import MessageOutcome
from rules.days import stamp
from rules.questions.notifications import LISTENER_SHARDS, quiet_hours, shard_of
from rules.questions.phone_items import CHANGED
from tests.integration.test_sample_events import CONTEXT
from tests.support.counting_client import Counting
from tests.support.dying import Killed
from tests.support.engine import Engine
from tests.support.questions.subscribers import NOW, World, subscriber, world


@pytest.fixture
def town(engine: Engine) -> Iterator[World]:
    with world(engine) as made:
        yield made


def test_a_push_service_that_is_away_loses_nothing(town: World) -> None:
    last = stamp(NOW - timedelta(hours=2))
    town.fill(subscriber(n, min_interval_minutes=60, tags=("a",), last_notified_at=last) for n in range(3))
    before, asked = town.scan(), town.ask()
    town.phones.away = True
    assert set(town.announce(asked)) == {MessageOutcome.AGAIN}
    assert town.scan() == before
    town.phones.away = False
    arns = [town.phones.prepare(f"t{n}").endpoint for n in range(3)]
    town.phones.prepare = lambda token: PushReceipt(PushStatus.SENT, arns[int(token[1:])])  # type: ignore[method-assign]
    town.phones.away = True
    assert set(town.announce(asked)) == {MessageOutcome.AGAIN}
    for each in before.values():
        each.pop(CHANGED, None)  # a claim is a note, undone or not
    assert town.scan() == before, "claims have been undone"
    town.phones.away = False
    assert town.announce(asked) == {MessageOutcome.SENT: 3}
    assert town.announce(asked) == {}


def test_a_page_that_died_is_done_again_without_claiming_anybody_twice(town: World) -> None:
    """The process dies after some messages of a page. The queue brings the page again."""
    town.fill(subscriber(n, tags=("a",)) for n in range(24))
    asked = town.ask(audience=("a",))
    counting = Counting(town.dynamodb)
    counting.left = {"transact_write_items": 2 * 9}
    with pytest.raises(Killed):
        town.announce(asked, town.notifier(counting))
    assert town.phones.got.total() == 9
    again = Counting(town.dynamodb)
    counts = {MessageOutcome.SENT: 15, MessageOutcome.DUPLICATE: 9}
    assert town.announce(asked, town.notifier(again)) == counts
    assert again.calls["transact_write_items"] == 2 * 15, "the nine are not claimed again"
    assert town.announce(asked) == {MessageOutcome.DUPLICATE: 24}
    assert town.phones.got == {f"t{n}": 1 for n in range(24)}


def test_a_page_that_is_to_come_again_waits_longer_each_time_and_is_kept_in_the_end(
    town: World, engine: Engine
) -> None:
    town.fill([subscriber(1)])
    asked, sent = town.ask()["dynamodb"]["Keys"]["question_id"]["S"], list[tuple[int, int]]()
    own = shard_of(subscriber(1).subscription_id)
    town.phones.away = True

    class Waiting(AnnouncementQueue):
        def send(self, page: AnnouncementPage, delay_seconds: int = 0) -> None:
            sent.append((page.attempt, delay_seconds))

    queue = Waiting(lambda: None, "")
    for attempt in range(PAGE_ATTEMPTS_MAX):
        fan_out.announce(town.notifier(), queue, asdict(AnnouncementPage(asked, own, None, attempt)))
    assert [attempt for attempt, _ in sent] == list(range(1, PAGE_ATTEMPTS_MAX + 1))
    assert [delay for _, delay in sent] == [30, 60, 120, 240, 480, 960, 1920]
    last = asdict(AnnouncementPage(asked, own, None, PAGE_ATTEMPTS_MAX))
    with pytest.raises(PoisonMessage, match="again and again: 1"):
        fan_out.announce(town.notifier(), queue, last)
    with pytest.raises(PoisonMessage, match="no page of an announcement: TypeError"):
        fan_out.announce(town.notifier(), queue, {"question_id": asked})
    town.phones.away = False
    assert fan_out.announce(town.notifier(), queue, last) == {MessageOutcome.SENT: 1}


def test_a_page_whose_attempts_are_used_up_does_not_keep_the_next_page_waiting(
    town: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fan_out, "PAGE_SIZE", 1)
    people = [each for n in range(60) if shard_of((each := subscriber(n)).subscription_id) == 0]
    town.fill(people)
    asked, sent = town.ask()["dynamodb"]["Keys"]["question_id"]["S"], list[AnnouncementPage]()
    town.phones.away = True

    class Waiting(AnnouncementQueue):
        def send(self, page: AnnouncementPage, delay_seconds: int = 0) -> None:
            sent.append(page)

    first = asdict(AnnouncementPage(asked, 0, None, PAGE_ATTEMPTS_MAX))
    with pytest.raises(PoisonMessage, match="again and again: 1"):
        fan_out.announce(town.notifier(), Waiting(lambda: None, ""), first)
    (following,) = sent
    assert following.attempt == 0 and following.after


def test_a_page_has_of_each_class_of_intervals_those_who_were_told_longest_ago(town: World) -> None:
    """Many who may be told at any time do not keep waiting those who are told once a week."""
    people = [
        subscriber(
            n,
            min_interval_minutes=(0, 60, 10080)[n % 3],
            last_notified_at=stamp(NOW - timedelta(days=30, minutes=(n * 7) % 90)),
        )
        for n in range(90)
    ]
    town.fill(people)
    pages = town.notifier().announcements
    page, after = pages.page((), 0, None, 22, NOW)
    assert Counter(each.min_interval_minutes for each in page) == {0: 1, 60: 1, 10080: 1}
    rest, _ = pages.page((), 0, after, 9, NOW)
    for minutes in (0, 60, 10080):
        told = [each for each in [*page, *rest] if each.min_interval_minutes == minutes]
        mine = [e for e in people if (shard_of(e.subscription_id), e.min_interval_minutes) == (0, minutes)]
        assert told == sorted(mine, key=lambda e: e.last_notified_at)[: len(told)]
    assert sorted(each.owner for each in town.listeners((), size=7)) == sorted(each.owner for each in people)


def test_what_may_have_been_sent_is_not_sent_again(town: World, monkeypatch: pytest.MonkeyPatch) -> None:
    town.fill([subscriber(1)])
    asked = town.ask()
    monkeypatch.setattr(town.phones, "send", lambda *_: PushReceipt(PushStatus.UNSURE, "arn"))
    assert town.announce(asked) == {MessageOutcome.UNSURE: 1}
    monkeypatch.undo()
    assert town.announce(asked) == {MessageOutcome.DUPLICATE: 1}
    assert len(town.notifier().announcements.claims.stale_keys(NOW + timedelta(hours=1))) == 1


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
    assert town.announce(town.ask()) == {MessageOutcome.SENT: 2, MessageOutcome.FAILED: 1}


def test_the_handler_keeps_poison_and_goes_on(
    town: World, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    sns, sqs = engine.client("sns"), engine.client("sqs")
    pages = sqs.create_queue(QueueName=f"pages-{uuid.uuid4()}")["QueueUrl"]
    arn = sns.create_platform_application(Name="handler", Platform="GCM", Attributes={})
    wanted = {
        **engine.environment(),
        "QUESTIONS_TABLE": town.questions,
        "SUBSCRIPTIONS_TABLE": town.subscriptions,
        "ANNOUNCEMENT_QUEUE_URL": pages,
        "PLATFORM_APPLICATION_ARN": arn["PlatformApplicationArn"],
    }
    for name, value in wanted.items():
        monkeypatch.setenv(name, value)
    client.cache_clear()
    fan_out._parts.cache_clear()
    notify._parts.cache_clear()
    town.fill(subscriber(n) for n in range(3))
    asked, bad = town.ask(), town.ask()
    del bad["dynamodb"]["NewImage"]["prompt"]
    engine.client("sqs").purge_queue(QueueUrl=engine.queue_url)
    assert notify.handler({"Records": [bad, asked]}, CONTEXT) == {"batchItemFailures": []}
    asked_for = [sqs.receive_message(QueueUrl=pages)["Messages"][0] for _ in range(LISTENER_SHARDS)]
    records = [{"messageId": each["MessageId"], "body": each["Body"]} for each in asked_for]
    assert fan_out.handler({"Records": records}, CONTEXT) == {"batchItemFailures": []}
    stored = town.store().get_many(subscriber(n).subscription_id for n in range(3))
    assert all(each.endpoint_arn and each.last_notified_at == stamp(NOW) for each in stored)
    kept = engine.client("sqs").receive_message(QueueUrl=engine.queue_url)["Messages"][0]
    engine.client("sqs").delete_message(QueueUrl=engine.queue_url, ReceiptHandle=kept["ReceiptHandle"])
    body = json.loads(kept["Body"])
    assert (body["consumer"], body["reason"]) == ("notify", "KeyError: 'prompt'")
    again = {"Records": [bad], "streakline_redrive": True}
    told = {"itemIdentifier": "1", "reason": "KeyError: 'prompt'"}
    assert notify.handler(again, CONTEXT) == {"batchItemFailures": [told]}
    monkeypatch.setenv("PLATFORM_APPLICATION_ARN", "")
    notify._parts.cache_clear()
    fan_out._parts.cache_clear()
    assert notify.handler({"Records": [asked]}, CONTEXT) == {"batchItemFailures": []}
    assert fan_out.handler({"Records": records}, CONTEXT) == {"batchItemFailures": []}
    notify._parts.cache_clear()
    fan_out._parts.cache_clear()
