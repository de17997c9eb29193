"""Answers for the services that a desk has no engine for, in the form in which they come over the network.

moto stands for DynamoDB, but cannot read PartiQL. So the claims' INSERT statements are carried out here.
"""

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from botocore.awsrequest import AWSPreparedRequest, AWSResponse

from adapters.platform.items import Item
from bench.counting.meter import inserted_item

JSON = "application/x-amz-json-1.0"
PHONE = "<EndpointArn>arn:aws:sns:us-east-1:000000000000:endpoint/GCM/streakline/1</EndpointArn>"
BATCH_ENTRY = "PublishBatchRequestEntries.member"
Answer = tuple[int, dict[str, str], bytes]  # status, headers, body


@dataclass
class CannedServices:
    """Stands for Firehose, SQS, SNS, S3, Lambda and Secrets Manager, and keeps what was sent to them."""

    insert: Callable[[str, Item], bool]  # puts a claim; returns False if its key is taken
    dynamodb: Callable[..., AWSResponse | None]  # answers all of DynamoDB but INSERT
    messages: list[tuple[str, str]] = field(default_factory=list)  # to SQS: queue and body
    notifications: list[tuple[str, dict[str, str]]] = field(default_factory=list)  # to SNS: body, attributes
    rows: list[bytes] = field(default_factory=list)  # to Firehose
    recording: list[Answer] | None = None  # if it is a list, all answers are added to it
    replay: Iterator[Answer] | None = None  # answers to give, one after the other, instead of all others

    def clear(self) -> None:
        """Forget what was sent."""
        self.messages.clear()
        self.notifications.clear()
        self.rows.clear()

    def answer(self, event_name: str, request: AWSPreparedRequest, **_: Any) -> AWSResponse | None:
        """Answer a request of any client, in place of the network."""
        if self.replay is not None:
            status, headers, content = next(self.replay)
            return _response(request, content, headers, status)
        answer = self._live_answer(event_name, request)
        if answer is not None and self.recording is not None:
            self.recording.append((answer.status_code, dict(answer.headers), answer.content))
        return answer

    def _live_answer(self, event_name: str, request: AWSPreparedRequest) -> AWSResponse | None:
        _, service, operation = event_name.split(".")
        if service == "dynamodb":
            is_insert = operation == "BatchExecuteStatement"
            return self._insert_claims(request) if is_insert else self.dynamodb(event_name, request)
        answers: dict[str, Callable[[AWSPreparedRequest], AWSResponse]] = {
            "firehose": self._firehose,
            "sqs": self._sqs,
            "sns": self._sns,
            "s3": lambda _: _respond(request, b"", "application/xml"),
            "lambda": lambda _: _respond(request, b""),
            "secrets-manager": lambda _: _respond_json(
                request, {"ARN": "arn", "Name": "key", "SecretString": "key"}
            ),
        }
        return answers[service](request)

    def _insert_claims(self, request: AWSPreparedRequest) -> AWSResponse:
        statements = json.loads(_body(request))["Statements"]
        duplicate = {"Error": {"Code": "DuplicateItem", "Message": "taken"}}
        answers = [{} if self.insert(*inserted_item(each)) else duplicate for each in statements]
        return _respond_json(request, {"Responses": answers})

    def _firehose(self, request: AWSPreparedRequest) -> AWSResponse:
        body = json.loads(_body(request))
        records = body.get("Records") or [body["Record"]]
        self.rows += [base64.b64decode(each["Data"]) for each in records]
        answers = [{"RecordId": "0" * 190} for _ in records]
        return _respond_json(request, {"FailedPutCount": 0, "RequestResponses": answers})

    def _sqs(self, request: AWSPreparedRequest) -> AWSResponse:
        body = json.loads(_body(request))
        entries = body.get("Entries") or [body]
        self.messages += [(body["QueueUrl"], each["MessageBody"]) for each in entries]
        answers = [
            {
                "Id": each.get("Id", "0"),
                "MessageId": "0" * 36,
                "MD5OfMessageBody": hashlib.md5(each["MessageBody"].encode()).hexdigest(),
            }
            for each in entries
        ]
        is_batch = "Entries" in body
        return _respond_json(request, {"Successful": answers, "Failed": []} if is_batch else answers[0])

    def _sns(self, request: AWSPreparedRequest) -> AWSResponse:
        fields = dict(parse_qsl(_body(request).decode()))
        action = fields["Action"]
        if action == "PublishBatch":
            result = self._publish_batch(fields)
        else:
            result = {"Publish": "<MessageId>0</MessageId>", "CreatePlatformEndpoint": PHONE}[action]
        content = f"<{action}Response><{action}Result>{result}</{action}Result></{action}Response>"
        return _respond(request, content.encode(), "text/xml")

    def _publish_batch(self, fields: dict[str, str]) -> str:
        """Keep a batch's notifications; returns the result. fields: as sent, such as `...member.1.Id`."""
        matches = (re.match(rf"{BATCH_ENTRY}\.(\d+)\.Id$", name) for name in fields)
        numbers = sorted(int(match[1]) for match in matches if match)
        members = ""
        for number in numbers:
            entry = f"{BATCH_ENTRY}.{number}"
            self.notifications.append((fields[f"{entry}.Message"], _attributes(fields, entry)))
            members += f"<member><Id>{fields[f'{entry}.Id']}</Id><MessageId>0</MessageId></member>"
        return f"<Successful>{members}</Successful><Failed/>"


def _attributes(fields: dict[str, str], entry: str) -> dict[str, str]:
    """Return a notification's attributes, by which SNS filters."""
    stem = f"{entry}.MessageAttributes.entry"
    names = [name for name in fields if name.startswith(stem) and name.endswith(".Name")]
    return {fields[name]: fields[name.removesuffix("Name") + "Value.StringValue"] for name in names}


def _body(request: AWSPreparedRequest) -> bytes:
    body: Any = request.body or b""
    return body.encode() if isinstance(body, str) else bytes(body)


def _respond_json(request: AWSPreparedRequest, answer: Any) -> AWSResponse:
    return _respond(request, json.dumps(answer).encode(), JSON)


def _respond(request: AWSPreparedRequest, content: bytes, content_type: str = JSON) -> AWSResponse:
    # DynamoDB's client checks an answer's CRC.
    headers = {"content-type": content_type, "x-amz-crc32": str(zlib.crc32(content))}
    return _response(request, content, headers)


def _response(
    request: AWSPreparedRequest, content: bytes, headers: dict[str, str], status: int = 200
) -> AWSResponse:
    botocore_headers: Any = headers
    return AWSResponse(request.url, status, botocore_headers, _Body(content))


@dataclass(frozen=True, slots=True)
class _Body:
    content: bytes

    def stream(self) -> Iterator[bytes]:
        yield self.content
