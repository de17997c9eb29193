"""Routes of points as money: ledger, balance, holds, rewards, redemptions, clawbacks, freezes.

The handler of their function is that of users_api.py.
"""

from datetime import timedelta
from typing import Any

from aws_lambda_powertools.event_handler import Response

from adapters import clock
from ingest.engagement import user_services
from ingest.engagement.history import ENTRY, created_at_of, entry_view
from ingest.engagement.points.balance import BALANCE, HOLD_ID, HOLD_VIEW, hold_view
from ingest.engagement.points.clawbacks import CLAWBACK
from ingest.engagement.points.commands import (
    FREEZE,
    REPAIR,
    REPAIR_RESULT,
    CommandResult,
    repair_result_view,
)
from ingest.engagement.points.holds import CAPTURE, HOLD, HoldResult
from ingest.engagement.points.redemptions import (
    CATALOGUE,
    PAGE_DEFAULT,
    PAGE_MAX,
    REDEMPTION,
    REDEMPTION_VIEW,
    REDEMPTIONS,
    USER_CATALOGUE,
    FulfilmentResult,
    redemption_view,
)
from ingest.engagement.user_services import app, services
from ingest.web.api import json_response
from ingest.web.caller import ApiError, invalid_field
from ingest.web.json_schema import text
from ingest.web.paging import cursor_of, days_in, instant_of, integer, last_date, page
from ingest.web.routes import CURSOR, PAGE, in_query, limit_to
from ingest.web.validate import first_problem
from rules.engagement.lots import HOLD_DEFAULT, HoldRequest
from rules.engagement.points import AS_OF_MAX

PAST = text(f"of the last {AS_OF_MAX.days} days; beyond: 422", format="date-time")
LIST_PARAMETERS = [limit_to(PAGE_MAX), CURSOR]
SHIPPER = "streakline/fulfilment, or streakline/fulfilment/ with the brand"
# Prices, and what is left of each reward, are no secret of anybody's.
SHORT_CACHE = {"Cache-Control": "private, max-age=15"}


@app.route("GET /v1/users/{user_id}/ledger", PAGE)
def get_user_ledger(user_id: str) -> dict[str, Any]:
    """Ledger entries, newest first."""
    user_services.require_reach(user_id)
    return services().histories.ledger(user_id, app.query)


@app.route("GET /v1/users/{user_id}/balance", [in_query("as_of", PAST)], answer=BALANCE)
def get_balance(user_id: str) -> dict[str, Any]:
    """Points, read strongly from the ledger.

    With as_of: what the ledger said at that instant (known_balance), and what was so by then, late events and
    expiry included (true_balance). An instant before over 10,000 entries: 422.
    """
    caller = user_services.require_reach(user_id)
    if instant := instant_of(app.query, "as_of"):
        user_services.count_history(caller)
        return services().balances.as_of(user_id, instant, clock.now())
    return services().balances.view(user_id, clock.now())


@app.route("POST /v1/users/{user_id}/holds", body=HOLD, status=201, answer=HOLD_VIEW)
def post_hold(user_id: str) -> dict[str, Any]:
    """Reserve points (streakline/fulfilment)."""
    user_services.require_fulfilment(user_id)
    body = app.body()
    duration = timedelta(seconds=body["seconds"]) if "seconds" in body else HOLD_DEFAULT
    request = HoldRequest(body["points"], body["reward_id"], body["idempotency_key"], duration)
    return _hold_view(services().holds.hold(user_id, request, clock.now()))


@app.route("POST /v1/users/{user_id}/holds/{hold_id}/capture", body=CAPTURE, status=201, answer=ENTRY)
def post_hold_capture(user_id: str, hold_id: str) -> dict[str, Any]:
    """Spend held points, all or some (streakline/fulfilment)."""
    _check_hold(user_id, hold_id)
    points = app.body().get("points")
    return _entry_view(services().holds.capture(user_id, hold_id, points, clock.now()))


@app.route("POST /v1/users/{user_id}/holds/{hold_id}/release", answer=HOLD_VIEW)
def post_hold_release(user_id: str, hold_id: str) -> dict[str, Any]:
    """Give held points back (streakline/fulfilment)."""
    _check_hold(user_id, hold_id)
    return _hold_view(services().holds.release(user_id, hold_id, clock.now()))


@app.route("POST /v1/users/{user_id}/redemptions", body=REDEMPTION, status=201, answer=ENTRY)
def post_redemption(user_id: str) -> dict[str, Any]:
    """Redeem a reward.

    At the book's price. Who is in streakline/fulfilment may name points instead.
    """
    caller = user_services.any_caller(user_id)
    if not caller.is_fulfilment:
        caller.check(user_id)
    user_services.count_command(caller, user_id)
    body = app.body()
    key, price_fields = body["idempotency_key"], {"points", "reward_id"} & body.keys()
    if price_fields and not caller.may_name_points:
        raise ApiError(403, "price_forbidden", "name a reward: its price is the book's")
    if "reward" in body:
        caller.check(user_id)
        if price_fields:
            raise invalid_field(min(price_fields), "is not for a reward, which has a price")
        return _entry_view(
            services().redemptions.redeem(user_id, body["reward"], key, clock.now(), body.get("price_points"))
        )
    if "price_points" in body:
        raise invalid_field("price_points", "is the price of a reward")
    for field in ("points", "reward_id") if caller.may_name_points else ("reward",):
        if field not in body:
            raise invalid_field(field, "is missing")
    return _entry_view(
        services().spending.redeem(user_id, body["points"], body["reward_id"], key, clock.now())
    )


@app.route("GET /v1/rewards", LIST_PARAMETERS, answer=CATALOGUE)
def get_rewards() -> Response[str]:
    """Rewards that are offered now, by id."""
    app.caller()
    return json_response(200, services().catalogue.page(app.query, clock.now()), SHORT_CACHE)


