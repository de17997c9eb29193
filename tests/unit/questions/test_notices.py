"""What is told of questions."""

from dataclasses import replace

import pytest

from rules.outgoing.derivation import ItemNoticeState
from rules.questions.notice_kinds import QUESTION_CLOSED
from rules.questions.notices import notices_of_question
from rules.questions.questions import QuestionStatus
from tests.support.questions.notices import NOW, QUESTION


@pytest.mark.parametrize("status", QuestionStatus)
def test_a_question_is_told_of_once_when_it_takes_no_answers_any_more(status: QuestionStatus) -> None:
    question = replace(QUESTION, status=status)
    found, told = notices_of_question(ItemNoticeState(), NOW, question)
    is_over = status in (QuestionStatus.CLOSED, QuestionStatus.EXPIRED)
    assert [each.type for each in found] == ([QUESTION_CLOSED] if is_over else [])
    assert (
        notices_of_question(told, NOW, replace(QUESTION, status=QuestionStatus.CLOSED))[0] == []
        or not is_over
    )


def test_what_is_told_of_a_question_has_no_words_of_people() -> None:
    (found,), _ = notices_of_question(ItemNoticeState(), NOW, QUESTION)
    assert found.data["closed_at"] == QUESTION.closed_at
    assert not {"prompt", "options", "audience", "body_hash"} & set(found.data)
    (found,), _ = notices_of_question(
        ItemNoticeState(), NOW, replace(QUESTION, status=QuestionStatus.EXPIRED, closed_at=None)
    )
    assert found.data["closed_at"] == QUESTION.closes_at
