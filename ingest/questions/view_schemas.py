"""What the question routes answer, as JSON Schema."""

from ingest.web.json_schema import Schema, closed_object
from rules.questions.answer_stats import CATEGORIES_KEPT
from rules.questions.questions import QuestionStatus

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
        "prompt": _TEXT,
        "options": {"type": "array", "items": _TEXT},
        "audience": {"type": "array", "items": _TEXT},
        "category": _TEXT,
        "required_responses": _NUMBER,
        "current_responses": _NUMBER,
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
                    "answer": _TEXT,
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
                    "category": _TEXT,
                    "selected_option": _NUMBER,
                    "answer": _TEXT,
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
        *("streak_status", "streak_last_date", "timezone", "badges", "answers_by_category", "created_at"),
    ],
    "properties": {
        "fingerprint": _TEXT,
        "alias": _TEXT,
        "total_points": _NUMBER,
        "total_answers": _NUMBER,
        "streak_days": _NUMBER,
        "longest_streak_days": _NUMBER,
        "streak_status": {"type": "string", "enum": ["active", "at_risk", "broken", "none"]},
        "streak_last_date": {"type": ["string", "null"]},
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
                ["rank", "alias", "points", "total_answers", "is_me"],
                {
                    "rank": _NUMBER,
                    "alias": _TEXT,
                    "points": _NUMBER,
                    "total_answers": _NUMBER,
                    "is_me": {"type": "boolean"},
                },
            ),
        }
    },
}
