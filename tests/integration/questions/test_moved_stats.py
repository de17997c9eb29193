"""A person's stats follow them to a newer hash: equal to all their answers, on the board once, never lost."""

import itertools
import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from adapters import clock
from adapters.platform.aws import client
from processors.questions import answers
from rules.days import stamp
from tests.support.dying import Dying
from tests.support.engine import Engine
from tests.support.questions.answer_stream import (
    NOW,
    a_person,
    answered,
    check,
    deliver,
    deliver_by,
    records,
    store,
    stored,
)
from tests.support.questions.stack import at_once, prepared, requests, responses_of


@pytest.fixture(autouse=True, scope="module")
def settings(engine: Engine) -> Iterator[None]:
    with prepared(engine):
        yield


def test_the_first_answer_under_a_newer_key_moves_the_stats() -> None:
    new, old = hashes = a_person(2)
    before, after, late = answered(hashes, 1, 5), answered(hashes, 0, 2), answered(hashes, 1, 3)
    assert deliver(store(before)) == []
    assert stored(old)["total_answers"] == 5
    batch = store(after)
    with requests() as seen:
        assert deliver(batch) == []
    assert seen.operations[-1] == "TransactWriteItems"
    check(hashes, before + after)
    assert (stored(old)["moved_to"], stored(new)["older_hashes"]) == (new, [old])
    assert deliver(store(late)) == []
    assert deliver(batch) == []
    check(hashes, before + after + late)


def test_once_moved_a_batch_is_two_requests_again() -> None:
    hashes = a_person(3)
    for place in (2, 1, 0):
        deliver(store(answered(hashes, place, 1, timezone="UTC")))
    batch = store(answered(hashes, 0, 3, timezone="UTC"))
    with requests() as seen:
        assert deliver(batch) == []
    assert seen.operations == ["BatchGetItem", "TransactWriteItems"]
    assert stored(hashes[2])["moved_to"] == hashes[1]
    assert stored(hashes[0])["older_hashes"] == sorted(hashes[1:])


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 0, 1)])
def test_answers_under_three_keys_count_once_in_any_order(order: tuple[int, ...]) -> None:
    hashes = a_person(3)
    history = {place: answered(hashes, place, 2) for place in order}
    for place in order:
        assert deliver(store(history[place])) == []
    everything = [each for responses in history.values() for each in responses]
    check(hashes, everything)
    assert deliver(records([image for each in everything for image in responses_of(each.question_id)])) == []
    check(hashes, everything)


def test_eight_consumers_at_once_move_and_count_each_answer_once() -> None:
    chance = random.Random(1)
    people = [a_person(3) for _ in range(3)]
    history = {each: [r for place in range(3) for r in answered(each, place, 4)] for each in people}
    batch = store([each for responses in history.values() for each in responses])
    parts = answers._parts()
    mixed = [chance.sample(batch, 24) for _ in range(8)]
    at_once([lambda part=part: parts.apply(part, clock.now()) for part in mixed])  # type: ignore[misc]
    while again := deliver(batch):
        assert again
    for hashes, responses in history.items():
        check(hashes, responses)


@pytest.mark.parametrize("how", ["dies after", "throttled"])
def test_a_process_that_fails_at_any_call_of_a_move_loses_and_doubles_nothing(
    monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    for dies_at in itertools.count(1):
        hashes = a_person(3)
        before, after, late = (answered(hashes, place, 2) for place in (2, 0, 1))
        assert deliver(store(before)) == []
        batch = store(after + late)
        dying = Dying(client("dynamodb"), dies_at, how)
        if not deliver_by(dying, batch, monkeypatch):
            break
        assert deliver(batch) == []
        check(hashes, before + after + late)
    assert dies_at >= 6


def test_an_answer_too_old_to_be_added_is_counted_after_a_move(monkeypatch: pytest.MonkeyPatch) -> None:
    hashes = a_person(2)
    before = answered(hashes, 1, 3)
    recent = [
        replace(each, created_at=stamp(at), activity_date=at.date())
        for each, at in zip(answered(hashes, 0, 1), [NOW + timedelta(days=60)], strict=True)
    ]
    late = answered(hashes, 1, 1)
    deliver(store(before))
    deliver(store(recent))
    batch = store(late)
    assert deliver(batch) != []  # the index may not have all of the last seconds
    later = datetime.now(UTC) + timedelta(minutes=1)
    monkeypatch.setattr("adapters.clock.now", lambda: later)
    assert deliver(batch) == []
    check(hashes, before + recent + late)


def test_stats_under_two_hashes_are_made_one_from_all_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody whom nobody recognised for a while: a key was retired, and a process was behind."""
    hashes = a_person(2)
    before, unknown, after = answered(hashes, 1, 3), answered(hashes[:1], 0, 2), answered(hashes, 0, 1)
    deliver(store(before))
    deliver(store(unknown))
    batch = store(after)
    assert deliver(batch) != []
    later = datetime.now(UTC) + timedelta(minutes=1)
    monkeypatch.setattr("adapters.clock.now", lambda: later)
    assert deliver(batch) == []
    check(hashes, before + unknown + after)
