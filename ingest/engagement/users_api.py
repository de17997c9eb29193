"""Everything under /v1/users, /v1/rewards and /v1/leaderboards."""

from datetime import timedelta
from typing import Any

from aws_lambda_powertools.event_handler import Response

from adapters import clock, settings
from adapters.engagement.account_store import AccountContended
from adapters.engagement.amnesty import DeclarationConflict
from adapters.engagement.ledger_store import TooManyEntries
from adapters.platform.keyed_hash import KeyedHash
from adapters.settings.engagement import UsersApiSettings
from ingest.engagement import user_requests
from ingest.engagement.amnesty import amnesty_view, applied_view
from ingest.engagement.engagement_schemas import (
    ACHIEVEMENTS_VIEW,
    ACTIVITY_VIEW,
    ALIAS,
    ALIAS_VIEW,
    AMNESTIES,
    AMNESTY,
    APPLICATION,
    APPLICATION_RESULT,
    BALANCE,
    CAPTURE,
    CATALOGUE,
    CLAWBACK,
    DECLARATION,
    ENTRY,
    FREEZE,
    HOLD,
    HOLD_ID,
    HOLD_VIEW,
    PAUSE,
    PERIOD_VIEW,
    PROFILE,
    RANK,
    REDEMPTION,
    REDEMPTION_VIEW,
    REDEMPTIONS,
    REVIEW,
    REVIEW_LIST,
    STREAKS_VIEW,
    TIMEZONE,
    TOP_LIST,
    USER_CATALOGUE,
)
from ingest.engagement.history import covered_span, created_at_of, entry_view
from ingest.engagement.leaderboards import board_view
from ingest.engagement.points.balance import hold_view
from ingest.engagement.points.commands import CommandResult
from ingest.engagement.points.holds import HoldResult
from ingest.engagement.points.redemptions import PAGE_DEFAULT, PAGE_MAX, FulfilmentResult, redemption_view
from ingest.engagement.preferences import known_zone, pause_span, pauses_view, timezone_view
from ingest.engagement.receipts import receipt_keys, with_receipt
from ingest.engagement.user_requests import app
from ingest.engagement.user_requests import parts as _parts
from ingest.web.api import ERASED_REASON
from ingest.web.caller import ApiError, invalid_field
from ingest.web.http import error_response, json_response
from ingest.web.paging import AHEAD_MAX, FIRST_DATE, cursor_of, days_in, instant_of, integer, last_date, page
from ingest.web.routes import CURSOR, PAGE, POSITION, in_query, limit_to
from ingest.web.validate import first_problem
from rules.book.rewards import Redemption
from rules.days import OTHER_REGION, REGIONS
from rules.engagement import boards
from rules.engagement.boards import GLOBAL
from rules.engagement.ledger import entry_id
from rules.engagement.lots import HOLD_DEFAULT, HoldRequest
from rules.engagement.points import AS_OF_MAX

logger = app.logger
DATE = {
    "type": "string",
    "format": "date",
    "description": f"from {FIRST_DATE} to {AHEAD_MAX.days} days from today (UTC); beyond: 422",
}
AS_OF, DAY = in_query("as_of", DATE), in_query("date", DATE, required=True)
COVERED = in_query("covered", {"type": "boolean"})
PAST = {
    "type": "string",
    "format": "date-time",
    "description": f"of the last {AS_OF_MAX.days} days; beyond: 422",
}
LIST_PARAMETERS = [limit_to(PAGE_MAX), CURSOR]
SHIPPER = "streakline/fulfilment, or streakline/fulfilment/ with the brand"
# Prices, and what is left of each reward, are no secret of anybody's.
SHORT_CACHE = {"Cache-Control": "private, max-age=15"}
TOP_DEFAULT = 10
REGION = in_query("region", {"type": "string", "enum": [GLOBAL, *REGIONS, OTHER_REGION]})


@app.exception_handler(AccountContended)
def answer_contended(error: AccountContended) -> Response[str]:
    """Answer 503: too many writers changed the account at once. The caller may try again."""
    logger.warning("contended", extra={"user_id": str(error)})
    return error_response(ApiError(503, "unavailable", "the account is busy", headers={"Retry-After": "1"}))


