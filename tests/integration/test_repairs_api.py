"""Repairs through the real handlers: the offer, the purchase, and what comes back."""

import copy
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from streakline_client import Queueing, Refused, Reply, Request, Streakline

from adapters.book_store import shipped_document
from tests.support.moved_site import KEYS, Move, event, published, send
from tests.support.site import Site

DAY = timedelta(days=1)
FIRST = datetime(2026, 3, 2, 12, tzinfo=UTC)
REPAIRS = {"price_points": 20, "within_days": 3, "dates_max": 2, "a_year": 3}


def book(repairs: dict[str, Any] | None = None) -> dict[str, Any]:
    document = copy.deepcopy(shipped_document())
    if repairs:
        document["repairs"] = repairs
    return document


@pytest.fixture
def move(api: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[Move]:
    with published(api, book(REPAIRS), datetime(2026, 3, 1, tzinfo=UTC), monkeypatch) as moved:
        yield moved


def profile(api: Site, user: str) -> Any:
    status, told = api.call(user, "GET", f"/v1/users/{user}")
    assert status == 200, told
    return told


def user_of(api: Site, move: Move, *days: int, points: int = 10) -> str:
    """A user who was active on these dates after the first."""
    user = f"repair{next(KEYS)}"
    for day in days:
        move(FIRST + day * DAY)
        for _ in range(points):
            send(api, user, event("CONTRIBUTION", FIRST + day * DAY))
    return user


def repair(api: Site, user: str, **body: Any) -> tuple[int, Any]:
    return api.call(user, "POST", f"/v1/users/{user}/streak/repair", body)


def refused(answer: tuple[int, Any]) -> tuple[int, str, Any]:
    status, told = answer
    return status, told["error"]["code"], (told["error"].get("details") or {}).get("reason")


def test_a_broken_run_is_offered_repaired_and_goes_on(api: Site, move: Move) -> None:
    user = user_of(api, move, 0, 1)
    assert "repair" not in profile(api, user)
    assert refused(repair(api, user)) == (409, "not_repairable", "nothing_missed")
    move(FIRST + 4 * DAY)
    shown = profile(api, user)
    offer = {"until": "2026-03-06", "dates": ["2026-03-04", "2026-03-05"], "price_points": 40}
    assert (shown["streak_status"], shown["repair"], shown["available"]) == ("broken", offer, 200)
    assert refused(repair(api, user, price_points=20))[:2] == (409, "price_changed")
    status, told = repair(api, user, price_points=40, idempotency_key="one")
    assert (status, told["dates"], told["price_points"]) == (201, offer["dates"], 40)
    assert [each["points"] for each in told["entries"]] == [-20, -20]
    shown = profile(api, user)
    assert (shown["current_streak"], shown["streak_status"], shown["balance"]) == (2, "at_risk", 160)
    assert "repair" not in shown
    _, why = api.call(user, "GET", f"/v1/users/{user}/streak/explain?date=2026-03-05")
    assert (why["reason"], why["freeze_used"], why["streak_length"]) == ("repaired", True, 2)
    span = "covered=true&from=2026-03-02&to=2026-03-06"
    _, days = api.call(user, "GET", f"/v1/users/{user}/activity?{span}")
    assert [each["reason"] for each in days["covered"]] == ["repaired", "repaired"]
    for body in ({"price_points": 40, "idempotency_key": "one"}, {}, {"idempotency_key": "other"}):
        status, again = repair(api, user, **body)
        assert (status, again["entries"], again["duplicate"]) == (201, told["entries"], True)
    assert refused(repair(api, user, idempotency_key="one"))[:2] == (409, "conflict")
    send(api, user, event("CONTRIBUTION", FIRST + 4 * DAY))
    assert profile(api, user)["current_streak"] == 3


def test_a_late_event_gives_the_points_back_once(api: Site, move: Move) -> None:
    user = user_of(api, move, 0, 1)
    move(FIRST + 4 * DAY)
    _, told = repair(api, user)
    late = event("CONTRIBUTION", FIRST + 3 * DAY)
    send(api, user, late)
    shown = profile(api, user)
    assert (shown["balance"], shown["current_streak"]) == (200 - 40 + 20 + 10, 3)
    api.send(user, late)
    assert profile(api, user)["balance"] == 190
    _, ledger = api.call(user, "GET", f"/v1/users/{user}/ledger")
    (back,) = [each for each in ledger["entries"] if each.get("reverses")]
    assert (back["points"], back["freeze"], back["freeze_date"]) == (20, "freeze_revoked", "2026-03-05")
    assert back["reverses"] == told["entries"][1]["entry_id"]
    path = f"/v1/users/{user}/redemptions/{back['reverses']}/reversal"
    assert refused(api.admin("POST", path, {}))[:2] == (409, "already_reversed")
    path = f"/v1/users/{user}/redemptions/{told['entries'][0]['entry_id']}/reversal"
    assert api.admin("POST", path, {})[0] == 201
    assert profile(api, user)["balance"] == 210


def test_who_began_anew_joins_both_runs_and_no_third(api: Site, move: Move) -> None:
    user = user_of(api, move, 0, 1, 3, 5)
    shown = profile(api, user)
    assert (shown["current_streak"], shown["repair"]["dates"]) == (1, ["2026-03-06"])
    assert repair(api, user)[0] == 201
    assert profile(api, user)["current_streak"] == 2
    status, told = repair(api, user, idempotency_key="more")
    assert (status, told["duplicate"], told["dates"]) == (201, True, ["2026-03-06"])
    assert "repair" not in profile(api, user)


def test_what_is_refused_says_why(api: Site, move: Move) -> None:
    poor = user_of(api, move, 1, points=1)
    rich = user_of(api, move, 0, 1)
    move(FIRST + 3 * DAY)
    assert profile(api, poor)["repair"]["price_points"] == 20
    assert refused(repair(api, poor))[:2] == (409, "insufficient_balance")
    move(FIRST + 5 * DAY)
    assert refused(repair(api, rich)) == (409, "not_repairable", "dates_max")
    move(FIRST + 6 * DAY)
    assert refused(repair(api, rich)) == (409, "not_repairable", "too_late")
    assert "repair" not in profile(api, rich)
    status, told = api.call("other", "POST", f"/v1/users/{rich}/streak/repair", {})
    assert (status, told["error"]["code"]) == (403, "forbidden")
    status, told = repair(api, rich, price_points=0)
    assert (status, told["error"]["details"][0]["field"]) == (422, "price_points")


def test_held_points_pay_no_repair_and_a_debt_neither(api: Site, move: Move) -> None:
    user = user_of(api, move, 0, 1, points=2)
    move(FIRST + 3 * DAY)
    hold = {"points": 30, "reward_id": "mug", "idempotency_key": "h", "seconds": 86_400}
    status, held = api.admin("POST", f"/v1/users/{user}/holds", hold)
    assert status == 201, held
    assert refused(repair(api, user))[:2] == (409, "insufficient_balance")
    assert profile(api, user)["repair"]["price_points"] == 20, "what it costs is shown, whoever can pay"
    assert api.admin("POST", f"/v1/users/{user}/holds/{held['hold_id']}/capture", {})[0] == 201
    _, ledger = api.call(user, "GET", f"/v1/users/{user}/ledger")
    # Not the first of its date, which stays active.
    earned = [each for each in ledger["entries"] if each["kind"] == "EARN" and each["points"]]
    for number in (0, 2):
        body = {"event_id": earned[number]["event_id"], "reason": "refunded", "idempotency_key": f"c{number}"}
        assert api.admin("POST", f"/v1/users/{user}/clawbacks", body)[0] == 201
    shown = profile(api, user)
    assert (shown["debt"], shown["repair"]["dates"]) == (10, ["2026-03-04"])
    assert refused(repair(api, user))[:2] == (409, "insufficient_balance")


def test_a_later_book_without_repairs_keeps_what_was_bought(api: Site, move: Move) -> None:
    user = user_of(api, move, 0, 1)
    move(FIRST + 3 * DAY)
    _, told = repair(api, user, idempotency_key="one")
    move(FIRST + 3 * DAY + timedelta(minutes=1))
    body = {"book": book(), "effective": (FIRST + 3 * DAY + timedelta(minutes=2)).isoformat()}
    assert api.admin("POST", "/v1/rules", body)[0] == 201
    move(FIRST + 3 * DAY + timedelta(minutes=3))
    assert repair(api, user, idempotency_key="one")[1]["entries"] == told["entries"]
    for again in ({}, {"idempotency_key": "other"}):
        status, second = repair(api, user, **again)
        assert (status, second["entries"], second["duplicate"]) == (201, told["entries"], True)
    other = user_of(api, move, 3, points=1)
    move(FIRST + 3 * DAY + timedelta(minutes=4))
    assert refused(repair(api, other)) == (409, "not_repairable", "not_offered")
    assert profile(api, user)["current_streak"] == 2
    send(api, user, event("CONTRIBUTION", FIRST + 2 * DAY))
    assert profile(api, user)["balance"] == 200 - 20 + 20 + 10
    assert refused(repair(api, user)) == (409, "not_repairable", "not_offered"), "it was given back"


def test_a_freeze_that_is_granted_later_is_one_more_and_a_reversal_by_hand_keeps_the_streak(
    api: Site, move: Move
) -> None:
    user = user_of(api, move, 0, 1)
    move(FIRST + 3 * DAY)
    before = profile(api, user)["freezes_available"]
    _, told = repair(api, user)
    grant = {"granted_on": told["dates"][0], "idempotency_key": "sorry"}
    assert api.admin("POST", f"/v1/users/{user}/freezes", grant)[0] == 201
    shown = profile(api, user)
    assert (shown["balance"], shown["current_streak"]) == (200 - 20, 2), "what was bought stays bought"
    assert shown["freezes_available"] == before + 1
    path = f"/v1/users/{user}/redemptions/{told['entries'][0]['entry_id']}/reversal"
    assert api.admin("POST", path, {})[0] == 201
    shown = profile(api, user)
    assert (shown["balance"], shown["current_streak"], shown["freezes_available"]) == (200, 2, before)
    late = event("CONTRIBUTION", FIRST + 2 * DAY)
    send(api, user, late)
    shown = profile(api, user)
    assert (shown["balance"], shown["current_streak"], shown["freezes_available"]) == (210, 3, before + 1)


def test_a_run_that_breaks_again_under_a_book_without_repairs_is_no_second_call(
    api: Site, move: Move
) -> None:
    user = user_of(api, move, 0, 1)
    move(FIRST + 3 * DAY)
    assert repair(api, user)[0] == 201
    body = {"book": book(), "effective": (FIRST + 3 * DAY + timedelta(minutes=2)).isoformat()}
    assert api.admin("POST", "/v1/rules", body)[0] == 201
    move(FIRST + 4 * DAY)
    assert profile(api, user)["streak_status"] == "broken"
    assert refused(repair(api, user)) == (409, "not_repairable", "not_offered")


def test_a_client_repairs_and_learns_why_it_cannot(api: Site, move: Move) -> None:
    user = user_of(api, move, 0, 1)

    def transport(request: Request) -> Reply:
        body = json.loads(request.body) if request.body else None
        status, told = api.call(user, request.method, request.path, body)
        return Reply(status, json.dumps(told).encode(), {})

    me = Streakline("", "token", user=user, transport=transport, queue=Queueing(is_sending=False))
    with pytest.raises(Refused) as refused_:
        me.repair_streak()
    assert (refused_.value.code, refused_.value.details) == ("not_repairable", {"reason": "nothing_missed"})
    move(FIRST + 3 * DAY)
    offer = profile(api, user)["repair"]
    assert "repair" not in me.profile(), "by this device's date it is too late"
    repaired = me.repair_streak(price_points=offer["price_points"])
    assert (repaired["dates"], repaired["price_points"]) == (offer["dates"], 20)
    assert me.repair_streak(price_points=20)["duplicate"]
    me.close()


def test_without_such_a_book_nothing_is_sold(api: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    with published(api, book(), datetime(2026, 3, 1, tzinfo=UTC), monkeypatch) as moved:
        user = user_of(api, moved, 0, 1)
        moved(FIRST + 3 * DAY)
        assert "repair" not in profile(api, user)
        assert refused(repair(api, user)) == (409, "not_repairable", "not_offered")
