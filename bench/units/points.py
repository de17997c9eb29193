"""Measures points as money: holds, rewards, expiry and clawbacks."""

import json
from datetime import timedelta
from typing import Any

from adapters.book_store import shipped_document
from bench.counting.desk import Desk, PathCosts
from bench.counting.requests import ADMIN, http
from bench.units.engagement import DAY, REDEMPTION, USER_ID, apply_events, cost_of_request

EXPIRING_ACCOUNTS = 10  # of one sweep, which share its queries
EXPIRY_DAYS = 30
REPAIRS = {"price_points": 1, "within_days": 3, "dates_max": 2, "a_year": 4}
# An account has it with its third event.
BONUSES = {
    "third": {"all": [{"count": "LESSON_COMPLETED", "at_least": 3}], "withdrawn": "when_untrue", "points": 5}
}
REWARDS = {"mug": {"price_points": 10, "brand": "acme", "stock": 1000, "limit_per_user": 5}}


def points_paths(desk: Desk) -> PathCosts:
    """Yield, under a book by which points expire: an event, holds, rewards, a sweep, a clawback, a repair."""
    sections = {"expiry": {"after_days": EXPIRY_DAYS}, "rewards": REWARDS, "repairs": REPAIRS}
    book = shipped_document() | sections
    _post(desk, "/v1/rules", {"book": book, "effective": "now"}, function="RulesApiFunction")
    desk.tick(DAY)
    users = [USER_ID.format(number) for number in range(EXPIRING_ACCOUNTS)]
    for user in users:
        apply_events(desk, user, 5)
    desk.tick(DAY)
    desk.start_path()
    apply_events(desk, users[0], 1)
    yield "event.expiring", desk.take_costs()
    yield from _hold_paths(desk, users[0])
    yield from _reward_paths(desk, users[1])
    desk.tick(timedelta(days=EXPIRY_DAYS))
    desk.start_path()
    answer = desk.call("ExpiryFunction", {})
    assert answer == {"settled": EXPIRING_ACCOUNTS, "failed": 0, "is_whole": True}, answer
    yield f"expiry.{EXPIRING_ACCOUNTS}", desk.take_costs()
    yield from _clawback_path(desk, USER_ID.format(EXPIRING_ACCOUNTS))
    yield from _repair_paths(desk, USER_ID.format(EXPIRING_ACCOUNTS + 1))


def bonus_paths(desk: Desk) -> PathCosts:
    """Yield, under a book that pays for an achievement: two events, and balances with a bonus and without.

    The first event makes the account due.
    """
    book, user = shipped_document() | {"achievements": BONUSES}, USER_ID.format(0)
    _post(desk, "/v1/rules", {"book": book, "effective": "now"}, function="RulesApiFunction")
    desk.tick(2 * DAY)
    apply_events(desk, user, 1)
    balance = f"/v1/users/{user}/balance"
    cost_of_request(desk, user, balance)
    for count in (1, 2):
        desk.tick(DAY)
        desk.start_path()
        apply_events(desk, user, 1)
        yield f"event.bonus_due.{count}", desk.take_costs()
    yield "bonus", cost_of_request(desk, user, balance)
    desk.tick(DAY)
    apply_events(desk, user, 1)
    yield "bonus.none", cost_of_request(desk, user, balance)


def _hold_paths(desk: Desk, user: str) -> PathCosts:
    path = f"/v1/users/{user}/holds"
    desk.start_path()
    hold = _post(desk, path, REDEMPTION | {"idempotency_key": "k1"})
    yield "hold", desk.take_costs()
    desk.tick()
    desk.start_path()
    _post(desk, f"{path}/{hold['hold_id']}/capture")
    yield "hold.capture", desk.take_costs()


def _repair_paths(desk: Desk, user: str) -> PathCosts:
    """Yield the repair of one missed date, and the late event that gives it back."""
    apply_events(desk, user, 5)
    desk.tick(2 * DAY)
    desk.start_path()
    repaired = _post(desk, f"/v1/users/{user}/streak/repair", {"price_points": 1}, user=user)
    assert len(repaired["dates"]) == 1, repaired
    yield "repair", desk.take_costs()
    desk.tick()
    desk.start_path()
    apply_events(desk, user, 1, days=-1)
    yield "event.returns_repair", desk.take_costs()


def _reward_paths(desk: Desk, user: str) -> PathCosts:
    path = f"/v1/users/{user}/redemptions"
    yield "read.rewards", cost_of_request(desk, user, "/v1/rewards")
    entry_ids = {}
    for end in ("fulfilled", "failed"):
        desk.tick()
        desk.start_path()
        redemption = _post(desk, path, {"reward": "mug", "idempotency_key": end}, user=user)
        desk.consume("FulfilmentFunction", "Rewards")
        entry_ids[end] = redemption["entry_id"]
        if end == "fulfilled":
            yield "redeem.reward", desk.take_costs()
    for end, entry_id in entry_ids.items():
        desk.tick()
        desk.start_path()
        _post(desk, f"{path}/{entry_id}/{end}")
        desk.consume("FulfilmentFunction", "Rewards")
        yield f"redemption.{end}", desk.take_costs()


def _clawback_path(desk: Desk, user: str) -> PathCosts:
    apply_events(desk, user, 5)
    response = desk.call("UsersApiFunction", http("GET", f"/v1/users/{user}/events", groups=ADMIN))
    event_id = json.loads(response["body"])["events"][0]["event_id"]
    desk.tick()
    desk.start_path()
    body = {"event_id": event_id, "reason": "refunded", "idempotency_key": "k3"}
    _post(desk, f"/v1/users/{user}/clawbacks", body)
    yield "clawback", desk.take_costs()


def _post(
    desk: Desk, path: str, body: Any = None, *, user: str = "", function: str = "UsersApiFunction"
) -> dict[str, Any]:
    """Post as a user, or as an admin if none is given; returns the answer."""
    event = http("POST", path, body, sub=user) if user else http("POST", path, body, groups=ADMIN)
    response = desk.call(function, event)
    assert response["statusCode"] in (200, 201), response
    answer: dict[str, Any] = json.loads(response["body"])
    return answer
