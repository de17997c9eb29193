"""What loggers write of exceptions and ids, and that nothing logs in another way (rule 10)."""

import ast
import io
import json
import logging
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from adapters.logs import PERSONAL_KEYS, Logger, error_summary, redact_error
from adapters.platform.tables import Unprocessed
from rules.privacy.tombstones import name_in_logs
from tests.support.template import ROOT

ROOMS = ("adapters", "ingest", "processors", "analytics")
# What these log is no handler's: a cache's or a database's own words, or a partition's name.
PLAIN = {"adapters/platform/redis.py", "adapters/postgresql/rds_data.py", "analytics/curation/spark_job.py"}
LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}
CONTEXT = SimpleNamespace(
    function_name="f", memory_limit_in_mb=128, invoked_function_arn="arn", aws_request_id="1"
)


@pytest.fixture
def logger(request: pytest.FixtureRequest) -> Logger:
    return Logger(request.node.name)


@pytest.fixture
def lines(logger: Logger) -> io.StringIO:
    made = io.StringIO()
    for each in logger.handlers:
        assert isinstance(each, logging.StreamHandler)
        each.setStream(made)
    return made


def fail() -> None:
    try:
        int("canary")
    except ValueError as error:
        raise KeyError("canary") from error


def test_an_exception_is_told_by_its_types_and_places(logger: Logger, lines: io.StringIO) -> None:
    try:
        fail()
    except KeyError as error:
        error.add_note("canary")
        logger.exception("poison", extra={"user_id": "ann-canary", "person": "0f0f"})
    (text,) = lines.getvalue().splitlines()
    told = json.loads(text)
    assert "ann" not in text
    assert "canary" not in text.replace("canary\\\\", "").replace('(\\"canary\\")', ""), (
        "but in the code's lines"
    )
    assert (told["exception_name"], told["person"]) == ("KeyError", "0f0f")
    assert told["user_id"] == name_in_logs("ann-canary")
    cause, itself = told["exception"].split("\nfrom which came:\n")
    assert cause.splitlines()[-1] == "ValueError"
    assert itself.splitlines()[-1] == "KeyError"
    assert "test_logs.py" in cause
    assert "in fail" in itself


def test_what_a_service_answers_is_a_code() -> None:
    refused = ClientError({"Error": {"Code": "ValidationException", "Message": "canary"}}, "PutItem")
    assert error_summary(refused) == "ClientError: ValidationException of PutItem"
    assert error_summary(ConnectionRefusedError(111, "canary", "canary")) == "ConnectionRefusedError: 111"
    assert error_summary(Unprocessed("Table: keys left")) == "Unprocessed: Table: keys left"
    assert error_summary(UnicodeDecodeError("utf-8", b"canary", 0, 1, "canary")) == "UnicodeDecodeError"


@pytest.mark.parametrize(
    "error",
    [
        ValueError("canary"),
        ClientError({"Error": {"Code": "X", "Message": "canary"}}, "PutItem"),
        UnicodeDecodeError("utf-8", b"canary", 0, 1, "canary"),
        OSError(5, "canary"),
        ExceptionGroup("canary", [ValueError("canary")]),
    ],
)
def test_what_ends_a_handler_is_of_its_type_and_quotes_nothing(
    logger: Logger, lines: io.StringIO, error: Exception
) -> None:
    @logger.inject_lambda_context
    def handler(_event: Any, _context: Any) -> None:
        raise error from RuntimeError("canary")

    with pytest.raises(type(error)) as raised:
        handler({}, CONTEXT)
    found = raised.value
    assert type(found).__name__ == type(error).__name__
    assert (found.__cause__, found.__suppress_context__) == (None, True)
    assert "canary" not in str(found) + repr(found)
    assert json.loads(lines.getvalue())["message"] == "ended"
    assert raised.traceback[-1].name == "handler"


def test_what_tells_nobody_keeps_its_text() -> None:
    kept = Unprocessed("Table: keys left")
    assert redact_error(kept) is kept


def calls(tree: ast.AST) -> Iterator[ast.Call]:
    """Yield calls of a logger's methods."""
    for each in ast.walk(tree):
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr in LEVELS:
            owner = each.func.value
            name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
            if name == "logger":
                yield each


def faults(path: str, tree: ast.AST) -> Iterator[str]:
    """Yield what a module logs that might quote somebody."""
    for each in ast.walk(tree):
        of = each.names if isinstance(each, ast.ImportFrom) and each.module == "aws_lambda_powertools" else []
        if any(name.name == "Logger" for name in of):
            yield f"{path}: a logger that quotes"
        if isinstance(each, ast.Attribute) and each.attr == "getLogger":
            yield f"{path}: a logger that quotes"
    for call in calls(tree):
        if not (call.args and isinstance(call.args[0], ast.Constant)) or len(call.args) > 1:
            yield f"{path}:{call.lineno}: the message is no constant"
        for each in (part for word in call.keywords for part in ast.walk(word.value)):
            if isinstance(each, ast.Name) and each.id == "error" and not _is_told(call, each):
                yield f"{path}:{call.lineno}: an exception's text"


def _is_told(call: ast.Call, name: ast.Name) -> bool:
    """Whether an exception is given as such, by its type, by `error_summary`, or under a name that hides ids."""
    if any(word.arg == "exc_info" and word.value is name for word in call.keywords):
        return True
    for each in ast.walk(call):
        if isinstance(each, ast.Dict):
            for key, value in zip(each.keys, each.values, strict=True):
                if getattr(key, "value", "") in PERSONAL_KEYS and name in ast.walk(value):
                    return True
        of = each.func if isinstance(each, ast.Call) else None
        if (
            isinstance(each, ast.Call)
            and name in each.args
            and getattr(of, "id", "") in {"error_summary", "type"}
        ):
            return True
    return False


def test_nothing_is_logged_in_another_way() -> None:
    modules = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]
    named = {path.relative_to(ROOT).as_posix(): path for path in modules}
    checked = {name: path for name, path in named.items() if name not in {*PLAIN, "adapters/logs.py"}}
    found, number = list[str](), 0
    for name, path in checked.items():
        tree = ast.parse(path.read_text())
        found += faults(name, tree)
        number += sum(1 for _ in calls(tree))
    assert found == []
    assert number > 60


@pytest.mark.parametrize(
    "line",
    [
        "from aws_lambda_powertools import Logger",
        "logger = logging.getLogger(__name__)",
        'logger.info(f"of {user}")',
        'logger.info("of %s", user)',
        'self.logger.warning("x", extra={"reason": repr(error)})',
        'logger.warning("x", extra={"reason": f"{type(error)}: {error}"})',
    ],
)
def test_the_check_finds(line: str) -> None:
    assert list(faults("x.py", ast.parse(line))) != []
