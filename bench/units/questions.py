"""Measures the path of a question: asking, messages to phones, an answer as an event, and reads."""

import json
from datetime import timedelta
from typing import Any

from bench.counting.desk import Desk, PathCosts
from bench.counting.requests import AGENTS, Record, http, queue
from bench.units.engagement import newest_rows
from bench.units.part_units import PartUnits

PHONES = 4
PUBLISHED_TABLES = ("Questions", "Responses", "UserStats", "Subscriptions")
QUESTION = {
    "type": "multiple_choice",
    "prompt": "Which of these pictures shows a bicycle lane?",
    "options": ["the first", "the second"],
    "required_responses": 100,
}
ANSWER = {"selected_option": 0, "confidence": 4, "response_time_ms": 5200, "timezone": "Europe/Berlin"}


def question_paths(desk: Desk) -> PathCosts:
    """Yield a question without subscribers, one sent to PHONES phones, an answer, a look at answers."""
    desk.start_path()
    _ask(desk, 0)
    yield "question.asked", desk.take_costs()
    for number in range(PHONES):
        _subscribe(desk, f"person-{number}", f"token-{number:04}", minutes=60)
    _ask(desk, 1)  # not measured: the first message to a phone makes its endpoint
    desk.start_path()
    _ask(desk, 2)
    yield f"question.told.{PHONES}", desk.take_costs()
    question = _ask(desk, 3)
    for number in range(3):
        _answer(desk, question, f"earlier-{number}")
    person = "5f0f8a43-0b1f-4a2f-8c11-999999999999"
    _answer(desk, _ask(desk, 4), person)  # not measured: a person's first answer
    desk.start_path()
    _answer(desk, question, person)
    yield "question.answered", desk.take_costs()
    desk.start_path()
    path = f"/v1/questions/{question}/responses"
    desk.call("PollsApiFunction", http("GET", path, sub="agent", groups=AGENTS))
    yield "question.polled", desk.take_costs()


def question_rows(desk: Desk) -> dict[str, list[Record]]:
    """Return a row of each table that a question, its message to a phone and its last answer lead to."""
    _subscribe(desk, "listener", "token-rows", minutes=0)
    desk.start_path()
    question = _ask(desk, 10**6)
    rows = newest_rows(desk)
    desk.start_path()
    _answer(desk, question, "5f0f8a43-0b1f-4a2f-8c11-888888888888")
    rows |= newest_rows(desk)
    return {table: rows[table] for table in PUBLISHED_TABLES if table in rows}


def _subscribe(desk: Desk, person: str, token: str, *, minutes: int) -> None:
    body = {"fcm_token": token + "x" * 140, "min_interval_minutes": minutes}
    desk.call("QuestionsApiFunction", http("POST", "/v1/subscriptions", body, sub=person))


def _ask(desk: Desk, number: int) -> str:
    desk.tick(timedelta(hours=2))
    body = {**QUESTION, "idempotency_key": f"00000000-0000-4000-8000-{number:012}"}
    event = http("POST", "/v1/questions", body, sub="agent", groups=AGENTS)
    answer = _post(desk, event)
    desk.consume("NotifyFunction", "Questions")
    while desk.services.messages:  # a page of subscribers, which may lead to another page
        _, page = desk.services.messages.pop(0)
        desk.add_cost("FanOutFunction", {"sqs.messages": 1})
        desk.call("FanOutFunction", queue([page]))
    return str(answer["question_id"])


def _answer(desk: Desk, question: str, person: str) -> None:
    desk.tick(timedelta(minutes=10))
    _post(desk, http("POST", f"/v1/questions/{question}/responses", ANSWER, sub=person))
    desk.consume("AnswersFunction", "Responses")
    desk.tick()
    desk.consume("EngagementFunction", "BPEvents")


def _post(desk: Desk, event: dict[str, Any]) -> dict[str, Any]:
    response = desk.call("QuestionsApiFunction", event)
    assert response["statusCode"] == 201, response
    desk.tick()
    answer: dict[str, Any] = json.loads(response["body"])
    return answer


UNITS = PartUnits(question_paths, question_rows)
