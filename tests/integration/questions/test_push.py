"""One contract for pushes: the phones of our tests, SNS by moto, SNS by the emulator.

The emulator's SNS takes every message for an endpoint that is there; it knows no disabled endpoint, so the part
about dead tokens is held against moto, and against the errors that AWS documents (tests/unit/questions/test_push.py).
"""

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest

from adapters.questions.push import PushReceipt, PushStatus, SnsPush
from rules.questions.notifications import PushMessage
from tests.support.engine import Engine
from tests.support.questions.subscribers import Phones

MESSAGE = PushMessage("A new question", "Which one?", {"type": "question"}, 3600)
Kill = Callable[[str], None]


def application(sns: Any) -> str:
    made = sns.create_platform_application(
        Name=f"app-{uuid.uuid4().hex[:8]}", Platform="GCM", Attributes={"PlatformCredential": "key"}
    )
    return str(made["PlatformApplicationArn"])


@pytest.fixture(params=["phones", "moto"])
def mortal(request: pytest.FixtureRequest, dynamodb: Any) -> Iterator[tuple[SnsPush, Kill]]:
    """A push, and how a phone's token dies."""
    if request.param == "phones":
        phones = Phones()
        yield phones, lambda _: setattr(phones, "dead", frozenset({"t"}))
        return
    sns = boto3.client("sns")

    def kill(endpoint: str) -> None:
        sns.set_endpoint_attributes(EndpointArn=endpoint, Attributes={"Enabled": "false"})

    yield SnsPush(sns, application(sns)), kill


@pytest.fixture(params=["phones", "moto", "emulator"])
def push(request: pytest.FixtureRequest, dynamodb: Any, engine: Engine) -> SnsPush:
    if request.param == "phones":
        return Phones()
    sns = boto3.client("sns") if request.param == "moto" else engine.client("sns")
    return SnsPush(sns, application(sns))


def test_an_endpoint_is_made_once(push: SnsPush) -> None:
    first = push.prepare("t")
    assert first.status is PushStatus.SENT and first.endpoint
    assert push.prepare("t") == first
    assert push.prepare("u").endpoint != first.endpoint


def test_a_message_goes_to_an_endpoint(push: SnsPush) -> None:
    endpoint = push.prepare("t").endpoint
    assert push.send(endpoint, "t", MESSAGE) == PushReceipt(PushStatus.SENT, endpoint)


def test_an_endpoint_that_was_deleted_is_made_again(push: SnsPush) -> None:
    endpoint = push.prepare("t").endpoint
    push.forget(endpoint)
    push.forget(endpoint)
    receipt = push.send(endpoint, "t", MESSAGE)
    assert receipt.status is PushStatus.SENT
    assert receipt.endpoint not in ("", endpoint)
    assert push.prepare("t").endpoint == receipt.endpoint


def test_a_dead_token_is_told(mortal: tuple[SnsPush, Kill]) -> None:
    push, kill = mortal
    endpoint = push.prepare("t").endpoint
    kill(endpoint)
    assert push.send(endpoint, "t", MESSAGE) == PushReceipt(PushStatus.DEAD, endpoint)
    push.forget(endpoint)
