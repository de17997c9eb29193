"""The bodies of events and of account commands, as JSON Schema.

The doors validate with these schemas, and the OpenAPI document shows the same ones.
"""

# Long: a table of bodies.

from ingest.web.json_schema import DATE, KEY, SHORT, USER_ID, Schema, closed_object
from rules.book.book_schema import TYPE_NAME

EVENTS_MAX = 100
EVENT = closed_object(
    ["idempotency_key", "event_type", "occurred_at"],
    {
        "idempotency_key": KEY,
        "event_type": {
            "type": "string",
            "pattern": TYPE_NAME,
            "description": "a type of the book of rules (GET /v1/rules); some only servers may declare:"
            " streakline/producers or streakline/admin",
        },
        "occurred_at": {
            "type": "string",
            "maxLength": 40,
            "description": "RFC 3339 with Z or an offset; at most 72 hours ago (admins, producers: any time"
            " from 1970 on), at most 5 minutes ahead",
        },
        "timezone": {
            "type": "string",
            "minLength": 1,
            "maxLength": 64,
            "description": "IANA name or offset (-07:00); decides the activity date",
        },
        "source": {"type": "string", "pattern": SHORT},
        "user_id": {
            "type": "string",
            "pattern": USER_ID,
            "description": "admins and producers; else the caller's own",
        },
        "properties": {"type": "object", "description": "anything, up to 64 KB as JSON"},
    },
    example={
        "idempotency_key": "3f1c",
        "event_type": "LESSON_COMPLETED",
        "occurred_at": "2026-11-20T23:30:00-05:00",
        "timezone": "America/New_York",
    },
)
EVENTS = closed_object(
    ["events"],
    {
        "events": {
            "type": "array",
            "minItems": 1,
            "maxItems": EVENTS_MAX,
            "items": {"type": "object"},
            "description": "each is checked by itself: a bad one never spoils its neighbours",
        }
    },
)
REDEMPTION = closed_object(
    ["points", "reward_id", "idempotency_key"],
    {
        "points": {"type": "integer", "minimum": 1, "maximum": 1_000_000_000},
        "reward_id": {"type": "string", "pattern": SHORT},
        "idempotency_key": KEY,
    },
)
FREEZE = closed_object(
    [],
    {
        "idempotency_key": KEY,
        "granted_on": {
            "type": "string",
            "pattern": DATE,
            "description": "admins: the first date that the freeze can cover (default: the user's today)",
        },
    },
)
ALIAS = closed_object(
    ["alias"],
    {
        "alias": {
            "type": ["string", "null"],
            "pattern": r"^(?![Pp][Ll][Aa][Yy][Ee][Rr]-)[A-Za-z0-9][A-Za-z0-9 _.-]{1,22}[A-Za-z0-9]$",
            "description": "3 to 24 letters, digits, spaces, dots, dashes, but none that begins with player-;"
            " null: a pseudonym. It is no proof: two users may have the same",
        }
    },
)
ALIAS_VIEW = closed_object(
    ["user_id", "alias", "shown_as"],
    {
        "user_id": {"type": "string"},
        "alias": {"type": ["string", "null"]},
        "shown_as": {"type": "string", "description": "the alias, or the pseudonym"},
    },
)
TIMEZONE = closed_object(["timezone"], {"timezone": {"type": "string", "minLength": 1, "maxLength": 64}})
PAUSE = closed_object(
    ["first", "last"],
    {
        "first": {"type": "string", "pattern": DATE, "description": "not before the user's today"},
        "last": {"type": "string", "pattern": DATE, "description": "at most 90 days after the first"},
    },
)

RESULTS = closed_object(
    ["accepted", "duplicates", "rejected", "results"],
    {
        "accepted": {"type": "integer"},
        "duplicates": {"type": "integer"},
        "rejected": {"type": "integer", "description": "conflicts included"},
        "results": {
            "type": "array",
            "items": closed_object(
                ["idempotency_key", "status"],
                {
                    "idempotency_key": {"type": ["string", "null"]},
                    "status": {"type": "string", "enum": ["accepted", "duplicate", "conflict", "rejected"]},
                    "event_id": {"type": "string"},
                    "error": {"type": "object"},
                },
            ),
        },
    },
)
ENTRY: Schema = {
    "type": "object",
    "required": ["entry_id", "kind", "points", "balance", "created_at"],
    "properties": {
        "entry_id": {"type": "string"},
        "kind": {"type": "string"},
        "points": {"type": "integer", "description": "signed"},
        "balance": {"type": "integer", "minimum": 0, "description": "after this entry"},
        "created_at": {"type": "string"},
        "duplicate": {"type": "boolean"},
    },
}
PROFILE: Schema = {
    "type": "object",
    "required": [
        *("user_id", "current_streak", "longest_streak", "streak_status", "last_activity_date"),
        *("timezone", "total_bestie_points", "balance", "freezes_available", "active_days"),
    ],
    "properties": {
        "user_id": {"type": "string"},
        "current_streak": {"type": "integer", "minimum": 0},
        "longest_streak": {"type": "integer", "minimum": 0},
        "streak_status": {"type": "string", "enum": ["active", "at_risk", "broken", "none"]},
        "last_activity_date": {"type": ["string", "null"]},
        "timezone": {"type": "string"},
        "total_bestie_points": {"type": "integer", "minimum": 0},
        "balance": {"type": "integer", "minimum": 0},
        "freezes_available": {"type": "integer", "description": "below 0: a debt"},
        "active_days": {"type": "integer", "minimum": 0},
        "as_of": {"type": "string"},
    },
}
_REASONS: Schema = {"type": "array", "items": {"type": "string"}}
REVIEW = closed_object(
    ["user_id", "under_review", "evidence"],
    {
        "user_id": {"type": "string"},
        "under_review": {"type": "boolean", "description": "true: redemptions wait"},
        "evidence": _REASONS,
        "released_at": {"type": ["string", "null"]},
    },
)
REVIEW_LIST = closed_object(
    ["accounts", "cursor"],
    {
        "accounts": {
            "type": "array",
            "items": closed_object(
                ["user_id", "since", "evidence"],
                {
                    "user_id": {"type": "string"},
                    "since": {"type": ["string", "null"]},
                    "evidence": _REASONS,
                },
            ),
        },
        "cursor": {"type": ["string", "null"], "description": "null: no more"},
    },
)
AS_OF: Schema = {"type": "string", "format": "date-time", "description": "when the scores were compared"}
BOARD_ROW = closed_object(
    ["rank", "alias", "score", "is_me"],
    {
        "rank": {"type": "integer", "minimum": 1},
        "alias": {"type": "string", "description": "chosen by the user, or a stable pseudonym"},
        "score": {"type": "integer", "minimum": 1},
        "is_me": {"type": "boolean"},
    },
)
TOP_LIST = closed_object(
    ["board", "region", "as_of", "entries"],
    {
        "board": {"type": "string"},
        "region": {"type": "string"},
        "as_of": AS_OF,
        "entries": {"type": "array", "items": BOARD_ROW},
    },
)
RANK = closed_object(
    ["board", "region", "user_id", "alias", "score", "rank", "as_of"],
    {
        "alias": {"type": "string", "description": "under which others see the user"},
        "board": {"type": "string"},
        "region": {"type": "string"},
        "user_id": {"type": "string"},
        "score": {"type": "integer", "minimum": 0, "description": "as it is now"},
        "rank": {"type": ["integer", "null"], "description": "null: not on this board"},
        "as_of": AS_OF,
    },
)
