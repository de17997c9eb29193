"""Streaks that the book declares through the real handlers: what shows, why, and what reading them costs."""

import copy
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from adapters.book_store import shipped_document
from adapters.engagement.account_items import GOALS
from adapters.platform.items import encode_item
from rules.user_ids import kept_partition
from tests.support.moved_site import KEYS, Move, event, published, send
from tests.support.site import Site

MONDAY = datetime(2026, 3, 2, 12, tzinfo=UTC)
STREAKS = {
    "workouts": {"per": "week", "needs": {"active_days": 3}, "event_types": ["WORKOUT_COMPLETED"]},
    "reading": {
        "per": "month",
        "needs": {"sum": {"property": "minutes", "at_least": 90.5}},
        "event_types": ["READ"],
        "freezes": True,
        "pauses": True,
    },
}


@pytest.fixture
def at(api: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[Move]:
    """A site at another time, with a book that declares two streaks since 1 March 2026."""
    document = copy.deepcopy(shipped_document())
    minutes = {"type": "number", "minimum": 0, "maximum": 600}
    document["event_types"]["READ"] = {"points": 5, "properties": {"properties": {"minutes": minutes}}}
    document["streaks"] = STREAKS
    del document["achievements"]  # they name a streak of the shipped book
    with published(api, document, datetime(2026, 3, 1, tzinfo=UTC), monkeypatch) as move:
        yield move


def streaks(api: Site, user: str, query: str = "") -> dict[str, Any]:
    status, told = api.call(user, "GET", f"/v1/users/{user}/streaks{query}")
    assert status == 200, told
    return {each["name"]: each for each in told["streaks"]}


def test_streaks_show_what_their_periods_need(api: Site, at: Move) -> None:
    user = f"goals{next(KEYS)}-{id(at)}"
    at(MONDAY + timedelta(days=10))
    assert streaks(api, user)["workouts"]["status"] == "none"
    days = [MONDAY + timedelta(days=number) for number in (0, 2, 4, 7, 8)]
    send(api, user, *(event("WORKOUT_COMPLETED", day) for day in days))
    send(api, user, *(event("READ", MONDAY, minutes=each) for each in (30.25, 0.1)))
    found = streaks(api, user)
    assert set(found) == {"daily", "workouts", "reading"}
    workouts, reading = found["workouts"], found["reading"]
    assert (workouts["current_streak"], workouts["status"]) == (1, "at_risk")
    assert workouts["period"] == {
        "first": "2026-03-09",
        "last": "2026-03-15",
        "counts": "active_days",
        "needs": 3,
        "have": 2,
        "missing": 1,
    }
    assert reading["period"]["have"] == 30.35
    assert (reading["period"]["needs"], reading["period"]["missing"]) == (90.5, 60.15)
    send(api, user, event("WORKOUT_COMPLETED", MONDAY + timedelta(days=9)))
    assert streaks(api, user)["workouts"]["current_streak"] == 2
    assert streaks(api, user, "?as_of=2026-03-08")["workouts"]["current_streak"] == 1
    assert streaks(api, user, "?as_of=2026-03-05")["workouts"]["status"] == "none"


def test_why_a_week_counts(api: Site, at: Move) -> None:
    user = f"goals{next(KEYS)}-{id(at)}"
    at(MONDAY + timedelta(days=30))
    send(api, user, *(event("WORKOUT_COMPLETED", MONDAY + timedelta(days=each)) for each in (0, 2, 4, 7)))

    def told(name: str, day: str) -> Any:
        return api.call(user, "GET", f"/v1/users/{user}/streaks/{name}/explain?date={day}")

    week = told("workouts", "2026-03-05")[1]
    assert (week["counts"], week["reason"], week["streak_length"]) == (True, "reached", 1)
    assert [each["date"] for each in week["contributions"]] == ["2026-03-02", "2026-03-04", "2026-03-06"]
    assert week["rules_version"] == 2
    missed = told("workouts", "2026-03-15")[1]
    assert (missed["reason"], missed["streak_length"], missed["period"]["missing"]) == ("missed", 0, 2)
    assert told("workouts", "2026-02-20")[1]["reason"] == "not_asked"
    assert told("reading", "2026-04-01")[1]["reason"] == "not_over_yet"
    assert told("nothing", "2026-04-01")[0] == 404


def test_the_open_week_and_month_count_when_a_streak_is_declared(
    api: Site, at: Move, monkeypatch: pytest.MonkeyPatch
) -> None:
    user, wednesday = f"goals{next(KEYS)}-{id(at)}", MONDAY + timedelta(days=9)
    at(wednesday)
    send(api, user, event("WORKOUT_COMPLETED", MONDAY + timedelta(days=7)))
    document = copy.deepcopy(shipped_document())
    new = {"per": "week", "needs": {"events": 2}, "event_types": ["WORKOUT_COMPLETED"], "freezes": True}
    document["streaks"] = {"new_weekly": new, "new_monthly": new | {"per": "month"}}
    del document["achievements"]

    def told(name: str, day: str) -> Any:
        return api.call(user, "GET", f"/v1/users/{user}/streaks/{name}/explain?date={day}")[1]

    with published(api, document, wednesday, monkeypatch) as move:
        move(wednesday + timedelta(hours=1))
        weekly = streaks(api, user)["new_weekly"]
        assert (weekly["status"], weekly["period"]["have"], weekly["period"]["missing"]) == ("none", 1, 1)
        assert told("new_weekly", "2026-03-11")["reason"] == "not_over_yet"
        send(api, user, event("WORKOUT_COMPLETED", wednesday + timedelta(minutes=5)))
        found = streaks(api, user)
        for name in document["streaks"]:
            assert (found[name]["current_streak"], found[name]["status"]) == (1, "active")
            why = told(name, "2026-03-11")
            assert (why["reason"], why["rules_version"]) == ("reached", 3)
        other = f"{user}-idle"
        move(wednesday + timedelta(days=9))
        send(api, other, event("WORKOUT_COMPLETED", wednesday + timedelta(days=6)))
        idle = api.call(other, "GET", f"/v1/users/{other}/streaks/new_weekly/explain?date=2026-03-11")[1]
        assert (idle["reason"], idle["counts"]) == ("not_asked", False)


def test_what_is_settled_is_read_once_and_a_backfill_of_long_ago_counts(api: Site, at: Move) -> None:
    user = f"goals{next(KEYS)}-{id(at)}"
    weeks = 20
    for number in range(weeks):
        first = MONDAY + timedelta(days=7 * number)
        at(first + timedelta(days=5))
        if number != 4:
            send(api, user, *(event("WORKOUT_COMPLETED", first + timedelta(days=each)) for each in (0, 2, 4)))
    before = streaks(api, user)["workouts"]
    assert (before["current_streak"], before["longest_streak"], before["reached"]) == (15, 15, 19)
    dynamodb = api.engine.client("dynamodb")
    key = encode_item({"user_id": kept_partition(user), "activity_date": GOALS})
    kept = dynamodb.get_item(TableName="DailyActivity", Key=key)["Item"]
    assert len(kept["packed"]["B"]) < 200
    assert streaks(api, user)["workouts"] == before
    late = MONDAY + timedelta(days=28)
    send(api, user, *(event("WORKOUT_COMPLETED", late + timedelta(days=each)) for each in (1, 2, 3)))
    after = streaks(api, user)["workouts"]
    assert (after["current_streak"], after["longest_streak"], after["reached"]) == (20, 20, 20)
    assert dynamodb.get_item(TableName="DailyActivity", Key=key)["Item"] != kept
    dynamodb.delete_item(TableName="DailyActivity", Key=key)
    assert streaks(api, user)["workouts"] == after


def test_the_shipped_book_has_a_streak_of_answers(api: Site) -> None:
    user = f"goals{next(KEYS)}-plain"
    send(api, user, event("CHECK_IN", datetime.now(UTC)))
    told = streaks(api, user)
    assert {name: each["current_streak"] for name, each in told.items()} == {"daily": 1, "answering": 0}
