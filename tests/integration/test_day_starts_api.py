"""A day that starts at three, through the real handlers: dates, caps, today, and what explanation and calendar say."""

import copy
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from adapters.book_store import shipped_document
from tests.support.memory import forget
from tests.support.moved_site import KEYS, Move, event, published, send
from tests.support.site import Site

FRIDAY = datetime(2026, 3, 6, 12, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def book(**daily: Any) -> dict[str, Any]:
    document = copy.deepcopy(shipped_document())
    document["daily"] = daily
    return document


@pytest.fixture
def at_three(api: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[Move]:
    document = book(day_starts_at="03:00")
    with published(api, document, datetime(2026, 3, 1, tzinfo=UTC), monkeypatch) as move:
        yield move


def told(api: Site, user: str, path: str = "") -> Any:
    status, answer = api.call(user, "GET", f"/v1/users/{user}{path}")
    assert status == 200, answer
    return answer


def test_half_past_two_belongs_to_the_date_before(api: Site, at_three: Move) -> None:
    user = f"owl{next(KEYS)}"
    night = datetime(2026, 3, 7, 2, 30, tzinfo=UTC)
    at_three(FRIDAY)
    send(api, user, event("CHECK_IN", FRIDAY))
    at_three(night)
    shown = told(api, user)
    assert (shown["as_of"], shown["streak_status"]) == ("2026-03-06", "active")
    assert shown["day_starts_at"] == "03:00"
    send(api, user, event("CHECK_IN", night))
    assert told(api, user)["current_streak"] == 1, "the same date"
    at_three(night + HOUR)
    shown = told(api, user)
    assert (shown["as_of"], shown["streak_status"]) == ("2026-03-07", "at_risk")
    send(api, user, event("CHECK_IN", night + HOUR))
    assert told(api, user)["current_streak"] == 2
    why = told(api, user, "/streak/explain?date=2026-03-06")
    assert (why["events_count"], why["reason"], why["day_starts_at"]) == (2, "counted", "03:00")
    active = [each["activity_date"] for each in told(api, user, "/activity")["activity"]]
    assert active == ["2026-03-07", "2026-03-06"]


def test_a_late_event_of_the_night_has_the_date_that_it_would_have_had(api: Site, at_three: Move) -> None:
    user = f"owl{next(KEYS)}"
    at_three(FRIDAY + 2 * DAY)
    send(api, user, event("CHECK_IN", FRIDAY + 2 * DAY))
    send(api, user, event("CHECK_IN", datetime(2026, 3, 8, 1, tzinfo=UTC)))  # the 7th
    send(api, user, event("CHECK_IN", datetime(2026, 3, 7, 2, 59, tzinfo=UTC)))  # the 6th
    assert told(api, user)["current_streak"] == 3


def test_a_streak_lapses_at_three(api: Site, at_three: Move) -> None:
    user = f"owl{next(KEYS)}"
    at_three(FRIDAY)
    send(api, user, event("CHECK_IN", FRIDAY))
    at_three(datetime(2026, 3, 8, 2, 59, tzinfo=UTC))
    assert told(api, user)["streak_status"] == "at_risk"
    at_three(datetime(2026, 3, 8, 3, tzinfo=UTC))
    assert told(api, user)["streak_status"] == "broken"


def test_who_comes_every_night_misses_nothing_when_the_start_moves(api: Site, at_three: Move) -> None:
    user = f"owl{next(KEYS)}"
    nights = [datetime(2026, 3, day, 2, 30, tzinfo=UTC) for day in (5, 6, 7)]
    at_three(nights[0])
    send(api, user, event("CHECK_IN", nights[0]))
    at_three(nights[1] - 3 * HOUR)
    status, answer = api.admin("POST", "/v1/rules", {"book": shipped_document(), "effective": "now"})
    assert status == 201, answer
    forget()
    for night in nights[1:]:
        at_three(night)
        send(api, user, event("CHECK_IN", night))
    active = [each["activity_date"] for each in told(api, user, "/activity")["activity"]]
    assert active == ["2026-03-07", "2026-03-05", "2026-03-04"]
    shown = told(api, user)
    assert (shown["current_streak"], shown["day_starts_at"], shown["as_of"]) == (3, "00:00", "2026-03-07")
    why = told(api, user, "/streak/explain?date=2026-03-06")
    assert (why["reason"], why["day_starts_at"]) == ("short_date", "03:00")
    covered = told(api, user, "/activity?covered=true&from=2026-03-04&to=2026-03-07")["covered"]
    assert covered == [{"date": "2026-03-06", "reason": "short_date"}]


def test_a_start_is_refused_that_is_none(api: Site) -> None:
    for wrong in ("3:00", "06:01", "24:00", "03:00:00", "03:60", 180, "noon"):
        body = {"book": book(day_starts_at=wrong), "effective": "2030-01-01T00:00:00Z"}
        status, answer = api.admin("POST", "/v1/rules", body)
        assert status == 422, (wrong, answer)
        (fault,) = answer["error"]["details"]
        assert "day_starts_at" in fault["field"]
        assert "06:00" in fault["reason"]
