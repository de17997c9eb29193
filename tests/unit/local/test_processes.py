"""Processes of the laptop cloud, and others that are taken for them."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from local.cloud import processes

NAME = "ours"


@pytest.fixture
def pid_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(processes, "LOCAL", tmp_path)
    monkeypatch.setattr(processes, "LOGS", tmp_path / "logs")
    return tmp_path / "run" / f"{NAME}.pid"


def test_another_process_that_has_got_the_id_is_left_alone(pid_file: Path) -> None:
    processes.start(NAME, ["sleep", "60"], {}, lambda: True)
    written, pid = pid_file.read_text(), processes.pid_of(NAME)
    time.sleep(0.05)  # the system tells to 10 ms when a process began
    other = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        pid_file.write_text(written.replace(str(pid), str(other.pid), 1))
        assert processes.pid_of(NAME) is None
        assert not processes.stop(NAME)
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()
        pid_file.write_text(written)
        assert processes.stop(NAME)


def test_a_process_that_has_ended_is_not_ready_though_another_answers(pid_file: Path) -> None:
    def is_ready() -> bool:
        os.waitid(os.P_PID, int(pid_file.read_text().split()[0]), os.WEXITED | os.WNOWAIT)
        return True

    with pytest.raises(RuntimeError, match="did not start"):
        processes.start(NAME, ["false"], {}, is_ready)


@pytest.mark.parametrize("missing", ["uv", "make"])
def test_a_tool_that_a_cloud_is_built_with_and_that_is_missing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    for name in {"uv", "make"} - {missing}:
        (tmp_path / name).touch(0o755)
    monkeypatch.delenv("UV", raising=False)
    monkeypatch.setattr(processes, "LOCAL", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match=f"is built with {missing}, which is not on the PATH: install it"):
        processes.require_tools()
