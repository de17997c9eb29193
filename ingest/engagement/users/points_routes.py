"""Routes of points as money: balance, holds, rewards, redemptions, clawbacks, freezes."""

from datetime import timedelta
from typing import Any

from aws_lambda_powertools.event_handler import Response

from adapters import clock
from ingest.engagement.engagement_schemas import (
    BALANCE,
    CAPTURE,
    CLAWBACK,
    ENTRY,
    FREEZE,
    HOLD,
    HOLD_ID,
    HOLD_VIEW,
    REDEMPTION,
)
from ingest.engagement.history import created_at, entry_view
from ingest.engagement.points.balance import hold_view
from ingest.engagement.points.catalogue import LISTED_DEFAULT, LISTED_MAX, redemption_view
from ingest.engagement.points.command import CommandResult
from ingest.engagement.points.holds import HoldResult
from ingest.engagement.points.redeeming import FulfilmentResult
from ingest.engagement.points.reward_schemas import CATALOGUE, REDEMPTION_VIEW, REDEMPTIONS, USER_CATALOGUE
from ingest.engagement.users import asking
from ingest.engagement.users.parts import app, parts
from ingest.web.caller import ApiError, invalid_field
from ingest.web.http import answer
from ingest.web.paging import cursor_of, days_in, instant_of, integer, last_date, page
from ingest.web.routes import CURSOR, PAGE, in_query, limit_to
from ingest.web.validate import first_problem
from rules.book.rewards import Redemption
from rules.engagement.ledger import entry_id
from rules.engagement.lots import HELD_DEFAULT, HoldRequest
from rules.engagement.points import AS_OF_MAX

PAST = {
    "type": "string",
    "format": "date-time",
    "description": f"of the last {AS_OF_MAX.days} days; beyond: 422",
}
LISTED = [limit_to(LISTED_MAX), CURSOR]
SHIPPER = "streakline/fulfilment, or streakline/fulfilment/ with the brand"
# Prices, and what is left of each reward, are no secret of anybody's.
FOR_A_WHILE = {"Cache-Control": "private, max-age=15"}


def _of_hold(user_id: str, hold_id: str) -> None:
    """Raise as asking.fulfiller, and 404 for what can be no hold's id."""
    asking.fulfiller(user_id)
    if first_problem({"type": "string", "pattern": HOLD_ID}, hold_id):
        raise ApiError(404, "not_found", "there is no such hold")


@app.route("GET /v1/users/{user_id}/ledger", PAGE)
def get_user_ledger(user_id: str) -> dict[str, Any]:
    """Ledger entries, newest first."""
    asking.caller(user_id)
    return parts().histories.ledger(user_id, app.query)


@app.route("GET /v1/users/{user_id}/balance", [in_query("as_of", PAST)], answer=BALANCE)
def get_balance(user_id: str) -> dict[str, Any]:
    """Points, read strongly from the ledger.

    With as_of: what the ledger said at that instant (known_balance), and what was so by then, late events and
    expiry included (true_balance). An instant before over 10,000 entries: 422.
    """
    asking.caller(user_id)
    if instant := instant_of(app.query, "as_of"):
        return parts().balances.as_of(user_id, instant, clock.now())
    return parts().balances.view(user_id, clock.now())


@app.route("POST /v1/users/{user_id}/holds", body=HOLD, status=201, answer=HOLD_VIEW)
def post_hold(user_id: str) -> dict[str, Any]:
    """Reserve points (streakline/fulfilment)."""
    asking.fulfiller(user_id)
    body = app.body()
    lasts = timedelta(seconds=body["seconds"]) if "seconds" in body else HELD_DEFAULT
    asked = HoldRequest(body["points"], body["reward_id"], body["idempotency_key"], lasts)
    return _hold(parts().holds.hold(user_id, asked, clock.now()))


@app.route("POST /v1/users/{user_id}/holds/{hold_id}/capture", body=CAPTURE, status=201, answer=ENTRY)
def post_hold_capture(user_id: str, hold_id: str) -> dict[str, Any]:
    """Spend held points, all or some (streakline/fulfilment)."""
    _of_hold(user_id, hold_id)
    points = app.body().get("points")
    return _entry(parts().holds.capture(user_id, hold_id, points, clock.now()))


@app.route("POST /v1/users/{user_id}/holds/{hold_id}/release", answer=HOLD_VIEW)
def post_hold_release(user_id: str, hold_id: str) -> dict[str, Any]:
    """Give held points back (streakline/fulfilment)."""
    _of_hold(user_id, hold_id)
    return _hold(parts().holds.release(user_id, hold_id, clock.now()))


@app.route("POST /v1/users/{user_id}/redemptions", body=REDEMPTION, status=201, answer=ENTRY)
def post_redemption(user_id: str) -> dict[str, Any]:
    """Redeem a reward.

    At the book's price. Who is in streakline/fulfilment may name points instead.
    """
    caller = asking.anybody(user_id)
    if not caller.is_fulfilment:
        caller.check(user_id)
    asking.counted(caller)
    body = app.body()
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


