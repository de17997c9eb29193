"""Routes of users, leaderboards, reviews and amnesties, and the handler of their function.

The routes of points are in points/points_api.py.
"""

from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import unquote

from aws_lambda_powertools.event_handler import Response

from adapters import clock
from adapters.engagement.account_store import AccountContended
from adapters.engagement.amnesty_store import DeclarationConflict
from adapters.engagement.ledger_store import TooManyEntries
from ingest.engagement import (
    friends_api,  # noqa: F401 (its routes are this function's, too)
    user_services,
)
from ingest.engagement.amnesty_bodies import (
    AMNESTIES,
    AMNESTY,
    APPLICATION,
    APPLICATION_RESULT,
    DECLARATION,
    amnesty_of_body,
    amnesty_view,
    applied_view,
    find_amnesty,
)
from ingest.engagement.goal_views import ACHIEVEMENTS_VIEW, PERIOD_VIEW, STREAKS_VIEW
from ingest.engagement.history import ACTIVITY_VIEW, covered_span
from ingest.engagement.leaderboards import ALIAS, ALIAS_VIEW, RANK, TOP_LIST, board_view, checked_alias
from ingest.engagement.leagues import LEAGUE_VIEW, TAKING_PART, TAKING_PART_VIEW, league_view
from ingest.engagement.period_boards import (
    BOARD_VIEW,
    BOARDS_VIEW,
    GROUPS,
    PLACE_VIEW,
    SWITCH,
    USER_BOARDS_VIEW,
    BoardQuery,
    checked_groups,
    user_boards_view,
)
from ingest.engagement.points import points_api  # noqa: F401 (its routes are this function's, too)
from ingest.engagement.preferences import (
    PAUSE,
    PAUSES_VIEW,
    REST_DAYS,
    REST_DAYS_VIEW,
    REVIEW,
    REVIEW_LIST,
    TIMEZONE,
    TIMEZONE_VIEW,
    accounts_under_review,
    known_zone,
    pause_span,
    pauses_view,
    rest_days_view,
    review_view,
    timezone_view,
)
from ingest.engagement.profiles import PROFILE, PROFILES
from ingest.engagement.receipts import with_receipt
from ingest.engagement.user_services import app, services
from ingest.web.api import ERASED_REASON, error_response, json_response
from ingest.web.caller import ApiError
from ingest.web.json_schema import FLAG, one_of, text
from ingest.web.paging import AHEAD_MAX, FIRST_DATE, integer
from ingest.web.routes import PAGE, POSITION, in_query, limit_to
from rules.book.daily import Weekday
from rules.days import OTHER_REGION, REGIONS
from rules.engagement import boards
from rules.engagement.boards import GLOBAL
from rules.engagement.periods import NAMES
from rules.user_ids import user_id_problem

logger = app.logger
_parts = services  # under the name that it has in every function: bench and tests clear it
DATE = text(f"from {FIRST_DATE} to {AHEAD_MAX.days} days from today (UTC); beyond: 422", format="date")
AS_OF, DAY = in_query("as_of", DATE), in_query("date", DATE, required=True)
COVERED = in_query("covered", FLAG)
IDS_MAX = 100
IDS = in_query(
    "ids", text(f"1 to {IDS_MAX} user ids, with commas between them; a comma within an id is %252C"), True
)
TOP_DEFAULT = 10
PERIOD = in_query("period", text(f"{NAMES}; left out: that of the user's today"))
GROUP = in_query("group", text("of a divided board; left out: the user's own"))
REGION = in_query("region", one_of([GLOBAL, *REGIONS, OTHER_REGION]))


def ids_of_query(given: str) -> list[str]:
    """Return the user ids that a query asks for, each once. Raises 400."""
    asked = list(dict.fromkeys(unquote(each).replace(" ", "+") for each in given.split(",")))
    if len(asked) > IDS_MAX:
        raise ApiError(400, "invalid_parameter", f"ids has {len(asked)} ids; at most {IDS_MAX}")
    for user in asked:
        if problem := user_id_problem(user):
            raise ApiError(400, "invalid_parameter", f"ids: {user!r:.80} {problem}")
    return asked


@app.exception_handler(AccountContended)
def answer_contended(error: AccountContended) -> Response[str]:
    """Answer 503: too many writers changed the account at once. The caller may try again."""
    logger.warning("contended", extra={"user_id": str(error)})
    return error_response(ApiError(503, "unavailable", "the account is busy", headers={"Retry-After": "1"}))


