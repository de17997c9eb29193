"""An idle shard is asked now and then, and at once when somebody waits for its consumer."""

import threading
import time
from pathlib import Path

import pytest

from local.cloud import poller as module
from local.cloud.poller import Pauses

LONG = 60.0


@pytest.fixture
def pauses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pauses:
    monkeypatch.setattr(module, "ASKED", tmp_path / "asked.txt")
    return Pauses()


def asked() -> Path:
    path: Path = vars(module)["ASKED"]
    return path


def test_who_asks_wakes_a_shard_that_rests(pauses: Pauses, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TABLE_SECONDS", LONG)
    polled_at = time.time()
    thread = threading.Thread(target=pauses.rest, args=("f", polled_at, "t", None), daemon=True)
    thread.start()
    module.ask("f", polled_at + 0.001)
    pauses.end_awaited()
    thread.join(LONG / 2)
    assert not thread.is_alive()


@pytest.mark.parametrize(("table", "wakes"), [("t", True), ("another", False)])
def test_a_table_that_changes_wakes_its_shard(
    pauses: Pauses, monkeypatch: pytest.MonkeyPatch, table: str, wakes: bool
) -> None:
    monkeypatch.setattr(module, "TABLE_SECONDS", LONG)
    pauses.end_changed({"t": 1, "another": 1})
    thread = threading.Thread(target=pauses.rest, args=("f", time.time(), "t", 1), daemon=True)
    thread.start()
    pauses.end_changed({"t": 1, "another": 1, table: 2})
    thread.join(LONG / 2 if wakes else 0.2)
    assert thread.is_alive() is not wakes


def test_who_asked_before_the_last_look_has_been_answered(
    pauses: Pauses, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []
    monkeypatch.setattr(pauses.condition, "wait", waited.append)
    module.ask("f", 1.0)
    pauses.end_awaited()
    monkeypatch.setattr(module, "TABLE_SECONDS", 0.002)
    pauses.rest("f", 2.0, "t", None)
    assert waited
    assert max(waited) <= 0.002


@pytest.mark.parametrize("text", ["", "1.", "1. f", "x f"])
def test_what_is_half_written_disturbs_nobody(pauses: Pauses, text: str) -> None:
    pauses.end_awaited()
    asked().write_text(text)
    pauses.end_awaited()
    assert pauses.wait_starts in ({}, {"f": 1.0})


def test_a_batch_gathers_records_only_while_nobody_waits(
    pauses: Pauses, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "GATHER_SECONDS", LONG)
    module.ask("f", 2.0)
    pauses.end_awaited()
    began = time.monotonic()
    pauses.gather("f", 1.0)
    assert time.monotonic() - began < LONG / 2
    monkeypatch.setattr(module, "GATHER_SECONDS", 0.001)
    waited: list[float] = []
    monkeypatch.setattr(pauses.condition, "wait", waited.append)
    pauses.gather("f", 3.0)
    assert waited
