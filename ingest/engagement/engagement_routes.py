"""The routes of events, accounts and leaderboards."""

from ingest.engagement.amnesty.amnesty_routes import AMNESTY_ROUTES
from ingest.engagement.engagement_schemas import (
    ACTIVITY_VIEW,
    ALIAS,
    ALIAS_VIEW,
    BALANCE,
    CAPTURE,
    CLAWBACK,
    ENTRY,
    FREEZE,
    HOLD,
    HOLD_ID,
    HOLD_VIEW,
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
from ingest.engagement.event_schemas import EVENTS
from ingest.engagement.goals.goal_schemas import ACHIEVEMENTS_VIEW, PERIOD_VIEW, STREAKS_VIEW
from ingest.web.json_schema import USER_ID, Schema
from ingest.web.paging import AHEAD_MAX, FIRST_DATE
from ingest.web.routes import PAGE, TEXT, Route, in_path, in_query, matching
from rules.book.streak_reading import NAME
from rules.days import OTHER_REGION, REGIONS
from rules.engagement.points.past_balance import AS_OF_MAX

EVENTS_API, USERS_API = "EventsApi", "UsersApi"
USER = in_path("user_id", matching(USER_ID))
ENTRY_ID = in_path("entry_id", matching("^[0-9]{8}T[0-9]{12}Z$"))
HOLD_PLACE = in_path("hold_id", matching(HOLD_ID))
STREAK_NAME = in_path("name", matching(NAME))
BOARD = in_path("board", {"type": "string", "enum": ["streaks", "points"]})
REGION = in_query("region", {"type": "string", "enum": ["global", *REGIONS, OTHER_REGION]})
TOP = in_query("limit", {"type": "integer", "minimum": 1, "maximum": 100})
DATE: Schema = {
    "type": "string",
    "format": "date",
    "description": f"from {FIRST_DATE} to {AHEAD_MAX.days} days from today (UTC); beyond: 422",
}
PAST: Schema = {
    "type": "string",
    "format": "date-time",
    "description": f"of the last {AS_OF_MAX.days} days; beyond: 422",
}
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
        [USER, *PAGE, in_query("covered", {"type": "boolean"})],
        answer=ACTIVITY_VIEW,
        description="With covered=true, from and to: also `covered`, the dates without activity, up to today,"
        " that a freeze, a pause or the zone covers, each with its reason.",
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
        "GetStreaks",
        USERS_API,
        "get",
        f"{OF_USER}/streaks",
        "All streaks: the daily one, and those that the book declares",
        [USER, in_query("as_of", DATE)],
        answer=STREAKS_VIEW,
    ),
    Route(
        "GetPeriodExplanation",
        USERS_API,
        "get",
        f"{OF_USER}/streaks/{{name}}/explain",
        "Why a date's period counts for a streak or not",
        [USER, STREAK_NAME, in_query("date", DATE, required=True)],
        answer=PERIOD_VIEW,
    ),
    Route(
        "GetAchievements",
        USERS_API,
        "get",
        f"{OF_USER}/achievements",
        "Achievements that the book declares: which, since when, and how far the others are",
        [USER],
        answer=ACHIEVEMENTS_VIEW,
        description="Who has over 10,000 ledger entries in about three weeks is refused: 422."
        " So is who asks for the first time with over 50,000 in all.",
    ),
    Route(
        "GetBalance",
        USERS_API,
        "get",
        f"{OF_USER}/balance",
        "Points, read strongly from the ledger",
        [USER, in_query("as_of", PAST)],
        answer=BALANCE,
        description="With as_of: what the ledger said at that instant (known_balance), and what was so by"
        " then, late events and expiry included (true_balance). An instant before over 10,000 entries: 422.",
    ),
    Route(
        "PostHold",
        USERS_API,
        "post",
        f"{OF_USER}/holds",
        "Reserve points (streakline/fulfilment)",
        [USER],
        body=HOLD,
        status=201,
        answer=HOLD_VIEW,
    ),
    Route(
        "PostHoldCapture",
        USERS_API,
        "post",
        f"{OF_USER}/holds/{{hold_id}}/capture",
        "Spend held points, all or some (streakline/fulfilment)",
        [USER, HOLD_PLACE],
        body=CAPTURE,
        status=201,
        answer=ENTRY,
    ),
    Route(
        "PostHoldRelease",
        USERS_API,
        "post",
        f"{OF_USER}/holds/{{hold_id}}/release",
        "Give held points back (streakline/fulfilment)",
        [USER, HOLD_PLACE],
        answer=HOLD_VIEW,
    ),
    Route(
        "PostRedemption",
        USERS_API,
        "post",
        f"{OF_USER}/redemptions",
        "Redeem a reward",
        [USER],
        body=REDEMPTION,
        status=201,
        answer=ENTRY,
        description="At the book's price. Who is in streakline/fulfilment may name points instead.",
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
        "PostClawback",
        USERS_API,
        "post",
        f"{OF_USER}/clawbacks",
        "Reverse an event and what it earned (streakline/fulfilment)",
        [USER],
        body=CLAWBACK,
        status=201,
        answer=ENTRY,
        description="Once an event; the answer is its CLAWBACK entry. What was spent stays spent. So the"
        " balance may become a debt, which what is earned next pays.",
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
        may_repeat=True,
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
    *AMNESTY_ROUTES,
]
