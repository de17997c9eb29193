"""An agent has so many open questions, and a person so many phones, however many are on their way."""

import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from adapters.questions.question_store import QuestionStore
from adapters.questions.subscription_store import SubscriptionStore
from ingest.questions import questions_api
from ingest.web.caller import ApiError, Caller
from tests.support.engine import Engine
from tests.support.site import site


@pytest.fixture(scope="module")
def few(engine: Engine) -> Iterator[None]:
    with site(engine, OPEN_QUESTIONS_MAX="3", SUBSCRIPTIONS_MAX="2"):
        yield


@pytest.fixture
def user() -> str:
    return f"h{time.time_ns()}"


def question(n: int) -> dict[str, Any]:
    return {"idempotency_key": f"q{n}", "type": "text", "prompt": "?", "required_responses": 1}


def during(monkeypatch: pytest.MonkeyPatch, store: type, name: str, others: Callable[[], None]) -> None:
    """Let others come when a store's method begins for the first time: after the place, before what holds it."""
    real, waiting = getattr(store, name), [others]

    def late(*args: Any) -> Any:
        if waiting:
            waiting.pop()()
        return real(*args)

    monkeypatch.setattr(store, name, late)


def each_of(call: Callable[[int], None], numbers: Iterable[int]) -> None:
    for number in numbers:
        call(number)


def test_a_question_that_is_being_stored_holds_its_place(
    few: None, user: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking = questions_api._parts().creator
    now, told = datetime.now(UTC), list[int]()

    def ask_one(n: int) -> None:
        try:
            told.append(asking.create(question(n), f"{user}-agent", now)[0])
        except ApiError as refused:
            told.append(refused.status)

    during(monkeypatch, QuestionStore, "create", lambda: each_of(ask_one, range(1, 4)))
    ask_one(0)
    assert told == [201, 201, 409, 201]


def test_a_phone_that_is_being_stored_holds_its_place(
    few: None, user: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller, now, told = Caller(user, is_admin=False), datetime.now(UTC), list[int]()

    def register(n: int) -> None:
        try:
            told.append(
                questions_api._parts().subscriptions.subscribe(caller, {"fcm_token": f"{user}-{n}"}, now)[0]
            )
        except ApiError as refused:
            told.append(refused.status)

    during(monkeypatch, SubscriptionStore, "register", lambda: each_of(register, range(1, 3)))
    register(0)
    assert told == [201, 409, 201]
