"""Who asks, and what they ask for: of the request that is being answered."""

from datetime import date
from typing import Any

from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

from adapters import clock
from ingest.engagement.users.parts import parts
from ingest.web.caller import ApiError, Caller, caller_of
from ingest.web.http import json_body
from ingest.web.json_schema import USER_ID, Schema
from ingest.web.paging import day_of, last_date
from ingest.web.validate import first_problem

# A router that has no routes: every router knows the request at hand.
_request = APIGatewayHttpRouter()  # type: ignore[no-untyped-call]  # Powertools leaves it untyped


def query() -> dict[str, str]:
    """Return the query's parameters; of one that is given twice, the last."""
    return _request.current_event.query_string_parameters or {}


def anybody(user_id: str) -> Caller:
    """Return the caller, whoever it is; raises 400 for a malformed user id."""
    if problem := first_problem({"type": "string", "pattern": USER_ID}, user_id):
        raise ApiError(400, "invalid_parameter", f"user_id {problem[1]}")
    return caller_of(_request.current_event.raw_event)


def caller(user_id: str) -> Caller:
    """Return the caller; raises 400 for a malformed user id, 403 if the caller may not reach this user."""
    found = anybody(user_id)
    found.check(user_id)
    return found


def commander(user_id: str) -> Caller:
    """Return who changes a user's account; raises as caller, and 429 if they change too much in a minute."""
    return counted(caller(user_id))


def counted(who: Caller) -> Caller:
    """Count a command of the caller, and return them; raises 429."""
    if not who.is_admin:
        parts().commands.check(who.user_id, 1, clock.now())
    return who


def fulfiller(user_id: str) -> None:
    """Raise 403 unless the caller hands out rewards; 400, 429 as commander."""
    who = anybody(user_id)
    who.check_fulfilment()
    counted(who)


def shipper(user_id: str) -> Caller:
    """Return who says what became of rewards: a server, which no rate limits. Raises 400, 403."""
    who = anybody(user_id)
    if not who.brands:
        who.check_fulfilment()
    return who


def body(schema: Schema) -> dict[str, Any]:
    """Return the body; raises 400 for no JSON, 422 for what the schema refuses."""
    return json_body(_request.current_event.raw_event, schema)


def day_asked(name: str) -> date | None:
    """Return the date that a query asks about; raises 400, and 422 for one that is too far ahead."""
    return day_of(query(), name, last_date(clock.now()))


def date_asked() -> date:
    """Return the date that must be asked about; raises as day_asked."""
    if (asked := day_asked("date")) is None:
        raise ApiError(400, "invalid_parameter", "date is missing")
    return asked
