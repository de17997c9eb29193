"""Which notice follows from a question (docs/rules.md, rule 18)."""

from datetime import datetime

from rules.outgoing.derivation import ItemNoticeState
from rules.outgoing.notices import Notice
from rules.questions.notice_kinds import QUESTION_CLOSED
from rules.questions.questions import Question, QuestionStatus


def notices_of_question(
    state: ItemNoticeState, _now: datetime, question: Question
) -> tuple[list[Notice], ItemNoticeState]:
    """Return the only notice of a question, that it takes no more answers; none if it was returned before."""
    if state.version or question.status not in (QuestionStatus.CLOSED, QuestionStatus.EXPIRED):
        return [], state
    closed_at = question.closed_at or question.closes_at
    data = {
        "agent_id": question.agent_id,
        "status": question.status.value,
        "category": question.category,
        "required_responses": question.required_responses,
        "current_responses": question.current_responses,
        "created_at": question.created_at,
        "closed_at": closed_at,
    }
    return [Notice(QUESTION_CLOSED, data)], ItemNoticeState(1, state.number + 1, closed_at, data)
