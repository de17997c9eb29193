"""The table Questions is lost, and filled again from the lake: what is shown and counted (rule 21)."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from adapters.platform.items import decode_item
from adapters.platform.objects import FolderObjects
from adapters.privacy.tombstones import NO_ERASURES
from analytics.lake.arrow import arrow_schema
from analytics.lake.curated_files import parquet_bytes
from analytics.questions.restore import phone_rows, question_item, question_rows, restore
from analytics.restore.part_restore import RestoreInput
from analytics.restore.restorer import RestoreReport
from analytics.restore.user_rows import LakeBefore
from rules.days import unstamp
from rules.lake.entities import ENTITIES
from rules.questions.lake_entities import QUESTIONS, RESPONSES
from rules.smoke_names import smoke_name
from tests.integration import test_restore_of_leads
from tests.support.engine import Engine, running
from tests.support.questions.stack import answer, as_agent, ask, get, prepared


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with running() as started, prepared(started):
        yield started


class Lost(test_restore_of_leads.Lost):
    """Questions and their answers, the lake that was made of them, and what brings questions back."""

    def lose(self, *tables: str) -> None:
        super().lose(*(tables or ("Questions", "Responses")))

    def restore(self, *_: Any, until: datetime | None = None, **__: Any) -> RestoreReport:
        now, told = datetime.now(UTC), RestoreReport()
        lake = LakeBefore(self.objects, until or now + timedelta(days=1), now)
        restore(RestoreInput(lake, self.dynamodb, {"Questions": "Questions"}, NO_ERASURES), told, now)
        return told


@pytest.fixture
def lost(engine: Engine, tmp_path: Path) -> Lost:
    return Lost(engine, tmp_path)


def questions(lost: Lost) -> list[dict[str, Any]]:
    made = [
        ask(required_responses=1),
        ask(required_responses=3, audience=["b", "a"], category="c"),
        ask(type="text", options=None, prompt="Und Sie? \u00fc"),
    ]
    assert answer(made[0], "p1").status == 201
    assert answer(made[1], "p2", "streakline/audience/a").status == 201
    lost.publish("Questions", QUESTIONS)
    lost.publish("Responses", RESPONSES)
    return made


def seen(made: list[dict[str, Any]]) -> list[Any]:
    """What the questions and the lists of them show."""
    lists = [as_agent("GET", "/v1/agents/agent/questions", status=each).body for each in ("OPEN", "CLOSED")]
    return [*(get(each) for each in made), *lists]


def stored_statuses(lost: Lost) -> dict[str, str]:
    return {each["question_id"]: each["status"] for each in map(decode_item, lost.items("Questions"))}


def test_questions_come_back_with_what_they_count_and_old_keys(lost: Lost) -> None:
    made = questions(lost)
    before = seen(made)
    assert [each["status"] for each in before[:3]] == ["CLOSED", "PARTIAL", "OPEN"]
    stored = stored_statuses(lost)
    answers = lost.items("Responses")
    lost.lose("Questions")
    told = lost.restore()
    assert (told.changes["Questions"], told.lacks) == (3, [])
    assert seen(made) == before
    assert stored_statuses(lost) == stored
    assert sorted(stored.values()) == ["CLOSED", "OPEN", "PARTIAL"]
    body = {"idempotency_key": "again", "type": "text", "prompt": "?", "required_responses": 1}
    asked = as_agent("POST", "/v1/questions", body).body
    lost.publish("Questions", QUESTIONS)
    lost.lose("Questions")
    lost.restore()
    again = as_agent("POST", "/v1/questions", body)
    assert (again.status, again.body["duplicate"], again.body["question_id"]) == (
        200,
        True,
        asked["question_id"],
    )
    assert lost.items("Responses") == answers
    assert answer(made[1], "p2", "streakline/audience/a").code == "already_answered"
    assert answer(made[1], "p3", "streakline/audience/a").status == 201
    assert get(made[1])["current_responses"] == 2


def test_a_question_that_was_closed_later_is_open_before(lost: Lost) -> None:
    made = questions(lost)
    (one,) = (
        each
        for each in map(decode_item, lost.items("Questions"))
        if each["question_id"] == made[0]["question_id"]
    )
    lost.lose()
    lost.restore(until=min(unstamp(each["created_at"]) for each in made).replace(microsecond=0))
    assert lost.items("Questions") == [], "nothing had been asked before that second"
    lake = LakeBefore(lost.objects, unstamp(one["closed_at"]), datetime.now(UTC))
    rows = {each["question_id"]: each for each in question_rows(lake)}
    found = decode_item(
        question_item(rows[one["question_id"]], rows[one["question_id"]]["answers"], lake.until)
    )
    assert (found["status"], found["current_responses"], found.get("closed_at")) == ("OPEN", 0, None)


def test_what_a_smoke_test_has_made_does_not_come_back(tmp_path: Path) -> None:
    """As tests/integration/test_restore_of_leads.py has it of the rest."""
    objects, at = FolderObjects(tmp_path), datetime(2026, 3, 1, 5, tzinfo=UTC)
    smoke = smoke_name(7)
    names = (smoke, f"{smoke}-kinesis", "smoke-free", "ann")
    rows: dict[str, Any] = {
        "table_items": [
            {
                "user_id": name,
                "store": "Subscriptions",
                "place": f'["{name}"]',
                "version": "1",
                "changed_at": at,
                "item": '{"x": 1}',
            }
            for name in names
        ],
        "questions": [
            {"agent_id": name, "question_id": name, "created_at": at, "version": "1", "closes_at": at}
            for name in names
        ],
    }
    for entity, listed in rows.items():
        table = pa.Table.from_pylist(listed, arrow_schema(ENTITIES[entity]))
        objects.put(f"curated/{entity}/dt=2026-03-01/day.parquet", parquet_bytes(table))
    lake = LakeBefore(objects, at + timedelta(days=1), at + timedelta(days=1))
    assert {row["user_id"] for row in phone_rows(lake)} == {"ann", "smoke-free"}
    assert {row["agent_id"] for row in question_rows(lake)} == {"ann", "smoke-free"}
