"""The routes of events, accounts and leaderboards."""

from ingest.engagement.engagement_schemas import (
    ALIAS,
    ALIAS_VIEW,
    ENTRY,
    EVENTS,
    FREEZE,
    PAUSE,
    PROFILE,
    RANK,
    REDEMPTION,
    RESULTS,
    REVIEW,
    REVIEW_LIST,
    TIMEZONE,
    TOP_LIST,
)
from ingest.web.json_schema import USER_ID, Schema
from ingest.web.routes import PAGE, TEXT, Route, in_path, in_query, matching
from rules.days import OTHER_REGION, REGIONS

EVENTS_API, USERS_API = "EventsApi", "UsersApi"
USER = in_path("user_id", matching(USER_ID))
ENTRY_ID = in_path("entry_id", matching("^[0-9]{8}T[0-9]{12}Z$"))
BOARD = in_path("board", {"type": "string", "enum": ["streaks", "points"]})
REGION = in_query("region", {"type": "string", "enum": ["global", *REGIONS, OTHER_REGION]})
TOP = in_query("limit", {"type": "integer", "minimum": 1, "maximum": 100})
DATE: Schema = {"type": "string", "format": "date"}
OF_USER = "/v1/users/{user_id}"

ENGAGEMENT_ROUTES = [
    Route(
        "PostEvents",
        EVENTS_API,
        "post",
        "/v1/events",
        "Send 1 to 100 events",
        body=EVENTS,
        status=202,
        answer=RESULTS,
    ),
    Route("GetUser", USERS_API, "get", OF_USER, "Profile", [USER, in_query("as_of", DATE)], answer=PROFILE),
    Route("GetUserEvents", USERS_API, "get", f"{OF_USER}/events", "Events, newest first", [USER, *PAGE]),
    Route(
        "GetUserActivity",
        USERS_API,
        "get",
        f"{OF_USER}/activity",
        "Active dates, newest first",
        [USER, *PAGE],
    ),
    Route(
        "GetUserLedger",
        USERS_API,
        "get",
        f"{OF_USER}/ledger",
        "Ledger entries, newest first",
        [USER, *PAGE],
    ),
    Route(
        "GetStreakExplanation",
        USERS_API,
        "get",
        f"{OF_USER}/streak/explain",
        "Why a day counts or not",
        [USER, in_query("date", DATE, required=True)],
    ),
    Route(
        "PostRedemption",
        USERS_API,
        "post",
        f"{OF_USER}/redemptions",
        "Spend points",
        [USER],
        body=REDEMPTION,
        status=201,
        answer=ENTRY,
    ),
    Route(
        "PostReversal",
        USERS_API,
        "post",
        f"{OF_USER}/redemptions/{{entry_id}}/reversal",
        "Undo a redemption (streakline/fulfilment)",
        [USER, ENTRY_ID],
        status=201,
        answer=ENTRY,
    ),
    Route(
        "PostFreeze",
        USERS_API,
        "post",
        f"{OF_USER}/freezes",
        "Get a freeze",
        [USER],
        body=FREEZE,
        status=201,
        answer=ENTRY,
        description="Some a month are free, further ones cost points. What an admin gives is free.",
    ),
    Route(
        "PostPause",
        USERS_API,
        "post",
        f"{OF_USER}/pauses",
        "Pause the streak",
        [USER],
        body=PAUSE,
        status=201,
    ),
    Route(
        "PutAlias",
        USERS_API,
        "put",
        f"{OF_USER}/alias",
        "Choose a name for the boards",
        [USER],
        body=ALIAS,
        answer=ALIAS_VIEW,
    ),
    Route("PutTimezone", USERS_API, "put", f"{OF_USER}/timezone", "Set the zone", [USER], body=TIMEZONE),
    Route(
        "GetReview",
        USERS_API,
        "get",
        "/v1/review",
        "Accounts under review, by user id (admins)",
        [in_query("limit", {"type": "integer", "minimum": 1, "maximum": 500}), in_query("cursor", TEXT)],
        answer=REVIEW_LIST,
    ),
    Route(
        "PostRelease",
        USERS_API,
        "post",
        "/v1/review/{user_id}/release",
        "End a review (admins)",
        [USER],
        answer=REVIEW,
    ),
    Route(
        "GetLeaderboard",
        USERS_API,
        "get",
        "/v1/leaderboards/{board}",
        "The best",
        [BOARD, REGION, TOP],
        answer=TOP_LIST,
    ),
    Route(
        "GetRank",
        USERS_API,
        "get",
        "/v1/leaderboards/{board}/users/{user_id}",
        "A user's exact rank",
        [BOARD, USER, REGION],
        answer=RANK,
    ),
]
