"""Everything under /v1/users, /v1/rewards and /v1/leaderboards."""

from typing import Any

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response

from adapters import clock, settings
from adapters.engagement.account_store import AccountContended
from adapters.engagement.ledger_store import TooManyEntries
from adapters.logs import Logger
from adapters.platform.keyed_hash import KeyedHash
from adapters.settings.users_api import UsersApiSettings
from ingest.engagement.engagement_schemas import PAUSE, TIMEZONE
from ingest.engagement.history import covered_span
from ingest.engagement.preferences import known_zone, pause_span, pauses_view, timezone_view
from ingest.engagement.receipts.giving import receipt_keys, with_receipt
from ingest.engagement.users import amnesty_routes, asking, board_routes, points_routes
from ingest.engagement.users.parts import parts as _parts
from ingest.web.caller import ApiError, caller_of
from ingest.web.erased import refuse_erased
from ingest.web.http import answer, failure, resolver

logger = Logger(service="users-api")
app: APIGatewayHttpResolver = resolver(logger)
refuse_erased(app, lambda: _parts().erased)
app.include_router(points_routes.router)
app.include_router(board_routes.router)
app.include_router(amnesty_routes.router)


@app.exception_handler(AccountContended)
def contended(error: AccountContended) -> Response[str]:
    """Answer 503: too many writers changed the account at once. The caller may try again."""
    logger.warning("contended", extra={"user_id": str(error)})
    return failure(ApiError(503, "unavailable", "the account is busy", headers={"Retry-After": "1"}))


@app.exception_handler(TooManyEntries)
def too_many(error: TooManyEntries) -> Response[str]:
    """Answer 422: what is asked for follows from more entries than one request may read."""
    return failure(ApiError(422, "too_many_entries", str(error)))


@app.get("/v1/users/<user_id>")
def get_user(user_id: str) -> Response[str]:
    """Profile."""
    asking.caller(user_id)
    return answer(200, _parts().profiles.view(user_id, asking.day_asked("as_of"), clock.now()))


@app.get("/v1/users/<user_id>/events")
def get_events(user_id: str) -> Response[str]:
    """Events, newest first."""
    asking.caller(user_id)
    return answer(200, _parts().histories.events(user_id, asking.query(), clock.now()))


@app.get("/v1/users/<user_id>/activity")
def get_activity(user_id: str) -> Response[str]:
    """Active dates, newest first; where it is asked for, also what covers other dates."""
    asking.caller(user_id)
    found = _parts().histories.activity(user_id, asking.query())
    if span := covered_span(asking.query()):
        found["covered"] = _parts().profiles.covered(user_id, *span, clock.now())
    return answer(200, found)


@app.get("/v1/users/<user_id>/streak/explain")
def get_explanation(user_id: str) -> Response[str]:
    """Why a day counts or not."""
    asking.caller(user_id)
    return answer(200, _parts().profiles.explain(user_id, asking.date_asked(), clock.now()))


@app.get("/v1/users/<user_id>/streaks")
def get_streaks(user_id: str) -> Response[str]:
    """All streaks, with what their periods need."""
    asking.caller(user_id)
    return answer(200, _parts().goals.view(user_id, asking.day_asked("as_of"), clock.now()))


@app.get("/v1/users/<user_id>/streaks/<name>/explain")
def get_period_explanation(user_id: str, name: str) -> Response[str]:
    """Why the period of a date counts or not."""
    asking.caller(user_id)
    return answer(200, _parts().goals.explain(user_id, name, asking.date_asked(), clock.now()))


@app.get("/v1/users/<user_id>/achievements")
def get_achievements(user_id: str) -> Response[str]:
    """Achievements."""
    asking.caller(user_id)
    return answer(200, _parts().achievements.view(user_id, clock.now()))


@app.post("/v1/users/<user_id>/pauses")
def post_pause(user_id: str) -> Response[str]:
    """Pause the streak."""
    asking.commander(user_id)
    now = clock.now()
    first, last = pause_span(asking.body(PAUSE), now)
    profile, is_new = _parts().preferences.pause(user_id, first, last, now)
    return answer(201 if is_new else 200, pauses_view(profile))


@app.put("/v1/users/<user_id>/timezone")
def put_timezone(user_id: str) -> Response[str]:
    """Set the user's zone."""
    asking.commander(user_id)
    name = known_zone(asking.body(TIMEZONE)["timezone"])
    return answer(200, timezone_view(_parts().preferences.set_timezone(user_id, name, clock.now())))


@app.get("/v1/review")
def get_review() -> Response[str]:
    """Accounts that wait for an admin."""
    caller_of(app.current_event.raw_event).check_admin()
    return answer(200, _parts().reviews.waiting(asking.query(), _parts().is_erased))


@app.post("/v1/review/<user_id>/release")
def post_release(user_id: str) -> Response[str]:
    """End a review."""
    asking.anybody(user_id).check_admin()
    return answer(200, _parts().reviews.release(user_id, clock.now()))


def _receipt_keys() -> KeyedHash:
    return receipt_keys(settings.read(UsersApiSettings).receipt_secret_arn)


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Lambda entry: an HTTP API request, payload format 2.0."""
    answered = with_receipt(app.resolve(event, context), event, _receipt_keys)
    logger.info("answered", extra={"route": event.get("routeKey"), "status": answered["statusCode"]})
    return answered
