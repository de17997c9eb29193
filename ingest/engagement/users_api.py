"""Everything under /v1/users, /v1/rewards and /v1/leaderboards."""

from typing import Any

from aws_lambda_powertools.event_handler import Response

from adapters import clock, settings
from adapters.engagement.account_store import AccountContended
from adapters.engagement.ledger_store import TooManyEntries
from adapters.platform.keyed_hash import KeyedHash
from adapters.settings.users_api import UsersApiSettings
from ingest.engagement.engagement_schemas import ACTIVITY_VIEW, PAUSE, PROFILE, REVIEW, REVIEW_LIST, TIMEZONE
from ingest.engagement.goals.goal_schemas import ACHIEVEMENTS_VIEW, PERIOD_VIEW, STREAKS_VIEW
from ingest.engagement.history import covered_span
from ingest.engagement.preferences import known_zone, pause_span, pauses_view, timezone_view
from ingest.engagement.receipts.giving import receipt_keys, with_receipt
from ingest.engagement.users import amnesty_routes, asking, board_routes, points_routes  # noqa: F401 (they add routes)
from ingest.engagement.users.parts import app
from ingest.engagement.users.parts import parts as _parts
from ingest.web.caller import ApiError
from ingest.web.http import answer, failure
from ingest.web.paging import AHEAD_MAX, FIRST_DATE
from ingest.web.routes import PAGE, PLACE, in_query

logger = app.logger
DATE = {
    "type": "string",
    "format": "date",
    "description": f"from {FIRST_DATE} to {AHEAD_MAX.days} days from today (UTC); beyond: 422",
}
AS_OF, DAY = in_query("as_of", DATE), in_query("date", DATE, required=True)
COVERED = in_query("covered", {"type": "boolean"})


@app.exception_handler(AccountContended)
def contended(error: AccountContended) -> Response[str]:
    """Answer 503: too many writers changed the account at once. The caller may try again."""
    logger.warning("contended", extra={"user_id": str(error)})
    return failure(ApiError(503, "unavailable", "the account is busy", headers={"Retry-After": "1"}))


@app.exception_handler(TooManyEntries)
def too_many(error: TooManyEntries) -> Response[str]:
    """Answer 422: what is asked for follows from more entries than one request may read."""
    return failure(ApiError(422, "too_many_entries", str(error)))


@app.route("GET /v1/users/{user_id}", [AS_OF], answer=PROFILE)
def get_user(user_id: str) -> dict[str, Any]:
    """Profile."""
    asking.caller(user_id)
    return _parts().profiles.view(user_id, asking.day_asked("as_of"), clock.now())


@app.route("GET /v1/users/{user_id}/events", PAGE)
def get_user_events(user_id: str) -> dict[str, Any]:
    """Events, newest first."""
    asking.caller(user_id)
    return _parts().histories.events(user_id, app.query, clock.now())


@app.route("GET /v1/users/{user_id}/activity", [*PAGE, COVERED], answer=ACTIVITY_VIEW)
def get_user_activity(user_id: str) -> dict[str, Any]:
    """Active dates, newest first.

    With covered=true, from and to: also `covered`, the dates without activity, up to today, that a freeze, a
    pause or the zone covers, each with its reason.
    """
    asking.caller(user_id)
    found = _parts().histories.activity(user_id, app.query)
    if span := covered_span(app.query):
        found["covered"] = _parts().profiles.covered(user_id, *span, clock.now())
    return found


@app.route("GET /v1/users/{user_id}/streak/explain", [DAY])
def get_streak_explanation(user_id: str) -> dict[str, Any]:
    """Why a day counts or not."""
    asking.caller(user_id)
    return _parts().profiles.explain(user_id, asking.date_asked(), clock.now())


@app.route("GET /v1/users/{user_id}/streaks", [AS_OF], answer=STREAKS_VIEW)
def get_streaks(user_id: str) -> dict[str, Any]:
    """All streaks: the daily one, and those that the book declares."""
    asking.caller(user_id)
    return _parts().goals.view(user_id, asking.day_asked("as_of"), clock.now())


@app.route("GET /v1/users/{user_id}/streaks/{name}/explain", [DAY], answer=PERIOD_VIEW)
def get_period_explanation(user_id: str, name: str) -> dict[str, Any]:
    """Why a date's period counts for a streak or not."""
    asking.caller(user_id)
    return _parts().goals.explain(user_id, name, asking.date_asked(), clock.now())


@app.route("GET /v1/users/{user_id}/achievements", answer=ACHIEVEMENTS_VIEW)
def get_achievements(user_id: str) -> dict[str, Any]:
    """Achievements that the book declares: which, since when, and how far the others are.

    Who has over 10,000 ledger entries in about three weeks is refused: 422. So is who asks for the first time
    with over 50,000 in all.
    """
    asking.caller(user_id)
    return _parts().achievements.view(user_id, clock.now())


@app.route("POST /v1/users/{user_id}/pauses", body=PAUSE, status=201, may_repeat=True)
def post_pause(user_id: str) -> Response[str]:
    """Pause the streak."""
    asking.commander(user_id)
    now = clock.now()
    first, last = pause_span(app.body(), now)
    profile, is_new = _parts().preferences.pause(user_id, first, last, now)
    return answer(201 if is_new else 200, pauses_view(profile))


@app.route("PUT /v1/users/{user_id}/timezone", body=TIMEZONE)
def put_timezone(user_id: str) -> dict[str, Any]:
    """Set the zone."""
    asking.commander(user_id)
    name = known_zone(app.body()["timezone"])
    return timezone_view(_parts().preferences.set_timezone(user_id, name, clock.now()))


@app.route("GET /v1/review", PLACE, answer=REVIEW_LIST)
def get_review() -> dict[str, Any]:
    """Accounts under review, by user id (admins)."""
    app.admin()
    return _parts().reviews.waiting(app.query, _parts().is_erased)


@app.route("POST /v1/review/{user_id}/release", answer=REVIEW)
def post_release(user_id: str) -> dict[str, Any]:
    """End a review (admins)."""
    asking.anybody(user_id).check_admin()
    return _parts().reviews.release(user_id, clock.now())


def _receipt_keys() -> KeyedHash:
    return receipt_keys(settings.read(UsersApiSettings).receipt_secret_arn)


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Lambda entry: an HTTP API request, payload format 2.0."""
    return with_receipt(app.resolve(event, context), event, _receipt_keys)