@app.exception_handler(TooManyEntries)
def answer_too_many(error: TooManyEntries) -> Response[str]:
    """Answer 422: what is asked for follows from more entries than one request may read."""
    return error_response(ApiError(422, "too_many_entries", str(error)))


@app.route("GET /v1/users", [IDS], answer=PROFILES)
def get_users() -> dict[str, Any]:
    """Profiles of up to 100 users, for servers and admins.

    Each is as GET /v1/users/{user_id} shows it.
    """
    caller = app.caller()
    caller.check_server()
    asked = ids_of_query(app.query.get("ids", ""))
    there = [user for user in asked if not services().is_erased(user)]
    shown = services().profiles.views(there, clock.now(), lambda: user_services.count_history(caller))
    known = {each["user_id"] for each in shown}
    return {"users": shown, "missing": [user for user in asked if user not in known]}


@app.route("GET /v1/users/{user_id}", [AS_OF], answer=PROFILE)
def get_user(user_id: str) -> dict[str, Any]:
    """Profile."""
    count_read = partial(user_services.count_history, user_services.require_reach(user_id))
    return services().profiles.view(user_id, user_services.date_of_query("as_of"), clock.now(), count_read)


@app.route("GET /v1/users/{user_id}/events", PAGE)
def get_user_events(user_id: str) -> dict[str, Any]:
    """Events, newest first.

    Those of the lake may be read ten times a minute.
    """
    caller = user_services.require_reach(user_id)
    return services().histories.events(
        user_id, app.query, clock.now(), lambda: user_services.count_past(caller)
    )


@app.route("GET /v1/users/{user_id}/activity", [*PAGE, COVERED], answer=ACTIVITY_VIEW)
def get_user_activity(user_id: str) -> dict[str, Any]:
    """Active dates, newest first.

    With covered=true, from and to: also `covered`, the dates without activity, up to today, that a freeze, a
    pause, a rest day, a short date or the zone covers, each with its reason.
    """
    count_read = partial(user_services.count_history, user_services.require_reach(user_id))
    page = services().histories.activity(user_id, app.query)
    if span := covered_span(app.query):
        page["covered"] = services().profiles.covered(user_id, *span, clock.now(), count_read)
    return page


@app.route("GET /v1/users/{user_id}/streak/explain", [DAY])
def get_streak_explanation(user_id: str) -> dict[str, Any]:
    """Why a day counts or not."""
    count_read = partial(user_services.count_history, user_services.require_reach(user_id))
    return services().profiles.explain(user_id, user_services.required_date(), clock.now(), count_read)


@app.route("GET /v1/users/{user_id}/streaks", [AS_OF], answer=STREAKS_VIEW)
def get_streaks(user_id: str) -> dict[str, Any]:
    """All streaks: the daily one, and those that the book declares."""
    count_read = partial(user_services.count_history, user_services.require_reach(user_id))
    return services().goals.view(user_id, user_services.date_of_query("as_of"), clock.now(), count_read)


@app.route("GET /v1/users/{user_id}/streaks/{name}/explain", [DAY], answer=PERIOD_VIEW)
def get_period_explanation(user_id: str, name: str) -> dict[str, Any]:
    """Why a date's period counts for a streak or not."""
    user_services.require_reach(user_id)
    return services().goals.explain(user_id, name, user_services.required_date(), clock.now())


@app.route("GET /v1/users/{user_id}/achievements", answer=ACHIEVEMENTS_VIEW)
def get_achievements(user_id: str) -> dict[str, Any]:
    """Achievements that the book declares: which, since when, and how far the others are.

    Who has over 10,000 ledger entries in about three weeks is refused: 422. So is who asks for the first time
    with over 50,000 in all.
    """
    user_services.count_history(user_services.require_reach(user_id))
    return services().achievements.view(user_id, clock.now())


@app.route("POST /v1/users/{user_id}/pauses", body=PAUSE, status=201, answer=PAUSES_VIEW, may_repeat=True)
def post_pause(user_id: str) -> Response[str]:
    """Pause the streak."""
    user_services.require_command(user_id)
    now = clock.now()
    first, last = pause_span(app.body(), now)
    profile, is_new = services().preferences.pause(user_id, first, last, now)
    return json_response(201 if is_new else 200, pauses_view(profile))


