"""No log line holds what somebody has sent: every door and processor is driven with a canary in each field.

The events are the samples of tests/events. In each variant one leaf of one of them is a canary: longer than
it was, so that it often is still valid, or in its place, so that it often is not. Then every store refuses
every call, and quotes what it was asked.
"""

import base64
import binascii
import importlib
import io
import json
import logging
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from copy import deepcopy
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError

from adapters.platform.aws import client
from adapters.platform.redis import Redis
from local.operate.persons import who
from local.stack import Stack
from rules.privacy.tombstones import name_in_logs
from tests.support.effort import effort
from tests.support.engine import Engine, running
from tests.support.identity_server import Registry
from tests.support.kinesis_records import aggregated, record, wrapped
from tests.support.logged import logged_lines
from tests.support.template import ROOT, resources

CANARY = "Xq7Canary"
CALL = "_make_api_call"  # what all calls of botocore go through
# CloudFormation, the schedule or the state machine starts these, with nothing that a person has sent; what the
# nights read is in tests/integration/test_canaries.py.
OF_OURS = {
    *("MigrateFunction", "ReleaseFunction", "ErasureFunction", "RanksFunction", "ExpiryFunction"),
    *("CurateFunction", "CurateLargeFunction", "ForgetFunction", "WarehouseFunction", "ReconcileFunction"),
    *("RemindersFunction", "ExpireQuestionsFunction", "RefreshFunction", "RetainFunction"),
}
CONTEXT = SimpleNamespace(
    function_name="f",
    memory_limit_in_mb=128,
    invoked_function_arn="arn",
    aws_request_id="1",
    get_remaining_time_in_millis=lambda: 900_000,
)
pytestmark = pytest.mark.xdist_group("identity")
Setter = Callable[[Any], None]


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with running() as started:
        yield started


