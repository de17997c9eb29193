"""The codes of refusals about questions, and their meanings (ingest/web/json_schema.py)."""

from rules.parts import Part

CODES = (
    Part.QUESTIONS,
    {
        "already_answered": "this person has answered the question; the body has the first answer",
        "open_questions_max": "the agent has as many open questions as are allowed",
        "question_closed": "the question has all the answers it asked for",
        "question_expired": "the question's time is over",
        "subscriptions_max": "the owner has as many subscriptions as are allowed",
        "too_many_polls": "the agent has as many polls waiting as are allowed",
    },
)
