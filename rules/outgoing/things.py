"""What is told of leads and of questions (docs/rules.md, rule 18).

A lead's newest `lead.updated` has its features and whose leaf it is. What is remembered of it is people's own
words, and is not told. A question is told of once: when it takes no answers any more.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from rules.leads.feature_items import FeatureItem
from rules.outgoing.notices import Notice, NoticeType
from rules.questions.questions import Question, QuestionStatus


@dataclass(frozen=True, slots=True)
class ToldThing:
    """What was told of a lead or a question. version: of its item, for a question 1. The rest: ToldState."""

    version: int = 0
    number: int = 0
    as_of: str = ""
    shown: Mapping[str, Any] = field(default_factory=dict)


def updated(
    told: ToldThing, item: FeatureItem, organization_id: str, at: str
) -> tuple[list[Notice], ToldThing]:
    """Return what is to be told of a lead's item, and what is told then. Older items tell nothing.

    at: a stamp, when the item was written.
    """
    shown = {
        "organization_id": organization_id,
        "merged_into": item.merged_into,
        "features": {name: _number(each) for name, each in sorted(item.features.items())},
    }
    if item.version <= told.version or shown == told.shown:
        return [], told
    after = replace(
        told, version=item.version, number=told.number + 1, as_of=max(told.as_of, at), shown=shown
    )
    return [Notice(NoticeType.LEAD_UPDATED, {**shown, "computed_at": item.computed_at})], after


def closed(told: ToldThing, question: Question) -> tuple[list[Notice], ToldThing]:
    """Return what is to be told of a question that takes no answers any more: nothing if it was told of."""
    if told.version or question.status not in (QuestionStatus.CLOSED, QuestionStatus.EXPIRED):
        return [], told
    closed_at = question.closed_at or question.closes_at
    about = {
        "agent_id": question.agent_id,
        "status": question.status.value,
        "category": question.category,
        "required_responses": question.required_responses,
        "current_responses": question.current_responses,
        "created_at": question.created_at,
        "closed_at": closed_at,
    }
    return [Notice(NoticeType.QUESTION_CLOSED, about)], ToldThing(1, told.number + 1, closed_at, about)


def _number(shown: Any) -> Any:
    """Return a feature as JSON has it."""
    return float(shown) if isinstance(shown, Decimal) else shown
