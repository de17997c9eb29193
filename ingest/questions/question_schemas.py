"""The bodies of the question routes, as JSON Schema, and what they answer."""

from ingest.web.json_schema import KEY, Schema, closed_object
from rules.questions.answer_stats import CATEGORIES_KEPT
from rules.questions.new_questions import CATEGORY_DEFAULT, OPEN_DEFAULT
from rules.questions.questions import OPEN_MAX, QuestionStatus, QuestionType

TAG = r"^[a-z0-9][a-z0-9_-]{0,31}$"
TAGS_MAX = 10
QUESTION_ID = r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"
FINGERPRINT_HASH = r"^[0-9a-f]{32}$"


OPTION: Schema = {"type": "string", "minLength": 1, "maxLength": 200}
QUESTION = closed_object(
    ["idempotency_key", "prompt", "required_responses"],
    {
        "idempotency_key": KEY | {"description": "scope: the agent; the same body again gives the question"},
        "type": {"type": "string", "enum": [each.value for each in QuestionType]},
        "kind": {"type": "string", "enum": ["text", "choice"], "description": "former name of type"},
        "prompt": {"type": "string", "minLength": 1, "maxLength": 1000, "description": "plain text"},
        "options": {
            "type": "array",
            "minItems": 2,
            "maxItems": 10,
            "items": OPTION,
            "description": "of a multiple_choice question; they differ in more than case and spaces",
        },
        "audience": {
            "type": "array",
            "maxItems": TAGS_MAX,
            "items": {"type": "string", "pattern": TAG},
            "description": "tags, one of which a person's token has; empty: everybody",
        },
        "category": {"type": "string", "pattern": TAG, "description": f"default: {CATEGORY_DEFAULT}"},
        "required_responses": {"type": "integer", "minimum": 1, "maximum": 1000},
        "closes_at": {
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
    [],
    {
        "selected_option": OPTION_NUMBER | {"description": "of multiple_choice: from 0"},
        "option_index": OPTION_NUMBER | {"description": "former name of selected_option"},
        "text": {"type": "string", "minLength": 1, "maxLength": 2000},
        "confidence": {"type": "integer", "minimum": 1, "maximum": 5},
        "response_time_ms": {"type": "integer", "minimum": 0, "maximum": 86_400_000},
        "timezone": {
            "type": "string",
            "minLength": 1,
            "maxLength": 64,
            "description": "IANA name or offset (-07:00); decides the activity date; default: UTC",
        },
        "fingerprint": {
            "type": "string",
            "minLength": 1,
            "maxLength": 256,
            "description": "agents: whose answer is relayed; kept as a keyed hash only",
        },
    },
    example={"selected_option": 0, "confidence": 4, "response_time_ms": 5200, "timezone": "Europe/Madrid"},
)

FORMER: Schema = {"description": "former name, for one version"}
_TEXT: Schema = {"type": "string"}
_NUMBER: Schema = {"type": "integer"}
STATUS: Schema = {"type": "string", "enum": [each.value for each in QuestionStatus]}
QUESTION_VIEW: Schema = {
    "type": "object",
    "required": [
        *("question_id", "agent_id", "type", "prompt", "options", "audience", "category"),
        *("required_responses", "current_responses", "status", "created_at", "closes_at"),
    ],
    "properties": {
        "question_id": _TEXT,
        "agent_id": _TEXT,
        "type": _TEXT,
        "kind": FORMER | _TEXT,
        "prompt": _TEXT,
        "options": {"type": "array", "items": _TEXT},
        "audience": {"type": "array", "items": _TEXT},
        "category": _TEXT,
        "required_responses": _NUMBER,
        "current_responses": _NUMBER,
        "answers_count": FORMER | _NUMBER,
        "status": STATUS,
        "created_at": _TEXT,
        "closes_at": _TEXT,
        "closed_at": _TEXT,
        "duplicate": {"type": "boolean"},
    },
}
QUESTIONS_VIEW: Schema = {
    "type": "object",
    "required": ["questions", "cursor"],
    "properties": {
        "questions": {"type": "array", "items": QUESTION_VIEW},
        "cursor": {"type": ["string", "null"], "description": "where to go on, also after a short page"},
    },
}
ANSWERED: Schema = {
    "type": "object",
    "required": ["question_id", "response_id", "number", "status", "points", "points_for", "created_at"],
    "properties": {
        "question_id": _TEXT,
        "response_id": _TEXT,
        "number": {"type": "integer", "minimum": 1, "description": "its place among the answers"},
        "status": STATUS,
        "current_responses": _NUMBER,
        "answers_count": FORMER | _NUMBER,
        "points": {"type": "integer", "description": "before the daily cap"},
        "points_for": {"type": "object"},
        "created_at": _TEXT,
        "activity_date": _TEXT,
        "timezone": _TEXT,
    },
}
RESPONSES_VIEW: Schema = {
    "type": "object",
    "required": ["question_id", "status", "current_responses", "responses", "cursor", "done"],
    "properties": {
        "question_id": _TEXT,
        "status": STATUS,
        "current_responses": _NUMBER,
        "answers_count": FORMER | _NUMBER,
        "required_responses": _NUMBER,
        "done": {"type": "boolean", "description": "no answer will follow after the cursor"},
        "cursor": {"type": "string", "description": "for `after`"},
        "responses": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["response_id", "number", "created_at"],
                "properties": {
                    "response_id": _TEXT,
                    "number": _NUMBER,
                    "selected_option": _NUMBER,
                    "option_index": FORMER | _NUMBER,
                    "text": _TEXT,
                    "confidence": _NUMBER,
                    "response_time_ms": _NUMBER,
                    "created_at": _TEXT,
                },
            },
        },
    },
}
OWN_ANSWERS: Schema = {
    "type": "object",
    "required": ["answers", "cursor"],
    "properties": {
        "cursor": {"type": ["string", "null"]},
        "answers": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["question_id", "response_id", "type", "category", "points", "created_at"],
                "properties": {
                    "question_id": _TEXT,
                    "response_id": _TEXT,
                    "type": _TEXT,
                    "kind": FORMER | _TEXT,
                    "category": _TEXT,
                    "selected_option": _NUMBER,
                    "option_index": FORMER | _NUMBER,
                    "text": _TEXT,
                    "confidence": _NUMBER,
                    "response_time_ms": _NUMBER,
                    "points": {"type": "integer", "description": "before the daily cap"},
                    "created_at": _TEXT,
                    "activity_date": _TEXT,
                    "timezone": _TEXT,
                },
            },
        },
    },
}
STATS_VIEW: Schema = {
    "type": "object",
    "required": [
        *("fingerprint", "alias", "total_points", "total_answers", "streak_days", "longest_streak_days"),
        *("streak_status", "last_activity_date", "timezone", "badges", "answers_by_category", "created_at"),
    ],
    "properties": {
        "fingerprint": _TEXT,
        "alias": _TEXT,
        "total_points": _NUMBER,
        "total_answers": _NUMBER,
        "answers": FORMER | _NUMBER,
        "streak_days": _NUMBER,
        "longest_streak_days": _NUMBER,
        "streak_status": {"type": "string", "enum": ["active", "at_risk", "broken", "none"]},
        "last_activity_date": {"type": ["string", "null"]},
        "timezone": _TEXT,
        "created_at": {"type": ["string", "null"], "description": "of the first answer"},
        "badges": {"type": "array", "items": _TEXT},
        "badges_earned": {
            "type": "array",
            "items": closed_object(
                ["badge", "title", "earned_on"], {"badge": _TEXT, "title": _TEXT, "earned_on": _TEXT}
            ),
        },
        "answers_by_category": {
            "type": "object",
            "additionalProperties": _NUMBER,
            "description": f"the first {CATEGORIES_KEPT} categories; *: answers in all others",
        },
    },
}
LEADERS: Schema = {
    "type": "object",
    "required": ["entries"],
    "properties": {
        "entries": {
            "type": "array",
            "items": closed_object(
                ["rank", "alias", "points", "total_answers", "answers", "is_me"],
                {
                    "rank": _NUMBER,
                    "alias": _TEXT,
                    "points": _NUMBER,
                    "total_answers": _NUMBER,
                    "answers": FORMER | _NUMBER,
                    "is_me": {"type": "boolean"},
                },
            ),
        }
    },
}
