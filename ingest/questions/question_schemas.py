"""The bodies and answers of the routes of questions, answers, stats and subscriptions, as JSON Schema."""

from ingest.web.json_schema import FLAG, KEY, TEXT, Schema, closed_object, list_of, open_object
from rules.questions.answer_stats import CATEGORIES_KEPT
from rules.questions.notifications import INTERVALS
from rules.questions.questions import CATEGORY_DEFAULT, OPEN_DEFAULT, OPEN_MAX, QuestionStatus, QuestionType

TAG = r"^[a-z0-9][a-z0-9_-]{0,31}$"
TAGS_MAX = 10
UUID = r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"
FINGERPRINT_HASH = r"^[0-9a-f]{32}$"


OPTION: Schema = {"type": "string", "minLength": 1, "maxLength": 200}
QUESTION = closed_object(
    {
        "idempotency_key": KEY | {"description": "scope: the agent; the same body again gives the question"},
        "type": {"type": "string", "enum": [each.value for each in QuestionType]},
        "prompt": {"type": "string", "minLength": 1, "maxLength": 1000, "description": "plain text"},
        "options?": {
            "type": "array",
            "minItems": 2,
            "maxItems": 10,
            "items": OPTION,
            "description": "of a multiple_choice question; they differ in more than case and spaces",
        },
        "audience?": {
            "type": "array",
            "maxItems": TAGS_MAX,
            "items": {"type": "string", "pattern": TAG},
            "description": "tags, one of which a person's token has; empty: everybody",
        },
        "category?": {"type": "string", "pattern": TAG, "description": f"default: {CATEGORY_DEFAULT}"},
        "required_responses": {"type": "integer", "minimum": 1, "maximum": 1000},
        "closes_at?": {
            "type": "string",
            "maxLength": 40,
            "description": f"RFC 3339, at most {OPEN_MAX.days} days ahead; default: in"
            f" {OPEN_DEFAULT.total_seconds() / 3600:.0f} hours",
        },
    },
    example={
        "idempotency_key": "q-1",
        "type": "multiple_choice",
        "prompt": "Which of the two headlines would you read?",
        "options": ["The first", "The second"],
        "audience": ["readers"],
        "required_responses": 5,
    },
)
OPTION_NUMBER: Schema = {"type": "integer", "minimum": 0, "maximum": 9}
ANSWER = closed_object(
    {
        "selected_option?": OPTION_NUMBER | {"description": "of multiple_choice: from 0"},
        "answer?": {
            "type": "string",
            "minLength": 1,
            "maxLength": 2000,
            "description": "of text: what the person says",
        },
        "confidence?": {"type": "integer", "minimum": 1, "maximum": 5},
        "response_time_ms?": {"type": "integer", "minimum": 0, "maximum": 86_400_000},
        "timezone?": {
            "type": "string",
            "minLength": 1,
            "maxLength": 64,
            "description": "IANA name or offset (-07:00); decides the activity date; default: UTC",
        },
        "fingerprint?": {
            "type": "string",
            "minLength": 1,
            "maxLength": 256,
            "description": "agents: whose answer is relayed; kept as a keyed hash only",
        },
    },
    example={"selected_option": 0, "confidence": 4, "response_time_ms": 5200, "timezone": "Europe/Madrid"},
)


_NUMBER: Schema = {"type": "integer"}
STATUS: Schema = {"type": "string", "enum": [each.value for each in QuestionStatus]}
QUESTION_VIEW: Schema = open_object(
    {
        "question_id": TEXT,
        "agent_id": TEXT,
        "type": TEXT,
        "prompt": TEXT,
        "options": list_of(TEXT),
        "audience": list_of(TEXT),
        "category": TEXT,
        "required_responses": _NUMBER,
        "current_responses": _NUMBER,
        "status": STATUS,
        "created_at": TEXT,
        "closes_at": TEXT,
        "closed_at?": TEXT,
        "duplicate?": FLAG,
    }
)
QUESTIONS_VIEW: Schema = open_object(
    {
        "questions": list_of(QUESTION_VIEW),
        "cursor": {"type": ["string", "null"], "description": "where to go on, also after a short page"},
    }
)
ANSWER_RECEIPT: Schema = open_object(
    {
        "question_id": TEXT,
        "response_id": TEXT,
        "number": {"type": "integer", "minimum": 1, "description": "its place among the answers"},
        "status": STATUS,
        "current_responses?": _NUMBER,
        "points": {"type": "integer", "description": "before the daily cap"},
        "points_for": {"type": "object"},
        "created_at": TEXT,
        "activity_date?": TEXT,
        "timezone?": TEXT,
    }
)
RESPONSES_VIEW: Schema = open_object(
    {
        "question_id": TEXT,
        "status": STATUS,
        "current_responses": _NUMBER,
        "required_responses?": _NUMBER,
        "responses": {
            "type": "array",
            "items": open_object(
                {
                    "response_id": TEXT,
                    "number": _NUMBER,
                    "selected_option?": _NUMBER,
                    "answer?": TEXT,
                    "confidence?": _NUMBER,
                    "response_time_ms?": _NUMBER,
                    "created_at": TEXT,
                }
            ),
        },
        "cursor": {"type": "string", "description": "for `after`"},
        "done": {"type": "boolean", "description": "no answer will follow after the cursor"},
    }
)
OWN_ANSWERS: Schema = open_object(
    {
        "answers": {
            "type": "array",
            "items": open_object(
                {
                    "question_id": TEXT,
                    "response_id": TEXT,
                    "type": TEXT,
                    "category": TEXT,
                    "selected_option?": _NUMBER,
                    "answer?": TEXT,
                    "confidence?": _NUMBER,
                    "response_time_ms?": _NUMBER,
                    "points": {"type": "integer", "description": "before the daily cap"},
                    "created_at": TEXT,
                    "activity_date?": TEXT,
                    "timezone?": TEXT,
                }
            ),
        },
        "cursor": {"type": ["string", "null"]},
    }
)
STATS_VIEW: Schema = open_object(
    {
        "fingerprint": TEXT,
        "alias": TEXT,
        "total_points": _NUMBER,
        "total_answers": _NUMBER,
        "streak_days": _NUMBER,
        "longest_streak_days": _NUMBER,
        "streak_status": {"type": "string", "enum": ["active", "at_risk", "broken", "none"]},
        "streak_last_date": {"type": ["string", "null"]},
        "timezone": TEXT,
        "badges": list_of(TEXT),
        "badges_earned?": {
            "type": "array",
            "items": closed_object({"badge": TEXT, "title": TEXT, "earned_on": TEXT}),
        },
        "answers_by_category": {
            "type": "object",
            "additionalProperties": _NUMBER,
            "description": f"the first {CATEGORIES_KEPT} categories; *: answers in all others",
        },
        "created_at": {"type": ["string", "null"], "description": "of the first answer"},
    }
)
LEADERS: Schema = open_object(
    {
        "entries": {
            "type": "array",
            "items": closed_object(
                {"rank": _NUMBER, "alias": TEXT, "points": _NUMBER, "total_answers": _NUMBER, "is_me": FLAG}
            ),
        }
    }
)


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
SUBSCRIPTION_VIEW: Schema = open_object(
    {
        "subscription_id": {"type": "string", "pattern": UUID},
        "audience": AUDIENCE,
        "min_interval_minutes": INTERVAL,
        "timezone": ZONE,
        "quiet_hours": QUIET_HOURS,
        "streak_reminders": REMINDERS,
        "created_at": TEXT,
        "updated_at": TEXT,
    }
)
