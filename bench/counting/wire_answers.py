"""Answers, as they come over the wire, of the services that the desk has no engine for.

DynamoDB has one (moto); but moto cannot read PartiQL, so the claims' INSERT statements are carried out here.
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
from bench.counting.written_keys import inserted

JSON = "application/x-amz-json-1.0"
ENDPOINT = "<EndpointArn>arn:aws:sns:us-east-1:000000000000:endpoint/GCM/streakline/1</EndpointArn>"
Insert = Callable[[str, Item], bool]
Canned = tuple[int, dict[str, str], bytes]


@dataclass(frozen=True, slots=True)
class _Body:
    content: bytes

    def stream(self) -> Iterator[bytes]:
        yield self.content


def respond(request: AWSPreparedRequest, content: bytes, kind: str = JSON) -> AWSResponse:
    """Return an answer with status 200."""
    headers: Any = {"content-type": kind, "x-amz-crc32": str(zlib.crc32(content))}
    return AWSResponse(request.url, 200, headers, _Body(content))


def canned(request: AWSPreparedRequest, kept: Canned) -> AWSResponse:
    """Return an answer that was kept."""
    status, headers, content = kept
    given: Any = headers
    return AWSResponse(request.url, status, given, _Body(content))


@dataclass
class Services:
    """Stands for Firehose, SQS, SNS, S3, Lambda and Secrets Manager.

    insert: puts a claim; returns False if the key is taken. database: answers every other request to
    DynamoDB. messages: (queue, body) sent to SQS. announced: (body, attributes) published to SNS. delivered:
    (stream, record) put to Firehose. objects: (method, bytes) of requests to S3. kept: all
    answers, if they are to be kept. replayed: answers to give, one after the other, in place of any others.
    """

    insert: Insert
    database: Callable[..., AWSResponse | None]
    messages: list[tuple[str, str]] = field(default_factory=list)
    announced: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    delivered: list[tuple[str, bytes]] = field(default_factory=list)
    objects: list[tuple[str, int]] = field(default_factory=list)
    kept: list[Canned] | None = None
    replayed: Iterator[Canned] | None = None

    def answer(self, event_name: str, request: AWSPreparedRequest, **more: Any) -> AWSResponse | None:
        """Answer a request of any client, in place of the network."""
        if self.replayed is not None:
            return canned(request, next(self.replayed))
        answer = self._answer(event_name, request)
        if answer is not None and self.kept is not None:
            self.kept.append((answer.status_code, dict(answer.headers), answer.content))
        return answer

    def _answer(self, event_name: str, request: AWSPreparedRequest) -> AWSResponse | None:
        _, service, operation = event_name.split(".")
        if service == "dynamodb" and operation != "BatchExecuteStatement":
            return self.database(event_name, request)
        answer: AWSResponse = getattr(self, f"_{service.replace('-', '_')}")(request)
        return answer

    def _dynamodb(self, request: AWSPreparedRequest) -> AWSResponse:
        asked = json.loads(_body(request))["Statements"]
        taken = {"Error": {"Code": "DuplicateItem", "Message": "taken"}}
        answers = [{} if self.insert(*inserted(each)) else taken for each in asked]
        return respond(request, json.dumps({"Responses": answers}).encode())

    def _firehose(self, request: AWSPreparedRequest) -> AWSResponse:
        asked = json.loads(_body(request))
        rows = [base64.b64decode(each["Data"]) for each in asked.get("Records") or [asked["Record"]]]
        self.delivered += [(asked["DeliveryStreamName"], row) for row in rows]
        answers = [{"RecordId": "0" * 190} for _ in rows]
        return respond(request, json.dumps({"FailedPutCount": 0, "RequestResponses": answers}).encode())

    def _sqs(self, request: AWSPreparedRequest) -> AWSResponse:
        asked = json.loads(_body(request))
        sent = asked.get("Entries") or [asked]
        self.messages += [(asked["QueueUrl"], each["MessageBody"]) for each in sent]
        told = [
            {"MessageId": "0" * 36, "MD5OfMessageBody": hashlib.md5(each["MessageBody"].encode()).hexdigest()}
            for each in sent
        ]
        batch = [{**one, "Id": each.get("Id", "0")} for one, each in zip(told, sent, strict=True)]
        answer: Any = {"Successful": batch, "Failed": []} if "Entries" in asked else told[0]
        return respond(request, json.dumps(answer).encode())

    def _sns(self, request: AWSPreparedRequest) -> AWSResponse:
        fields = dict(parse_qsl(_body(request).decode()))
        if fields["Action"] != "PublishBatch":
            told = {"Publish": "<MessageId>0</MessageId>", "CreatePlatformEndpoint": ENDPOINT}[
                fields["Action"]
            ]
            return respond(request, _xml(fields["Action"], told), "text/xml")
        stem = "PublishBatchRequestEntries.member"
        places = sorted({int(found[1]) for name in fields if (found := re.match(rf"{stem}\.(\d+)\.", name))})
        self.announced += [
            (fields[f"{stem}.{at}.Message"], _attributes(fields, f"{stem}.{at}")) for at in places
        ]
        ids = (fields[f"{stem}.{at}.Id"] for at in places)
        members = "".join(f"<member><Id>{each}</Id><MessageId>0</MessageId></member>" for each in ids)
        told = f"<Successful>{members}</Successful><Failed/>"
        return respond(request, _xml("PublishBatch", told), "text/xml")

    def _s3(self, request: AWSPreparedRequest) -> AWSResponse:
        self.objects.append((str(request.method), len(_body(request))))
        return respond(request, b"", "application/xml")

    @staticmethod
    def _lambda(request: AWSPreparedRequest) -> AWSResponse:
        return respond(request, b"")

    @staticmethod
    def _secrets_manager(request: AWSPreparedRequest) -> AWSResponse:
        return respond(request, json.dumps({"ARN": "arn", "Name": "key", "SecretString": "key"}).encode())


def _xml(action: str, told: str) -> bytes:
    return f"<{action}Response><{action}Result>{told}</{action}Result></{action}Response>".encode()


def _attributes(fields: dict[str, str], entry: str) -> dict[str, str]:
    """Return a message's attributes, which SNS filters by."""
    stem = f"{entry}.MessageAttributes.entry"
    names = {
        name: value for name, value in fields.items() if name.startswith(stem) and name.endswith(".Name")
    }
    return {value: fields[name.removesuffix("Name") + "Value.StringValue"] for name, value in names.items()}


def _body(request: AWSPreparedRequest) -> bytes:
    body: Any = request.body or b""
    if hasattr(body, "read"):
        body.seek(0)
        body = body.read()
    return body.encode() if isinstance(body, str) else bytes(body)