@app.route("PUT /v1/users/{user_id}/rest-days", body=REST_DAYS, answer=REST_DAYS_VIEW)
def put_rest_days(user_id: str) -> dict[str, Any]:
    """Choose rest days.

    They are weekdays on which a date without activity is no miss, as many as the book's
    daily.rest_days_chosen. A choice counts from the first date on that has begun nowhere on earth, and stays
    for 28 days at least.
    """
    user_services.require_command(user_id)
    weekdays = [Weekday.of(name) for name in app.body()["rest_days"]]
    return rest_days_view(services().preferences.choose_rest_days(user_id, weekdays, clock.now()))


@app.route("PUT /v1/users/{user_id}/timezone", body=TIMEZONE, answer=TIMEZONE_VIEW)
def put_timezone(user_id: str) -> dict[str, Any]:
    """Set the zone."""
    user_services.require_command(user_id)
    name = known_zone(app.body()["timezone"], "timezone")
    return timezone_view(services().preferences.set_timezone(user_id, name, clock.now()))


@app.route("GET /v1/review", POSITION, answer=REVIEW_LIST)
def get_review() -> dict[str, Any]:
    """Accounts under review, by user id (admins)."""
    app.admin()
    return accounts_under_review(services().under_review, app.query, services().is_erased)


@app.route("POST /v1/review/{user_id}/release", answer=REVIEW)
def post_release(user_id: str) -> dict[str, Any]:
    """End a review (admins)."""
    user_services.any_caller(user_id).check_admin()
    return review_view(services().preferences.release(user_id, clock.now()))


@app.route("PUT /v1/users/{user_id}/alias", body=ALIAS, answer=ALIAS_VIEW)
def put_alias(user_id: str) -> dict[str, Any]:
    """Choose a name for the boards."""
    user_services.require_command(user_id)
    names, now = services().names, clock.now()
    profile = services().preferences.set_alias(user_id, checked_alias(app.body()["alias"]), now)
    names.forget(user_id)
    return {
        "user_id": user_id,
        "alias": profile.alias,
        "shown_as": names.name_of(user_id, profile.alias),
    }


@app.route("GET /v1/leaderboards/{board}", [REGION, limit_to(boards.LISTED_MAX)], answer=TOP_LIST)
def get_leaderboard(board: str) -> dict[str, Any]:
    """The best."""
    caller = app.caller()
    limit, now = integer(app.query, "limit", TOP_DEFAULT, boards.LISTED_MAX), clock.now()
    top = services().boards.top(board, app.query.get("region") or GLOBAL, limit, now)
    return board_view(top, services().names, caller.user_id, services().is_erased, now)


@app.route("GET /v1/leaderboards/{board}/users/{user_id}", [REGION], answer=RANK)
def get_rank(board: str, user_id: str) -> dict[str, Any]:
    """A user's exact rank."""
    user_services.require_reach(user_id)
    region, now = app.query.get("region") or GLOBAL, clock.now()
    rank = services().boards.rank(board, region, user_id, now)
    return rank | {"alias": services().names.name_of(user_id, rank["alias"])}


@app.route("GET /v1/users/{user_id}/league", answer=LEAGUE_VIEW)
def get_league(user_id: str) -> dict[str, Any]:
    """The user's division, the open league, and the last outcome.

    Leagues are shown only: nothing is earned in them. 404: there are no leagues this week.
    """
    user_services.require_reach(user_id)
    now = clock.now()
    state = services().leagues.state(user_id, now)
    return league_view(user_id, state, services().names, services().is_erased, now)


@app.route("PUT /v1/users/{user_id}/league", body=TAKING_PART, answer=TAKING_PART_VIEW)
def put_league(user_id: str) -> dict[str, Any]:
    """Leave the leagues, or come back."""
    user_services.require_command(user_id)
    takes_part = app.body()["taking_part"]
    services().leagues.take_part(user_id, clock.now(), takes_part=takes_part)
    return {"user_id": user_id, "taking_part": takes_part}


@app.route("PUT /v1/users/{user_id}/boards", body=SWITCH, answer=USER_BOARDS_VIEW)
def put_boards(user_id: str) -> dict[str, Any]:
    """Leave all boards, or come back.

    Who has left is on no list and in no count, from the next snapshot on: five minutes, of many users up to
    the pause between two snapshots. Own ranks answer 409.
    """
    user_services.require_command(user_id)
    profile = services().preferences.set_hidden(user_id, app.body()["hidden"], clock.now())
    services().names.forget(user_id)
    return user_boards_view(profile)


