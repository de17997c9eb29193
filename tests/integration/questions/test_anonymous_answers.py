"""Answers are nobody's: no table says whose they are, and yet each earns its user an event, exactly once."""

import itertools
import json
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import BotoCoreError, ClientError

import ingest.engagement.user_services
import ingest.questions.questions_api
from adapters.platform.aws import client
from adapters.platform.items import decode_item
from adapters.platform.tables import scan_all
from adapters.questions.erasers import response_eraser
from adapters.questions.question_store import QuestionStore
from adapters.questions.response_store import AnswerWriter, ResponseStore
from rules.engagement.events import Event
from rules.lake.entities import row_of
from rules.privacy.erasures import Person
from rules.questions.answer_stats import Stats, fold_responses
from rules.questions.lake_entities import RESPONSES
from rules.questions.responses import Response, from_item, new_response
from tests.support.books import KnownBooks
from tests.support.dying import FAILURES, Dying, Killed
from tests.support.engine import Engine
from tests.support.questions.answer_stream import deliver, events_of, live, records
from tests.support.questions.stack import (
    accept,
    answer,
    ask,
    at_once,
    call,
    prepared,
    responses_of,
    set_clock,
)


@pytest.fixture(autouse=True, scope="module")
def settings(engine: Engine) -> Iterator[None]:
    with prepared(engine):
        yield


def parts() -> Any:
    return ingest.questions.questions_api._parts()


def user() -> str:
    return f"u-{uuid.uuid4()}"


def all_items(table: str) -> list[dict[str, Any]]:
    return list(scan_all(client("dynamodb"), TableName=table, ConsistentRead=True))


def submission(question: dict[str, Any], name: str) -> tuple[Response, Event | None]:
    """What a person hands in just now."""
    door, books = parts().answers, KnownBooks().books()
    asked = parts().questions.find(question["question_id"])
    made = new_response(
        asked, {"selected_option": 0}, door.fingerprints.of_user(name), books, datetime.now(UTC)
    )
    return made, door._event(made, name, books)


def test_no_table_leads_from_an_answer_to_its_user_without_the_key() -> None:
    name, question = user(), ask(category="news")
    receipt = answer(question, name, timezone="Asia/Tokyo", response_time_ms=3_000).body
    (stored,) = responses_of(question["question_id"])
    (event,) = events_of(name)
    assert deliver(records([stored])) == []
    person = stored["fingerprint_hash"]
    of_answer = [stored, *(each for each in all_items("UserStats") if person in each.values())]
    assert len(of_answer) == 2
    assert name not in json.dumps(of_answer)
    row = row_of(RESPONSES, decode_item(stored), datetime.now(UTC))
    assert name not in json.dumps(row, default=str)
    claims = [each for each in all_items("IdempotencyKeys") if each["user_id"] == {"S": name}]
    of_user = json.dumps([event, claims], default=str)
    for each in (question["question_id"], stored["fingerprint_hash"]["S"], receipt["response_id"]):
        assert each not in of_user
    assert receipt["created_at"] not in of_user
    assert event["occurred_at"] == event["created_at"] == f"{receipt['created_at'][:16]}:00.000000Z"


def test_an_answer_without_a_zone_is_dated_in_the_one_that_the_user_has_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name, at = user(), datetime.now(UTC).replace(hour=20)
    ingest.engagement.user_services.services().preferences.set_timezone(name, "Asia/Tokyo", at)
    question = ask(closes_at=(at + timedelta(days=1)).isoformat())
    set_clock(monkeypatch, at)
    assert answer(question, name).body["activity_date"] == str(at.date())
    assert [(each["activity_date"], each["zone"]) for each in events_of(name)] == [
        (str(at.date() + timedelta(days=1)), "Asia/Tokyo")
    ]


def test_many_at_once_are_each_rewarded_once() -> None:
    question, names = ask(required_responses=12), [user() for _ in range(12)]
    at_once([lambda name=name: accept(question, name) for name in names * 2])  # type: ignore[misc]
    assert [len(events_of(name)) for name in names] == [1] * 12
    assert len(responses_of(question["question_id"])) == 12


def writer_of(dynamodb: Any) -> AnswerWriter:
    """The door's writer, by another client."""
    own = parts().answers.writer
    return AnswerWriter(
        dynamodb,
        QuestionStore(dynamodb, "Questions"),
        ResponseStore(dynamodb, "Responses"),
        own.claims_table,
        own.events_table,
    )


@pytest.mark.parametrize(("how", "is_late"), [*((how, False) for how in FAILURES), ("dies after", True)])
def test_a_process_that_dies_at_any_call_leaves_an_answer_and_its_event_or_neither(
    how: str, *, is_late: bool
) -> None:
    """is_late: others have counted since the question was read, so it is counted by a second attempt."""
    for dies_at in itertools.count(1):
        question, name = ask(), user()
        handed, asked = submission(question, name), parts().questions.find(question["question_id"])
        if is_late:
            assert answer(question, user()).status == 201
        died = False
        try:
            writer_of(Dying(client("dynamodb"), dies_at, how)).store(asked, *handed, datetime.now(UTC))
        except (Killed, ClientError, BotoCoreError):
            died = True
        answered = len(responses_of(question["question_id"])) - is_late
        assert len(events_of(name)) == answered <= 1
        assert answer(question, name).status == (409 if answered else 201)
        assert (len(events_of(name)), len(responses_of(question["question_id"]))) == (1, 1 + is_late)
        if not died:
            break
    assert dies_at > (2 if is_late else 1)


def test_an_answer_that_was_lost_and_is_given_again_earns_once() -> None:
    """Others have answered since it was read, so it is stored by the third attempt."""
    question, name = ask(), user()
    assert answer(question, name).status == 201
    (stored,) = responses_of(question["question_id"])
    key = {each: stored[each] for each in ("question_id", "response_id")}
    client("dynamodb").delete_item(TableName="Responses", Key=key)
    asked = parts().questions.find(question["question_id"])
    assert answer(question, user()).status == 201
    parts().answers.writer.store(asked, *submission(question, name), datetime.now(UTC))
    assert (len(responses_of(question["question_id"])), len(events_of(name))) == (2, 1)


def test_an_answer_that_is_erased_before_it_is_counted_leaves_nothing() -> None:
    question, name = ask(), user()
    assert answer(question, name).status == 201
    (stored,) = responses_of(question["question_id"])
    person = Person("d", user_id=name, hashes=parts().answers.fingerprints.of_user(name).all)
    eraser = response_eraser(client("dynamodb"), "Responses")
    eraser.remove(eraser.find(person))
    assert deliver(records([stored])) == []
    assert live(stored["fingerprint_hash"]["S"]) == Stats()


def test_whom_an_agent_relays_earns_no_event() -> None:
    question = ask(agent="relaying")
    path = f"/v1/questions/{question['question_id']}/responses"
    body = {"selected_option": 0, "fingerprint": "device"}
    assert call("POST", path, body, sub="relaying", groups="[streakline/agents]").status == 201
    assert events_of("relaying") == events_of("device") == []
    (stored,) = responses_of(question["question_id"])
    assert stored["is_signed_in"] == {"BOOL": False}
    assert live(stored["fingerprint_hash"]["S"]) == Stats()
    assert deliver(records([stored])) == []
    assert live(stored["fingerprint_hash"]["S"]) == fold_responses([from_item(decode_item(stored))])
