"""An idle shard is asked now and then, and at once when somebody waits for its consumer."""

import threading
import time
from pathlib import Path

import pytest

from local.cloud import poller as module
from local.cloud.poller import TABLE_SECONDS, TABLE_SECONDS_MAX, Resting, table_seconds

LONG = 60.0


@pytest.fixture
def resting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Resting:
    monkeypatch.setattr(module, "ASKED", tmp_path / "asked.txt")
    return Resting()


def asked() -> Path:
    path: Path = vars(module)["ASKED"]
    return path


def test_who_asks_wakes_a_shard_that_rests(resting: Resting, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TABLE_SECONDS", "TABLE_SECONDS_MAX"):
        monkeypatch.setattr(module, name, LONG)
    polled_at = time.time()
    thread = threading.Thread(
        target=resting.rest, args=("f", polled_at, 1), kwargs={"is_kinesis": False}, daemon=True
    )
    thread.start()
    module.ask("f", polled_at + 0.001)
    resting.hear()
    thread.join(LONG / 2)
    assert not thread.is_alive()


def test_who_asked_before_the_shard_went_to_rest_is_heard(
    resting: Resting, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TABLE_SECONDS", "TABLE_SECONDS_MAX"):
        monkeypatch.setattr(module, name, LONG)
    module.ask("f", 2.0)
    resting.hear()
    began = time.monotonic()
    resting.rest("f", 1.0, 1, is_kinesis=False)
    assert time.monotonic() - began < LONG / 2


def test_who_asked_before_the_last_look_has_been_answered(
    resting: Resting, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []
    monkeypatch.setattr(resting.condition, "wait", waited.append)
    module.ask("f", 1.0)
    resting.hear()
    monkeypatch.setattr(module, "TABLE_SECONDS", 0.001)
    monkeypatch.setattr(module, "TABLE_SECONDS_MAX", 0.002)
    resting.rest("f", 2.0, 7, is_kinesis=False)
    assert waited
    assert max(waited) <= 0.002


@pytest.mark.parametrize("text", ["", "1.", "soon", "1. f", "x f", "1 f g"])
def test_what_is_half_written_disturbs_nobody(resting: Resting, text: str) -> None:
    resting.hear()
    asked().write_text(text)
    resting.hear()
    assert resting.wait_starts in ({}, {"f": 1.0})


def test_who_waits_for_a_function_wakes_no_other(resting: Resting, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr(resting.condition, "wait", waited.append)
    module.ask("f", 9.0)
    resting.hear()
    monkeypatch.setattr(module, "TABLE_SECONDS", 0.001)
    resting.rest("f", 2.0, 1, is_kinesis=False)
    assert not waited
    resting.rest("g", 2.0, 1, is_kinesis=False)
    assert waited


def test_a_batch_gathers_records_only_while_nobody_waits(
    resting: Resting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TABLE_SECONDS", LONG)
    module.ask("f", 2.0)
    resting.hear()
    began = time.monotonic()
    resting.gather("f", 1.0)
    assert time.monotonic() - began < LONG / 2
    monkeypatch.setattr(module, "TABLE_SECONDS", 0.001)
    waited: list[float] = []
    monkeypatch.setattr(resting.condition, "wait", waited.append)
    resting.gather("f", 3.0)
    assert waited


def test_an_idle_table_is_asked_less_and_less_often() -> None:
    pauses = [table_seconds(idle) for idle in range(1, 2000)]
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (TABLE_SECONDS, TABLE_SECONDS_MAX)
