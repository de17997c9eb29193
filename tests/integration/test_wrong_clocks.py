"""Phones whose clocks are wrong, through the real handlers on a real engine (rule 16)."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.engine import Engine
from tests.support.site import Site, site

HOUR = timedelta(hours=1)
USERS = iter(f"phone{number}" for number in range(1000))


@pytest.fixture(scope="module")
def api(engine: Engine) -> Iterator[Site]:
    with site(engine) as made:
        yield made


@pytest.fixture
def user() -> str:
    return next(USERS)


def text(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")


def send(api: Site, user: str, wrong: timedelta, **occurred: datetime) -> dict[str, Any]:
    """A batch of a phone whose clock is ahead by `wrong`. occurred: true instants, by key."""
    events = [
        {"idempotency_key": key, "event_type": "CHECK_IN", "occurred_at": text(at + wrong)}
        for key, at in occurred.items()
    ]
    body = {"events": events, "sent_at": text(datetime.now(UTC) + wrong)}
    status, told = api.call(user, "POST", "/v1/events", body)
    assert status == 202, told
    api.settle()
    return told  # type: ignore[no-any-return]


@pytest.mark.parametrize("hours", [-26, -13, -0.2, 0.2, 7, 26])
def test_events_count_on_their_true_dates_and_both_times_are_told(api: Site, user: str, hours: float) -> None:
    noon = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0) - 24 * HOUR
    days = {f"d{ago}": noon - ago * 24 * HOUR for ago in range(2)}
    assert send(api, user, hours * HOUR, **days)["accepted"] == len(days)
    profile = api.profile(user)
    assert (profile["longest_streak"], profile["last_activity_date"]) == (2, str(noon.date()))
    [newest, _] = api.call(user, "GET", f"/v1/users/{user}/events")[1]["events"]
    assert abs(datetime.fromisoformat(newest["occurred_at"]) - noon) < timedelta(minutes=1)
    assert newest["device_time"] == text(noon + hours * HOUR)
    why = api.call(user, "GET", f"/v1/users/{user}/streak/explain?date={noon.date()}")[1]
    assert why["event"]["device_time"] == newest["device_time"]


def test_an_event_that_is_sent_again_by_a_clock_put_right_is_one(api: Site, user: str) -> None:
    at, ahead = datetime.now(UTC) - 30 * HOUR, 5 * HOUR
    first = send(api, user, ahead, a=at)["results"][0]
    body = {"idempotency_key": "a", "event_type": "CHECK_IN", "occurred_at": text(at + ahead)}
    for more in ({}, {"sent_at": text(datetime.now(UTC))}, {"sent_at": text(datetime.now(UTC) + 9 * HOUR)}):
        again = api.call(user, "POST", "/v1/events", {"events": [body], **more})[1]["results"][0]
        assert (again["status"], again["event_id"]) == ("duplicate", first["event_id"])
    api.settle()
    assert len(api.call(user, "GET", f"/v1/users/{user}/events")[1]["events"]) == 1


def test_a_steady_clock_changes_nothing(api: Site, user: str) -> None:
    send(api, user, timedelta(minutes=1), a=datetime.now(UTC) - HOUR)
    [event] = api.call(user, "GET", f"/v1/users/{user}/events")[1]["events"]
    assert "device_time" not in event


@pytest.mark.parametrize("sent_at", ["yesterday", "2026-03-01T12:00:00", "2026-02-30T12:00:00Z"])
def test_an_instant_that_is_none_is_refused_by_name(api: Site, user: str, sent_at: str) -> None:
    event = {"idempotency_key": "a", "event_type": "CHECK_IN", "occurred_at": "2026-03-01T12:00:00Z"}
    status, told = api.call(user, "POST", "/v1/events", {"events": [event], "sent_at": sent_at})
    assert (status, told["error"]["details"][0]["field"]) == (422, "sent_at")


def test_a_corrected_time_gains_no_more_than_72_hours(api: Site, user: str) -> None:
    now = datetime.now(UTC)
    [fine, late] = send(api, user, -50 * HOUR, a=now - 71 * HOUR, b=now - 73 * HOUR)["results"]
    assert (fine["status"], late["error"]["code"]) == ("accepted", "backfill_forbidden")


def test_a_clock_that_jumps_puts_the_account_under_review(api: Site, user: str) -> None:
    for number, ahead in enumerate((1, 25, 49, 73)):
        send(api, user, ahead * HOUR, **{f"k{number}": datetime.now(UTC) - HOUR})
    review = api.admin("GET", "/v1/review")[1]
    [row] = [each for each in review["accounts"] if each["user_id"] == user]
    assert "the clock jumped 3 times in 24 hours" in str(row)
