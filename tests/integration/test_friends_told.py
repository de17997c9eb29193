"""What the customer's systems are told of friends, by the real functions and the table's stream (rules 18 and 26)."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from standardwebhooks import Webhook

import processors.outgoing.notifications as telling
from adapters import settings
from adapters.engagement.friend_store import FriendStore
from adapters.outgoing.outbox_store import LOG, log_from
from adapters.privacy.erasers import Clients
from adapters.privacy.stores import ErasureSettings, all_stores
from local.cloud.streams import matches
from rules.engagement.friends import Circle, Consent, Ties, befriend, block, part
from rules.privacy.erasures import Person
from tests.integration.test_endpoints_api import CONTEXT, Desk, desk, there
from tests.support.engine import Engine
from tests.support.hook_receiver import Receiver
from tests.support.message_schema import problems
from tests.support.pipeline import Stream
from tests.support.template import resources

__all__ = ["desk", "there"]
NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
FILTERS = resources("AWS::Lambda::EventSourceMapping")["TellFriendsMapping"]["Properties"]["FilterCriteria"]
PATTERNS = [json.loads(each["Pattern"]) for each in FILTERS["Filters"]]


@dataclass
class Told:
    """Users who act, and what an endpoint hears of it."""

    desk: Desk
    there: Receiver
    stream: Stream
    secret: str
    now: datetime = NOW

    def change(self, one: str, other: str, decide: Callable[[Circle, Circle], Ties]) -> list[dict[str, Any]]:
        """Let a user do something, and return what the endpoint hears; each record comes twice."""
        self.now += timedelta(minutes=1)
        FriendStore(self.desk.dynamodb, "Friends").change(one, other, decide, self.now)
        records = [each for each in self.stream.read() if any(matches(p, each) for p in PATTERNS)]
        handed = [each for each in records for _ in range(2)]
        assert telling.handler({"Records": handed}, CONTEXT) == {"batchItemFailures": []}
        assert [problems(body) for _, body in self.there.received] == [[]] * len(self.there.received)
        found = [Webhook(self.secret).verify(body, headers) for headers, body in self.there.received]
        self.there.received.clear()
        return found

    def consent(self, one: str, other: str) -> list[dict[str, Any]]:
        consent = Consent(self.now, 50, uuid4().hex)
        return self.change(one, other, lambda mine, theirs: befriend(mine, theirs, consent))

    def part(self, one: str, other: str) -> list[dict[str, Any]]:
        return self.change(one, other, lambda mine, theirs: part(mine, theirs, self.now))

    def block(self, one: str, other: str) -> list[dict[str, Any]]:
        return self.change(one, other, lambda mine, theirs: block(mine, theirs, self.now))


@pytest.fixture
def told(engine: Engine, desk: Desk, there: Receiver, monkeypatch: pytest.MonkeyPatch) -> Iterator[Told]:
    monkeypatch.setattr("adapters.outgoing.endpoint_store.FRESH_SECONDS", -1.0)
    stream = Stream(engine, "Friends")
    while stream.read():
        pass
    yield Told(desk, there, stream, desk.register(there)["secret"])


def people(*names: str) -> list[str]:
    run = uuid4().hex[:8]
    return [f"{name}-{run}" for name in names]


def heard(messages: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    return sorted((each["type"], each["data"]["user_id"], each["data"]["friend_id"]) for each in messages)


def test_a_request_is_told_to_who_may_answer_and_a_pair_to_both(told: Told) -> None:
    ann, bob = people("ann", "bob")
    assert heard(told.consent(ann, bob)) == [("friend.requested", bob, ann)]
    assert heard(told.consent(bob, ann)) == [("friend.added", ann, bob), ("friend.added", bob, ann)]
    messages = told.part(ann, bob)
    assert heard(messages) == [("friend.ended", ann, bob), ("friend.ended", bob, ann)]
    assert {each["data"]["number"] for each in messages if each["data"]["user_id"] == ann} == {2}
    assert {each["data"]["number"] for each in messages if each["data"]["user_id"] == bob} == {3}


def test_a_request_that_is_declined_or_taken_back_tells_nobody(told: Told) -> None:
    ann, bob = people("ann", "bob")
    for who, other in ((ann, bob), (bob, ann)):
        told.consent(ann, bob)
        assert told.part(who, other) == []


def test_a_block_reads_like_a_parting_and_later_requests_tell_nobody(told: Told) -> None:
    ann, bob, cem = people("ann", "bob", "cem")
    for other in (bob, cem):
        told.consent(ann, other)
        told.consent(other, ann)
    ends = [*told.part(ann, cem), *told.block(ann, bob)]
    of_cem, of_bob = (next(each["data"] for each in ends if each["data"]["user_id"] == u) for u in (cem, bob))
    assert of_cem.keys() == of_bob.keys() == {"user_id", "number", "friend_id", "ended_at"}
    assert (of_cem["friend_id"], of_bob["friend_id"]) == (ann, ann)
    assert of_cem["number"] == of_bob["number"]
    assert told.consent(bob, ann) == []
    assert told.part(bob, ann) == []


def test_a_block_of_a_stranger_tells_nobody(told: Told) -> None:
    ann, bob = people("ann", "bob")
    assert told.block(ann, bob) == []
    assert told.consent(bob, ann) == []


@pytest.mark.parametrize("place", [0, 1])
def test_an_erasure_finds_the_notifications_of_friends_that_name_the_user(told: Told, place: int) -> None:
    pair = ann, bob = people("ann", "bob")
    told.consent(ann, bob)
    told.consent(bob, ann)
    told.part(ann, bob)
    clients = Clients(told.desk.dynamodb, lambda: None, lambda: None)
    notices = all_stores(clients, settings.read_settings(ErasureSettings), NOW)["Notifications"]
    person = Person("digest", pair[place])
    assert pair[place] in everything(told)
    notices.remove(notices.find(person))
    assert pair[place] not in everything(told)
    assert notices.find(person) == []


def everything(told: Told) -> str:
    """All that Notifications has, unpacked."""
    items = told.desk.dynamodb.scan(TableName="Notifications")["Items"]
    logs = [log_from(each) for each in items if each["place"]["S"].startswith(LOG)]
    return f"{items} {logs}"
