"""Answers are nobody's: no table says whose they are, and yet each earns its user an event, exactly once."""

import itertools
import json
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import BotoCoreError, ClientError

import ingest.engagement.user_requests
import ingest.questions.questions_api
from adapters.platform.aws import client
from adapters.platform.items import decode_item
from adapters.platform.tables import scan_all
from adapters.privacy.erasers import AnswerLineEraser, ResponseEraser
from adapters.questions.answer_line import TAKEN_MAX, AnswerLine
from adapters.questions.question_store import QuestionStore
from adapters.questions.response_store import WAITING_KEPT, ResponseStore, WaitingAnswers
from rules.lake.entities import row_of
from rules.lake.question_entities import RESPONSES
from rules.privacy.erasures import Person
from rules.questions.answer_stats import Stats, fold_responses
from rules.questions.responses import Submission, from_item, new_response
from tests.support.answer_stream import deliver, events_of, live, records
from tests.support.books import KnownBooks
from tests.support.dying import FAILURES, Dying, Killed
from tests.support.engine import Engine
from tests.support.questions_stack import (
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


def submission(question: dict[str, Any], name: str) -> Submission:
    """What a person hands in just now."""
    door, books = parts().answers, KnownBooks().books()
    asked = parts().questions.find(question["question_id"])
    made = new_response(
        asked, {"selected_option": 0}, door.fingerprints.of_user(name), books, datetime.now(UTC)
    )
    found: Submission = door._submission(made, name, books)
    return found


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
    assert all_items("AnswerLines") == []


def test_an_answer_without_a_zone_is_dated_in_the_one_that_the_user_has_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name, at = user(), datetime.now(UTC).replace(hour=20)
    ingest.engagement.user_requests.parts().preferences.set_timezone(name, "Asia/Tokyo", at)
    question = ask(closes_at=(at + timedelta(days=1)).isoformat())
    set_clock(monkeypatch, at)
    assert answer(question, name).body["activity_date"] == str(at.date())
    assert [(each["activity_date"], each["zone"]) for each in events_of(name)] == [
        (str(at.date() + timedelta(days=1)), "Asia/Tokyo")
    ]


def test_many_at_once_are_each_rewarded_once_also_out_of_the_line() -> None:
    question, names = ask(required_responses=40), [user() for _ in range(40)]
    at_once([lambda name=name: accept(question, name) for name in names * 2])  # type: ignore[misc]
    assert [len(events_of(name)) for name in names] == [1] * 40
    assert len(responses_of(question["question_id"])) == 40
    assert all_items("AnswerLines") == []


def line_of(dynamodb: Any) -> AnswerLine:
    """The door's line, by another client."""
    return AnswerLine(
        dynamodb,
        QuestionStore(dynamodb, "Questions"),
        ResponseStore(dynamodb, "Responses"),
        parts().answers.line.awards,
        WaitingAnswers(dynamodb, "AnswerLines"),
    )


@pytest.mark.parametrize("how", FAILURES)
@pytest.mark.parametrize("waits", [False, True])
def test_a_process_that_dies_at_any_call_leaves_an_answer_and_its_event_or_neither(
    how: str, *, waits: bool
) -> None:
    for dies_at in itertools.count(1):
        question, name = ask(), user()
        handed, asked = submission(question, name), parts().questions.find(question["question_id"])
        dying = line_of(Dying(client("dynamodb"), dies_at, how))
        died = False
        try:
            (dying.wait if waits else dying.answer)(asked, handed, datetime.now(UTC))
        except (Killed, ClientError, BotoCoreError):
            died = True
        answered = responses_of(question["question_id"])
        assert len(events_of(name)) == len(answered) <= 1
        assert answer(question, name).status == (409 if answered else 201)
        # Whoever comes next takes what the dead process left in the line.
        parts().answers.line.wait(asked, submission(question, user()), datetime.now(UTC))
        assert (len(events_of(name)), len(responses_of(question["question_id"]))) == (1, 2)
        if not died:
            break
    assert dies_at > (4 if waits else 1)
    assert all_items("AnswerLines") == []


@pytest.mark.parametrize("waits", [False, True])
def test_an_answer_that_was_lost_and_is_given_again_earns_once(*, waits: bool) -> None:
    question, name = ask(), user()
    assert answer(question, name).status == 201
    (stored,) = responses_of(question["question_id"])
    key = {each: stored[each] for each in ("question_id", "response_id")}
    client("dynamodb").delete_item(TableName="Responses", Key=key)
    line, asked = parts().answers.line, parts().questions.find(question["question_id"])
    (line.wait if waits else line.answer)(asked, submission(question, name), datetime.now(UTC))
    assert len(responses_of(question["question_id"])) == len(events_of(name)) == 1


def test_an_answer_that_is_erased_before_it_is_counted_leaves_nothing() -> None:
    question, name = ask(), user()
    assert answer(question, name).status == 201
    (stored,) = responses_of(question["question_id"])
    person = Person("d", user_id=name, hashes=parts().answers.fingerprints.of_user(name).all)
    eraser = ResponseEraser(client("dynamodb"), "Responses")
    eraser.remove(eraser.find(person))
    assert deliver(records([stored])) == []
    assert live(stored["fingerprint_hash"]["S"]) == Stats()


def test_what_stands_in_line_is_found_by_an_erasure_and_ends_after_an_hour() -> None:
    question, name, now = ask(), user(), datetime.now(UTC)
    waiting, handed = parts().answers.line.waiting, submission(question, name)
    assert waiting.put(handed, now)
    assert not waiting.put(handed, now)
    (stored,) = all_items("AnswerLines")
    assert int(stored["expires_at"]["N"]) == int((now + WAITING_KEPT).timestamp())
    assert waiting.first(question["question_id"], 9, now) == [handed]
    assert waiting.first(question["question_id"], 9, now + WAITING_KEPT) == []
    assert waiting.put(handed, now + WAITING_KEPT), "it is gone, though its item is still there"
    eraser = AnswerLineEraser(client("dynamodb"), "AnswerLines")
    assert eraser.find(Person("d", user_id="other", hashes=("0" * 32,))) == []
    person = Person("d", user_id=name, hashes=parts().answers.fingerprints.of_user(name).all)
    eraser.remove(eraser.find(person))
    assert all_items("AnswerLines") == []


def test_what_dead_processes_left_in_line_hides_nobody_who_stands_there() -> None:
    """DynamoDB deletes what has expired in its own time. Until then a request finds it before others."""
    question, now = ask(), datetime.now(UTC)
    line = WaitingAnswers(client("dynamodb"), "AnswerLines")
    for _ in range(TAKEN_MAX + 1):
        assert line.put(submission(question, user()), now - 2 * WAITING_KEPT)
    mine = [submission(question, user()) for _ in range(3)]
    for each in mine:
        assert line.put(each, now)
    hashes = {each.response.fingerprint_hash for each in mine}
    found = line.first(question["question_id"], TAKEN_MAX, now)
    assert {each.response.fingerprint_hash for each in found} == hashes
    assert len(line.first(question["question_id"], 2, now)) == 2


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