@app.exception_handler(TooManyEntries)
def answer_too_many(error: TooManyEntries) -> Response[str]:
    """Answer 422: what is asked for follows from more entries than one request may read."""
    return error_response(ApiError(422, "too_many_entries", str(error)))


@app.route("GET /v1/users/{user_id}", [AS_OF], answer=PROFILE)
def get_user(user_id: str) -> dict[str, Any]:
    """Profile."""
    user_requests.caller(user_id)
    return _parts().profiles.view(user_id, user_requests.date_of_query("as_of"), clock.now())


@app.route("GET /v1/users/{user_id}/events", PAGE)
def get_user_events(user_id: str) -> dict[str, Any]:
    """Events, newest first."""
    user_requests.caller(user_id)
    return _parts().histories.events(user_id, app.query, clock.now())


@app.route("GET /v1/users/{user_id}/activity", [*PAGE, COVERED], answer=ACTIVITY_VIEW)
def get_user_activity(user_id: str) -> dict[str, Any]:
    """Active dates, newest first.

    With covered=true, from and to: also `covered`, the dates without activity, up to today, that a freeze, a
    pause or the zone covers, each with its reason.
    """
    user_requests.caller(user_id)
    found = _parts().histories.activity(user_id, app.query)
    if span := covered_span(app.query):
        found["covered"] = _parts().profiles.covered(user_id, *span, clock.now())
    return found


@app.route("GET /v1/users/{user_id}/streak/explain", [DAY])
def get_streak_explanation(user_id: str) -> dict[str, Any]:
    """Why a day counts or not."""
    user_requests.caller(user_id)
    return _parts().profiles.explain(user_id, user_requests.required_date(), clock.now())


@app.route("GET /v1/users/{user_id}/streaks", [AS_OF], answer=STREAKS_VIEW)
def get_streaks(user_id: str) -> dict[str, Any]:
    """All streaks: the daily one, and those that the book declares."""
    user_requests.caller(user_id)
    return _parts().goals.view(user_id, user_requests.date_of_query("as_of"), clock.now())


@app.route("GET /v1/users/{user_id}/streaks/{name}/explain", [DAY], answer=PERIOD_VIEW)
def get_period_explanation(user_id: str, name: str) -> dict[str, Any]:
    """Why a date's period counts for a streak or not."""
    user_requests.caller(user_id)
    return _parts().goals.explain(user_id, name, user_requests.required_date(), clock.now())


@app.route("GET /v1/users/{user_id}/achievements", answer=ACHIEVEMENTS_VIEW)
def get_achievements(user_id: str) -> dict[str, Any]:
    """Achievements that the book declares: which, since when, and how far the others are.

    Who has over 10,000 ledger entries in about three weeks is refused: 422. So is who asks for the first time
    with over 50,000 in all.
    """
    user_requests.caller(user_id)
    return _parts().achievements.view(user_id, clock.now())


@app.route("POST /v1/users/{user_id}/pauses", body=PAUSE, status=201, may_repeat=True)
def post_pause(user_id: str) -> Response[str]:
    """Pause the streak."""
    user_requests.commander(user_id)
    now = clock.now()
    first, last = pause_span(app.body(), now)
    profile, is_new = _parts().preferences.pause(user_id, first, last, now)
    return json_response(201 if is_new else 200, pauses_view(profile))


@app.route("PUT /v1/users/{user_id}/timezone", body=TIMEZONE)
def put_timezone(user_id: str) -> dict[str, Any]:
    """Set the zone."""
    user_requests.commander(user_id)
    name = known_zone(app.body()["timezone"])
    return timezone_view(_parts().preferences.set_timezone(user_id, name, clock.now()))


@app.route("GET /v1/review", POSITION, answer=REVIEW_LIST)
def get_review() -> dict[str, Any]:
    """Accounts under review, by user id (admins)."""
    app.admin()
    return _parts().reviews.waiting(app.query, _parts().is_erased)


@app.route("POST /v1/review/{user_id}/release", answer=REVIEW)
def post_release(user_id: str) -> dict[str, Any]:
    """End a review (admins)."""
    user_requests.anybody(user_id).check_admin()
    return _parts().reviews.release(user_id, clock.now())


