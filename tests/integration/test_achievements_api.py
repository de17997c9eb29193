"""Achievements through the real handlers: dated by event time, of history or not, kept and counted anew."""

import copy
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from adapters.book_store import shipped_document
from adapters.engagement import achievements as achievement_reader
from adapters.engagement.account_items import ACHIEVEMENTS
from adapters.engagement.ledger_store import LedgerStore
from adapters.platform.items import encode_item
from ingest.engagement.points import balance
from rules.user_ids import kept_partition
from tests.support.moved_site import KEYS, Move, event, published, send
from tests.support.site import Site

MONDAY = datetime(2026, 3, 2, 12, tzinfo=UTC)
DAY = timedelta(days=1)
THREE = {
    "five": {
        "all": [{"count": "WORKOUT_COMPLETED", "at_least": 5}],
        "history": True,
        "title": "Five workouts",
    },
    "later": {"all": [{"count": "WORKOUT_COMPLETED", "at_least": 1}]},
    "regular": {
        "any": [{"streak": "weeks", "at_least": 2}, {"points_earned": 10_000}],
        "history": True,
        "withdrawn": "when_untrue",
    },
}


@pytest.fixture
def at(api: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[Move]:
    """A site at another time. The book has achievements since 16 March 2026, and the streak since the 1st."""
    first: Any = copy.deepcopy(shipped_document())
    first["streaks"] = {"weeks": {"per": "week", "needs": {"active_days": 2}}}
    del first["achievements"]
    with published(api, first, datetime(2026, 3, 1, tzinfo=UTC), monkeypatch) as move:
        second = first | {"achievements": THREE}
        body = {"book": second, "effective": "2026-03-16T00:00:00Z"}
        assert api.admin("POST", "/v1/rules", body)[0] == 201
        yield move


def achievements(api: Site, user: str) -> dict[str, Any]:
    status, told = api.call(user, "GET", f"/v1/users/{user}/achievements")
    assert status == 200, told
    return {each["name"]: each for each in told["achievements"]}


def workouts(*days: int) -> list[dict[str, Any]]:
    return [event("WORKOUT_COMPLETED", MONDAY + day * DAY) for day in days]


def test_they_are_dated_by_event_time_in_any_order(api: Site, at: Move) -> None:
    user = f"badge{next(KEYS)}-{id(at)}"
    at(MONDAY + 13 * DAY)
    send(api, user, *workouts(9, 1, 0, 3))
    assert achievements(api, user) == {}, "the book in force declares none yet"
    at(MONDAY + 15 * DAY)
    found = achievements(api, user)
    assert {name: each["achieved"] for name, each in found.items()} == dict.fromkeys(THREE, False)
    assert found["five"]["conditions"] == [
        {"counts": "count", "event_type": "WORKOUT_COMPLETED", "needs": 5, "have": 4}
    ]
    send(api, user, *workouts(8, 15))
    found = achievements(api, user)
    assert found["five"]["achieved_at"] == "2026-03-11T12:00:00.000000Z"
    assert found["regular"]["achieved_at"] == "2026-03-11T12:00:00.000000Z", (
        "the second day of the second week"
    )
    assert found["later"]["achieved_at"] == "2026-03-17T12:00:00.000000Z", (
        "the first event since it is declared"
    )
    assert found["five"]["title"] == "Five workouts"


def test_what_is_kept_is_counted_anew_after_a_backfill(api: Site, at: Move) -> None:
    user = f"badge{next(KEYS)}-{id(at)}"
    at(MONDAY + 60 * DAY)
    send(api, user, *workouts(0, 10, 20, 30))
    assert not achievements(api, user)["five"]["achieved"]
    send(api, user, *workouts(40, 59))
    assert achievements(api, user)["five"]["achieved_at"] == "2026-04-11T12:00:00.000000Z"
    key = encode_item({"user_id": kept_partition(user), "activity_date": ACHIEVEMENTS})
    dynamodb = api.engine.client("dynamodb")
    assert len(dynamodb.get_item(TableName="DailyActivity", Key=key)["Item"]["packed"]["B"]) < 500
    at(MONDAY + 61 * DAY)
    send(api, user, *workouts(5))
    after = achievements(api, user)
    assert after["five"]["achieved_at"] == "2026-04-01T12:00:00.000000Z"
    dynamodb.delete_item(TableName="DailyActivity", Key=key)
    assert achievements(api, user) == after


def test_nobody_has_those_of_the_shipped_book_before_an_answer(api: Site) -> None:
    told = achievements(api, f"badge{next(KEYS)}")
    assert set(told) == set(shipped_document()["achievements"])
    assert not any(each["achieved"] for each in told.values())


def test_who_has_more_entries_than_a_request_reads_is_told_so(
    api: Site, at: Move, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = f"badge{next(KEYS)}-{id(at)}"
    at(MONDAY + 60 * DAY)
    send(api, user, *workouts(55, 56, 57, 58))
    reads, after = [], LedgerStore.after

    def counted(*args: Any, **more: Any) -> Any:
        reads.append(args)
        return after(*args, **more)

    monkeypatch.setattr(LedgerStore, "after", counted)
    monkeypatch.setattr(achievement_reader, "ALL_ENTRIES_MAX", 2)
    status, told = api.call(user, "GET", f"/v1/users/{user}/achievements")
    assert (status, told["error"]["code"]) == (422, "too_many_entries")
    assert not reads, "their numbers say that they are too many"
    monkeypatch.setattr(achievement_reader, "ALL_ENTRIES_MAX", 50_000)
    send(api, user, *workouts(45, 46))
    assert achievements(api, user)["five"]["achieved"]
    monkeypatch.setattr(balance, "ENTRIES_MAX", 2)
    status, told = api.call(
        user, "GET", f"/v1/users/{user}/balance?as_of={(MONDAY + 57 * DAY).date()}T00:00:00Z"
    )
    assert (status, told["error"]["details"][0]["field"]) == (422, "as_of")
    assert "must be left out for now" in told["error"]["message"], "the present week has too many, too"
    reads.clear()
    status, told = api.call(
        user, "GET", f"/v1/users/{user}/balance?as_of={(MONDAY + 46 * DAY).date()}T00:00:00Z"
    )
    assert (status, told["error"]["details"][0]["field"], reads) == (422, "as_of", [])
    at(MONDAY + 67 * DAY)
    path = f"/v1/users/{user}/balance?as_of={(MONDAY + 46 * DAY).date()}T00:00:00Z"
    assert "must be of a later week" in api.call(user, "GET", path)[1]["error"]["message"]
    assert (
        api.call(user, "GET", f"/v1/users/{user}/balance?as_of={(MONDAY + 66 * DAY).date()}T00:00:00Z")[0]
        == 200
    )
