"""Points as money: what is held and captured, what rewards cost, what expires, and what moves in."""

import json
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

from adapters.book import shipped_document
from adapters.engagement.account_store import AccountStore
from adapters.engagement.achievements import AchievementStore
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.ledger_store import LedgerStore
from adapters.platform.aws import client
from bench.counting.desk import Desk, Units
from bench.counting.requests import ADMIN, http
from bench.units.engagement import DAY, USER_ID, apply, ask, redemption
from local.move_in.positions import PositionImporter
from rules.engagement.opening_positions import OpeningPosition

Measured = Iterator[tuple[str, dict[str, Units]]]
EXPIRING = 10  # accounts of one sweep, which share its queries
LASTS_DAYS = 30
OPERATOR = "import"  # no function: `streakline events import` on the operator's machine
REWARDS = {
    "mug": {"price_points": 10, "brand": "acme", "stock": 1000, "limit_per_user": 5},
    "pin": {"price_points": 10, "brand": "acme", "stock": 0},
}


def points_paths(desk: Desk) -> Measured:
    """Yield, under a book by which points expire: an event, holds and their ends, a sweep, and a clawback."""
    book = shipped_document() | {"expiry": {"after_days": LASTS_DAYS}, "rewards": REWARDS}
    _post(desk, "RulesApiFunction", "/v1/rules", {"book": book, "effective": "now"})
    desk.tick(DAY)
    users = [USER_ID.format(number) for number in range(EXPIRING)]
    for user in users:
        apply(desk, user, 5)
    desk.tick(DAY)
    desk.forget()
    apply(desk, users[0], 1)
    yield "event.expiring", desk.take()
    path = f"/v1/users/{users[0]}/holds"
    for key, end in (("k1", "capture"), ("k2", "release")):
        desk.forget()
        held = _post(desk, "UsersApiFunction", path, redemption() | {"idempotency_key": key})
        if end == "capture":
            yield "hold", desk.take()
        desk.tick()
        desk.forget()
        _post(desk, "UsersApiFunction", f"{path}/{held['hold_id']}/{end}", None)
        yield f"hold.{end}", desk.take()
    yield from _reward_paths(desk, users[1])
    desk.tick(timedelta(days=LASTS_DAYS))
    desk.forget()
    told = desk.call("ExpiryFunction", {})
    assert told == {"settled": EXPIRING, "failed": 0, "is_whole": True}, told
    yield f"expiry.{EXPIRING}", desk.take()
    other = USER_ID.format(EXPIRING)
    apply(desk, other, 5)
    events = desk.call("UsersApiFunction", http("GET", f"/v1/users/{other}/events", groups=ADMIN))
    event_id = json.loads(events["body"])["events"][0]["event_id"]
    body = {"event_id": event_id, "reason": "refunded", "idempotency_key": "k3"}
    desk.tick()
    desk.forget()
    _post(desk, "UsersApiFunction", f"/v1/users/{other}/clawbacks", body)
    yield "clawback", desk.take()


def _reward_paths(desk: Desk, user: str) -> Measured:
    """Yield a look at the catalogue, a redemption of a reward with stock and limit, and how it can end."""
    path = f"/v1/users/{user}/redemptions"
    yield "read.rewards", ask(desk, "read.rewards", "/v1/rewards", user)
    ends = []
    for key in ("fulfilled", "failed"):
        desk.tick()
        desk.forget()
        body = {"reward": "mug", "idempotency_key": key}
        answered = desk.call("UsersApiFunction", http("POST", path, body, sub=user))
        assert answered["statusCode"] == 201, answered
        desk.consume("FulfilmentFunction", "Rewards")
        ends.append((key, json.loads(answered["body"])["entry_id"]))
        if key == "fulfilled":
            yield "redeem.reward", desk.take()
    desk.tick()
    desk.forget()
    body = {"reward": "pin", "idempotency_key": "pin"}
    refused = desk.call("UsersApiFunction", http("POST", path, body, sub=user))
    assert refused["statusCode"] == 409, refused
    yield "redeem.sold_out", desk.take()
    for what, entry in ends:
        desk.tick()
        desk.forget()
        _post(desk, "UsersApiFunction", f"{path}/{entry}/{what}", None)
        desk.consume("FulfilmentFunction", "Rewards")
        yield f"redemption.{what}", desk.take()


def _post(desk: Desk, function: str, path: str, body: Any) -> dict[str, Any]:
    answered = desk.call(function, http("POST", path, body, groups=ADMIN))
    assert answered["statusCode"] in (200, 201), answered
    told: dict[str, Any] = json.loads(answered["body"])
    return told


def moving_paths(desk: Desk) -> Measured:
    """Yield a position without points, one with a lot, one with three lots, and one of a user with events."""
    day = desk.now.date()
    several: list[dict[date | None, int]] = [{}, {None: 250}]
    several.append({day + timedelta(days=30 * number): 80 for number in (1, 2, 3)})
    for number, lots in enumerate(several):
        _move(
            desk, OpeningPosition(USER_ID.format(900 + number), day, day, 12, 40, 200, lots, 2 * bool(lots))
        )
        yield f"position.lots.{len(lots)}", desk.take()
    user = USER_ID.format(910)
    apply(desk, user, 3)
    desk.tick(timedelta(days=1))
    _move(desk, OpeningPosition(user, day, day, 12, 40, 200, {None: 250}))
    yield "position.known", desk.take()


def _move(desk: Desk, position: OpeningPosition) -> None:
    desk.forget()
    desk.meter.take()
    dynamodb: Any = client("dynamodb")
    ledger = LedgerStore(dynamodb, "RewardsLedger")
    accounts = AccountStore(dynamodb, "UserStreaks", "DailyActivity", ledger, 0)
    mover = PositionImporter(accounts, EngagementCache(""), AchievementStore(dynamodb, "DailyActivity"))
    assert mover.move(position, desk.tick())
    desk.meter.take_changes()
    desk.note(OPERATOR, desk.meter.take())
