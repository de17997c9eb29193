"""The bodies of the subscription routes, as JSON Schema."""

from ingest.questions.question_schemas import TAG, TAGS_MAX
from ingest.web.json_schema import TEXT, Schema, closed_object, open_object
from rules.questions.notifications import INTERVALS

SUBSCRIPTION_ID = r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"
CLOCK: Schema = {"type": "string", "pattern": r"^([01][0-9]|2[0-3]):[0-5][0-9]$"}

AUDIENCE: Schema = {
    "type": "array",
    "maxItems": TAGS_MAX,
    "uniqueItems": True,
    "items": {"type": "string", "pattern": TAG},
    "description": "those of the token's tags to hear of, beside questions without tags; default: all",
}
INTERVAL: Schema = {
    "type": "integer",
    "enum": list(INTERVALS),
    "description": "the least minutes between two announcements (default 60)",
}
ZONE: Schema = {
    "type": "string",
    "minLength": 1,
    "maxLength": 64,
    "description": "IANA name or offset (-07:00); default UTC",
}
QUIET_HOURS: Schema = {
    "type": ["object", "null"],
    "required": ["from", "to"],
    "properties": {"from": CLOCK, "to": CLOCK},
    "additionalProperties": False,
    "description": "wall-clock times, the first included; may wrap midnight; nothing is sent late",
}
REMINDERS: Schema = {
    "type": "boolean",
    "description": "a message in the evening while the streak would end tonight (default false)",
}

SUBSCRIPTION: Schema = closed_object(
    {
        "fcm_token": {
            "type": "string",
            "pattern": r"^[!-~]{1,512}$",
            "description": "of the phone; registered by another person, it is theirs from then on",
        },
        "audience?": AUDIENCE,
        "min_interval_minutes?": INTERVAL,
        "timezone?": ZONE,
        "quiet_hours?": QUIET_HOURS,
        "streak_reminders?": REMINDERS,
    },
    example={
        "fcm_token": "bk3RNwTe3H0:CI2k_HHwgIpoDKCIZvvDMExUdFQ3P1",
        "audience": ["data"],
        "min_interval_minutes": 240,
        "timezone": "Europe/Berlin",
        "quiet_hours": {"from": "22:00", "to": "07:00"},
        "streak_reminders": True,
    },
)
STORED: Schema = open_object(
    {
        "subscription_id": {"type": "string", "pattern": SUBSCRIPTION_ID},
        "audience": AUDIENCE,
        "min_interval_minutes": INTERVAL,
        "timezone": ZONE,
        "quiet_hours": QUIET_HOURS,
        "streak_reminders": REMINDERS,
        "created_at": TEXT,
        "updated_at": TEXT,
    }
)
