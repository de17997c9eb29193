"""`Prefer: wait`: the profile has what the account's next write notes, so it is the one that a reader gets."""

import copy
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from adapters.book_store import shipped_document
from tests.support.gateway import ask, token
from tests.support.moved_site import KEYS, event, published, send
from tests.support.site import PRODUCERS, Site

DAY = timedelta(days=1)
MONDAY = datetime(2026, 3, 9, 12, tzinfo=UTC)


def told(api: Site, user: str, *events: dict[str, Any]) -> Any:
    """What a request is answered that waits for events, which are applied; it is the same for a repetition."""
    send(api, user, *events)
    headers = {"authorization": f"Bearer {token(user, PRODUCERS)}", "prefer": "wait=2"}
    body = json.dumps({"events": events}).encode()
    answered = ask("POST", "/v1/events", headers, body)
    assert answered.status == 200
    answer = json.loads(answered.body)
    status, shown = api.call(user, "GET", f"/v1/users/{user}")  # which settles the account
    assert (status, shown) == (200, answer["profile"])
    again = json.loads(ask("POST", "/v1/events", headers, body).body)
    assert (again["profile"], again["new_level"]) == (answer["profile"], answer["new_level"])
    return answer


def test_a_bonus_is_in_the_profile(api: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    book: Any = copy.deepcopy(shipped_document())
    twice = {
        "all": [{"count": "WORKOUT_COMPLETED", "at_least": 2}],
        "points": 500,
        "withdrawn": "when_untrue",
    }
    book["achievements"] = {"twice": twice}
    with published(api, book, MONDAY - 7 * DAY, monkeypatch) as move:
        move(MONDAY)
        user = f"settled{next(KEYS)}"
        answer = told(api, user, *(event("WORKOUT_COMPLETED", MONDAY - day * DAY) for day in (1, 0)))
        assert [each["name"] for each in answer["new_achievements"]] == ["twice"]
        assert (answer["profile"]["balance"], answer["new_level"]["name"]) == (530, "silver")


def test_points_that_have_expired_are_not_in_the_profile(api: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    book: Any = copy.deepcopy(shipped_document()) | {"expiry": {"after_days": 30}}
    with published(api, book, MONDAY - 7 * DAY, monkeypatch) as move:
        move(MONDAY)
        user = f"settled{next(KEYS)}"
        assert told(api, user, event("WORKOUT_COMPLETED", MONDAY))["profile"]["balance"] == 15
        move(MONDAY + 40 * DAY)
        profile = told(api, user, event("WORKOUT_COMPLETED", MONDAY + 40 * DAY))["profile"]
        assert (profile["balance"], profile["total_bestie_points"]) == (15, 30)
