"""The engine that tests run against: see tests/support/dynamodb_engine.py, which benchmarks use too.

Its DynamoDB answers within the test's process: the emulator's own code, called by the real client, without the
sockets, which cost more than the rest of a call. All other services are the server's. Another process does
not see these tables: a test that has several needs tests.support.dynamodb_engine.running.
"""

import contextlib
import importlib.util
import itertools
import sys
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from functools import cache, partial
from typing import Any

import botocore.session
from botocore import UNSIGNED
from botocore.config import Config
from botocore.exceptions import EndpointConnectionError

from local.cloud.processes import tool
from local.cloud.statement_streams import announce_statements
from tests.support.dynamodb_engine import TABLES, Engine, prepared, served
from tests.support.one_process import ONE_PROCESS
from tests.support.remembered_expressions import remember_expressions
from tests.support.short_way import Asked, Told, shorten, take_short_way

__all__ = ["TABLES", "Engine", "changes", "cpu_seconds", "lean_client", "running"]

# Which module of the emulator answers a request, by the target that the request names.
WITHIN = {"DynamoDB_20120810": "dynamodb", "DynamoDBStreams_20120810": "dynamodb_streams"}
# Threads that race change places at each call, as they do where each waits for its socket. 0: they take turns.
CHANGE_SECONDS = 0.0001
SECONDS_TO_FORGET_MAX = 60
REGION = "us-east-1"
Handler = Callable[[str, str, dict[str, str], bytes, dict[str, Any]], Coroutine[None, None, Told]]

# Endpoint -> account. Each engine has an account of its own: the emulator keeps accounts apart.
_accounts: dict[str, str] = {}
_numbers = itertools.count()
_one_at_a_time = threading.Lock()
# Servers live as long as the tests of a process: to start one takes two seconds of CPU, to let one forget all a hundredth.
_servers = contextlib.ExitStack()
_idle: list[str] = []


# (account, table) -> how many changes this process has made.
_changes = Counter[tuple[str, str]]()
# Account -> nanoseconds of CPU that the emulator's code has taken.
_spent = Counter[str]()


def cpu_seconds(engine: Engine) -> float:
    """Return the CPU that the emulator's code has taken for an engine: it is DynamoDB's, and no process of ours pays it."""
    return _spent[_accounts[engine.endpoint]] / 1e9


def changes(engine: Engine, table: str) -> int:
    """Return how many changes this process has made to a table of an engine: its stream has no more than these."""
    return _changes[_accounts[engine.endpoint], table]


@contextlib.contextmanager
def running() -> Iterator[Engine]:
    """Give an engine with its tables for a `with` block; afterwards it is gone."""
    _answer_within()
    endpoint = _idle.pop() if _idle else _servers.enter_context(served())
    _accounts[endpoint] = f"{next(_numbers):012}"
    try:
        yield prepared(endpoint)
    finally:
        del _accounts[endpoint]
        forget_all = urllib.request.Request(f"{endpoint}/_ministack/reset", method="POST")
        with urllib.request.urlopen(forget_all, timeout=SECONDS_TO_FORGET_MAX):
            _idle.append(endpoint)


def stop_servers() -> None:
    """Stop the servers of this process; for use when its last test is over: a worker ends without its exit hooks."""
    _servers.close()
    _idle.clear()


@cache
def lean_client(engine: Engine, service: str) -> Any:
    """Return a client for simulations: it neither signs nor checks requests, and asks no hooks but before-send's."""
    config = Config(
        signature_version=UNSIGNED,
        parameter_validation=False,
        retries={"mode": "standard", "total_max_attempts": 3},
        inject_host_prefix=False,
        disable_request_compression=True,
        account_id_endpoint_mode="disabled",
        user_agent="tests",
    )
    made = _session().create_client(service, region_name=REGION, endpoint_url=engine.endpoint, config=config)
    return shorten(made, _who_answers) if service in ("dynamodb", "dynamodbstreams") else made


@cache
def _session() -> Any:
    """One for all clients: each session reads botocore's models anew, which takes longer than a client."""
    return botocore.session.get_session()


@cache
def _answer_within() -> None:
    """Let all clients of this process take the short way to the engines that are running."""
    dynamodb = _emulator("services.dynamodb")
    _count_changes(dynamodb)
    announce_statements(dynamodb)
    remember_expressions(dynamodb)
    take_short_way(_who_answers)


def _who_answers(endpoint: str, target: str) -> Asked | None:
    if endpoint in _idle:
        raise EndpointConnectionError(endpoint_url=endpoint)
    account, service = _accounts.get(endpoint), WITHIN.get(target.partition(".")[0])
    if account is None or service is None:
        return None
    return partial(
        _called, _emulator(f"services.{service}").handle_request, account, {"x-amz-target": target}
    )


def _count_changes(dynamodb: Any) -> None:
    emit, account = dynamodb._emit_stream_event, _emulator("core.responses").get_account_id

    def counted(table: str, *change: Any, **more: Any) -> None:
        _changes[account(), table] += 1
        emit(table, *change, **more)

    dynamodb._emit_stream_event = counted


def _called(handler: Handler, account: str, headers: dict[str, str], body: bytes) -> Told:
    """Let a handler answer a request. The server, too, handles one request after another."""
    if CHANGE_SECONDS and _others_run():
        ONE_PROCESS.wait(CHANGE_SECONDS)
    with _one_at_a_time, _emulator("core.responses").request_scope(account, REGION):
        began = time.thread_time_ns()
        try:
            handler("POST", "/", headers, body, {}).send(None)
        except StopIteration as done:
            told: Told = done.value
            return told
        finally:
            _spent[account] += time.thread_time_ns() - began
    raise AssertionError("the emulator waits for something: its server has to handle this")


def _others_run() -> bool:
    """Whether a test has threads: those of servers and of the emulator's own are daemons."""
    return any(each is not threading.main_thread() and not each.daemon for each in threading.enumerate())


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
