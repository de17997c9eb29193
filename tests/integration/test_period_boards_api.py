"""Boards of a period through the real handlers: from an event to the list, the end, the switch and groups."""

import copy
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from adapters.book_store import shipped_document
from processors import ranks
from tests.support.gateway import ask, token
from tests.support.moved_site import KEYS, Move, event, published, send
from tests.support.site import PRODUCERS, Site

BEGIN = datetime(2026, 11, 20, tzinfo=UTC)
FRIDAY = datetime(2026, 11, 27, 12, tzinfo=UTC)
FINAL = datetime(2026, 12, 3, 12, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.fixture
def boards(api: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[Move]:
    monkeypatch.setattr("adapters.engagement.daily_terms_store.FRESH_SECONDS", 0)
    monkeypatch.setattr("adapters.engagement.boards.FRESH_SECONDS", 0)
    monkeypatch.setattr("adapters.engagement.period_boards.FRESH_SECONDS", 0)
    document = copy.deepcopy(shipped_document())
    document["boards"] = {"weekly": {"per": "week"}, "classes": {"per": "month", "group": "class"}}
    with published(api, document, BEGIN, monkeypatch) as move:
        yield move


def snapshot(now: datetime) -> dict[str, Any]:
    return ranks._parts().build(now)


def asked(api: Site, user: str, path: str) -> Any:
    status, told = api.call(user, "GET", path)
    assert status == 200, told
    return told


def mine(api: Site, user: str, period: str = "2026-W48") -> Any:
    return asked(api, user, f"/v1/boards/weekly/users/{user}?period={period}")


def test_a_user_leaves_the_boards_and_comes_back(api: Site, boards: Move) -> None:
    user = f"eve{next(KEYS)}"
    boards(FRIDAY)
    send(api, user, event("LESSON_COMPLETED", FRIDAY))
    status, told = api.call(user, "PUT", f"/v1/users/{user}/boards", {"hidden": True})
    assert (status, told) == (200, {"user_id": user, "hidden": True, "groups": {}})
    boards(FRIDAY + timedelta(minutes=5))
    snapshot(FRIDAY + timedelta(minutes=5))
    for path in ("/v1/boards/weekly", "/v1/leaderboards/points", "/v1/leaderboards/streaks"):
        assert not any(each["is_me"] for each in asked(api, user, f"{path}?limit=100")["entries"])
        status, told = api.call(user, "GET", f"{path}/users/{user}")
        assert (status, told["error"]["code"]) == (409, "boards_left")
        assert "PUT /v1/users/{user_id}/boards" in told["error"]["message"]
    send(api, user, event("LESSON_COMPLETED", FRIDAY - HOUR))  # the index does not get the streak back
    assert not any(
        each["is_me"] for each in asked(api, user, "/v1/leaderboards/streaks?limit=100")["entries"]
    )
    assert api.call(user, "PUT", f"/v1/users/{user}/boards", {"hidden": False})[0] == 200
    boards(FRIDAY + timedelta(minutes=10))
    snapshot(FRIDAY + timedelta(minutes=10))
    assert mine(api, user)["score"] == 20
    status, told = api.call("other", "PUT", f"/v1/users/{user}/boards", {"hidden": True})
    assert (status, told["error"]["code"]) == (403, "forbidden")


def test_servers_say_who_is_in_which_group(api: Site, boards: Move) -> None:
    ann, bob = f"ann{next(KEYS)}", f"bob{next(KEYS)}"
    boards(datetime(2026, 12, 1, 12, tzinfo=UTC))
    now = datetime(2026, 12, 1, 12, tzinfo=UTC)
    room = f"room {next(KEYS)}"
    for user in (ann, bob):
        send(api, user, event("LESSON_COMPLETED", now))
        status, told = api.call("school", "PUT", f"/v1/users/{user}/groups", {"class": room}, PRODUCERS)
        assert (status, told["groups"]) == (200, {"class": room})
    boards(now + timedelta(minutes=5))
    snapshot(now + timedelta(minutes=5))
    board = asked(api, ann, "/v1/boards/classes")
    assert (board["period"], board["users"], board["group"]) == (
        "2026-12",
        2,
        {"name": "class", "value": room},
    )
    assert [each["rank"] for each in board["entries"]] == [1, 1]
    path = f"/v1/users/{ann}/groups"
    assert api.call(ann, "PUT", path, {"class": "4c"})[1]["error"]["code"] == "forbidden"
    for body, field in (
        ({"hidden": "yes"}, "hidden"),
        ({"Class": "4b"}, "Class"),
        ({"class": ""}, "class"),
        ({"class": 4}, "class"),
        ({"class": "\ud800"}, "class"),
        ({"class": "a\x00b"}, "class"),
        ({f"g{number}": "a" for number in range(6)}, ""),
    ):
        status, told = api.call("school", "PUT", path, body, PRODUCERS)
        assert (status, told["error"]["code"]) == (422, "invalid_field"), told
        assert field in told["error"]["message"]
    for no_value in ("x" * 3000, "%F0%9F%98%80" * 65, "%00", "a%3Bb"):
        status, told = api.call("school", "GET", f"/v1/boards/classes?group={no_value}", None, PRODUCERS)
        assert (status, told["error"]["code"]) == (400, "invalid_parameter"), told
    assert api.call("school", "PUT", path, {}, PRODUCERS)[1]["groups"] == {}
    status, told = api.call(ann, "GET", "/v1/boards/classes")
    assert (status, told["error"]["code"]) == (404, "not_found")


def test_without_boards_the_book_lists_none(api: Site) -> None:
    assert asked(api, "ann", "/v1/boards") == {"boards": []}
    assert api.call("ann", "GET", "/v1/boards/weekly")[0] == 404


# It moves the clocks far ahead, so it is the last: no older snapshot replaces a newer one.
def test_a_week_from_the_first_event_to_the_final_result(api: Site, boards: Move) -> None:
    ann, bob = f"ann{next(KEYS)}", f"bob{next(KEYS)}"
    boards(FRIDAY)
    lessons = [event("LESSON_COMPLETED", FRIDAY - number * HOUR) for number in range(12)]
    send(api, ann, *lessons)
    send(api, bob, event("LESSON_COMPLETED", FRIDAY))
    snapshot(FRIDAY)
    place = mine(api, ann)
    assert (place["score"], place["state"], place["period"]) == (120, "open", "2026-W48")
    assert place["rank"] < mine(api, bob)["rank"]  # others of this week may stand between
    assert [each["score"] for each in place["around"] if each["is_me"]] == [120]
    board = asked(api, ann, "/v1/boards/weekly?limit=3")
    assert (board["period"], board["me"]["score"]) == ("2026-W48", 120)

    late = FINAL - 2 * HOUR  # late, and not too late
    boards(late)
    send(api, bob, event("LESSON_COMPLETED", datetime(2026, 11, 29, 23, tzinfo=UTC)))
    boards(FINAL + HOUR)
    assert "2026-W48" in snapshot(FINAL + HOUR)["closed"]
    place = mine(api, bob)
    assert (place["score"], place["state"]) == (20, "final")
    too_late = event("LESSON_COMPLETED", datetime(2026, 11, 29, 22, tzinfo=UTC))
    send(api, bob, too_late)
    headers = {"authorization": f"Bearer {token(bob, PRODUCERS)}", "prefer": "wait=2"}
    told = ask("POST", "/v1/events", headers, json.dumps({"events": [too_late]}).encode())
    (result,) = json.loads(told.body)["results"]
    assert (told.status, result["points"], result["closed_periods"]) == (200, 10, ["2026-W48"])
    assert mine(api, bob) == place, "a later event earns points, and changes no final result"
    assert api.profile(bob)["total_bestie_points"] == 30
    boards(FINAL + 200 * DAY)
    snapshot(FINAL + 200 * DAY)
    send(api, bob, event("CHECK_IN", FINAL + 200 * DAY))
    assert mine(api, bob)["score"] == 20, "the ledger tells what no profile counts any more"
    listed = asked(api, bob, "/v1/boards")["boards"]
    weekly = next(each for each in listed if each["board"] == "weekly")
    assert ("2026-W48", "final") in [(each["period"], each["state"]) for each in weekly["periods"]]
