"""An idle shard is asked now and then, and at once when somebody waits for it."""

import threading
import time
from pathlib import Path

import pytest

from local.cloud import poller as module
from local.cloud.delivery import EventSourceMapping
from local.cloud.poller import Poller
from local.stack import Stack

TABLE = EventSourceMapping("a:b:c:d:e:f:name", "arn:aws:dynamodb:x")
LONG = 60.0


@pytest.fixture
def poller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Poller:
    monkeypatch.setattr(module, "ASKED", tmp_path / "asked.txt")
    return Poller(Stack("", "", "", {}, {}, ""))


def ask(at: float) -> None:
    asked().write_text(str(at))


def asked() -> Path:
    path: Path = vars(module)["ASKED"]
    return path


def test_who_asks_wakes_a_shard_that_rests(poller: Poller, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("IDLE_TABLE_SECONDS", "IDLE_TABLE_SECONDS_MAX"):
        monkeypatch.setattr(module, name, LONG)
    polled_at = time.time()
    resting = threading.Thread(target=poller._rest, args=(polled_at, TABLE, 1), daemon=True)
    resting.start()
    ask(polled_at + 0.001)
    poller._hear()
    resting.join(LONG / 2)
    assert not resting.is_alive()


def test_who_asked_before_the_shard_went_to_rest_is_heard(
    poller: Poller, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("IDLE_TABLE_SECONDS", "IDLE_TABLE_SECONDS_MAX"):
        monkeypatch.setattr(module, name, LONG)
    ask(2.0)
    poller._hear()
    began = time.monotonic()
    poller._rest(1.0, TABLE, 1)
    assert time.monotonic() - began < LONG / 2


def test_who_asked_before_the_last_look_has_been_answered(
    poller: Poller, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []
    monkeypatch.setattr(poller.waited_for, "wait", waited.append)
    ask(1.0)
    poller._hear()
    monkeypatch.setattr(module, "IDLE_TABLE_SECONDS", 0.001)
    monkeypatch.setattr(module, "IDLE_TABLE_SECONDS_MAX", 0.002)
    poller._rest(2.0, TABLE, 7)
    assert waited
    assert max(waited) <= 0.002


@pytest.mark.parametrize("text", ["", "1.", "soon"])
def test_what_is_half_written_disturbs_nobody(poller: Poller, text: str) -> None:
    poller._hear()
    asked().write_text(text)
    poller._hear()
    assert poller.asked_at in {0.0, 1.0}