def _receipt_keys() -> KeyedHash:
    return receipt_keys(settings.read_settings(UsersApiSettings).receipt_secret_arn)


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Lambda entry: an HTTP API request, payload format 2.0."""
    return with_receipt(app.resolve(event, context), event, _receipt_keys)


# Routes of points as money: balance, holds, rewards, redemptions, clawbacks, freezes.


def _check_hold(user_id: str, hold_id: str) -> None:
    """Raise as user_requests.fulfiller, and 404 for what can be no hold's id."""
    user_requests.fulfiller(user_id)
    if first_problem({"type": "string", "pattern": HOLD_ID}, hold_id):
        raise ApiError(404, "not_found", "there is no such hold")


@app.route("GET /v1/users/{user_id}/ledger", PAGE)
def get_user_ledger(user_id: str) -> dict[str, Any]:
    """Ledger entries, newest first."""
    user_requests.caller(user_id)
    return _parts().histories.ledger(user_id, app.query)


@app.route("GET /v1/users/{user_id}/balance", [in_query("as_of", PAST)], answer=BALANCE)
def get_balance(user_id: str) -> dict[str, Any]:
    """Points, read strongly from the ledger.

    With as_of: what the ledger said at that instant (known_balance), and what was so by then, late events and
    expiry included (true_balance). An instant before over 10,000 entries: 422.
    """
    user_requests.caller(user_id)
    if instant := instant_of(app.query, "as_of"):
        return _parts().balances.as_of(user_id, instant, clock.now())
    return _parts().balances.view(user_id, clock.now())


@app.route("POST /v1/users/{user_id}/holds", body=HOLD, status=201, answer=HOLD_VIEW)
def post_hold(user_id: str) -> dict[str, Any]:
    """Reserve points (streakline/fulfilment)."""
    user_requests.fulfiller(user_id)
    body = app.body()
    lasts = timedelta(seconds=body["seconds"]) if "seconds" in body else HOLD_DEFAULT
    asked = HoldRequest(body["points"], body["reward_id"], body["idempotency_key"], lasts)
    return _hold_view(_parts().holds.hold(user_id, asked, clock.now()))


@app.route("POST /v1/users/{user_id}/holds/{hold_id}/capture", body=CAPTURE, status=201, answer=ENTRY)
def post_hold_capture(user_id: str, hold_id: str) -> dict[str, Any]:
    """Spend held points, all or some (streakline/fulfilment)."""
    _check_hold(user_id, hold_id)
    points = app.body().get("points")
    return _entry_view(_parts().holds.capture(user_id, hold_id, points, clock.now()))


@app.route("POST /v1/users/{user_id}/holds/{hold_id}/release", answer=HOLD_VIEW)
def post_hold_release(user_id: str, hold_id: str) -> dict[str, Any]:
    """Give held points back (streakline/fulfilment)."""
    _check_hold(user_id, hold_id)
    return _hold_view(_parts().holds.release(user_id, hold_id, clock.now()))


@app.route("POST /v1/users/{user_id}/redemptions", body=REDEMPTION, status=201, answer=ENTRY)
def post_redemption(user_id: str) -> dict[str, Any]:
    """Redeem a reward.

    At the book's price. Who is in streakline/fulfilment may name points instead.
    """
    caller = user_requests.anybody(user_id)
    if not caller.is_fulfilment:
        caller.check(user_id)
    user_requests.count_command(caller)
    body = app.body()
    key, named = body["idempotency_key"], {"points", "reward_id"} & body.keys()
    if named and not caller.may_name_points:
        raise ApiError(403, "price_forbidden", "name a reward: its price is the book's")
    if "reward" in body:
        caller.check(user_id)
        if named:
            raise invalid_field(min(named), "is not for a reward, which has a price")
        shown = body.get("price_points")
        return _entry_view(_parts().redemptions.redeem(user_id, body["reward"], key, clock.now(), shown))
    if "price_points" in body:
        raise invalid_field("price_points", "is the price of a reward")
    for field in ("points", "reward_id") if caller.may_name_points else ("reward",):
        if field not in body:
            raise invalid_field(field, "is missing")
    return _entry_view(_parts().rewards.redeem(user_id, body["points"], body["reward_id"], key, clock.now()))


