"""Who asks, and what they ask for: of the request that is being answered."""

from datetime import date

from adapters import clock
from ingest.engagement.users.parts import app, parts
from ingest.web.caller import ApiError, Caller
from ingest.web.paging import day_of, last_date


def anybody(user_id: str) -> Caller:
    """Return the caller, whoever it is; raises 400 for a malformed user id."""
    app.check_path("user_id", user_id)
    return app.caller()


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


def day_asked(name: str) -> date | None:
    """Return the date that a query asks about; raises 400, and 422 for one that is too far ahead."""
    return day_of(app.query, name, last_date(clock.now()))


def date_asked() -> date:
    """Return the date that must be asked about; raises as day_asked."""
    if (asked := day_asked("date")) is None:
        raise ApiError(400, "invalid_parameter", "date is missing")
    return asked
