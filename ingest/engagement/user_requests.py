"""The requests of users_api.py and points_api.py: who may ask, and for which date."""

from datetime import date

from adapters import clock
from ingest.engagement.points.balance import HOLD_ID
from ingest.engagement.user_services import services
from ingest.web.api import Api, refuse_erased
from ingest.web.caller import ApiError, Caller
from ingest.web.json_schema import USER_ID
from ingest.web.paging import day_of, last_date
from ingest.web.routes import text_matching
from rules.book.goal_rules import GOAL_NAME

app = Api(
    "UsersApi",
    {
        "user_id": text_matching(USER_ID),
        "entry_id": text_matching("^[0-9]{8}T[0-9]{12}Z$"),
        "hold_id": text_matching(HOLD_ID),
        "name": text_matching(GOAL_NAME),
        "board": {"type": "string", "enum": ["streaks", "points"]},
        "number": text_matching("^[0-9]{1,6}$"),
    },
)
refuse_erased(app, lambda: services().erased)


def anybody(user_id: str) -> Caller:
    """Return the caller, whoever it is. Raises 400 for a malformed user id."""
    app.check_path("user_id", user_id)
    return app.caller()


def require_reach(user_id: str) -> Caller:
    """Return the caller. Raises 400 for a malformed user id, 403 if the caller may not reach this user."""
    person = anybody(user_id)
    person.check(user_id)
    return person


def require_command(user_id: str) -> Caller:
    """Return the caller, who changes a user's account. Raises as require_reach, and 429.

    429: the caller has sent too many commands in this minute.
    """
    return count_command(require_reach(user_id))


def count_command(who: Caller) -> Caller:
    """Count a command of the caller, and return them; raises 429."""
    if not who.is_admin:
        services().command_limit.check(who.user_id, 1, clock.now())
    return who


def require_fulfilment(user_id: str) -> None:
    """Raise 403 unless the caller hands out rewards. Raises 400 and 429 as require_command."""
    who = anybody(user_id)
    who.check_fulfilment()
    count_command(who)


def require_shipper(user_id: str) -> Caller:
    """Return the caller, who says what became of rewards: a server, which no rate limits. Raises 400, 403."""
    who = anybody(user_id)
    if not who.brands:
        who.check_fulfilment()
    return who


def date_of_query(name: str) -> date | None:
    """Return the date that a query asks about; raises 400, and 422 for one that is too far ahead."""
    return day_of(app.query, name, last_date(clock.now()))


def required_date() -> date:
    """Return the date that must be asked about; raises as date_of_query."""
    if (day := date_of_query("date")) is None:
        raise ApiError(400, "invalid_parameter", "date is missing")
    return day
