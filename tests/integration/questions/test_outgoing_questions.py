"""Outgoing webhooks of closed questions, through the real handlers; and who hears of them."""

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

import processors.outgoing.notifications as telling
import processors.questions.notify as notify
from adapters.platform.items import encode_item
from rules.questions.questions import Question, QuestionStatus, QuestionType
from rules.questions.questions import to_item as question_to_item
from tests.integration.test_endpoints_api import CONTEXT, Desk, desk, there
from tests.integration.test_outgoing_things import AT, Leads, handed, heard
from tests.integration.test_outgoing_things import told as told_of_leads
from tests.support.hook_receiver import Receiver

__all__ = ["desk", "there", "told_of_leads"]


@pytest.fixture
def told(told_of_leads: Desk, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """A desk whose functions hear of leads and questions, too."""
    monkeypatch.setattr(notify._parts, "client", told_of_leads.services.__getitem__)
    notify._parts.cache_clear()
    yield told_of_leads
    notify._parts.cache_clear()


def question(status: QuestionStatus, number: int = 1) -> Any:
    asked = Question(
        *(f"{number:026}", "bot", QuestionType.TEXT, "Which?", (), (), "taste", 1, 1, status),
        *(
            AT,
            "2026-03-11T12:00:00.000000Z",
            2**40,
            "hash",
            "key",
            AT if status is QuestionStatus.CLOSED else None,
        ),
    )
    return encode_item(question_to_item(asked))


def test_whoever_named_the_agent_hears_of_its_closed_questions_once(told: Desk, there: Receiver) -> None:
    own = told.register(there, agents=["bot"])
    told.register(there, types=["question.closed", "streak.extended"])
    told.register(there, types=["question.closed"], agents=["robot"])
    handed(notify.handler, question(QuestionStatus.OPEN, 1), question(QuestionStatus.CLOSED, 1))
    handed(notify.handler, question(QuestionStatus.EXPIRED, 2), question(QuestionStatus.CLOSED, 1))
    found = heard(own, there)
    assert [(each["type"], each["data"]["question_id"][-1], each["data"]["status"]) for each in found] == [
        ("question.closed", "1", "CLOSED"),
        ("question.closed", "2", "EXPIRED"),
    ]
    for each in told.dynamodb.scan(TableName="Notifications")["Items"]:
        assert "expires_at" in each or each["place"]["S"] == "worker", (
            "what is told of questions is forgotten"
        )


def test_what_nobody_was_woken_for_goes_with_the_next_minute_s_schedule(told: Desk, there: Receiver) -> None:
    own = told.register(there, agents=["bot"])
    told.services["lambda"] = SimpleNamespace(invoke=lambda **_: None)  # the invocation is lost
    handed(notify.handler, question(QuestionStatus.CLOSED))
    handed(telling.handler, Leads(told).compute("7", orders_total=1))
    assert there.received == []
    told.services["lambda"] = told
    telling.handler({}, CONTEXT)
    assert {each["type"] for each in heard(own, there)} == {"lead.updated", "question.closed"}


def test_where_webhooks_are_off_a_closed_question_costs_no_read(
    told: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OUTGOING_WEBHOOKS", "false")
    del told.services["dynamodb"]
    notify._parts.cache_clear()
    handed(notify.handler, question(QuestionStatus.CLOSED))


def test_what_was_told_of_a_question_is_sent_again(told: Desk, there: Receiver) -> None:
    own = told.register(there, agents=["bot"])
    handed(notify.handler, question(QuestionStatus.CLOSED))
    (first,) = heard(own, there)
    asked = {"endpoint_id": own["endpoint_id"], "question_id": first["data"]["question_id"]}
    again: dict[str, Any] = {
        "Records": [{"messageId": "m", "body": json.dumps(asked)}],
        "streakline_redrive": True,
    }
    assert told.deliver(again) == {"batchItemFailures": []}
    assert heard(own, there) == [first]
    other = told.register(there, agents=["robot"])
    again["Records"][0]["body"] = json.dumps({**asked, "endpoint_id": other["endpoint_id"]})
    assert told.deliver(again) == {"batchItemFailures": []}
    assert there.received == [], "a replay shows nobody what is not its own"
