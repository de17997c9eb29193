"""Sixty-four at once on a real engine, without the doors (through which tests/e2e sends several at once)."""

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest

import ingest.engagement.events_api
import ingest.engagement.user_services
from adapters.platform.aws import client
from ingest.engagement.acceptance import Acceptor
from ingest.web.caller import ApiError, Caller
from processors import engagement
from tests.faults.invariants import violations
from tests.support.engine import Engine

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def settings(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    caches = (
        *(client.cache_clear, ingest.engagement.events_api._parts.cache_clear),
        *(ingest.engagement.user_services.services.cache_clear, engagement._parts.cache_clear),
    )
    for name, value in engine.environment().items():
        monkeypatch.setenv(name, value)
    for clear in caches:
        clear()
    yield
    for clear in caches:
        clear()


@pytest.fixture
def accept() -> Acceptor:
    return ingest.engagement.events_api._parts().acceptor


def at_once(calls: list[Callable[[], Any]]) -> list[Any]:
    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result() for future in [pool.submit(call) for call in calls]]


def body(key: str, **more: Any) -> dict[str, Any]:
    return {
        "idempotency_key": key,
        "event_type": "CONTRIBUTION",
        "occurred_at": "2026-03-01T11:00:00Z",
        **more,
    }


def test_64_of_one_key_and_body_are_one_event(accept: Acceptor) -> None:
    caller = Caller("same-body", is_admin=False)
    results = at_once([lambda: accept.accept([body("same")], caller, NOW)[0]] * 64)
    assert Counter(result.status for result in results) == {"accepted": 1, "duplicate": 63}
    assert len({result.event_id for result in results}) == 1


def test_64_bodies_under_one_key_are_one_event_and_63_conflicts(accept: Acceptor) -> None:
    caller = Caller("other-body", is_admin=False)
    bodies = [body("same", properties={"number": number}) for number in range(32)]
    bodies += [body("same", occurred_at=f"2026-03-01T11:00:{number:02}Z") for number in range(32)]
    results = at_once([lambda each=each: accept.accept([each], caller, NOW)[0] for each in bodies])  # type: ignore[misc]
    assert Counter(result.status for result in results) == {"accepted": 1, "conflict": 63}


def test_64_redemptions_of_the_whole_balance_succeed_once(engine: Engine, accept: Acceptor) -> None:
    caller = Caller("redeems", is_admin=False)
    accept.accept([body(f"k{number}") for number in range(10)], caller, NOW)
    _apply(engine, "redeems")
    rewards = ingest.engagement.user_services.services().spending

    def redeem(number: int) -> Any:
        try:
            return rewards.redeem("redeems", 100, "mug", f"r{number}", NOW).entry.balance
        except ApiError as error:
            return error.code

    answers = at_once([lambda number=number: redeem(number) for number in range(64)])  # type: ignore[misc]
    assert Counter(answers) == {0: 1, "insufficient_balance": 63}
    assert not violations(engine.client("dynamodb"), "redeems")


def _apply(engine: Engine, user: str) -> None:
    """Hand a user's stored events to the processor, as the stream does."""
    stored = engine.client("dynamodb").query(
        TableName="BPEvents",
        KeyConditionExpression="user_id = :user",
        ExpressionAttributeValues={":user": {"S": user}},
    )["Items"]
    records = [
        {"eventName": "INSERT", "dynamodb": {"SequenceNumber": str(number), "NewImage": each}}
        for number, each in enumerate(stored)
    ]
    assert engagement.handler({"Records": records}, _Context())["batchItemFailures"] == []


class _Context:
    function_name, memory_limit_in_mb, invoked_function_arn, aws_request_id = "f", 128, "arn", "1"
