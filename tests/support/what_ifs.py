"""What-ifs in the process: a lake of its own for each test, and Lambda, which is asked to work questions out."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.exceptions import EndpointConnectionError

from adapters.platform.aws import client
from adapters.platform.objects import S3Objects
from analytics.steps import what_if_function
from ingest import rules_api
from tests.support.engine import Engine
from tests.support.gateway import CONTEXT


class Body:
    """An empty answer."""

    def stream(self) -> Iterator[bytes]:
        yield b""


class Functions:
    """Lambda, which keeps what it is asked, and tries the last of it whenever a test says so, or at once."""

    def __init__(self, *, is_at_once: bool) -> None:
        self.asked: list[str] = []  # the ids of jobs
        self.is_at_once, self.is_away = is_at_once, False

    def invoke(self, request: Any, **_: Any) -> AWSResponse:
        if self.is_away:
            raise EndpointConnectionError(endpoint_url=request.url)
        assert request.url.endswith("/functions/what-if/invocations")
        assert request.headers["X-Amz-Invocation-Type"] in ("Event", b"Event")
        self.asked.append(json.loads(request.body)["job_id"])
        if self.is_at_once:
            self.work()
        return AWSResponse(request.url, 202, HTTPHeaders(), Body())

    def work(self) -> bool:
        """Try the last job; returns whether there was anything to do."""
        return bool(what_if_function.handler({"job_id": self.asked[-1]}, CONTEXT)["worked_out"])


@contextmanager
def lake_of_its_own(engine: Engine, *, is_at_once: bool = False) -> Iterator[tuple[S3Objects, Functions]]:
    """Give an empty lake, which the API and the function of what-ifs use meanwhile."""
    bucket, functions = f"lake-{uuid4().hex[:8]}", Functions(is_at_once=is_at_once)
    engine.client("s3").create_bucket(Bucket=bucket)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAKE_BUCKET", bucket)
        events = client("lambda").meta.events
        events.register("before-send.lambda.Invoke", functions.invoke)
        for each in (rules_api, what_if_function):
            each._parts.cache_clear()
        yield S3Objects(engine.client("s3"), bucket), functions
        events.unregister("before-send.lambda.Invoke", functions.invoke)
    for each in (rules_api, what_if_function):
        each._parts.cache_clear()
