"""Routes of points as money: balance, holds, rewards, redemptions, clawbacks, freezes."""

from datetime import timedelta
from typing import Any

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

from adapters import clock
from ingest.engagement.engagement_schemas import CAPTURE, CLAWBACK, FREEZE, HOLD, HOLD_ID, REDEMPTION
from ingest.engagement.history import created_at, entry_view
from ingest.engagement.points.balance import hold_view
from ingest.engagement.points.catalogue import LISTED_DEFAULT, LISTED_MAX, redemption_view
from ingest.engagement.points.command import CommandResult
from ingest.engagement.points.holds import HoldResult
from ingest.engagement.points.redeeming import FulfilmentResult
from ingest.engagement.users import asking
from ingest.engagement.users.parts import parts
from ingest.web.caller import ApiError, caller_of, invalid_field
from ingest.web.http import answer
from ingest.web.paging import cursor_of, days_in, instant_of, integer, last_date, page
from ingest.web.validate import first_problem
from rules.engagement.ledger import entry_id
from rules.engagement.points.holds import HELD_DEFAULT, HoldRequest
from rules.engagement.points.redemptions import Redemption

# Prices, and what is left of each reward, are no secret of anybody's.
FOR_A_WHILE = {"Cache-Control": "private, max-age=15"}

router = APIGatewayHttpRouter()  # type: ignore[no-untyped-call]  # Powertools leaves it untyped


def _of_hold(user_id: str, hold_id: str) -> None:
    """Raise as asking.fulfiller, and 404 for what can be no hold's id."""
    asking.fulfiller(user_id)
    if first_problem({"type": "string", "pattern": HOLD_ID}, hold_id):
        raise ApiError(404, "not_found", "there is no such hold")


@router.get("/v1/users/<user_id>/ledger")
def get_ledger(user_id: str) -> Response[str]:
    """Ledger entries with running balance, newest first."""
    asking.caller(user_id)
    return answer(200, parts().histories.ledger(user_id, asking.query()))


@router.get("/v1/users/<user_id>/balance")
def get_balance(user_id: str) -> Response[str]:
    """What can be spent now; or what the balance was at an instant."""
    asking.caller(user_id)
    if instant := instant_of(asking.query(), "as_of"):
        return answer(200, parts().balances.as_of(user_id, instant, clock.now()))
    return answer(200, parts().balances.view(user_id, clock.now()))


@router.post("/v1/users/<user_id>/holds")
def post_hold(user_id: str) -> Response[str]:
    """Reserve points. Who names a number of points is trusted with it, as in a redemption."""
    asking.fulfiller(user_id)
    body = asking.body(HOLD)
    lasts = timedelta(seconds=body["seconds"]) if "seconds" in body else HELD_DEFAULT
    asked = HoldRequest(body["points"], body["reward_id"], body["idempotency_key"], lasts)
    return _hold(201, parts().holds.hold(user_id, asked, clock.now()))


@router.post("/v1/users/<user_id>/holds/<hold_id>/capture")
def post_capture(user_id: str, hold_id: str) -> Response[str]:
    """Spend held points."""
    _of_hold(user_id, hold_id)
    points = (asking.body(CAPTURE) if router.current_event.body else {}).get("points")
    return _entry(parts().holds.capture(user_id, hold_id, points, clock.now()))


@router.post("/v1/users/<user_id>/holds/<hold_id>/release")
def post_hold_release(user_id: str, hold_id: str) -> Response[str]:
    """Give held points back."""
    _of_hold(user_id, hold_id)
    return _hold(200, parts().holds.release(user_id, hold_id, clock.now()))


@router.post("/v1/users/<user_id>/redemptions")
def post_redemption(user_id: str) -> Response[str]:
    """Redeem a reward; or any number of points, for those who are trusted with it."""
    caller = asking.anybody(user_id)
    if not caller.is_fulfilment:
        caller.check(user_id)
    asking.counted(caller)
    body = asking.body(REDEMPTION)
    key, named = body["idempotency_key"], {"points", "reward_id"} & body.keys()
    if named and not caller.may_name_points:
        raise ApiError(403, "price_forbidden", "name a reward: its price is the book's")
    if "reward" in body:
        caller.check(user_id)
        if named:
            raise invalid_field(min(named), "is not for a reward, which has a price")
        shown = body.get("price_points")
        return _entry(parts().redemptions.redeem(user_id, body["reward"], key, clock.now(), shown))
    if "price_points" in body:
        raise invalid_field("price_points", "is the price of a reward")
    for field in ("points", "reward_id") if caller.may_name_points else ("reward",):
        if field not in body:
            raise invalid_field(field, "is missing")
    return _entry(parts().rewards.redeem(user_id, body["points"], body["reward_id"], key, clock.now()))


