"""The messages that a question leads to (tests/unit/outgoing/test_message_bodies.py)."""

from collections.abc import Iterator

from rules.days import unstamp
from rules.outgoing.derivation import ItemNoticeState
from rules.outgoing.notices import Notification
from rules.questions.notice_kinds import question_holder
from rules.questions.notices import notices_of_question
from rules.questions.questions import Question, QuestionStatus, QuestionType

AT = "2026-03-01T12:00:00.000000Z"
NOW = unstamp(AT)
QUESTION = Question(
    *("q1", "bot", QuestionType.TEXT, "Which?", (), (), "taste", 3, 3, QuestionStatus.CLOSED),
    *(AT, "2026-03-02T12:00:00.000000Z", 9, "hash", "key", "2026-03-01T13:00:00.000000Z"),
)


def bodies() -> Iterator[tuple[str, bytes]]:
    """Each message that may be sent, with its type ."""
    for notice in notices_of_question(ItemNoticeState(), NOW, QUESTION)[0]:
        yield notice.type, Notification(question_holder("q1"), 1, AT, notice).body
