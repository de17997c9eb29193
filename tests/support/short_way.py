"""The short way from botocore's clients to the emulator's code: half of a call's CPU is botocore's own plumbing.

A client writes its request and asks its hooks, as ever; then the emulator's handler is called. Left out are
signing, HTTP and retries, which the emulator does not need, and for answers that are often asked for the parse by
the service model. test_engine.py holds answers against those of a server, which go the long way.
"""

import base64
import json
from collections.abc import Callable
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

from botocore.awsrequest import AWSPreparedRequest, AWSResponse, HeadersDict
from botocore.endpoint import Endpoint, convert_to_response_dict, first_non_none_response

# What these answer has bytes as values of attributes only, and no time but a change's.
OFTEN_ASKED = frozenset(
    {
        *(
            "GetItem",
            "PutItem",
            "UpdateItem",
            "DeleteItem",
            "Query",
            "Scan",
            "BatchGetItem",
            "BatchWriteItem",
        ),
        *("TransactGetItems", "TransactWriteItems", "ExecuteStatement", "BatchExecuteStatement"),
        *("ExecuteTransaction", "GetRecords"),
    }
)
Told = tuple[int, dict[str, str], bytes]
Asked = Callable[[bytes], Told]
Answer = tuple[AWSResponse, dict[str, Any]]


def take_short_way(who_answers: Callable[[str, str], Asked | None]) -> None:
    """Let all clients of this process take the short way, for good.

    who_answers: of an endpoint and a target, such as DynamoDB_20120810.GetItem; None lets a request go where it went.
    """
    outside = Endpoint.make_request

    def make_request(self: Any, operation: Any, request: dict[str, Any]) -> Any:
        asked = who_answers(self.host.rstrip("/"), request["headers"].get("X-Amz-Target", ""))
        return (
            outside(self, operation, request) if asked is None else _answer(self, operation, request, asked)
        )

    setattr(Endpoint, "make_request", make_request)  # noqa: B010 (a method is replaced)


def shorten(client: Any, who_answers: Callable[[str, str], Asked | None]) -> Any:
    """Let a client write what is often asked as it is, without the service model; returns the client.

    Of its hooks it asks those of before-send alone. It is for simulations: most of what they do is such calls.
    """
    long_way, prefix = client._make_api_call, client.meta.service_model.metadata["targetPrefix"]
    service, host = client.meta.service_model.service_id.hyphenize(), client._endpoint.host.rstrip("/")

    def call(name: str, parameters: dict[str, Any]) -> Any:
        target = f"{prefix}.{name}"
        asked = who_answers(host, target) if name in OFTEN_ASKED else None
        if asked is None:
            return long_way(name, parameters)
        client.meta.events.emit(f"before-send.{service}.{name}", request=None)
        status, headers, body = asked(json.dumps(parameters, default=_as_text).encode())
        if status == HTTPStatus.OK:
            return plain(body)
        answer = _response(host, (status, headers, body))
        told = _parsed(client._endpoint, client.meta.service_model.operation_model(name), answer)
        raise client.exceptions.from_code(told["Error"]["Code"])(told, name)

    client._make_api_call = call
    return client


def _as_text(some: bytes) -> str:
    return base64.b64encode(some).decode()


def _answer(endpoint: Any, operation: Any, request: dict[str, Any], asked: Asked) -> Answer:
    body = request["body"].encode() if isinstance(request["body"], str) else request["body"]
    prepared = AWSPreparedRequest("POST", request["url"], request["headers"], body, stream_output=False)
    event = f"before-send.{operation.service_model.service_id.hyphenize()}.{operation.name}"
    answer = first_non_none_response(endpoint._event_emitter.emit(event, request=prepared))
    if answer is None:
        answer = _response(request["url"], asked(body or b""))
    return answer, _parsed(endpoint, operation, answer)


def _response(url: str, told: Told) -> AWSResponse:
    status, told_headers, body = told
    assert status < HTTPStatus.INTERNAL_SERVER_ERROR, f"the emulator fails: {body!r}"
    headers: Any = HeadersDict(told_headers)
    response: Any = AWSResponse(url, status, headers, None)
    response._content = body
    made: AWSResponse = response
    return made


def _parsed(endpoint: Any, operation: Any, answer: AWSResponse) -> dict[str, Any]:
    if answer.status_code == HTTPStatus.OK and operation.name in OFTEN_ASKED:
        found = plain(answer.content)
        metadata = {"HTTPStatusCode": answer.status_code, "HTTPHeaders": dict(answer.headers)}
        return {**found, "ResponseMetadata": {**metadata, "RetryAttempts": 0}}
    told = convert_to_response_dict(answer, operation)
    parser = endpoint._response_parser_factory.create_parser(operation.service_model.resolved_protocol)
    parsed: dict[str, Any] = parser.parse(told, operation.output_shape)
    if answer.status_code >= HTTPStatus.MULTIPLE_CHOICES:
        endpoint._add_modeled_error_fields(told, parsed, operation, parser)
    parsed.setdefault("ResponseMetadata", {})["RetryAttempts"] = 0
    return parsed


def plain(body: bytes) -> dict[str, Any]:
    """Return what botocore's parser would: bytes are bytes, times are times."""
    has_bytes = b'"B"' in body or b'"BS"' in body
    found: dict[str, Any] = json.loads(body, object_hook=_with_bytes if has_bytes else None) if body else {}
    for record in found.get("Records", ()):
        change = record["dynamodb"]
        at = change["ApproximateCreationDateTime"]
        change["ApproximateCreationDateTime"] = datetime.fromtimestamp(at, UTC)
    return found


def _with_bytes(found: dict[str, Any]) -> dict[str, Any]:
    """A value {"B": text} has its bytes; an attribute of that name has no text but a value."""
    if len(found) != 1:
        return found
    ((kind, value),) = found.items()
    if kind == "B" and isinstance(value, str):
        return {kind: base64.b64decode(value)}
    if kind == "BS" and isinstance(value, list):
        return {kind: [base64.b64decode(each) for each in value]}
    return found
