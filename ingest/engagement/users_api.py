"""Everything under /v1/users and /v1/leaderboards."""

# Long: a short function a route.

from dataclasses import dataclass
from functools import cache
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response

from adapters import clock, settings
from adapters.book.book_store import BookStore
from adapters.engagement.account_store import AccountContended, AccountStore
from adapters.engagement.board_names import BoardNames
from adapters.engagement.board_snapshots import BoardSnapshots
from adapters.engagement.claims import ClaimStore
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.event_store import EventStore
from adapters.engagement.leaderboard_index import LeaderboardIndex
from adapters.engagement.ledger_store import LedgerStore
from adapters.engagement.review_index import ReviewIndex
from adapters.platform.aws import client
from adapters.platform.keyed_hash import KeyedHash
from adapters.platform.shared_counters import SharedCounters
from adapters.settings.engagement import UsersApiSettings
from ingest.engagement.commands import CommandResult, Commands
from ingest.engagement.engagement_schemas import ALIAS, FREEZE, PAUSE, REDEMPTION, TIMEZONE
from ingest.engagement.history import Histories, created_at, entry_view
from ingest.engagement.leaderboards import Leaderboards, as_shown
from ingest.engagement.preferences import (
    Preferences,
    Reviews,
    known_zone,
    pause_span,
    pauses_view,
    timezone_view,
)
from ingest.engagement.profiles import Profiles
from ingest.engagement.rewards import Rewards
from ingest.web.caller import ApiError, Caller, caller_of
from ingest.web.http import answer, failure, json_body, resolver
from ingest.web.json_schema import USER_ID, Schema
from ingest.web.paging import day_of, integer
from ingest.web.rate_limit import Limits, RateLimit
from ingest.web.validate import first_problem
from rules.engagement.standings import GLOBAL, LISTED_MAX

TOP_DEFAULT = 10
READS_BLOCK = 5

logger = Logger(service="users-api")
app: APIGatewayHttpResolver = resolver(logger)


@dataclass(frozen=True, slots=True)
class _Parts:
    profiles: Profiles
    histories: Histories
    rewards: Rewards
    preferences: Preferences
    boards: Leaderboards
    names: BoardNames
    reviews: Reviews
    commands: RateLimit
    reads: RateLimit


@cache
def _parts() -> _Parts:
    config, dynamodb = settings.read(UsersApiSettings), client("dynamodb")
    ledger = LedgerStore(dynamodb, config.rewards_ledger_table)
    accounts = AccountStore(
        dynamodb, config.user_streaks_table, config.daily_activity_table, ledger, config.index_shards
    )
    events = EventStore(dynamodb, config.bp_events_table)
    redis = EngagementCache(config.redis_url)
    profiles = Profiles(accounts, events, redis)
    books = BookStore(dynamodb, config.rule_books_table)
    hashed = KeyedHash(lambda: client("secretsmanager"), config.fingerprint_secret_arn)
    limits = Limits(redis, SharedCounters(dynamodb, config.limits_table))
    preferences = Preferences(accounts, redis, books)
    claims = ClaimStore(dynamodb, config.idempotency_keys_table)
    index = LeaderboardIndex(dynamodb, config.user_streaks_table, config.index_shards)
    return _Parts(
        profiles,
        Histories(accounts, events),
        Rewards(Commands(accounts, claims, config.idempotency_keys_table, redis), books),
        preferences,
        Leaderboards(profiles, BoardSnapshots(dynamodb, config.boards_table), index, redis),
        BoardNames(dynamodb, config.user_streaks_table, hashed),
        Reviews(ReviewIndex(dynamodb, config.user_streaks_table), preferences),
        limits.of("commands", config.commands_per_minute),
        limits.of("reads of boards", config.board_reads_per_minute, READS_BLOCK),
    )


def _query() -> dict[str, str]:
    return app.current_event.query_string_parameters or {}


def _anybody(user_id: str) -> Caller:
    """Return the caller, whoever it is; raises 400 for a malformed user id."""
    if problem := first_problem({"type": "string", "pattern": USER_ID}, user_id):
        raise ApiError(400, "invalid_parameter", f"user_id {problem[1]}")
    return caller_of(app.current_event.raw_event)


def _caller(user_id: str) -> Caller:
    """Return the caller; raises 400 for a malformed user id, 403 if the caller may not reach this user."""
    caller = _anybody(user_id)
    caller.check(user_id)
    return caller


def _commander(user_id: str) -> Caller:
    """Return who changes a user's account; raises as _caller, and 429 if they change too much in a minute."""
    return _counted(_caller(user_id))


def _counted(caller: Caller) -> Caller:
    if not caller.is_admin:
        _parts().commands.check(caller.user_id, 1, clock.now())
    return caller


def _reader(caller: Caller) -> None:
    """Raise 429 if somebody reads boards too often."""
    if not caller.is_admin:
        _parts().reads.check(caller.user_id, 1, clock.now())


def _body(schema: Schema) -> dict[str, Any]:
    return json_body(app.current_event.raw_event, schema)


@app.exception_handler(AccountContended)
def contended(error: AccountContended) -> Response[str]:
    """Answer 503: too many writers changed the account at once. The caller may try again."""
    logger.warning("contended", extra={"user_id": str(error)})
    return failure(ApiError(503, "unavailable", "the account is busy", headers={"Retry-After": "1"}))


@app.get("/v1/users/<user_id>")
def get_user(user_id: str) -> Response[str]:
    """Profile."""
    _caller(user_id)
    return answer(200, _parts().profiles.view(user_id, day_of(_query(), "as_of"), clock.now()))


