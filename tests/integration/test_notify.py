"""Each eligible subscriber is told of a question once: run twice, at once, killed anywhere; at a cost that follows them."""

import json
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from adapters.platform.aws import client
from adapters.platform.items import plain
from adapters.questions.push import PushReceipt, PushStatus
from processors import notify
from processors.messages import Told
from rules.days import stamp
from rules.questions.messages import PushMessage, of_question
from rules.questions.notifications import INTERVALS, NEVER, Subscription, is_eligible, quiet_hours
from rules.questions.questions import QuestionStatus, from_item
from tests.integration.test_sample_events import CONTEXT
from tests.support.engine import Engine
from tests.support.phones import Phones
from tests.support.subscribers import NOW, Counting, Killed, World, subscriber, world

ZONES = ("UTC", "Europe/Berlin", "America/Los_Angeles", "Asia/Kathmandu", "+12:00", "Australia/Lord_Howe")
DEAD = 3


@pytest.fixture
def town(engine: Engine) -> Iterator[World]:
    with world(engine) as made:
        yield made


class Mortal(Phones):
    """Phones whose sender dies at a message: before it is claimed, before it is sent, or after."""

    def die(self, step: str, number: int) -> None:
        self.step, self.number, self.is_dead = step, number, False

    def _live(self, step: str) -> None:
        if step == self.step and not self.is_dead:
            self.number -= 1
            self.is_dead = self.number == 0
        if self.is_dead:
            raise Killed

    def prepare(self, token: str) -> PushReceipt:
        self._live("claim")
        return super().prepare(token)

    def send(self, endpoint: str, token: str, message: PushMessage) -> PushReceipt:
        self._live("send")
        receipt = super().send(endpoint, token, message)
        self._live("settle")
        return receipt


def crowd(chance: random.Random) -> list[Subscription]:
    """1,000 people; about a quarter of them is to be told."""
    return [
        subscriber(
            number,
            audience=tuple(sorted(chance.sample("abcd", chance.choice((0, 0, 1, 2))))),
            min_interval_minutes=chance.choice(INTERVALS),
            timezone=chance.choice(ZONES),
            quiet_hours=chance.choice((None, quiet_hours("22:00", "07:00"), quiet_hours("12:00", "20:00"))),
            last_notified_at=chance.choice(
                (NEVER, *(stamp(NOW - timedelta(minutes=each)) for each in (5, 50, 500, 5000)))
            ),
        )
        for number in range(1000)
    ]


def test_a_thousand_subscribers_two_runs_at_once_and_three_deaths(town: World) -> None:
    people = crowd(random.Random(7))
    listening = [each.fcm_token for each in people if is_eligible(each, ("a",), NOW)]
    assert 150 < len(listening) < 350
    town.fill(people)
    dead = frozenset(random.Random(1).sample(listening, DEAD))
    town.phones = phones = Mortal(dead)
    asked = town.ask(audience=("a",))
    for step, number in (("claim", 30), ("send", 30), ("settle", 30)):
        phones.die(step, number)
        with pytest.raises(Killed):
            town.notifier().notify([asked])
    phones.die("", 0)
    with ThreadPoolExecutor(2) as both:
        runs = [both.submit(town.notifier(writers=2).notify, [asked]) for _ in range(2)]
    assert all(not run.result().again and not run.result().poison for run in runs)
    claims = town.notifier().announcements.claims
    unsettled = claims.sending(NOW + timedelta(hours=1))
    # One died between claim and sending, one between sending and settling: nobody can tell them apart.
    assert len(unsettled) == 2
    lost = {place.split("#")[0] for place in unsettled}
    untold = set(listening) - dead - set(phones.got)
    assert {each.subscription_id for each in people if each.fcm_token in untold} < lost
    assert len(untold) == 1
    assert phones.got == dict.fromkeys(set(listening) - dead - untold, 1)
    _check_dead(town, people, dead)
    assert claims.sending(NOW) == [], "somebody may still be at it"
    assert [claims.give_up(place) for place in unsettled] == [True, True]
    assert sorted(claims.unconfirmed()) == sorted(unsettled)
    later = town.notifier(now=NOW + timedelta(minutes=30)).notify([asked])
    assert later.told[Told.DEAD] == 0
    assert set(phones.got.values()) == {1}
    assert untold.isdisjoint(phones.got), "sent again it might have come twice"


def _check_dead(town: World, people: list[Subscription], dead: frozenset[str]) -> None:
    """Out of the index, without token, endpoint or markers, and never tried again."""
    items, phones = town.scan(), town.phones
    buried = [each for each in people if each.fcm_token in dead]
    for each in buried:
        item = plain(items[each.subscription_id])
        assert {"active", "fcm_token", "endpoint_arn"}.isdisjoint(item) and item["dead_at"]
        assert [key for key in items if key.startswith(f"{each.subscription_id}#tag")] == []
    assert dead.isdisjoint(phones.endpoints.values())
    assert dict.fromkeys(dead, 1) == {token: phones.tried[token] for token in dead}


