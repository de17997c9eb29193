"""The type of notification that a question leads to."""

from rules.outgoing.notice_kinds import NoticeKind
from rules.parts import Part

QUESTION_CLOSED = "question.closed"
HOLDER = "question/"
KINDS = (
    NoticeKind(
        QUESTION_CLOSED,
        Part.QUESTIONS,
        HOLDER,
        "question_id",
        {
            **dict.fromkeys(("question_id", "agent_id", "category", "created_at", "closed_at"), str),
            **dict.fromkeys(("number", "required_responses", "current_responses"), int),
            "status": ("CLOSED", "EXPIRED"),
        },
        is_last=True,
        whose="agents",
        whose_data="agent_id",
        whose_meaning="whose questions it is told of (question.closed); left out or empty: nobody's",
        nobody="nobody's questions",
    ),
)


def question_holder(question_id: str) -> str:
    """Return the holder of a question's notifications."""
    return HOLDER + question_id
