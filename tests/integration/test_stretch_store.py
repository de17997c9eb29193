"""Stretches of users who were offline, on a real engine: two writers at once, and what contradicts them."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from adapters.engagement import stretch_store
from adapters.engagement.stretch_store import StretchStore
from adapters.platform.items import encode_item
from rules.days import key_of_stamp, stamp
from rules.engagement.offline import Stretch
from tests.support.engine import Engine

NOW = datetime(2026, 6, 10, 12, tzinfo=UTC)
DAY = timedelta(days=1)
USERS = iter(f"away{number}" for number in range(1000))


@pytest.fixture
def store(engine: Engine) -> StretchStore:
    return StretchStore(engine.client("dynamodb"), "IdempotencyKeys", "BPEvents")


@pytest.fixture
def user() -> str:
    return next(USERS)


def stretch(owner: str, days: float = 7, until: datetime = NOW) -> Stretch:
    return Stretch(owner, until - days * DAY, until - days * DAY, until, until)


def sent(engine: Engine, user: str, *events: tuple[float, float]) -> None:
    """Events that are stored: when they occurred and when they arrived, in days before now."""
    for occurred, arrived in events:
        attributes = {
            "user_id": user,
            "event_id": f"{key_of_stamp(stamp(NOW - occurred * DAY))}#{arrived}",
            "created_at": stamp(NOW - arrived * DAY),
        }
        engine.client("dynamodb").put_item(TableName="BPEvents", Item=encode_item(attributes))


def test_of_two_writers_at_once_neither_is_lost(store: StretchStore, user: str) -> None:
    asked = []

    def begin(known: Sequence[Stretch]) -> Stretch:
        asked.append(len(known))
        if len(asked) == 1:  # somebody else is faster
            store.find_or_begin(user, lambda _: stretch("b"), NOW)
        return stretch("a", days=len(asked))

    mine = stretch("a", days=2)
    assert store.find_or_begin(user, begin, NOW) == (mine, (stretch("b"), mine))
    assert asked == [0, 1]
    asked[:] = [0, 1]  # now there is an item, and nobody is faster
    assert [each.owner for each in store.find_or_begin(user, begin, NOW)[1]] == ["b", "a", "a"]


def test_what_is_known_is_not_written_again_and_what_is_over_a_year_old_goes(
    store: StretchStore, user: str
) -> None:
    old = stretch("a", until=NOW - 366 * DAY)
    store.find_or_begin(user, lambda _: old, NOW - 366 * DAY)
    assert store.find_or_begin(user, lambda known: known[0], NOW) == (old, (old,))
    store.find_or_begin(user, lambda _: stretch("a"), NOW)
    assert store.find_or_begin(user, lambda known: known[0], NOW)[1] == (stretch("a"),)


def test_contacts_are_when_events_arrived_and_not_when_they_occurred(
    store: StretchStore, engine: Engine, user: str
) -> None:
    sent(engine, user, (8, 8), (6, 6), (6.1, 3.6), (1, 0.5))
    found = store.contacts(user, NOW - 9 * DAY, NOW)
    assert {round((NOW - each) / DAY, 1) for each in found} >= {3.6, 0.5}
    assert store.contacts(user, NOW - 0.4 * DAY, NOW) == []


def test_what_was_sent_before_the_receipt_is_no_contact(
    store: StretchStore, engine: Engine, user: str
) -> None:
    sent(engine, user, (8, 8), (7.5, 7.2))
    assert store.contacts(user, NOW - 7 * DAY, NOW) == []
    assert len(store.contacts(user, NOW - 7.3 * DAY, NOW)) == 1


def test_of_very_many_events_the_oldest_that_was_looked_at_ends_the_search(
    store: StretchStore, engine: Engine, user: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stretch_store, "EVENTS_READ_MAX", 3)
    sent(engine, user, *((each, 0.1) for each in (4, 5, 6, 7)))  # all were imported late
    assert store.contacts(user, NOW - 9 * DAY, NOW) == [NOW - 6 * DAY]
