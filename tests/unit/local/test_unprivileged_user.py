"""PostgreSQL's user is made once, however many processes ask for it."""

import pwd
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from local.cloud.embedded_postgres import unprivileged_user

ROOT = pwd.getpwnam("root")


def useradd(folder: Path, monkeypatch: pytest.MonkeyPatch, *, fails: bool) -> Path:
    """Put a useradd on the path that notes its calls; returns the file of notes. The user is there after one."""
    notes = folder / "notes"
    command = folder / "useradd"
    command.write_text(
        f"#!/bin/sh\nsleep 0.1\necho made >> {notes}\n{'echo full >&2; exit 1' if fails else ''}\n"
    )
    command.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")

    def named(name: str) -> pwd.struct_passwd:
        if fails or not notes.exists():
            raise KeyError(name)
        time.sleep(0.01)
        return ROOT

    monkeypatch.setattr(pwd, "getpwnam", named)
    return notes


def test_many_ask_and_one_makes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = useradd(tmp_path, monkeypatch, fails=False)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: unprivileged_user(), range(8)))
    assert found == [ROOT] * 8
    assert notes.read_text() == "made\n"


def test_the_reason_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    useradd(tmp_path, monkeypatch, fails=True)
    with pytest.raises(RuntimeError, match="no user pgserver: full"):
        unprivileged_user()