@app.route("GET /v1/users/{user_id}/rewards", LIST_PARAMETERS, answer=USER_CATALOGUE)
def get_user_rewards(user_id: str) -> dict[str, Any]:
    """The same, with what the user can have."""
    user_services.require_reach(user_id)
    return services().catalogue.page_for(user_id, app.query, clock.now())


@app.route("GET /v1/users/{user_id}/redemptions", LIST_PARAMETERS, answer=REDEMPTIONS)
def get_redemptions(user_id: str) -> dict[str, Any]:
    """Redeemed rewards, newest first."""
    user_services.require_reach(user_id)
    limit, before = integer(app.query, "limit", PAGE_DEFAULT, PAGE_MAX), cursor_of(app.query)
    newest = services().redemptions.store.newest(user_id, before or "9", limit)
    return page("redemptions", list(map(redemption_view, newest)), limit, "created_at")


@app.route("GET /v1/users/{user_id}/redemptions/{entry_id}", answer=REDEMPTION_VIEW)
def get_redemption(user_id: str, entry_id: str) -> dict[str, Any]:
    """A redeemed reward, and what has become of it."""
    caller = user_services.any_caller(user_id)
    if not caller.is_fulfilment:
        caller.check(user_id)
    return redemption_view(services().redemptions.get(user_id, created_at_of(entry_id)))


@app.route("POST /v1/users/{user_id}/redemptions/{entry_id}/fulfilled", answer=REDEMPTION_VIEW, more=SHIPPER)
def post_fulfilled(user_id: str, entry_id: str) -> dict[str, Any]:
    """The user has the reward."""
    caller = user_services.require_shipper(user_id)
    return _fulfilment_view(
        services().redemptions.report_fulfilled(user_id, created_at_of(entry_id), caller, clock.now())
    )


@app.route("POST /v1/users/{user_id}/redemptions/{entry_id}/failed", answer=REDEMPTION_VIEW, more=SHIPPER)
def post_failed(user_id: str, entry_id: str) -> dict[str, Any]:
    """The user will not get the reward: its points go back, once."""
    caller = user_services.require_shipper(user_id)
    return _fulfilment_view(
        services().redemptions.report_failed(user_id, created_at_of(entry_id), caller, clock.now())
    )


@app.route("POST /v1/users/{user_id}/redemptions/{entry_id}/reversal", status=201, answer=ENTRY)
def post_reversal(user_id: str, entry_id: str) -> dict[str, Any]:
    """Undo a redemption (streakline/fulfilment)."""
    user_services.require_fulfilment(user_id)
    return _entry_view(services().redemptions.reverse(user_id, created_at_of(entry_id), clock.now()))


@app.route("POST /v1/users/{user_id}/clawbacks", body=CLAWBACK, status=201, answer=ENTRY)
def post_clawback(user_id: str) -> dict[str, Any]:
    """Reverse an event and what it earned (streakline/fulfilment).

    Once an event; the answer is its CLAWBACK entry. What was spent stays spent. So the balance may become a
    debt, which what is earned next pays.
    """
    user_services.require_fulfilment(user_id)
    body = app.body()
    key = body["idempotency_key"]
    return _entry_view(
        services().clawbacks.claw_back(user_id, body["event_id"], body["reason"], key, clock.now())
    )


@app.route("POST /v1/users/{user_id}/freezes", body=FREEZE, status=201, answer=ENTRY)
def post_freeze(user_id: str) -> dict[str, Any]:
    """Get a freeze.

    Some a month are free, further ones cost points. What an admin gives is free.
    """
    caller = user_services.require_command(user_id)
    body = app.body()
    (granted_on,) = days_in(body, last_date(clock.now()), "granted_on")
    if granted_on and not caller.is_admin:
        raise ApiError(403, "forbidden", "granted_on needs streakline/admin")
    key, spending = body.get("idempotency_key"), services().spending
    if caller.is_admin:
        return _entry_view(spending.give_freeze(user_id, key, granted_on, clock.now()))
    return _entry_view(spending.take_freeze(user_id, key, clock.now()))


@app.route("POST /v1/users/{user_id}/streak/repair", body=REPAIR, status=201, answer=REPAIR_RESULT)
def post_repair(user_id: str) -> dict[str, Any]:
    """Repair the run that has just broken.

    The missed dates that no freeze covers get one each, at the book's price. The profile's `repair` says
    whether that is possible. A second call gives the first answer. A date that turns out to need no repair is
    given back.
    """
    user_services.require_command(user_id)
    body = app.body()
    repaired = services().spending.repair(
        user_id, body.get("idempotency_key"), body.get("price_points"), clock.now()
    )
    return _with_duplicate(repair_result_view(repaired.entries), repaired.duplicate)


def _check_hold(user_id: str, hold_id: str) -> None:
    """Raise as user_services.require_fulfilment, and 404 for what can be no hold's id."""
    user_services.require_fulfilment(user_id)
    if first_problem({"type": "string", "pattern": HOLD_ID}, hold_id):
        raise ApiError(404, "not_found", "there is no such hold")


def _entry_view(outcome: CommandResult) -> dict[str, Any]:
    return _with_duplicate(entry_view(outcome.entry), outcome.duplicate)


def _fulfilment_view(result: FulfilmentResult) -> dict[str, Any]:
    return _with_duplicate(redemption_view(result.redemption), result.duplicate)


def _hold_view(result: HoldResult) -> dict[str, Any]:
    return _with_duplicate(hold_view(result.hold, result.status), result.duplicate)


def _with_duplicate(view: dict[str, Any], is_duplicate: bool) -> dict[str, Any]:
    return view | ({"duplicate": True} if is_duplicate else {})
