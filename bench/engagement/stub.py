"""Answers botocore's requests without a network. botocore's own work is still done and paid for."""

import json
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from botocore.awsrequest import AWSPreparedRequest, AWSResponse

from adapters.platform.items import Item

CannedAnswers = Mapping[tuple[str, bytes], bytes]


@dataclass(frozen=True, slots=True)
class _Body:
    content: bytes

    def stream(self) -> Iterator[bytes]:
        yield self.content


class Stub:
    """Canned answers, by operation and by a part of the request's body. The first that fits is given."""

    def __init__(self, answers: CannedAnswers) -> None:
        self._answers = answers
        self.calls: Counter[str] = Counter()

    def attach(self, client: Any) -> None:
        """Answer all later requests of this client."""
        client.meta.events.register("before-send.dynamodb", self._answer)

    def _answer(self, request: AWSPreparedRequest, **_: Any) -> AWSResponse:
        target: Any = request.headers["X-Amz-Target"]
        name = (target.decode() if isinstance(target, bytes) else target).partition(".")[2]
        self.calls[name] += 1
        return answered(request.url, self._content(name, request.body))

    def _content(self, name: str, body: Any) -> bytes:
        fitting = (
            answer
            for (operation, part), answer in self._answers.items()
            if operation == name and part in body
        )
        return next(fitting)


def answered(url: str, content: bytes) -> AWSResponse:
    """Return an answer as botocore takes it from the network."""
    headers: Any = {"x-amz-crc32": str(zlib.crc32(content)), "content-type": "application/x-amz-json-1.0"}
    return AWSResponse(url, 200, headers, _Body(content))


def batch_get_answer(table: str, items: list[Item]) -> bytes:
    """Return BatchGetItem's answer."""
    return json.dumps({"Responses": {table: items}, "UnprocessedKeys": {}}).encode()
