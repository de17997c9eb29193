"""Each eligible subscriber is told of a question, at a cost that follows them."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from adapters.platform.items import decode_item
from adapters.questions.push import PushReceipt
from processors.questions import fan_out
from processors.questions.messages import MessageOutcome
from rules.days import stamp
from rules.questions.notifications import (
    INTERVALS,
    LISTENER_SHARDS,
    PushMessage,
    message_of_question,
    quiet_hours,
    shard_of,
)
from rules.questions.questions import QuestionStatus, from_item
from tests.support.counting_client import Counting
from tests.support.engine import Engine
from tests.support.questions.subscribers import NOW, Phones, World, subscriber, world


@pytest.fixture
def town(engine: Engine) -> Iterator[World]:
    with world(engine) as made:
        yield made


@pytest.mark.parametrize(
    ("audience", "tags", "sizes"), [((), (), (150, 450)), (("a", "b"), ("a", "b"), (150, 450))]
)
def test_the_cost_follows_those_who_are_told(engine: Engine, audience: Any, tags: Any, sizes: Any) -> None:
    costs = []
    for size in sizes:
        with world(engine) as town:
            far = stamp(NOW - timedelta(minutes=1))
            others: list[dict[str, Any]] = [
                {"min_interval_minutes": 60, "last_notified_at": far, "tags": audience},
                {"min_interval_minutes": 10080, "last_notified_at": far},
                {"tags": ("z",)} if tags else {"min_interval_minutes": 15, "last_notified_at": far},
            ]
            town.fill(subscriber(n, tags=audience, min_interval_minutes=60) for n in range(40))
            town.fill(subscriber(n, **others[n % 3]) for n in range(40, size))
            counting = Counting(town.dynamodb)
            found = town.listeners(tags, counting)
            assert sorted({each.owner for each in found}) == sorted(f"u{n}" for n in range(40))
            costs.append((counting.read, counting.calls))
    reads = 160 if tags else 40  # by two tags, each also by key, unless both are on one page
    assert reads * 3 / 4 <= costs[0][0] == costs[1][0] <= reads
    partitions = len(INTERVALS) * 2 * LISTENER_SHARDS
    assert partitions <= costs[0][1]["query"] == costs[1][1]["query"] <= 2 * partitions


def test_a_message_costs_two_writes_to_the_table(town: World) -> None:
    town.fill(subscriber(n, tags=("a",)) for n in range(12))
    counting = Counting(town.dynamodb)
    assert town.announce(town.ask(), town.notifier(counting))[MessageOutcome.SENT] == 12
    assert counting.calls["transact_write_items"] == 24
    assert counting.calls["get_item"] <= 2 * LISTENER_SHARDS


@pytest.mark.parametrize(("minutes", "told"), [(0, 2), (60, 1)])
def test_two_questions_at_once_keep_to_the_interval(town: World, minutes: int, told: int) -> None:
    town.fill(subscriber(n, min_interval_minutes=minutes, tags=("a",)) for n in range(6))
    questions = [town.ask(), town.ask(audience=("a",))]
    with ThreadPoolExecutor(2) as both:
        list(both.map(town.announce, questions))
    assert town.phones.got == {f"t{n}": told for n in range(6)}


def test_an_interval_of_any_minutes_is_kept_and_keeps_nobody_waiting(town: World) -> None:
    """In one partition, those who are not due come first: everybody behind them is told all the same."""
    hour_ago = NOW - timedelta(minutes=40)
    waiting = [
        subscriber(n, min_interval_minutes=45, last_notified_at=stamp(hour_ago), tags=("a",) * (n % 2))
        for n in range(60)
    ]
    due = [
        subscriber(n, min_interval_minutes=31, last_notified_at=stamp(hour_ago + timedelta(minutes=n % 9)))
        for n in range(60, 80)
    ]
    town.fill([*waiting, *due])
    everybody = [each.fcm_token for each in due]
    assert sorted(each.fcm_token for each in town.listeners((), size=22)) == everybody
    assert town.announce(town.ask()) == {MessageOutcome.SENT: 20}
    assert sorted(town.phones.got) == everybody
    town.now = NOW + timedelta(minutes=5) - timedelta(microseconds=1)
    assert town.announce(town.ask()) == {}
    town.now = NOW + timedelta(minutes=5)
    assert town.announce(town.ask()) == {MessageOutcome.SENT: 60}


def test_what_takes_no_answers_is_not_announced(town: World) -> None:
    town.fill([subscriber(1)])
    for more in ({"status": QuestionStatus.CLOSED}, {"closes": NOW}, {"expires_at": int(NOW.timestamp())}):
        assert town.announce(town.ask(**more)) == {}
    assert not town.phones.tried


def test_a_question_that_is_gone_or_closes_meanwhile(town: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fan_out, "PAGE_SIZE", 22)
    monkeypatch.setattr("tests.support.questions.subscribers.LISTENER_SHARDS", 1)
    town.fill([each for each in map(subscriber, range(60)) if shard_of(each.subscription_id) == 0][:6])
    asked = town.ask()
    key = asked["dynamodb"]["Keys"]
    phones, store = town.phones, town.dynamodb

    class Answering(Phones):
        def send(self, endpoint: str, token: str, message: PushMessage) -> PushReceipt:
            store.delete_item(TableName=town.questions, Key=key)
            return phones.send(endpoint, token, message)

    town.phones = Answering()
    town.phones.prepare = phones.prepare  # type: ignore[method-assign]
    assert town.announce(asked) == {MessageOutcome.SENT: 1}
    assert town.announce(asked) == {}


def test_who_changes_between_being_found_and_being_told(town: World) -> None:
    people = [subscriber(n, min_interval_minutes=60) for n in range(3)]
    town.fill(people)
    store, notifier = town.store(), town.notifier()
    current = store.get(people[0].subscription_id)
    assert current
    store.remove(current)
    store.register(subscriber(1, quiet_hours=quiet_hours("11:00", "13:00")), NOW)
    store.register(subscriber(2, tags=("a",)), NOW)
    asked = from_item(decode_item(town.ask()["dynamodb"]["NewImage"]))
    message = message_of_question(asked, NOW)
    told = [notifier._tell_person(asked, message, each) for each in people]
    assert told == [MessageOutcome.SKIPPED, MessageOutcome.SKIPPED, MessageOutcome.SENT]


def test_last_notified_at_never_moves_back(town: World) -> None:
    ahead = stamp(NOW + timedelta(minutes=1))
    town.fill([subscriber(1, last_notified_at=ahead)])
    assert town.announce(town.ask()) == {MessageOutcome.SENT: 1}
    found = town.store().get(subscriber(1).subscription_id)
    assert found and found.last_notified_at == ahead
