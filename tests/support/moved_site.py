"""A site at another time, whose processes know a version of the book at once."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from itertools import count
from typing import Any

import pytest

from adapters import book_store
from tests.support.memory import forget
from tests.support.site import PRODUCERS, Site

KEYS = count()
Move = Callable[[datetime], None]


@contextmanager
def published(api: Site, book: dict[str, Any], since: datetime, patch: pytest.MonkeyPatch) -> Iterator[Move]:
    """A book that is in force from an instant on; gives what moves the clocks. Afterwards all versions are gone."""
    patch.setattr(book_store, "FRESH_SECONDS", 0)

    def move(now: datetime) -> None:
        patch.setattr("adapters.clock.now", lambda: now)

    forget()
    move(since - timedelta(seconds=1))
    status, told = api.admin("POST", "/v1/rules", {"book": book, "effective": since.isoformat()})
    assert status == 201, told
    yield move
    dynamodb = api.engine.client("dynamodb")
    for each in dynamodb.scan(TableName="RuleBooks")["Items"]:
        dynamodb.delete_item(TableName="RuleBooks", Key={name: each[name] for name in ("book", "version")})
    forget()


def event(kind: str, occurred: datetime, **properties: Any) -> dict[str, Any]:
    """An event in UTC with properties."""
    said = {"properties": properties} if properties else {}
    named = {"idempotency_key": f"k{next(KEYS)}", "event_type": kind, "timezone": "UTC"}
    return {**named, "occurred_at": occurred.isoformat(), **said}


def send(api: Site, user: str, *events: dict[str, Any]) -> None:
    """Send events as a producer, and let them be applied."""
    told = api.send(user, *events, groups=(PRODUCERS,))
    assert {each["status"] for each in told["results"]} == {"accepted"}, told
