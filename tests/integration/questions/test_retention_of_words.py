"""The words of answers leave their table some time after their question has closed (rule 22)."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from analytics.questions.answer_texts import AnswerTexts
from rules.days import key_of_stamp, stamp
from tests.integration import test_retention
from tests.integration.test_retention import CAME, OLD, Night
from tests.support.engine import Engine


@pytest.fixture(autouse=True)
def tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nights know the table of answers, which goes by the rows of questions."""
    monkeypatch.setitem(test_retention.KEYS, "questions", ("question_id", "response_id"))
    monkeypatch.setitem(test_retention.TABLES, "questions", "Responses")


def test_the_words_of_closed_questions_answers_leave_and_their_length_stays(
    engine: Engine, tmp_path: Path, user: str
) -> None:
    asked = Night(engine, tmp_path, "questions", AnswerTexts)

    def answer(person: str, at: datetime, **more: Any) -> dict[str, Any]:
        key = {"question_id": user, "response_id": person, "fingerprint_hash": person}
        return {**key, "created_at": key_of_stamp(stamp(at)), "number": 1, **more}

    again = CAME + timedelta(days=100)  # the agent asks under the same key again
    told = [
        answer("a", CAME, answer="Mañana", confidence=3),
        answer("b", CAME, selected_option=1),
        answer("c", again, answer="new"),
    ]
    asked.put(told)
    asked.publish([question(user, CAME, closes=CAME + timedelta(days=7))])
    assert asked.run() == (0, 0, False), "it has closed a week after it was asked"
    assert asked.run(OLD + timedelta(days=7)) == (1, 0, False)
    length = answer("a", CAME, answer_characters=6, confidence=3)
    assert asked.there(user) == [length, *told[1:]]


def question(name: str, at: datetime, closes: datetime) -> dict[str, Any]:
    return {
        "question_id": name,
        "created_at": stamp(at),
        "agent_id": "agent",
        "type": "text",
        "category": "general",
        "prompt": "What?",
        "required_responses": 3,
        "closes_at": stamp(closes),
        "status": "CLOSED",
        "version": "1",
    }
