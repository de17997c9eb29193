"""The bodies and answers of amnesties."""

from ingest.web.json_schema import FLAG, INSTANT, TEXT, USER_ID, Schema, closed_object, list_of

USERS_MAX = 100
ZONES_MAX = 600
REASON_MAX = 500
_INSTANT: Schema = INSTANT | {"maxLength": 40}
_USERS: Schema = {
    "type": "array",
    "items": {"type": "string", "pattern": USER_ID},
    "minItems": 1,
    "maxItems": USERS_MAX,
}
DECLARATION: Schema = closed_object(
    {
        "from": {**_INSTANT, "description": "when the outage began"},
        "to": {**_INSTANT, "description": "when it was over"},
        "zones?": {
            "type": "array",
            "items": {"type": "string", "maxLength": 64},
            "minItems": 1,
            "maxItems": ZONES_MAX,
            "description": "whom it concerns, by zone; left out: everybody",
        },
        "listed?": {"type": "boolean", "description": "only for those to whom it is applied by name"},
        "reason": {"type": "string", "minLength": 1, "maxLength": REASON_MAX},
    }
)
APPLICATION: Schema = closed_object(
    {"users": _USERS, "dry_run?": {"type": "boolean", "description": "only say what would become of them"}}
)
AMNESTY: Schema = {
    "type": "object",
    "properties": {
        "number": {"type": "integer"},
        "from": _INSTANT,
        "to": _INSTANT,
        "zones": {"type": ["array", "null"], "items": TEXT},
        "listed": FLAG,
        "reason": TEXT,
        "author": TEXT,
        "declared_at": _INSTANT,
        "revoked_at": {"type": ["string", "null"]},
    },
}
AMNESTIES: Schema = {"type": "object", "properties": {"amnesties": list_of(AMNESTY)}}
APPLIED: Schema = {
    "type": "object",
    "properties": {
        "users": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "user_id": TEXT,
                    "changed": FLAG,
                    "streak_before": {"type": "integer"},
                    "streak_after": {"type": "integer"},
                    "freezes_returned": {"type": "integer"},
                },
            },
        }
    },
}
