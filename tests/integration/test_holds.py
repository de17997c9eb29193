"""Holds through the real handlers on a real engine (rule 11)."""

from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest

from adapters import clock
from tests.support.site import ADMIN, FULFILMENT, PRODUCERS, Site

NUMBERS = count()


def rich(api: Site, user: str, lessons: int) -> None:
    """10 points a lesson."""
    at = datetime.now(UTC).isoformat()
    lesson = {"event_type": "LESSON_COMPLETED", "occurred_at": at}
    api.send(user, *[{"idempotency_key": f"k{next(NUMBERS)}", **lesson} for _ in range(lessons)])


def hold(api: Site, user: str, points: int, key: str, **more: Any) -> tuple[int, Any]:
    body = {"points": points, "reward_id": "mug", "idempotency_key": key, **more}
    return api.call("desk", "POST", f"/v1/users/{user}/holds", body, FULFILMENT)


def end(api: Site, user: str, told: Any, how: str, body: Any = None) -> tuple[int, Any]:
    path = f"/v1/users/{user}/holds/{told['hold_id']}/{how}"
    return api.call("desk", "POST", path, body, FULFILMENT)


def balance(api: Site, user: str) -> tuple[int, int, int]:
    status, told = api.call(user, "GET", f"/v1/users/{user}/balance")
    assert status == 200
    assert told["held"] == sum(each["points"] for each in told["holds"])
    return told["balance"], told["held"], told["available"]


def redeem(api: Site, user: str, points: int, key: str) -> tuple[int, Any]:
    body = {"points": points, "reward_id": "mug", "idempotency_key": key}
    return api.call("desk", "POST", f"/v1/users/{user}/redemptions", body, FULFILMENT)


def code(told: tuple[int, Any]) -> tuple[int, str]:
    return told[0], told[1]["error"]["code"]


def test_what_is_held_cannot_be_spent_or_held_again(api: Site, user: str) -> None:
    rich(api, user, 10)
    status, held = hold(api, user, 70, "h")
    assert (status, held["status"], held["points"]) == (201, "held", 70)
    assert balance(api, user) == (100, 70, 30)
    assert code(redeem(api, user, 31, "r")) == (409, "insufficient_balance")
    assert code(hold(api, user, 31, "h2")) == (409, "insufficient_balance")
    assert code(api.call(user, "POST", f"/v1/users/{user}/redemptions", {})) == (422, "invalid_field")
    assert redeem(api, user, 30, "r")[0] == 201
    assert balance(api, user) == (70, 70, 0)


def test_a_hold_is_a_setting_in_the_ledger_until_it_is_captured(api: Site, user: str) -> None:
    rich(api, user, 10)
    _, held = hold(api, user, 70, "h")
    assert len(api.call(user, "GET", f"/v1/users/{user}/ledger")[1]["entries"]) == 12
    status, entry = end(api, user, held, "capture", {"points": 60})
    assert (status, entry["kind"], entry["points"], entry["balance"]) == (201, "REDEEM", -60, 40)
    assert balance(api, user) == (40, 0, 40)


def test_each_attempt_gets_the_same_answer(api: Site, user: str) -> None:
    rich(api, user, 10)
    first, again = hold(api, user, 40, "h")[1], hold(api, user, 40, "h")[1]
    assert again == first | {"duplicate": True}
    assert balance(api, user) == (100, 40, 60)
    assert code(hold(api, user, 41, "h")) == (409, "conflict")
    captured, once_more = end(api, user, first, "capture")[1], end(api, user, first, "capture")[1]
    assert once_more == captured | {"duplicate": True}
    assert code(end(api, user, first, "capture", {"points": 39})) == (409, "hold_ended")
    assert hold(api, user, 40, "h")[1] == first | {"duplicate": True, "status": "captured"}
    assert code(hold(api, user, 41, "h")) == (409, "conflict")
    assert code(end(api, user, first, "release")) == (409, "hold_ended")
    assert balance(api, user) == (60, 0, 60)


def test_a_released_hold_is_never_captured(api: Site, user: str) -> None:
    rich(api, user, 10)
    held = hold(api, user, 40, "h")[1]
    assert end(api, user, held, "release")[1]["status"] == "released"
    assert end(api, user, held, "release")[1] == held | {"status": "released", "duplicate": True}
    assert code(end(api, user, held, "capture")) == (409, "hold_ended")
    assert hold(api, user, 40, "h")[1]["status"] == "released"
    assert balance(api, user) == (100, 0, 100)


def test_a_hold_lapses_by_itself(api: Site, user: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rich(api, user, 10)
    held = hold(api, user, 40, "h", seconds=60)[1]
    later = datetime.now(UTC) + timedelta(seconds=61)
    monkeypatch.setattr(clock, "now", lambda: later)
    assert balance(api, user) == (100, 0, 100)
    assert code(end(api, user, held, "capture")) == (409, "hold_ended")
    assert hold(api, user, 40, "h", seconds=60)[1]["status"] == "lapsed"
    assert redeem(api, user, 100, "r")[0] == 201
    rich(api, user, 5)
    assert hold(api, user, 50, "h2")[0] == 201
    assert hold(api, user, 40, "h", seconds=60)[1]["status"] == "lapsed"
    assert code(end(api, user, held, "capture")) == (409, "hold_ended")
    assert end(api, user, held, "release")[1]["status"] == "lapsed"


def test_six_holds_are_one_too_many_and_more_than_is_held_is_not_captured(api: Site, user: str) -> None:
    rich(api, user, 20)
    told = [hold(api, user, 10, f"h{number}") for number in range(6)]
    assert [status for status, _ in told] == [201] * 5 + [409]
    assert code(told[-1]) == (409, "holds_max")
    assert code(end(api, user, told[0][1], "capture", {"points": 11})) == (422, "invalid_field")
    assert balance(api, user) == (200, 50, 150)


def test_who_may_do_what(api: Site, user: str) -> None:
    rich(api, user, 10)
    body = {"points": 1, "reward_id": "mug", "idempotency_key": "h"}
    for who in (user, "stranger"):
        for groups in ((), (PRODUCERS,)):
            assert api.call(who, "POST", f"/v1/users/{user}/holds", body, *groups)[0] == 403
    for groups in ((), (PRODUCERS,), (FULFILMENT,)):
        assert api.call("stranger", "GET", f"/v1/users/{user}/balance", None, *groups)[0] == 403
    held = hold(api, user, 10, "h")[1]
    for how in ("capture", "release"):
        path = f"/v1/users/{user}/holds/{held['hold_id']}/{how}"
        assert api.call(user, "POST", path)[0] == 403
        missing = path.replace(held["hold_id"], "00000000-0000-5000-8000-000000000000")
        assert code(api.call("desk", "POST", missing, None, ADMIN)) == (404, "not_found")
    other = f"/v1/users/{user}x/holds/{held['hold_id']}/capture"
    assert code(api.call("desk", "POST", other, None, ADMIN)) == (404, "not_found")


def test_an_account_under_review_holds_and_captures_nothing(api: Site, user: str) -> None:
    rich(api, user, 10)
    held = hold(api, user, 10, "h")[1]
    for zone in ("Asia/Tokyo", "Europe/Berlin", "America/Lima"):
        api.call(user, "PUT", f"/v1/users/{user}/timezone", {"timezone": zone})
    assert code(hold(api, user, 10, "h2")) == (409, "under_review")
    assert code(end(api, user, held, "capture")) == (409, "under_review")
    api.admin("POST", f"/v1/review/{user}/release")
    assert end(api, user, held, "capture")[0] == 201
