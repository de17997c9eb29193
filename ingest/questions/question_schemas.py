"""The bodies of the question routes, as JSON Schema, and what they answer."""

from ingest.web.json_schema import KEY, Schema, closed_object
from rules.questions.questions import CATEGORY_DEFAULT, OPEN_DEFAULT, OPEN_MAX, QuestionType

TAG = r"^[a-z0-9][a-z0-9_-]{0,31}$"
TAGS_MAX = 10
QUESTION_ID = r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"
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
