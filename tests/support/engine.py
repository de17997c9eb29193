"""The engine that tests run against: see local/cloud/dynamodb_engine.py, which benchmarks use too.

Its DynamoDB answers within the test's process: the emulator's own code, called by the real client, without the
sockets, which cost more than the rest of a call. All other services are the server's. Another process does
not see these tables: a test that has several needs local.cloud.dynamodb_engine.running.
"""

import contextlib
import importlib.util
import itertools
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from functools import cache
from http import HTTPStatus
from typing import Any

import botocore.session
from botocore import UNSIGNED
from botocore.awsrequest import AWSResponse, HeadersDict
from botocore.config import Config
from botocore.httpsession import URLLib3Session

from local.cloud.dynamodb_engine import TABLES, Engine, prepared, served
from local.cloud.tools import tool

__all__ = ["TABLES", "Engine", "lean_client", "running", "writes"]

# Which module of the emulator answers a request, by the target that the request names.
WITHIN = {"DynamoDB_20120810": "dynamodb", "DynamoDBStreams_20120810": "dynamodb_streams"}
# Threads that race change places at each call, as they do where each waits for its socket. 0: they take turns.
CHANGE_SECONDS = 0.0001
REGION = "us-east-1"
Answer = tuple[int, dict[str, str], bytes]
Handler = Callable[[str, str, dict[str, str], bytes, dict[str, Any]], Coroutine[None, None, Answer]]

# Endpoint -> account. Each engine has an account of its own: the emulator keeps accounts apart.
_accounts: dict[str, str] = {}
_numbers = itertools.count()
_one_at_a_time = threading.Lock()


READING = "Get", "BatchGet", "TransactGet", "Query", "Scan", "Describe", "List"
_writes = Counter[str]()


def writes(engine: Engine) -> int:
    """Return how many requests this process has sent to an engine that may have written something."""
    return _writes[_accounts[engine.endpoint]]


@contextlib.contextmanager
def running() -> Iterator[Engine]:
    """Start an engine with its tables for a `with` block; afterwards it is gone."""
    _answer_within()
    with served() as endpoint:
        _accounts[endpoint] = f"{next(_numbers):012}"
        try:
            yield prepared(endpoint)
        finally:
            del _accounts[endpoint]


@cache
def lean_client(engine: Engine, service: str) -> Any:
    """Return a client like that of adapters/platform/aws.py. It does not sign, which the engine does not check."""
    config = Config(
        signature_version=UNSIGNED,
        parameter_validation=False,
        retries={"mode": "standard", "total_max_attempts": 3},
        inject_host_prefix=False,
        disable_request_compression=True,
        account_id_endpoint_mode="disabled",
        user_agent="tests",
    )
    return _session().create_client(service, region_name=REGION, endpoint_url=engine.endpoint, config=config)


@cache
def _session() -> Any:
    """One for all clients: each session reads botocore's models anew, which takes longer than a client."""
    return botocore.session.get_session()


@cache
def _answer_within() -> None:
    """Let all clients of this process take the short way to the engines that are running."""
    outside = URLLib3Session.send
    handlers: dict[str, Handler] = {
        target: _emulator(f"services.{name}").handle_request for target, name in WITHIN.items()
    }

    _announce_inserts(_emulator("services.dynamodb"))

    def send(session: URLLib3Session, request: Any) -> AWSResponse:
        account = _accounts.get(request.url.rstrip("/"))
        headers = {name.lower(): _text(value) for name, value in request.headers.items()}
        handler = handlers.get(headers.get("x-amz-target", "").partition(".")[0])
        if account is None or handler is None:
            return outside(session, request)
        status, told, body = _called(handler, account, headers, request.body)
        if not headers["x-amz-target"].partition(".")[2].startswith(READING):
            _writes[account] += 1
        headers_told: Any = HeadersDict(told)
        response: Any = AWSResponse(request.url, status, headers_told, None)
        response._content = body
        answer: AWSResponse = response
        return answer

    # For good: what is for no engine that runs goes where it went.
    setattr(URLLib3Session, "send", send)  # noqa: B010 (a method is replaced)


def _announce_inserts(dynamodb: Any) -> None:
    """Let the streams have what INSERT statements write, such as claims: DynamoDB's have it, the emulator's not."""
    insert = dynamodb._partiql_insert

    def announced(table: Any, parsed: dict[str, Any]) -> Any:
        answer = insert(table, parsed)
        if answer[0] == HTTPStatus.OK:
            item = parsed["item"]
            written = item["M"] if set(item) == {"M"} else item
            dynamodb._emit_stream_event(table["TableName"], "INSERT", None, written)
        return answer

    dynamodb._partiql_insert = announced


def _called(handler: Handler, account: str, headers: dict[str, str], body: bytes | str | None) -> Answer:
    """Let a handler answer a request. The server, too, handles one request after another."""
    content = body.encode() if isinstance(body, str) else body or b""
    if CHANGE_SECONDS and _others_run():
        time.sleep(CHANGE_SECONDS)
    with _one_at_a_time, _emulator("core.responses").request_scope(account, REGION):
        try:
            handler("POST", "/", headers, content, {}).send(None)
        except StopIteration as done:
            answer: Answer = done.value
            return answer
    raise AssertionError("the emulator waits for something: its server has to handle this")


def _others_run() -> bool:
    """Whether a test has threads: those of servers and of the emulator's own are daemons."""
    return any(each is not threading.main_thread() and not each.daemon for each in threading.enumerate())


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value


@cache
def _emulator(module: str) -> Any:
    """Import a module of the emulator from its own environment; these need nothing that is installed there."""
    if "ministack" not in sys.modules:
        (file,) = (tool("ministack").parents[1] / "lib").glob("python*/site-packages/ministack/__init__.py")
        spec = importlib.util.spec_from_file_location("ministack", file)
        assert spec is not None and spec.loader is not None, file
        sys.modules["ministack"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules["ministack"])
    return importlib.import_module(f"ministack.{module}")
