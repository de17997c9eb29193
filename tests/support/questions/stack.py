"""The questions' functions on an engine, called as the gateway and the stream call them."""

import importlib
import json
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from types import SimpleNamespace
from typing import Any

import pytest

import ingest.questions.questions_api
from adapters.platform.aws import client
from ingest.web.caller import ApiError, Caller
from tests.support.engine import Engine
from tests.support.memory import forget
from tests.support.questions.asking import BODY

CONTEXT = SimpleNamespace(
    function_name="f", memory_limit_in_mb=128, invoked_function_arn="arn", aws_request_id="1"
)


@contextmanager
def prepared(engine: Engine) -> Iterator[None]:
    """The functions with their settings, without Redis, and the engine with the fingerprints' key."""
    secret = {"Name": f"fingerprints-{uuid.uuid4()}", "SecretString": "a key of these tests"}
    arn = engine.client("secretsmanager").create_secret(**secret)["ARN"]
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (engine.environment() | {"FINGERPRINT_SECRET_ARN": arn}).items():
            patch.setenv(name, value)
        forget()
        yield
    forget()


@dataclass(frozen=True, slots=True)
class Reply:
    """What the API answered."""

    status: int
    body: Any
    headers: dict[str, str]

    @property
    def code(self) -> str:
        return str(self.body["error"]["code"])


def call(
    method: str, path: str, body: Any = None, *, sub: str = "person", groups: str = "", **query: Any
) -> Reply:
    """Call the API as somebody."""
    claims = {"sub": sub, "cognito:groups": groups} if sub else {}
    event = {
        "version": "2.0",
        "routeKey": f"{method} {path}",
        "rawPath": path,
        "rawQueryString": "",
        "headers": {},
        "queryStringParameters": {name: str(value) for name, value in query.items()},
        "requestContext": {
            "http": {"method": method, "path": path},
            "stage": "$default",
            "authorizer": {"jwt": {"claims": claims}},
        },
        "body": body if isinstance(body, str) else json.dumps(body),
    }
    waits = method == "GET" and path.endswith("/responses")
    module = "ingest.questions.polls_api" if waits else "ingest.questions.questions_api"
    answer = importlib.import_module(module).handler(event, CONTEXT)
    return Reply(answer["statusCode"], json.loads(answer["body"]), answer["headers"])


def as_agent(method: str, path: str, body: Any = None, agent: str = "agent", **query: Any) -> Reply:
    return call(method, path, body, sub=agent, groups="[streakline/agents]", **query)


def question_body(**changes: Any) -> dict[str, Any]:
    """The body of a choice question of two options, or as changed; None leaves a field out."""
    body = BODY | {"idempotency_key": str(uuid.uuid4())} | changes
    return {name: each for name, each in body.items() if each is not None}


def ask(agent: str = "agent", **changes: Any) -> dict[str, Any]:
    """Ask a question of question_body."""
    reply = as_agent("POST", "/v1/questions", question_body(**changes), agent)
    assert reply.status == 201, reply.body
    view: dict[str, Any] = reply.body
    return view


def answer(question: dict[str, Any], person: str, groups: str = "", **changes: Any) -> Reply:
    path = f"/v1/questions/{question['question_id']}/responses"
    return call("POST", path, {"selected_option": 0, "confidence": 3, **changes}, sub=person, groups=groups)


def at_once(calls: list[Callable[[], Any]]) -> list[Any]:
    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result() for future in [pool.submit(each) for each in calls]]


# A process reads these twice a minute, whenever that is.
PER_PROCESS = (b'"Erasures"', b'"RuleBooks"')


@dataclass
class Requests:
    """Requests that left for DynamoDB, retries of botocore included, but for those of PER_PROCESS."""

    operations: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def seen(self, event_name: str, request: Any, **_: Any) -> None:
        if any(table in (request.body or b"") for table in PER_PROCESS):
            return
        with self.lock:
            self.operations.append(event_name.rsplit(".", 1)[1])


@contextmanager
def requests() -> Iterator[Requests]:
    """Count the requests of the process's client, at botocore's last step before the wire."""
    seen, events = Requests(), client("dynamodb").meta.events
    events.register("before-send.dynamodb", seen.seen)
    try:
        yield seen
    finally:
        events.unregister("before-send.dynamodb", seen.seen)


def responses_of(question_id: str) -> list[dict[str, Any]]:
    """A question's stored responses, in the wire format."""
    found = client("dynamodb").query(
        TableName="Responses",
        KeyConditionExpression="question_id = :q",
        ExpressionAttributeValues={":q": {"S": question_id}},
        ConsistentRead=True,
    )
    items: list[dict[str, Any]] = found["Items"]
    return items


def get(question: dict[str, Any]) -> dict[str, Any]:
    path = f"/v1/questions/{question['question_id']}"
    body: dict[str, Any] = call("GET", path, groups="streakline/admin").body
    return body


def accept(question: dict[str, Any], person: str) -> Any:
    """Answer below the router, which serves one request at a time: the receipt, or the refusal."""
    body = {"selected_option": 0, "confidence": 3}
    try:
        return ingest.questions.questions_api._parts().answers.answer(
            question["question_id"], body, Caller(person, is_admin=False)
        )
    except ApiError as error:
        return error


def set_clock(monkeypatch: pytest.MonkeyPatch, now: datetime) -> None:
    monkeypatch.setattr("adapters.clock.now", lambda: now)
