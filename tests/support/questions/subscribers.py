"""Subscribers for tests: a table of their own, filled as registrations would fill it."""

import threading
import uuid
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import pytest

from adapters.platform.items import encode_item
from adapters.platform.tables import put_all
from adapters.questions.announcements import AnnouncementPage, Announcements, Position
from adapters.questions.push import PushReceipt, PushStatus, SnsPush
from adapters.questions.question_store import QuestionStore
from adapters.questions.subscription_store import SubscriptionStore, items_of
from processors.questions import fan_out, reminders
from processors.questions.fan_out import Notifier, logger
from processors.questions.messages import MessageOutcome, Sender
from rules.days import stamp
from rules.questions.notifications import LISTENER_SHARDS, PushMessage, Subscription
from rules.questions.questions import KEPT, Question, to_item
from tests.support.dynamodb_engine import table_definition
from tests.support.engine import Engine
from tests.support.questions.asking import asked

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)


class Phones(SnsPush):
    """A Push that remembers. dead: tokens that the push service knows no more (only a message finds out).

    It keeps the contract of tests/integration/questions/test_push.py, as SnsPush does.
    """

    def __init__(self, dead: frozenset[str] = frozenset(), away: bool = False) -> None:
        self.dead, self.away = dead, away
        self.endpoints: dict[str, str] = {}
        self.got: Counter[str] = Counter()
        self.messages: list[tuple[str, PushMessage]] = []
        self.tried: Counter[str] = Counter()
        self._made, self._lock = 0, threading.Lock()

    def prepare(self, token: str) -> PushReceipt:
        if self.away:
            return PushReceipt(PushStatus.UNSENT)
        with self._lock:
            known = [arn for arn, owner in self.endpoints.items() if owner == token]
            if known:
                return PushReceipt(PushStatus.SENT, known[0])
            self._made += 1
            self.endpoints[f"arn:phone/{self._made}"] = token
            return PushReceipt(PushStatus.SENT, f"arn:phone/{self._made}")

    def send(self, endpoint: str, token: str, message: PushMessage) -> PushReceipt:
        if self.away:
            return PushReceipt(PushStatus.UNSENT, endpoint)
        with self._lock:
            self.tried[token] += 1
            if endpoint in self.endpoints and token in self.dead:
                return PushReceipt(PushStatus.DEAD, endpoint)
            if endpoint in self.endpoints:
                self.got[token] += 1
                self.messages.append((token, message))
                return PushReceipt(PushStatus.SENT, endpoint)
        return self.send(self.prepare(token).endpoint, token, message)

    def forget(self, endpoint: str) -> None:
        with self._lock:
            self.endpoints.pop(endpoint, None)


@dataclass
class World:
    """A table of questions and one of subscriptions, and phones."""

    dynamodb: Any
    questions: str
    subscriptions: str
    phones: Phones = field(default_factory=Phones)
    now: datetime = NOW  # what the clock says

    def store(self, dynamodb: Any = None) -> SubscriptionStore:
        return SubscriptionStore(dynamodb or self.dynamodb, self.subscriptions)

    def notifier(self, dynamodb: Any = None) -> Notifier:
        client = dynamodb or self.dynamodb
        announcements = Announcements(self.store(client))
        sender = Sender(announcements.claims, self.phones, logger)
        return Notifier(QuestionStore(client, self.questions), announcements, sender)

    def announce(self, asked: dict[str, Any], notifier: Notifier | None = None) -> Counter[MessageOutcome]:
        """Tell everybody, page after page, as the queue would; a page that is to come again is left there."""
        told: Counter[MessageOutcome] = Counter()
        for shard in range(LISTENER_SHARDS):
            page: AnnouncementPage | None = AnnouncementPage(
                asked["dynamodb"]["Keys"]["question_id"]["S"], shard
            )
            while page:
                some, page = (notifier or self.notifier()).tell_page(page)
                told += some
                if some[MessageOutcome.AGAIN]:
                    break
        return told

    def listeners(self, tags: Collection[str], dynamodb: Any = None, size: int = 100) -> list[Subscription]:
        """All that the pages hold."""
        announcements, found = self.notifier(dynamodb).announcements, list[Subscription]()
        for shard in range(LISTENER_SHARDS):
            after: Position | None = None
            while after is None or after:
                some, after = announcements.page(tags, shard, after, size, NOW)
                found += some
        return found

    def fill(self, subscriptions: Iterable[Subscription]) -> None:
        """Fill as registrations would, but for whose phone it is."""
        stored = [each for some in subscriptions for each in items_of(some, NOW).values() if "active" in each]
        put_all(self.dynamodb, self.subscriptions, stored)

    def ask(self, **more: Any) -> dict[str, Any]:
        """Store a question; returns its stream record."""
        attributes = to_item(question(**more))
        self.dynamodb.put_item(TableName=self.questions, Item=encode_item(attributes))
        return record(attributes)

    def scan(self) -> dict[str, Any]:
        found = self.dynamodb.scan(TableName=self.subscriptions, ConsistentRead=True)["Items"]
        return {each["subscription_id"]["S"]: each for each in found}


def record(attributes: dict[str, Any]) -> dict[str, Any]:
    return {
        "eventName": "INSERT",
        "eventSourceARN": "arn:aws:dynamodb:eu-west-1:1:table/Questions/stream/2026-01-01T00:00:00.000",
        "dynamodb": {
            "Keys": encode_item({"question_id": attributes.get("question_id", "?")}),
            "NewImage": encode_item(attributes),
            "SequenceNumber": "1",
        },
    }


def question(**more: Any) -> Question:
    """A question for everybody, that closes an hour from NOW, or as changed."""
    closes = more.pop("closes", NOW + timedelta(hours=1))
    text = asked(type="text", options=None, closes_at=None)
    times = {
        "created_at": stamp(NOW),
        "closes_at": stamp(closes),
        "expires_at": int((closes + KEPT).timestamp()),
    }
    return replace(text, **{"question_id": str(uuid.uuid4()), **times, **more})


def subscriber(number: int, **more: Any) -> Subscription:
    own, created = str(uuid.UUID(int=number)), stamp(NOW)
    made = Subscription(own, f"u{number}", f"t{number}", (), 0, "UTC", None, False, created, created)
    return replace(made, **more)


@cache
def _definition(logical: str) -> dict[str, Any]:
    return table_definition(logical, logical)


@contextmanager
def world(engine: Engine) -> Iterator[World]:
    """Tables of its own, gone afterwards, under a clock of its own; messages are sent one after the other."""
    dynamodb, suffix = engine.client("dynamodb"), uuid.uuid4().hex[:8]
    names = {logical: f"{logical}-{suffix}" for logical in ("Questions", "Subscriptions")}
    for logical, name in names.items():
        dynamodb.create_table(**{**_definition(logical), "TableName": name})
    made = World(dynamodb, names["Questions"], names["Subscriptions"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("adapters.clock.now", lambda: made.now)
        for module in (fan_out, reminders):
            patch.setattr(module, "WRITERS", 1)
        yield made
    for name in names.values():
        dynamodb.delete_table(TableName=name)
