"""What a start of the laptop cloud makes once: a kill at any instant of it does not hinder the next start."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from local import event_sources
from local.cloud import embedded_postgres, tokens
from tests.support.dying import Killed

STEPS = ("mkdir", "touch", "write_text", "write_bytes", "replace", "rename")


def initdb(folder: Path, password: str) -> None:
    folder.mkdir(exist_ok=True)
    if any(folder.iterdir()):
        raise RuntimeError(f"initdb failed: {folder} exists but is not empty")
    (folder / "PG_VERSION").write_text("18")
    (folder / "password").write_text(password)


def data_folder(home: Path) -> None:
    folder = home / "postgres"
    owner = embedded_postgres.initialise(folder)["owner"]
    assert owner == (folder / "password").read_text()
    assert owner == embedded_postgres.initialise(folder)["owner"]


def pseudonym_key(home: Path) -> None:
    assert len(event_sources._pseudonym_key()) == 32


def token_key(home: Path) -> None:
    assert tokens._key().key_size == 2048


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(embedded_postgres, "_initdb", initdb)
    monkeypatch.setattr(embedded_postgres, "FOLDER", tmp_path / "postgres")
    monkeypatch.setattr(event_sources, "LOCAL", tmp_path)
    monkeypatch.setattr(tokens, "KEY_FILE", tmp_path / "token.pem")
    return tmp_path


def dies(monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], None], home: Path, at: int) -> bool:
    """Whether a process died that was to die before so many steps."""
    left = at

    def dying(step: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **named: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                raise Killed
            return step(*arguments, **named)

        return run

    with monkeypatch.context() as patch:
        for name in STEPS:
            patch.setattr(Path, name, dying(getattr(Path, name)))
        try:
            make(home)
        except Killed:
            return True
    return False


@pytest.mark.parametrize("make", [data_folder, pseudonym_key, token_key])
def test_the_next_start_makes_what_a_killed_one_did_not(
    make: Callable[[Path], None], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = 0
    while dies(monkeypatch, make, home, at):
        make(home)
        secrets = [each for each in home.iterdir() if each.is_file()]
        assert [each.name for each in secrets if each.stat().st_mode & 0o077] == []
        shutil.rmtree(home)
        home.mkdir()
        at += 1
    assert at >= 3


@pytest.mark.parametrize("text", [None, "", "{"])
def test_a_data_folder_whose_passwords_are_lost_is_made_anew_and_not_by_a_look(
    home: Path, text: str | None
) -> None:
    data_folder(home)
    (home / "postgres.json").unlink()
    if text is not None:
        (home / "postgres.json").write_text(text)
    assert not embedded_postgres.is_up(1)
    assert (home / "postgres" / "password").exists()
    data_folder(home)
    assert json.loads((home / "postgres.json").read_text()).keys() == {"owner", "app"}


def test_data_that_were_removed_in_part_are_made_anew(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data_folder(home)
    monkeypatch.setattr(shutil, "rmtree", lambda folder, **_: (folder / "password").unlink())
    embedded_postgres.remove()
    monkeypatch.undo()
    monkeypatch.setattr(embedded_postgres, "_initdb", initdb)
    data_folder(home)
