"""Changes of questions that lead to notifications (processors/outgoing/notifications.py)."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from adapters.platform.items import decode_item
from processors.outgoing.part_changes import PartChanges
from rules.outgoing.derivation import ThingChange
from rules.questions.notice_kinds import QUESTION_CLOSED, question_holder
from rules.questions.notices import notices_of_question
from rules.questions.questions import from_item


def question_change(image: Mapping[str, Any]) -> tuple[str, ThingChange]:
    """Return the holder of an item of Questions, and the item as a change."""
    question = from_item(decode_item(image))
    change = ThingChange(QUESTION_CLOSED, partial(notices_of_question, question=question))
    return question_holder(question.question_id), change


CHANGES = PartChanges({}, lambda *_: {"question_id": question_change})