@app.route("GET /v1/rewards", LIST_PARAMETERS, answer=CATALOGUE)
def get_rewards() -> Response[str]:
    """Rewards that are offered now, by id."""
    app.caller()
    return json_response(200, _parts().catalogue.page(app.query, clock.now()), SHORT_CACHE)


@app.route("GET /v1/users/{user_id}/rewards", LIST_PARAMETERS, answer=USER_CATALOGUE)
def get_user_rewards(user_id: str) -> dict[str, Any]:
    """The same, with what the user can have."""
    user_requests.caller(user_id)
    return _parts().catalogue.page_for(user_id, app.query, clock.now())


@app.route("GET /v1/users/{user_id}/redemptions", LIST_PARAMETERS, answer=REDEMPTIONS)
def get_redemptions(user_id: str) -> dict[str, Any]:
    """Redeemed rewards, newest first."""
    user_requests.caller(user_id)
    limit, before = integer(app.query, "limit", PAGE_DEFAULT, PAGE_MAX), cursor_of(app.query)
    found = _parts().redemptions.store.newest(user_id, before or "9", limit)
    return page("redemptions", list(map(_redemption_view, found)), limit, "created_at")


@app.route("GET /v1/users/{user_id}/redemptions/{entry_id}", answer=REDEMPTION_VIEW)
def get_redemption(user_id: str, entry_id: str) -> dict[str, Any]:
    """A redeemed reward, and what has become of it."""
    caller = user_requests.anybody(user_id)
    if not caller.is_fulfilment:
        caller.check(user_id)
    return _redemption_view(_parts().redemptions.get(user_id, created_at_of(entry_id)))


@app.route("POST /v1/users/{user_id}/redemptions/{entry_id}/fulfilled", answer=REDEMPTION_VIEW, more=SHIPPER)
def post_fulfilled(user_id: str, entry_id: str) -> dict[str, Any]:
    """The user has the reward."""
    caller = user_requests.shipper(user_id)
    return _fulfilment_view(
        _parts().redemptions.fulfilled(user_id, created_at_of(entry_id), caller, clock.now())
    )


@app.route("POST /v1/users/{user_id}/redemptions/{entry_id}/failed", answer=REDEMPTION_VIEW, more=SHIPPER)
def post_failed(user_id: str, entry_id: str) -> dict[str, Any]:
    """The user will not get the reward: its points go back, once."""
    caller = user_requests.shipper(user_id)
    return _fulfilment_view(
        _parts().redemptions.failed(user_id, created_at_of(entry_id), caller, clock.now())
    )


@app.route("POST /v1/users/{user_id}/redemptions/{entry_id}/reversal", status=201, answer=ENTRY)
def post_reversal(user_id: str, entry_id: str) -> dict[str, Any]:
    """Undo a redemption (streakline/fulfilment)."""
    user_requests.fulfiller(user_id)
    return _entry_view(_parts().redemptions.reverse(user_id, created_at_of(entry_id), clock.now()))


@app.route("POST /v1/users/{user_id}/clawbacks", body=CLAWBACK, status=201, answer=ENTRY)
def post_clawback(user_id: str) -> dict[str, Any]:
    """Reverse an event and what it earned (streakline/fulfilment).

    Once an event; the answer is its CLAWBACK entry. What was spent stays spent. So the balance may become a
    debt, which what is earned next pays.
    """
    user_requests.fulfiller(user_id)
    body = app.body()
    key = body["idempotency_key"]
    return _entry_view(
        _parts().clawbacks.claw_back(user_id, body["event_id"], body["reason"], key, clock.now())
    )


@app.route("POST /v1/users/{user_id}/freezes", body=FREEZE, status=201, answer=ENTRY)
def post_freeze(user_id: str) -> dict[str, Any]:
    """Get a freeze.

    Some a month are free, further ones cost points. What an admin gives is free.
    """
    caller = user_requests.commander(user_id)
    body = app.body()
    (granted_on,) = days_in(body, last_date(clock.now()), "granted_on")
    if granted_on and not caller.is_admin:
        raise ApiError(403, "forbidden", "granted_on needs streakline/admin")
    key, rewards = body.get("idempotency_key"), _parts().rewards
    if caller.is_admin:
        return _entry_view(rewards.give_freeze(user_id, key, granted_on, clock.now()))
    return _entry_view(rewards.take_freeze(user_id, key, clock.now()))


