"""What the browser's tests have: a book with everything that the page shows, and people who have earned points."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from adapters.platform.tables import scan_all
from tests.support.engine import Engine
from tests.support.gateway import GROUP_ADMIN, ask, token
from tests.support.memory import forget
from tests.support.rewards import with_rewards
from tests.support.site import PRODUCERS

SCRIPT_TITLE = '<img src=x onerror="alert(1)"> Ten'
KEYS = count()
LONG_SECONDS = 30
BOOK_DAYS = 60  # so long the book is in force: also at the beginning of this week and this month


@contextmanager
def set_aside(engine: Engine, table: str, *key: str) -> Iterator[None]:
    """A table has nothing of other tests, as long as the block runs: their items come back. key: its attributes."""
    dynamodb = engine.client("dynamodb")
    items = list(scan_all(dynamodb, TableName=table))
    for item in items:
        dynamodb.delete_item(TableName=table, Key={name: item[name] for name in key})
    forget()
    try:
        yield
    finally:
        for item in scan_all(dynamodb, TableName=table):
            dynamodb.delete_item(TableName=table, Key={name: item[name] for name in key})
        for item in items:
            dynamodb.put_item(TableName=table, Item=item)
        forget()


@contextmanager
def no_published_book(engine: Engine) -> Iterator[None]:
    """The shipped book alone is in force, as long as the block runs."""
    with set_aside(engine, "RuleBooks", "book", "version"):
        yield


def a_book() -> dict[str, Any]:
    """The shipped book, with rewards, repairs, points that expire, streaks and achievements."""
    made = with_rewards(
        mug={"price_points": 30, "stock": 50, "limit_per_user": 2},
        sticker={"price_points": 10},
        space_flight={"price_points": 1_000_000},
        old_cap={"price_points": 10, "stock": 0},
        gift={"price_points": 5, "title": SCRIPT_TITLE, "description": "<b>Worth</b> 10.\nOr more."},
    )
    return made | {
        "expiry": {"after_days": 90},
        "repairs": {"price_points": 20, "within_days": 3, "dates_max": 2, "a_year": 4},
        "streaks": {
            "workouts": {
                "per": "week",
                "needs": {"events": 3},
                "event_types": ["WORKOUT_COMPLETED"],
            }
        },
        "achievements": {
            "first_answer": made["achievements"]["first_answer"],
            "beginner": {
                "all": [{"count": "LESSON_COMPLETED", "at_least": 1}],
                "history": True,
                "title": "First lesson",
            },
            "ten": {"all": [{"count": "LESSON_COMPLETED", "at_least": 10}], "title": SCRIPT_TITLE},
        },
    }


def call(user: str, method: str, path: str, body: Any = None, *groups: str) -> Any:
    """Ask the API as somebody; returns what it answers."""
    headers = {"authorization": f"Bearer {token(user, *groups)}"}
    answered = ask(method, path, headers, b"" if body is None else json.dumps(body).encode())
    assert answered.status < 300, answered.body
    return json.loads(answered.body)


def publish(book: dict[str, Any], note: str = "", days_ago: int = 0) -> int:
    """Publish a book, in force at once or since some days; returns the number of its version."""
    since = (datetime.now(UTC) - timedelta(days=days_ago)).isoformat() if days_ago else "now"
    body = {"book": book, "effective": since, "note": note, "rerate": days_ago > 0}
    return int(call("root", "POST", "/v1/rules", body, GROUP_ADMIN)["version"])


def earn(user: str, lessons: int, at: str = "") -> None:
    """Give 10 points a lesson, now or at an instant, and wait until they are there."""
    had = call(user, "GET", f"/v1/users/{user}/balance")["balance"]
    at = at or datetime.now(UTC).isoformat()
    sent = [
        {"idempotency_key": f"given{next(KEYS)}", "event_type": "LESSON_COMPLETED", "occurred_at": at}
        | {"user_id": user}
        for _ in range(lessons)
    ]
    call("server", "POST", "/v1/events", {"events": sent}, PRODUCERS)
    until = time.monotonic() + LONG_SECONDS
    while call(user, "GET", f"/v1/users/{user}/balance")["balance"] < had + 10 * lessons:
        assert time.monotonic() < until, f"{user} never got the points"
        time.sleep(0.05)