@app.route("GET /v1/users/{user_id}/boards", answer=USER_BOARDS_VIEW)
def get_user_boards(user_id: str) -> dict[str, Any]:
    """Whether a user has left the boards, and in which groups the user is."""
    user_services.require_reach(user_id)
    return user_boards_view(services().profiles.get(user_id))


@app.route("PUT /v1/users/{user_id}/groups", body=GROUPS, answer=USER_BOARDS_VIEW)
def put_groups(user_id: str) -> dict[str, Any]:
    """Say in which groups a user is: all of them (servers).

    Boards that are divided by an attribute rank each of its groups. A change counts for all periods that are
    not final.
    """
    caller = user_services.any_caller(user_id)
    caller.check_server()
    user_services.count_command(caller, user_id)
    profile = services().preferences.set_groups(user_id, checked_groups(app.body()), clock.now())
    return user_boards_view(profile)


@app.route("GET /v1/boards", answer=BOARDS_VIEW)
def get_boards() -> dict[str, Any]:
    """The boards of the book, with their periods: those that go on, and final results."""
    app.caller()
    return services().period_boards.boards(clock.now())


@app.route("GET /v1/boards/{board_name}", [PERIOD, GROUP, limit_to(boards.LISTED_MAX)], answer=BOARD_VIEW)
def get_board(board_name: str) -> dict[str, Any]:
    """A board of a period: the best, and for a user the own rank and the rows around."""
    app.check_path("board_name", board_name)
    asked, limit = _board_query(board_name), integer(app.query, "limit", TOP_DEFAULT, boards.LISTED_MAX)
    caller = app.caller()
    count_read = partial(user_services.count_history, caller)
    return services().period_boards.top(asked, caller, limit, clock.now(), count_read)


def _board_query(board_name: str) -> BoardQuery:
    app.check_path("board_name", board_name)
    return BoardQuery(board_name, app.query.get("period"), app.query.get("group"))


@app.route("GET /v1/boards/{board_name}/users/{user_id}", [PERIOD, GROUP], answer=PLACE_VIEW)
def get_place(board_name: str, user_id: str) -> dict[str, Any]:
    """A user's rank on a board of a period, with the rows around."""
    count_read = partial(user_services.count_history, user_services.require_reach(user_id))
    asked = _board_query(board_name)
    return services().period_boards.place(asked, user_id, clock.now(), count_read)


@app.route("GET /v1/amnesties", answer=AMNESTIES)
def get_amnesties() -> dict[str, Any]:
    """All amnesties (admins)."""
    app.admin()
    return {"amnesties": list(map(amnesty_view, services().amnesties.look().known))}


@app.route("POST /v1/amnesties", body=DECLARATION, status=201, answer=AMNESTY)
def post_amnesty() -> dict[str, Any]:
    """Declare that an outage counts against nobody (admins).

    The dates that it touched are no misses. Apply it to all who have lost something.
    """
    author, now = app.admin().user_id, clock.now()
    try:
        amnesty = amnesty_of_body(app.body(), author, now)
        return amnesty_view(services().amnesties.declare(amnesty, now))
    except DeclarationConflict:
        reason = "somebody else has declared one at the same time: look at it, then declare again"
        raise ApiError(409, "conflict", reason) from None


@app.route("POST /v1/amnesties/{number}/apply", body=APPLICATION, answer=APPLICATION_RESULT)
def post_amnesty_application(number: str) -> dict[str, Any]:
    """Apply an amnesty, or its revocation, to some users (admins)."""
    app.admin()
    body, now = app.body(), clock.now()
    users = [user for user in body["users"] if not services().is_erased(user)]
    if not users:
        raise ApiError(410, "erased", f"each of these users {ERASED_REASON}")
    store, applier = services().amnesties, services().amnesty_applier
    named = frozenset({find_amnesty(store, number).number})
    amnesties = replace(store.look(), named=named)
    is_dry = body.get("dry_run", False)
    return applied_view(applier.apply(user, amnesties, now, is_dry=is_dry) for user in users)


@app.route("POST /v1/amnesties/{number}/revoke", answer=AMNESTY)
def post_amnesty_revocation(number: str) -> dict[str, Any]:
    """Revoke an amnesty (admins)."""
    app.admin()
    # Accounts lose it when it is applied, or with their next event.
    store = services().amnesties
    revoked = find_amnesty(store, number).number
    return amnesty_view(store.revoke(revoked, clock.now()))


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Lambda entry: an HTTP API request, payload format 2.0."""
    return with_receipt(app.resolve(event, context), event, lambda: services().receipt_keys)
