"""The bodies and answers of amnesties."""

from ingest.web.json_schema import USER_ID, Schema

USERS_MAX = 100
ZONES_MAX = 600
REASON_MAX = 500
_INSTANT: Schema = {"type": "string", "format": "date-time", "maxLength": 40}
_USERS: Schema = {
    "type": "array",
    "items": {"type": "string", "pattern": USER_ID},
    "minItems": 1,
    "maxItems": USERS_MAX,
}
DECLARATION: Schema = {
    "type": "object",
    "required": ["from", "to", "reason"],
    "properties": {
        "from": {**_INSTANT, "description": "when the outage began"},
        "to": {**_INSTANT, "description": "when it was over"},
        "zones": {
            "type": "array",
            "items": {"type": "string", "maxLength": 64},
            "minItems": 1,
            "maxItems": ZONES_MAX,
            "description": "whom it concerns, by zone; left out: everybody",
        },
        "listed": {
            "type": "boolean",
            "description": "only for those to whom it is applied by name",
        },
        "reason": {"type": "string", "minLength": 1, "maxLength": REASON_MAX},
    },
    "additionalProperties": False,
}
APPLICATION: Schema = {
    "type": "object",
    "required": ["users"],
    "properties": {
        "users": _USERS,
        "dry_run": {"type": "boolean", "description": "only say what would become of them"},
    },
    "additionalProperties": False,
}
AMNESTY: Schema = {
    "type": "object",
    "properties": {
        "number": {"type": "integer"},
        "from": _INSTANT,
        "to": _INSTANT,
        "zones": {"type": ["array", "null"], "items": {"type": "string"}},
        "listed": {"type": "boolean"},
        "reason": {"type": "string"},
        "author": {"type": "string"},
        "declared_at": _INSTANT,
        "revoked_at": {"type": ["string", "null"]},
    },
}
AMNESTIES: Schema = {"type": "object", "properties": {"amnesties": {"type": "array", "items": AMNESTY}}}
APPLIED: Schema = {
    "type": "object",
    "properties": {
        "users": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "user_id": {"type": "string"},
                    "changed": {"type": "boolean"},
                    "streak_before": {"type": "integer"},
                    "streak_after": {"type": "integer"},
                    "freezes_returned": {"type": "integer"},
                },
            },
        }
    },
}
