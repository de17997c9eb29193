"""What a user gains by lying, through the real handlers on a real engine: nothing."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import count
from typing import Any

import pytest

from tests.support.engine import Engine
from tests.support.site import ADMIN, FULFILMENT, PRODUCERS, Site, site

NUMBERS = count()


@pytest.fixture(scope="module")
def api(engine: Engine) -> Iterator[Site]:
    with site(engine) as prepared:
        yield prepared


@pytest.fixture
def user() -> str:
    return f"m{time.time_ns()}-{next(NUMBERS)}"


def event(kind: str = "LESSON_COMPLETED", at: str | None = None, **more: Any) -> dict[str, Any]:
    when = at or datetime.now(UTC).isoformat()
    return {"idempotency_key": f"k{next(NUMBERS)}", "event_type": kind, "occurred_at": when, **more}


def rich(api: Site, user: str, lessons: int = 10) -> None:
    """10 points a lesson."""
    api.send(user, *[event() for _ in range(lessons)])


def redeem(api: Site, user: str, points: int, key: str = "r") -> tuple[int, Any]:
    body = {"points": points, "reward_id": "mug", "idempotency_key": key}
    return api.call(user, "POST", f"/v1/users/{user}/redemptions", body)


def test_a_user_reverses_no_redemption_and_fulfilment_and_admins_do(api: Site, user: str) -> None:
    rich(api, user)
    for number, group in enumerate((FULFILMENT, ADMIN)):
        status, entry = redeem(api, user, 100, f"r{number}")
        assert status == 201
        path = f"/v1/users/{user}/redemptions/{entry['entry_id']}/reversal"
        for stranger in ((), (PRODUCERS,), ("streakline/agents",), ("streakline/leads",)):
            assert api.call(user, "POST", path, {}, *stranger)[0] == 403
        assert redeem(api, user, 1, "more")[1]["error"]["code"] == "insufficient_balance"
        assert api.call("desk", "POST", path, {}, group)[0] == 201
        assert api.call("desk", "POST", path, {}, group)[1]["error"]["code"] == "already_reversed"


def test_freezes_for_nothing_end_with_the_month_s_allowance(api: Site, user: str) -> None:
    path = f"/v1/users/{user}/freezes"
    told = [api.call(user, "POST", path, {"idempotency_key": f"f{n}"}) for n in range(4)]
    assert [status for status, _ in told] == [201, 201, 409, 409]
    assert told[2][1]["error"]["code"] == "insufficient_balance"
    rich(api, user)
    status, bought = api.call(user, "POST", path, {})
    assert (status, bought["points"], bought["balance"]) == (201, -100, 0)
    assert api.call(user, "POST", path, {})[1]["error"]["code"] == "insufficient_balance"
    assert api.call(user, "POST", path, {"idempotency_key": "f0"})[1]["duplicate"] is True
    assert api.profile(user)["freezes_available"] == 3


def test_a_returned_free_freeze_does_not_come_back_into_the_allowance(api: Site, user: str) -> None:
    path = f"/v1/users/{user}/freezes"
    for _ in range(2):
        entry = api.call(user, "POST", path, {})[1]["entry_id"]
        reversal = f"/v1/users/{user}/redemptions/{entry}/reversal"
        assert api.call("desk", "POST", reversal, {}, FULFILMENT)[0] == 201
    assert api.call(user, "POST", path, {})[1]["error"]["code"] == "insufficient_balance"


def test_150_freezes_given_and_returned_leave_the_profile_as_small_as_it_was(api: Site, user: str) -> None:
    rich(api, user, 1)
    for _ in range(150):
        status, entry = api.admin("POST", f"/v1/users/{user}/freezes", {})
        assert status == 201
        path = f"/v1/users/{user}/redemptions/{entry['entry_id']}/reversal"
        assert api.admin("POST", path, {})[0] == 201
    stored = api.engine.client("dynamodb").get_item(TableName="UserStreaks", Key={"user_id": {"S": user}})[
        "Item"
    ]
    assert "freezes" not in stored
    assert api.profile(user)["freezes_available"] == 0


def test_purchases_and_invited_friends_are_not_for_a_user_to_declare(api: Site, user: str) -> None:
    for kind in ("PURCHASE_COMPLETED", "FRIEND_INVITED", "QUESTION_ANSWERED"):
        told = api.send(user, event(kind))
        assert told["error"]["code"] == "forbidden"
        mixed = api.send(user, event(kind), event("CHECK_IN"))
        assert mixed["results"][0]["status"] == "rejected"
        assert kind in mixed["results"][0]["error"]["message"]
    assert api.profile(user)["total_bestie_points"] == 5
    api.send("shop", event("PURCHASE_COMPLETED", user_id=user), groups=(PRODUCERS,))
    assert api.profile(user)["total_bestie_points"] == 25
    assert api.call("shop", "GET", f"/v1/users/{user}", None, PRODUCERS)[0] == 403


def test_nine_years_of_pauses_are_refused(api: Site, user: str) -> None:
    taken = 0
    for year in range(2027, 2037):
        for month in (1, 4, 7, 10):
            span = {"first": f"{year}-{month:02}-01", "last": f"{year}-{month + 2:02}-28"}
            taken += api.call(user, "POST", f"/v1/users/{user}/pauses", span)[0] == 201
    assert taken <= 1
