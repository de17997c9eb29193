"""Rest days through the real handlers: the choice, and what profile, explanation and calendar say of them."""

import copy
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from adapters.book_store import shipped_document
from tests.support.moved_site import KEYS, Move, event, published, send
from tests.support.site import Site

FRIDAY = datetime(2026, 3, 6, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def book(daily: dict[str, Any]) -> dict[str, Any]:
    document = copy.deepcopy(shipped_document())
    document["daily"] = daily
    document["streaks"]["checks"] = {
        "per": "day",
        "needs": {"events": 1},
        "event_types": ["CHECK_IN"],
        "rest_days": True,
    }
    return document


@pytest.fixture
def weekends(api: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[Move]:
    daily = {"rest_days": ["saturday", "sunday"]}
    with published(api, book(daily), datetime(2026, 3, 1, tzinfo=UTC), monkeypatch) as move:
        yield move


@pytest.fixture
def chosen(api: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[Move]:
    with published(api, book({"rest_days_chosen": 2}), datetime(2026, 3, 1, tzinfo=UTC), monkeypatch) as move:
        yield move


def profile(api: Site, user: str) -> Any:
    status, told = api.call(user, "GET", f"/v1/users/{user}")
    assert status == 200, told
    return told


def test_a_weekend_is_no_miss(api: Site, weekends: Move) -> None:
    user = f"rest{next(KEYS)}"
    weekends(FRIDAY)
    send(api, user, event("CHECK_IN", FRIDAY))
    weekends(FRIDAY + 2 * DAY)
    shown = profile(api, user)
    assert (shown["current_streak"], shown["streak_status"]) == (1, "active")
    assert shown["rest_days"] == ["saturday", "sunday"]
    weekends(FRIDAY + 3 * DAY)
    assert profile(api, user)["streak_status"] == "at_risk"
    send(api, user, event("CHECK_IN", FRIDAY + 3 * DAY))
    assert profile(api, user)["current_streak"] == 2
    _, told = api.call(user, "GET", f"/v1/users/{user}/streak/explain?date=2026-03-07")
    assert (told["reason"], told["streak_length"]) == ("rest_day", 1)
    span = "covered=true&from=2026-03-06&to=2026-03-09"
    _, told = api.call(user, "GET", f"/v1/users/{user}/activity?{span}")
    assert told["covered"] == [{"date": f"2026-03-0{day}", "reason": "rest_day"} for day in (7, 8)]
    _, told = api.call(user, "GET", f"/v1/users/{user}/streaks")
    lengths = {each["name"]: each["current_streak"] for each in told["streaks"]}
    assert (lengths["daily"], lengths["checks"]) == (2, 2)
    _, told = api.call(user, "GET", f"/v1/users/{user}/streaks/checks/explain?date=2026-03-08")
    assert told["reason"] == "rest_day"


def test_a_user_chooses_once_in_28_days(api: Site, chosen: Move) -> None:
    user = f"rest{next(KEYS)}"
    path = f"/v1/users/{user}/rest-days"
    chosen(FRIDAY)
    send(api, user, event("CHECK_IN", FRIDAY))
    status, told = api.call(user, "PUT", path, {"rest_days": ["friday", "saturday", "sunday"]})
    assert (status, told["error"]["details"][0]["field"]) == (422, "rest_days")
    status, told = api.call(user, "PUT", path, {"rest_days": ["sunday"]})
    assert (status, told) == (200, {"user_id": user, "rest_days": ["sunday"], "from": "2026-03-08"})
    shown = profile(api, user)
    assert (shown["rest_days"], shown["rest_days_chosen"]["from"]) == ([], "2026-03-08")
    chosen(FRIDAY + 26 * DAY)
    status, told = api.call(user, "PUT", path, {"rest_days": ["monday"]})
    again = {"again_at": "2026-04-03T10:00:00.000000Z"}
    assert (status, told["error"]["code"], told["error"]["details"]) == (409, "rest_days_kept", again)
    assert api.call(user, "PUT", path, {"rest_days": ["sunday"]})[0] == 200, "the same again changes nothing"
    chosen(datetime(2026, 4, 3, 10, tzinfo=UTC))
    status, told = api.call(user, "PUT", path, {"rest_days": []})
    assert (status, told["from"]) == (200, "2026-04-05")


def test_without_such_a_book_nobody_chooses(api: Site, weekends: Move) -> None:
    user = f"rest{next(KEYS)}"
    status, told = api.call(user, "PUT", f"/v1/users/{user}/rest-days", {"rest_days": ["sunday"]})
    assert (status, told["error"]["code"]) == (409, "rest_days_not_offered")
