"""The path of a question: asked, told to phones, answered, counted, applied as an event; and what is read."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from bench.counting.desk import Desk, Units
from bench.counting.requests import AGENTS, http, queue
from bench.units.publishing import rows_of

PHONES = 4
PUBLISHED = ("Questions", "Responses", "UserStats", "Subscriptions")
QUESTION = {
    "type": "multiple_choice",
    "prompt": "Which of these pictures shows a bicycle lane?",
    "options": ["the first", "the second"],
    "required_responses": 100,
}
Measured = Iterator[tuple[str, dict[str, Units]]]


def question_paths(desk: Desk) -> Measured:
    """Yield a question that nobody hears of, one told to PHONES phones, an answer, a look at answers."""
    yield "question.asked", _asked(desk, 0)[1]
    for number in range(PHONES):
        body = {"fcm_token": f"token-{number:04}" + "x" * 140, "min_interval_minutes": 60}
        desk.call("QuestionsApiFunction", http("POST", "/v1/subscriptions", body, sub=f"person-{number}"))
    _asked(desk, 1)  # The first message to a phone makes its endpoint.
    yield f"question.told.{PHONES}", _asked(desk, 2)[1]
    question = _asked(desk, 3)[0]
    for number in range(3):
        _answered(desk, question, f"earlier-{number}")
    person = "5f0f8a43-0b1f-4a2f-8c11-999999999999"
    _answered(desk, _asked(desk, 4)[0], person)
    yield "question.answered", _answered(desk, question, person)
    desk.forget()
    path = f"/v1/questions/{question}/responses"
    desk.call("PollsApiFunction", http("GET", path, sub="agent", groups=AGENTS))
    yield "question.polled", desk.take()


def question_rows(desk: Desk) -> dict[str, list[Any]]:
    """Return a row of each table that a question, its message to a phone and its last answer lead to."""
    body = {"fcm_token": "token-rows" + "x" * 140, "min_interval_minutes": 0}
    desk.call("QuestionsApiFunction", http("POST", "/v1/subscriptions", body, sub="listener"))
    question = _asked(desk, 10**6)[0]
    told = rows_of(desk)
    _answered(desk, question, "5f0f8a43-0b1f-4a2f-8c11-888888888888")
    return {table: each for table, each in (told | rows_of(desk)).items() if table in PUBLISHED}


def _asked(desk: Desk, number: int) -> tuple[str, dict[str, Units]]:
    desk.tick(timedelta(hours=2))
    desk.forget()
    body = {**QUESTION, "idempotency_key": f"00000000-0000-4000-8000-{number:012}"}
    answered = desk.call(
        "QuestionsApiFunction", http("POST", "/v1/questions", body, sub="agent", groups=AGENTS)
    )
    assert answered["statusCode"] == 201, answered
    desk.tick()
    desk.consume("NotifyFunction", "Questions")
    _announced(desk)
    return str(json.loads(answered["body"])["question_id"]), desk.take()


def _announced(desk: Desk) -> None:
    """Serve the pages of those who are told, until none asks for another one."""
    while desk.services.messages:
        _, page = desk.services.messages.pop(0)
        desk.note("FanOutFunction", {"sqs.messages": 1})
        desk.call("FanOutFunction", queue([page]))


def _answered(desk: Desk, question: str, person: str) -> dict[str, Units]:
    desk.tick(timedelta(minutes=10))
    desk.forget()
    body: Any = {"selected_option": 0, "confidence": 4, "response_time_ms": 5200, "timezone": "Europe/Berlin"}
    path = f"/v1/questions/{question}/responses"
    answered = desk.call("QuestionsApiFunction", http("POST", path, body, sub=person))
    assert answered["statusCode"] == 201, answered
    desk.tick()
    desk.consume("AnswersFunction", "Responses")
    desk.tick()
    desk.consume("EngagementFunction", "BPEvents")
    return desk.take()