@pytest.fixture
def logs(
    engine: Engine,
    lone_redis_url: str,
    registry: Registry,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> Iterator["Logs"]:
    more = {"IDENTITY_URL": registry.server.app(registry.database)}
    for name, value in {**engine.environment(lone_redis_url), **more}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("adapters.clock.now", lambda: datetime(2026, 3, 10, 6, tzinfo=UTC))
    client.cache_clear()
    Redis(lone_redis_url).call("FLUSHALL")
    caplog.set_level(logging.INFO)
    made = Logs(caplog)
    yield made
    made.close()
    client.cache_clear()


class Logs:
    """Runs handlers, and keeps every line that they, or libraries, log or print: Lambda puts all into the log."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        self._caplog, self._clear = caplog, list[Callable[[], None]]()
        self.modules = {name: importlib.import_module(path) for name, path in _handlers().items()}
        self._open = ExitStack()
        self._lines = self._open.enter_context(logged_lines())
        for module in self.modules.values():
            self._clear += [
                getattr(module, name).cache_clear for name in ("_parts", "_steps") if hasattr(module, name)
            ]
        self.forget()

    def forget(self) -> None:
        for clear in self._clear:
            clear()

    def close(self) -> None:
        self.forget()
        self._open.close()

    def of(self, function: str, event: Any) -> str:
        """Run a handler; returns all that is logged or printed, by whomever, and as Lambda tells of what ended it."""
        self._lines.seek(0)
        self._lines.truncate()
        self._caplog.clear()
        ended, printed = "", io.StringIO()
        try:
            with redirect_stdout(printed), redirect_stderr(printed):
                self.modules[function].handler(event, CONTEXT)
        except Exception as error:
            ended = "".join(traceback.format_exception(error))
        others = [
            logging.Formatter().format(each)
            for each in self._caplog.records
            if not hasattr(logging.getLogger(each.name), "powertools_handler")
        ]
        return "\n".join([self._lines.getvalue(), ended, *others, printed.getvalue()])


def _handlers() -> dict[str, str]:
    made = resources("AWS::Serverless::Function")
    return {
        name: made[name]["Properties"]["Handler"].rpartition(".")[0]
        for name in sorted(made)
        if name not in OF_OURS
    }


def sample(function: str) -> Any:
    return json.loads((ROOT / "tests" / "events" / f"{function}.json").read_text())


def variants(event: Any) -> Iterator[tuple[str, Any]]:
    """Yield (path, event) with one leaf changed, in each way. JSON in texts, also in base64, is opened."""
    event = _of_canary(event)
    for path, old in _leaves(event, ()):
        if path == ("routeKey",):  # API Gateway's own: a path with its parameters' names
            continue
        for new in {f"{old}{CANARY}", CANARY, f'{{"{CANARY}'}:
            yield "/".join(map(str, path)), _with(deepcopy(event), path, new)


def _of_canary(event: Any) -> Any:
    """Return an event of somebody whose id is a canary, too."""
    text = json.dumps(event)
    for path, old in _leaves(event, ()):
        if (path and path[-1] in {"sub", "user_id", "account_id"}) or path[-2:] in {
            ("user_id", "S"),
            ("account_id", "S"),
        }:
            text = text.replace(json.dumps(old)[1:-1], f"{CANARY}-user")
    return json.loads(text)


def _leaves(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    inner, kind = _opened(value)
    if isinstance(inner, dict | list):
        if kind:
            yield path, value
        for key, each in inner.items() if isinstance(inner, dict) else enumerate(inner):
            yield from _leaves(each, (*path, key))
    else:
        yield path, value


def _opened(value: Any) -> tuple[Any, str]:
    """Return a value, and how it is wrapped, if it is: as JSON, or as JSON in base64."""
    if not isinstance(value, str):
        return value, ""
    for kind, text in (("json", value), ("base64", _unbased(value))):
        try:
            found = json.loads(text)
        except ValueError:
            continue
        if isinstance(found, dict | list):
            return found, kind
    return value, ""


def _unbased(text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""


def _with(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    inner, kind = _opened(value)
    inner[path[0]] = _with(inner[path[0]], path[1:], new)
    if not kind:
        return inner
    text = json.dumps(inner)
    return text if kind == "json" else base64.b64encode(text.encode()).decode()


def test_no_line_has_what_a_field_held(logs: Logs) -> None:
    found, tried = [], 0
    step = effort(5, soak=1)  # each leaf in one of its three ways
    for function in logs.modules:
        for number, (path, event) in enumerate(variants(sample(function))):
            if number % step:
                continue
            tried += 1
            if CANARY in (text := logs.of(function, event)):
                found.append(f"{function} {path}: {_about(text)}")
    assert tried > 750 // step
    assert found == []


def test_no_line_has_what_an_aggregated_record_held(logs: Logs) -> None:
    event = {"idempotency_key": CANARY, "user_id": CANARY, "event_type": CANARY, CANARY: 1}
    data = aggregated(json.dumps(event).encode(), CANARY.encode())
    for changed in (data, data[:-1], data[:4] + data[9:], wrapped(data[4:-17])):
        assert CANARY not in logs.of("EventsStreamFunction", {"Records": [record(changed)]})


@pytest.mark.parametrize(("spares", "least"), [(0, 9), (1, 4)])
def test_no_line_has_what_a_store_quotes(
    logs: Logs, monkeypatch: pytest.MonkeyPatch, spares: int, least: int
) -> None:
    """spares: how many calls succeed before all are refused. least: how many functions then log a refusal."""
    real, calls = getattr(BaseClient, CALL), SimpleNamespace(left=0)

    def refuse(self: Any, operation: str, asked: Any) -> Any:
        calls.left -= 1
        if calls.left >= 0:
            return real(self, operation, asked)
        raise ClientError(
            {"Error": {"Code": "ValidationException", "Message": f"{asked} {CANARY}"}}, operation
        )

    monkeypatch.setattr(BaseClient, CALL, refuse)
    monkeypatch.setattr("time.sleep", lambda _: None)
    found, refused = [], 0
    for function in logs.modules:
        logs.forget()
        calls.left = spares
        text = logs.of(function, sample(function))
        refused += "ValidationException" in text
        if CANARY in text:
            found.append(f"{function}: {_about(text)}")
    assert refused >= least
    assert found == []


def _about(text: str) -> str:
    at = text.index(CANARY)
    return text[max(0, at - 300) : at + 80]


def test_who_is_meant_by_a_name_is_found_by_all_profiles(engine: Engine) -> None:
    for user in ("ann", "ben"):
        engine.client("dynamodb").put_item(TableName="UserStreaks", Item={"user_id": {"S": user}})
    stack = Stack("", engine.endpoint, "us-east-1", {}, {"UserStreaks": "UserStreaks"}, "")
    unknown = name_in_logs("nobody")
    assert who({name_in_logs("ben"), unknown}, stack) == {name_in_logs("ben"): "ben", unknown: None}