@app.get("/v1/users/<user_id>/events")
def get_events(user_id: str) -> Response[str]:
    """Events, newest first."""
    _caller(user_id)
    return answer(200, _parts().histories.events(user_id, _query(), clock.now()))


@app.get("/v1/users/<user_id>/activity")
def get_activity(user_id: str) -> Response[str]:
    """Active dates, newest first."""
    _caller(user_id)
    return answer(200, _parts().histories.activity(user_id, _query()))


@app.get("/v1/users/<user_id>/ledger")
def get_ledger(user_id: str) -> Response[str]:
    """Ledger entries with running balance, newest first."""
    _caller(user_id)
    return answer(200, _parts().histories.ledger(user_id, _query()))


@app.get("/v1/users/<user_id>/streak/explain")
def get_explanation(user_id: str) -> Response[str]:
    """Why a day counts or not."""
    _caller(user_id)
    asked = day_of(_query(), "date")
    if asked is None:
        raise ApiError(400, "invalid_parameter", "date is missing")
    return answer(200, _parts().profiles.explain(user_id, asked, clock.now()))


@app.post("/v1/users/<user_id>/redemptions")
def post_redemption(user_id: str) -> Response[str]:
    """Spend points."""
    _commander(user_id)
    body, rewards = _body(REDEMPTION), _parts().rewards
    key = body["idempotency_key"]
    return _entry(rewards.redeem(user_id, body["points"], body["reward_id"], key, clock.now()))


@app.post("/v1/users/<user_id>/redemptions/<entry_id>/reversal")
def post_reversal(user_id: str, entry_id: str) -> Response[str]:
    """Undo a redemption, once."""
    caller = _anybody(user_id)
    caller.check_fulfilment()
    _counted(caller)
    return _entry(_parts().rewards.reverse(user_id, created_at(entry_id), clock.now()))


@app.post("/v1/users/<user_id>/freezes")
def post_freeze(user_id: str) -> Response[str]:
    """Get a streak freeze."""
    caller = _commander(user_id)
    body = _body(FREEZE) if app.current_event.body else {}
    granted_on = day_of(body, "granted_on")
    if granted_on and not caller.is_admin:
        raise ApiError(403, "forbidden", "granted_on needs streakline/admin")
    key, rewards = body.get("idempotency_key"), _parts().rewards
    if caller.is_admin:
        return _entry(rewards.give_freeze(user_id, key, granted_on, clock.now()))
    return _entry(rewards.take_freeze(user_id, key, clock.now()))


@app.post("/v1/users/<user_id>/pauses")
def post_pause(user_id: str) -> Response[str]:
    """Pause the streak."""
    _commander(user_id)
    first, last = pause_span(_body(PAUSE))
    profile = _parts().preferences.pause(user_id, first, last, clock.now())
    return answer(201, pauses_view(profile))


@app.put("/v1/users/<user_id>/alias")
def put_alias(user_id: str) -> Response[str]:
    """Choose a name for the boards."""
    _commander(user_id)
    parts, now = _parts(), clock.now()
    profile = parts.preferences.set_alias(user_id, _body(ALIAS)["alias"], now)
    parts.names.forget(user_id)
    shown = parts.names.shown(user_id, profile.alias)
    return answer(200, {"user_id": user_id, "alias": profile.alias, "shown_as": shown})


@app.put("/v1/users/<user_id>/timezone")
def put_timezone(user_id: str) -> Response[str]:
    """Set the user's zone."""
    _commander(user_id)
    name = known_zone(_body(TIMEZONE)["timezone"])
    return answer(200, timezone_view(_parts().preferences.set_timezone(user_id, name, clock.now())))


@app.get("/v1/review")
def get_review() -> Response[str]:
    """Accounts that wait for an admin."""
    caller_of(app.current_event.raw_event).check_admin()
    return answer(200, _parts().reviews.waiting(_query()))


@app.post("/v1/review/<user_id>/release")
def post_release(user_id: str) -> Response[str]:
    """End a review."""
    _anybody(user_id).check_admin()
    return answer(200, _parts().reviews.release(user_id, clock.now()))


@app.get("/v1/leaderboards/<board>")
def get_leaderboard(board: str) -> Response[str]:
    """The best users of a region, or of all regions."""
    caller = caller_of(app.current_event.raw_event)
    _reader(caller)
    limit, now = integer(_query(), "limit", TOP_DEFAULT, LISTED_MAX), clock.now()
    top = _parts().boards.top(board, _query().get("region") or GLOBAL, limit, now)
    return answer(200, as_shown(top, _parts().names, caller.user_id, now))


@app.get("/v1/leaderboards/<board>/users/<user_id>")
def get_rank(board: str, user_id: str) -> Response[str]:
    """A user's exact rank."""
    _reader(_caller(user_id))
    region, now = _query().get("region") or GLOBAL, clock.now()
    found = _parts().boards.rank(board, region, user_id, now)
    return answer(200, found | {"alias": _parts().names.shown(user_id, found["alias"])})


def _entry(outcome: CommandResult) -> Response[str]:
    return answer(201, entry_view(outcome.entry) | ({"duplicate": True} if outcome.duplicate else {}))


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Lambda entry: an HTTP API request, payload format 2.0."""
    answered = app.resolve(event, context)
    logger.info("answered", extra={"route": event.get("routeKey"), "status": answered["statusCode"]})
    return answered
