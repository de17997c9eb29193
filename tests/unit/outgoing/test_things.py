"""What is told of leads and of questions, and of whom the messages are."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.leads.feature_items import FeatureItem
from rules.outgoing.derivation import ItemNoticeState, notices_of_lead, notices_of_question
from rules.outgoing.notices import (
    Notice,
    NoticeType,
    Notification,
    holder_names,
    holder_of,
    is_user,
    lead_holder,
    question_holder,
)
from rules.questions.questions import Question, QuestionStatus, QuestionType

AT = "2026-03-01T12:00:00.000000Z"
QUESTION = Question(
    *("q1", "bot", QuestionType.TEXT, "Which?", (), (), "taste", 3, 3, QuestionStatus.CLOSED),
    *(AT, "2026-03-02T12:00:00.000000Z", 9, "hash", "key", "2026-03-01T13:00:00.000000Z"),
)


def lead(version: int, merged_into: str | None = None, **features: Any) -> FeatureItem:
    return FeatureItem("7", version, features, merged_into=merged_into)


def test_a_lead_is_told_of_as_a_whole_when_something_shown_has_changed() -> None:
    found, told = notices_of_lead(ItemNoticeState(), lead(1, orders=1, revenue=Decimal("11.50")), "acme", AT)
    assert [each.data for each in found] == [
        {
            "organization_id": "acme",
            "merged_into": None,
            "features": {"orders": 1, "revenue": 11.5},
            "computed_at": None,
        }
    ]
    assert notices_of_lead(told, lead(2, orders=1, revenue=Decimal("11.5")), "acme", AT) == ([], told)
    (merged,), told = notices_of_lead(told, lead(3, merged_into="9"), "acme", AT)
    assert (merged.data["merged_into"], merged.data["features"]) == ("9", {})
    assert (told.number, told.version) == (2, 3)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2)), max_size=12))
def test_records_that_come_again_and_late_change_nothing(seen: list[tuple[int, int]]) -> None:
    told, folded, newest = ItemNoticeState(), None, 0
    by_version: dict[int, int] = {}
    for version, drawn in seen:
        orders = by_version.setdefault(version, drawn)  # a version is written once
        found, told = notices_of_lead(told, lead(version + 1, orders=orders), "acme", AT)
        for each in found:
            assert each.data["features"] != folded, "nothing is told twice in a row"
            folded, newest = each.data["features"], version
        assert notices_of_lead(told, lead(version + 1, orders=orders), "acme", AT) == ([], told)
    if seen and [each for each, _ in seen] == sorted(each for each, _ in seen):
        assert folded == {"orders": by_version[max(by_version)]}
    assert newest <= max(by_version, default=0)


@pytest.mark.parametrize("status", QuestionStatus)
def test_a_question_is_told_of_once_when_it_takes_no_answers_any_more(status: QuestionStatus) -> None:
    question = replace(QUESTION, status=status)
    found, told = notices_of_question(ItemNoticeState(), question)
    is_over = status in (QuestionStatus.CLOSED, QuestionStatus.EXPIRED)
    assert [each.type for each in found] == ([NoticeType.QUESTION_CLOSED] if is_over else [])
    assert notices_of_question(told, replace(QUESTION, status=QuestionStatus.CLOSED))[0] == [] or not is_over


def test_what_is_told_of_a_question_has_no_words_of_people() -> None:
    (found,), _ = notices_of_question(ItemNoticeState(), QUESTION)
    assert found.data["closed_at"] == QUESTION.closed_at
    assert not {"prompt", "options", "audience", "body_hash"} & set(found.data)
    (found,), _ = notices_of_question(
        ItemNoticeState(), replace(QUESTION, status=QuestionStatus.EXPIRED, closed_at=None)
    )
    assert found.data["closed_at"] == QUESTION.closes_at


def test_messages_say_of_whom_they_are() -> None:
    holders = ["ann", "lead", lead_holder("7"), question_holder("q1"), "lead:7"]
    said = [holder_names(each) for each in holders]
    assert said[:4] == [{"user_id": "ann"}, {"user_id": "lead"}, {"lead_id": "7"}, {"question_id": "q1"}]
    assert [holder_of(each) for each in said] == holders
    assert [is_user(each) for each in holders] == [True, True, False, False, True]
    ids = {Notification(each, 1, AT, Notice(NoticeType.TEST, {})).message_id for each in holders}
    assert len(ids) == len(holders)