@pytest.mark.parametrize(
    ("audience", "tags", "sizes"), [((), (), (1000, 5000)), (("a", "b"), ("a", "b"), (500, 1500))]
)
def test_the_cost_follows_those_who_are_told(engine: Engine, audience: Any, tags: Any, sizes: Any) -> None:
    costs = []
    for size in sizes:
        with world(engine) as town:
            far = stamp(NOW - timedelta(minutes=1))
            others: list[dict[str, Any]] = [
                {"min_interval_minutes": 60, "last_notified_at": far, "audience": audience},
                {"min_interval_minutes": 10080, "last_notified_at": far},
                {"audience": ("z",)} if tags else {"min_interval_minutes": 15, "last_notified_at": far},
            ]
            town.fill(subscriber(n, audience=audience, min_interval_minutes=60) for n in range(100))
            town.fill(subscriber(n, **others[n % 3]) for n in range(100, size))
            counting = Counting(town.dynamodb)
            found = list(town.notifier(counting).announcements.listeners(tags, NOW))
            assert sorted(each.owner for each in found) == sorted(f"u{n}" for n in range(100))
            costs.append((counting.read, counting.calls))
    reads = 300 if tags else 100  # by two tags, and by key
    assert costs[0] == costs[1]
    assert costs[0][0] == reads
    assert costs[0][1]["query"] == len(INTERVALS) * (1 + max(1, len(tags)))


def test_a_message_costs_two_writes_to_the_table(town: World) -> None:
    town.fill(subscriber(n, audience=("a",)) for n in range(12))
    counting = Counting(town.dynamodb)
    assert town.notifier(counting).notify([town.ask()]).told == {Told.SENT: 12}
    assert counting.calls["transact_write_items"] == 24
    assert counting.calls["get_item"] == 2


def test_who_has_just_been_told_is_not_even_read(town: World) -> None:
    town.fill(subscriber(n, audience=("a", "b"), min_interval_minutes=60) for n in range(5))
    assert town.notifier().notify([town.ask(audience=("a",))]).told == {Told.SENT: 5}
    counting = Counting(town.dynamodb)
    assert list(town.notifier(counting).announcements.listeners(("a", "b"), NOW)) == []
    assert counting.read == 0


@pytest.mark.parametrize(("minutes", "told"), [(0, 2), (60, 1)])
def test_two_questions_at_once_keep_to_the_interval(town: World, minutes: int, told: int) -> None:
    town.fill(subscriber(n, min_interval_minutes=minutes, audience=("a",)) for n in range(6))
    questions = [town.ask(), town.ask(audience=("a",))]
    with ThreadPoolExecutor(2) as both:
        list(both.map(lambda each: town.notifier(writers=2).notify([each]), questions))
    assert town.phones.got == {f"t{n}": told for n in range(6)}


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


@pytest.mark.parametrize(
    "more",
    [
        {"status": QuestionStatus.CLOSED},
        {"closes": NOW},
        {"closes": NOW - timedelta(seconds=1)},
        {"expires_at": int(NOW.timestamp())},
    ],
)
def test_what_takes_no_answers_is_not_announced(town: World, more: dict[str, Any]) -> None:
    town.fill([subscriber(1)])
    assert town.notifier().notify([town.ask(**more)]).told == {}
    assert not town.phones.tried


def test_a_question_that_is_gone_or_closes_meanwhile(town: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notify, "CHUNK", 2)
    town.fill(subscriber(n) for n in range(6))
    asked = town.ask()
    key = asked["dynamodb"]["Keys"]
    phones, store = town.phones, town.dynamodb

    class Answering(Phones):
        def send(self, endpoint: str, token: str, message: PushMessage) -> PushReceipt:
            store.delete_item(TableName=town.questions, Key=key)
            return phones.send(endpoint, token, message)

    town.phones = Answering()
    town.phones.prepare = phones.prepare  # type: ignore[method-assign]
    assert town.notifier().notify([asked]).told == {Told.SENT: 2}
    assert town.notifier().notify([asked]).told == {}


def test_who_changes_between_being_found_and_being_told(town: World) -> None:
    people = [subscriber(n, min_interval_minutes=60) for n in range(3)]
    town.fill(people)
    store, notifier = town.store(), town.notifier()
    current = store.get(people[0].subscription_id)
    assert current
    store.remove(current)
    store.register(subscriber(1, quiet_hours=quiet_hours("11:00", "13:00")), NOW)
    store.register(subscriber(2, audience=("a",)), NOW)
    asked = from_item(plain(town.ask()["dynamodb"]["NewImage"]))
    message = of_question(asked, NOW)
    told = [notifier._tell(asked, message, each) for each in people]
    assert told == [Told.SKIPPED, Told.SKIPPED, Told.SENT]


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


def test_last_notified_at_never_moves_back(town: World) -> None:
    ahead = stamp(NOW + timedelta(minutes=1))
    town.fill([subscriber(1, last_notified_at=ahead)])
    assert town.notifier().notify([town.ask()]).told == {Told.SENT: 1}
    found = town.store().get(subscriber(1).subscription_id)
    assert found and found.last_notified_at == ahead


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
    assert notify.handler(again, CONTEXT) == {"batchItemFailures": [{"itemIdentifier": "1"}]}
    hurried = SimpleNamespace(**{**vars(CONTEXT), "get_remaining_time_in_millis": lambda: 1_000})
    assert notify.handler({"Records": [asked]}, hurried) == {"batchItemFailures": [{"itemIdentifier": "1"}]}
    monkeypatch.setenv("PLATFORM_APPLICATION_ARN", "")
    notify._parts.cache_clear()
    assert notify.handler({"Records": [asked]}, CONTEXT) == {"batchItemFailures": []}
    notify._parts.cache_clear()
