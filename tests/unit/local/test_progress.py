"""Where nobody sees a terminal, long work says now and then of how much it has done how much."""

import json
from pathlib import Path
from typing import Any

import pytest

from local import progress
from local.cloud import patience, poller
from local.stack import Stack


def test_a_line_says_of_how_much(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(progress, "SAY_EVERY_SECONDS", 0.0)
    more = progress.progress_bar(3000, "HTTP   ")
    more(100)
    more(1100)
    assert capsys.readouterr().err.splitlines() == ["  HTTP: 100 of 3,000", "  HTTP: 1,200 of 3,000"]


def test_work_that_is_short_says_nothing(capsys: Any) -> None:
    progress.progress_bar(200, "HTTP   ")(200)
    assert capsys.readouterr().err == ""


def test_a_stream_says_of_how_many_events(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The counts before these events were sent are of others."""
    said: list[str] = []
    heartbeat = tmp_path / "heartbeat.json"
    monkeypatch.setattr(poller, "HEARTBEAT", heartbeat)
    monkeypatch.setattr(poller, "ask", lambda *_: None)

    def works(text: str) -> None:
        said.append(text)
        heartbeat.write_text(json.dumps({"engagement": {"records": 3700, "caught_up_at": 9e9}}))

    heartbeat.write_text(json.dumps({"engagement": {"records": 1900, "caught_up_at": 0.0}}))
    stack = Stack("", "http://127.0.0.1:9", "", {"EngagementFunctionName": "engagement"}, {}, "")
    times = iter(range(0, 1000, 9))
    waiting = patience.Patience(300, works, lambda: float(next(times)))
    patience.await_stream(stack, "Engagement", waiting, patience.Sent(700, 3000))
    assert said == ["  waiting for Engagement (1,200 of at most 3,000 events)"]
    assert patience.records_of(stack, "Engagement") == 3700