@app.route("GET /v1/rewards", LISTED, answer=CATALOGUE)
def get_rewards() -> Response[str]:
    """Rewards that are offered now, by id."""
    app.caller()
    return answer(200, parts().catalogue.page(app.query, clock.now()), FOR_A_WHILE)


@app.route("GET /v1/users/{user_id}/rewards", LISTED, answer=USER_CATALOGUE)
def get_user_rewards(user_id: str) -> dict[str, Any]:
    """The same, with what the user can have."""
    asking.caller(user_id)
    return parts().catalogue.page_for(user_id, app.query, clock.now())


@app.route("GET /v1/users/{user_id}/redemptions", LISTED, answer=REDEMPTIONS)
def get_redemptions(user_id: str) -> dict[str, Any]:
    """Redeemed rewards, newest first."""
    asking.caller(user_id)
    limit, before = integer(app.query, "limit", LISTED_DEFAULT, LISTED_MAX), cursor_of(app.query)
    found = parts().redemptions.store.newest(user_id, before or "9", limit)
    return page("redemptions", list(map(_redemption, found)), limit, "created_at")


@app.route("GET /v1/users/{user_id}/redemptions/{entry_id}", answer=REDEMPTION_VIEW)
def get_redemption(user_id: str, entry_id: str) -> dict[str, Any]:
    """A redeemed reward, and what has become of it."""
    caller = asking.anybody(user_id)
    if not caller.is_fulfilment:
        caller.check(user_id)
    return _redemption(parts().redemptions.get(user_id, created_at(entry_id)))


@app.route("POST /v1/users/{user_id}/redemptions/{entry_id}/fulfilled", answer=REDEMPTION_VIEW, more=SHIPPER)
def post_fulfilled(user_id: str, entry_id: str) -> dict[str, Any]:
    """The user has the reward."""
    caller = asking.shipper(user_id)
    return _stands(parts().redemptions.fulfilled(user_id, created_at(entry_id), caller, clock.now()))


@app.route("POST /v1/users/{user_id}/redemptions/{entry_id}/failed", answer=REDEMPTION_VIEW, more=SHIPPER)
def post_failed(user_id: str, entry_id: str) -> dict[str, Any]:
    """The user will not get the reward: its points go back, once."""
    caller = asking.shipper(user_id)
    return _stands(parts().redemptions.failed(user_id, created_at(entry_id), caller, clock.now()))


@app.route("POST /v1/users/{user_id}/redemptions/{entry_id}/reversal", status=201, answer=ENTRY)
def post_reversal(user_id: str, entry_id: str) -> dict[str, Any]:
    """Undo a redemption (streakline/fulfilment)."""
    asking.fulfiller(user_id)
    return _entry(parts().redemptions.reverse(user_id, created_at(entry_id), clock.now()))


@app.route("POST /v1/users/{user_id}/clawbacks", body=CLAWBACK, status=201, answer=ENTRY)
def post_clawback(user_id: str) -> dict[str, Any]:
    """Reverse an event and what it earned (streakline/fulfilment).

    Once an event; the answer is its CLAWBACK entry. What was spent stays spent. So the balance may become a
    debt, which what is earned next pays.
    """
    asking.fulfiller(user_id)
    body = app.body()
    key = body["idempotency_key"]
    return _entry(parts().clawbacks.claw_back(user_id, body["event_id"], body["reason"], key, clock.now()))


@app.route("POST /v1/users/{user_id}/freezes", body=FREEZE, status=201, answer=ENTRY)
def post_freeze(user_id: str) -> dict[str, Any]:
    """Get a freeze.

    Some a month are free, further ones cost points. What an admin gives is free.
    """
    caller = asking.commander(user_id)
    body = app.body()
    (granted_on,) = days_in(body, last_date(clock.now()), "granted_on")
    if granted_on and not caller.is_admin:
        raise ApiError(403, "forbidden", "granted_on needs streakline/admin")
    key, rewards = body.get("idempotency_key"), parts().rewards
    if caller.is_admin:
        return _entry(rewards.give_freeze(user_id, key, granted_on, clock.now()))
    return _entry(rewards.take_freeze(user_id, key, clock.now()))


def _entry(outcome: CommandResult) -> dict[str, Any]:
    return _view(entry_view(outcome.entry), outcome.duplicate)


def _redemption(found: Redemption) -> dict[str, Any]:
    return redemption_view(found, entry_id(found.created_at))


def _stands(found: FulfilmentResult) -> dict[str, Any]:
    return _view(_redemption(found.redemption), found.duplicate)


def _hold(found: HoldResult) -> dict[str, Any]:
    return _view(hold_view(found.hold, found.status), found.duplicate)


def _view(view: dict[str, Any], is_duplicate: bool) -> dict[str, Any]:
    return view | ({"duplicate": True} if is_duplicate else {})
