"""What the question routes answer, as JSON Schema."""

from ingest.web.json_schema import FLAG, TEXT, Schema, closed_object, list_of, open_object
from rules.questions.answer_stats import CATEGORIES_KEPT
from rules.questions.questions import QuestionStatus

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
ANSWERED: Schema = open_object(
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