@router.get("/v1/rewards")
def get_rewards() -> Response[str]:
    """Rewards that are offered now."""
    caller_of(router.current_event.raw_event)
    return answer(200, parts().catalogue.page(asking.query(), clock.now()), FOR_A_WHILE)


@router.get("/v1/users/<user_id>/rewards")
def get_user_rewards(user_id: str) -> Response[str]:
    """Rewards that are offered now, with what the user can have."""
    asking.caller(user_id)
    return answer(200, parts().catalogue.page_for(user_id, asking.query(), clock.now()))


@router.get("/v1/users/<user_id>/redemptions")
def get_redemptions(user_id: str) -> Response[str]:
    """Redeemed rewards, newest first."""
    asking.caller(user_id)
    limit, before = integer(asking.query(), "limit", LISTED_DEFAULT, LISTED_MAX), cursor_of(asking.query())
    found = parts().redemptions.store.newest(user_id, before or "9", limit)
    return answer(200, page("redemptions", list(map(_redemption, found)), limit, "created_at"))


@router.get("/v1/users/<user_id>/redemptions/<entry_id>")
def get_redemption(user_id: str, entry_id: str) -> Response[str]:
    """A redeemed reward."""
    caller = asking.anybody(user_id)
    if not caller.is_fulfilment:
        caller.check(user_id)
    return answer(200, _redemption(parts().redemptions.get(user_id, created_at(entry_id))))


@router.post("/v1/users/<user_id>/redemptions/<entry_id>/fulfilled")
def post_fulfilled(user_id: str, entry_id: str) -> Response[str]:
    """The user has the reward."""
    caller = asking.shipper(user_id)
    return _stands(parts().redemptions.fulfilled(user_id, created_at(entry_id), caller, clock.now()))


@router.post("/v1/users/<user_id>/redemptions/<entry_id>/failed")
def post_failed(user_id: str, entry_id: str) -> Response[str]:
    """The user will not get the reward."""
    caller = asking.shipper(user_id)
    return _stands(parts().redemptions.failed(user_id, created_at(entry_id), caller, clock.now()))


@router.post("/v1/users/<user_id>/redemptions/<entry_id>/reversal")
def post_reversal(user_id: str, entry_id: str) -> Response[str]:
    """Undo a redemption, once."""
    asking.fulfiller(user_id)
    return _entry(parts().redemptions.reverse(user_id, created_at(entry_id), clock.now()))


@router.post("/v1/users/<user_id>/clawbacks")
def post_clawback(user_id: str) -> Response[str]:
    """Reverse an event, once."""
    asking.fulfiller(user_id)
    body = asking.body(CLAWBACK)
    key = body["idempotency_key"]
    return _entry(parts().clawbacks.claw_back(user_id, body["event_id"], body["reason"], key, clock.now()))


@router.post("/v1/users/<user_id>/freezes")
def post_freeze(user_id: str) -> Response[str]:
    """Get a streak freeze."""
    caller = asking.commander(user_id)
    body = asking.body(FREEZE) if router.current_event.body else {}
    (granted_on,) = days_in(body, last_date(clock.now()), "granted_on")
    if granted_on and not caller.is_admin:
        raise ApiError(403, "forbidden", "granted_on needs streakline/admin")
    key, rewards = body.get("idempotency_key"), parts().rewards
    if caller.is_admin:
        return _entry(rewards.give_freeze(user_id, key, granted_on, clock.now()))
    return _entry(rewards.take_freeze(user_id, key, clock.now()))


def _entry(outcome: CommandResult) -> Response[str]:
    return answer(201, entry_view(outcome.entry) | ({"duplicate": True} if outcome.duplicate else {}))


def _redemption(found: Redemption) -> dict[str, Any]:
    return redemption_view(found, entry_id(found.created_at))


def _stands(found: FulfilmentResult) -> Response[str]:
    return answer(200, _redemption(found.redemption) | ({"duplicate": True} if found.duplicate else {}))


def _hold(status: int, found: HoldResult) -> Response[str]:
    return answer(
        status, hold_view(found.hold, found.status) | ({"duplicate": True} if found.duplicate else {})
    )