def _entry_view(outcome: CommandResult) -> dict[str, Any]:
    return _with_duplicate(entry_view(outcome.entry), outcome.duplicate)


def _redemption_view(redemption: Redemption) -> dict[str, Any]:
    return redemption_view(redemption, entry_id(redemption.created_at))


def _fulfilment_view(result: FulfilmentResult) -> dict[str, Any]:
    return _with_duplicate(_redemption_view(result.redemption), result.duplicate)


def _hold_view(result: HoldResult) -> dict[str, Any]:
    return _with_duplicate(hold_view(result.hold, result.status), result.duplicate)


def _with_duplicate(view: dict[str, Any], is_duplicate: bool) -> dict[str, Any]:
    return view | ({"duplicate": True} if is_duplicate else {})


# Routes of leaderboards, and of the names on them.


@app.route("PUT /v1/users/{user_id}/alias", body=ALIAS, answer=ALIAS_VIEW)
def put_alias(user_id: str) -> dict[str, Any]:
    """Choose a name for the boards."""
    user_requests.commander(user_id)
    names, now = _parts().names, clock.now()
    profile = _parts().preferences.set_alias(user_id, app.body()["alias"], now)
    names.forget(user_id)
    shown = names.shown(user_id, profile.alias)
    return {"user_id": user_id, "alias": profile.alias, "shown_as": shown}


@app.route("GET /v1/leaderboards/{board}", [REGION, limit_to(boards.LISTED_MAX)], answer=TOP_LIST)
def get_leaderboard(board: str) -> dict[str, Any]:
    """The best."""
    caller = app.caller()
    limit, now = integer(app.query, "limit", TOP_DEFAULT, boards.LISTED_MAX), clock.now()
    top = _parts().boards.top(board, app.query.get("region") or GLOBAL, limit, now)
    return board_view(top, _parts().names, caller.user_id, _parts().is_erased, now)


@app.route("GET /v1/leaderboards/{board}/users/{user_id}", [REGION], answer=RANK)
def get_rank(board: str, user_id: str) -> dict[str, Any]:
    """A user's exact rank."""
    user_requests.caller(user_id)
    region, now = app.query.get("region") or GLOBAL, clock.now()
    found = _parts().boards.rank(board, region, user_id, now)
    return found | {"alias": _parts().names.shown(user_id, found["alias"])}


# Routes of amnesties, all of them for admins.


@app.route("GET /v1/amnesties", answer=AMNESTIES)
def get_amnesties() -> dict[str, Any]:
    """All amnesties (admins)."""
    app.admin()
    return {"amnesties": list(map(amnesty_view, _parts().amnesties.store.look().known))}


@app.route("POST /v1/amnesties", body=DECLARATION, status=201, answer=AMNESTY)
def post_amnesty() -> dict[str, Any]:
    """Declare that an outage counts against nobody (admins).

    The dates that it touched are no misses. Apply it to all who have lost something.
    """
    author = app.admin().user_id
    try:
        return amnesty_view(_parts().amnesties.declare(app.body(), author, clock.now()))
    except DeclarationConflict:
        reason = "somebody else has declared one at the same time: look at it, then declare again"
        raise ApiError(409, "conflict", reason) from None


@app.route("POST /v1/amnesties/{number}/apply", body=APPLICATION, answer=APPLICATION_RESULT)
def post_amnesty_application(number: str) -> dict[str, Any]:
    """Apply an amnesty, or its revocation, to some users (admins)."""
    app.admin()
    body = app.body()
    users = [each for each in body["users"] if not _parts().is_erased(each)]
    if not users:
        raise ApiError(410, "erased", f"each of these users {ERASED_REASON}")
    is_dry = body.get("dry_run", False)
    return applied_view(_parts().amnesties.apply(number, users, clock.now(), is_dry=is_dry))


@app.route("POST /v1/amnesties/{number}/revoke", answer=AMNESTY)
def post_amnesty_revocation(number: str) -> dict[str, Any]:
    """Revoke an amnesty (admins)."""
    app.admin()
    return amnesty_view(_parts().amnesties.revoke(number, clock.now()))
