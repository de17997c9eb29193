"""`streakline logs`: names as people type them, instants, lines in order and each once."""

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from local.operate.logs import instant_of, lines
from local.stack import Stack
from tests.support.template import ROOT

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
OUTPUTS = {
    "EngagementFunctionName": "streakline-EngagementFunction-33B7C4663A444",
    "UsersApiFunctionName": "streakline-UsersApiFunction-1",
    "EngagementFailuresUrl": "https://q",
}


def event(second: int, message: str, stream: str = "s", **more: Any) -> dict[str, Any]:
    at = round((NOW + timedelta(seconds=second)).timestamp() * 1000)
    return {"logStreamName": stream, "timestamp": at, "message": message, **more}


class Logs:
    """A log group, as CloudWatch has it: pages, in the order in which streams are read."""

    def __init__(self) -> None:
        self.pages: list[list[dict[str, Any]]] = [[]]
        self.asked: list[dict[str, Any]] = []

    def get_function_configuration(self, FunctionName: str) -> Any:  # noqa: N803
        assert FunctionName == OUTPUTS["EngagementFunctionName"]
        return {"LoggingConfig": {"LogGroup": "group"}}

    def get_paginator(self, name: str) -> Any:
        assert name == "filter_log_events"
        return self

    def paginate(self, **asked: Any) -> Any:
        self.asked.append(asked)
        since = asked["startTime"]
        return [{"events": [each for each in page if each["timestamp"] >= since]} for page in self.pages]


@pytest.fixture
def logs(monkeypatch: pytest.MonkeyPatch) -> Logs:
    made = Logs()
    monkeypatch.setattr(Stack, "client", lambda *_: made)
    return made


@pytest.fixture
def stack() -> Stack:
    return Stack("", "http://127.0.0.1", "us-east-1", OUTPUTS, {}, "")


def read(stack: Stack, name: str = "Engagement", since: str = "1h") -> list[str]:
    return list(lines(stack, name, since, follow=False, now=NOW))


@pytest.mark.parametrize(
    "name",
    [
        "Engagement",
        "engagement",
        "EngagementFunction",
        "engagement-function",
        OUTPUTS["EngagementFunctionName"],
    ],
)
def test_a_function_is_found_by_each_of_its_names(stack: Stack, logs: Logs, name: str) -> None:
    logs.pages = [[event(-1, "hello\n")]]
    assert read(stack, name) == ["2026-03-10T11:59:59.000Z hello"]
    assert logs.asked[0]["logGroupName"] == "group"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Engagment", "did you mean Engagement?"),
        ("user_api", "UsersApi"),
        ("", "there are Engagement, UsersApi"),
    ],
)
def test_another_name_says_which_there_are(stack: Stack, logs: Logs, name: str, text: str) -> None:
    with pytest.raises(RuntimeError, match="there is no function") as refused:
        read(stack, name)
    assert text in str(refused.value)


def test_lines_of_all_streams_come_in_order_and_equal_ones_all(stack: Stack, logs: Logs) -> None:
    logs.pages = [[event(-5, "c"), event(-5, "c"), event(-9, "a")], [event(-7, "b", "other")], []]
    assert [each.split()[1] for each in read(stack)] == ["a", "b", "c", "c"]
    assert read(stack, since="6s") == ["2026-03-10T11:59:55.000Z c"] * 2


def test_who_follows_sees_each_line_once_also_what_comes_late(
    stack: Stack, logs: Logs, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds = iter(
        [
            [event(0, "first", eventId="1")],
            [event(0, "first", eventId="1"), event(40, "later"), event(40, "later")],
            [event(15, "late"), event(40, "later"), event(40, "later"), event(200, "last")],
        ]
    )
    monkeypatch.setattr("time.sleep", lambda _: setattr(logs, "pages", [next(rounds)]))
    seen = []
    with pytest.raises(RuntimeError, match="StopIteration"):
        for each in lines(stack, "Engagement", "1m", follow=True, now=NOW):
            seen.append(each.split()[1])
    assert seen == ["first", "later", "later", "late", "last"]


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("30s", NOW - timedelta(seconds=30)),
        ("15m", NOW - timedelta(minutes=15)),
        ("2h", NOW - timedelta(hours=2)),
        ("3d", NOW - timedelta(days=3)),
        ("2026-03-10T13:00:00+01:00", NOW),
        ("2026-03-10T12:00:00Z", NOW),
        ("2026-03-10T12:00", NOW),
    ],
)
def test_since_when(text: str, instant: datetime) -> None:
    assert instant_of(text, NOW) == instant


@pytest.mark.parametrize(
    "text", ["", "1w", "-5m", "yesterday", "99999999999d", "0001-01-01T00:00:00+14:00", "h"]
)
def test_what_is_no_instant_says_what_is_one(text: str) -> None:
    with pytest.raises(RuntimeError, match="--since"):
        instant_of(text, NOW)


def test_a_reader_who_leaves_ends_a_command_quietly() -> None:
    """As `| head` does; the text is larger than a pipe."""
    script = (
        "import sys; from local import cli; sys.argv = ['streakline', 'demo'];"
        "import local.demo; local.demo.demo = lambda: [print('x' * 99) for _ in range(9999)]; cli.main()"
    )
    told = subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert told.stdout
    assert told.stderr
    told.stdout.read(1)
    told.stdout.close()
    assert told.stderr.read() == b""
    assert told.wait() == 141
