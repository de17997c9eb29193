"""Files of the laptop cloud that are damaged, or an older version's: a sentence with what to do, and no traceback."""

import subprocess
from pathlib import Path

import pytest

from local import stack
from local.cloud import laptop_cloud, processes

STACKS = (
    *("", "{", "[]", "null", "7", '{"api_url": 1}'),
    '{"api_url": "", "endpoint_url": "", "region": "", "outputs": {}, "tables": {}, "redis_url": "", "later": 1}',
)
PORTS = (
    "",
    "{",
    "[]",
    "null",
    "7",
    "{}",
    '{"ministack": "x"}',
    '{"ministack": 99999}',
    '{"ministack": true}',
)


@pytest.mark.parametrize("text", STACKS)
def test_a_damaged_stack_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    file = tmp_path / "stack.json"
    file.write_text(text)
    monkeypatch.setattr(stack, "STACK", file)
    with pytest.raises(SystemExit, match=r"stack\.json cannot be read .*`streakline up` writes it anew"):
        stack.load()


def test_a_copied_stack_is_not_this_folder_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    there.mkdir()
    monkeypatch.setattr(stack, "STACK", there / "stack.json")
    saved = stack.Stack("", "http://127.0.0.1:1", "", {}, {}, "")
    saved.save()
    assert stack.load() == saved
    subprocess.run(["cp", "-a", there, here], check=True)
    monkeypatch.setattr(stack, "STACK", here / "stack.json")
    with pytest.raises(SystemExit, match=r"is a copy of another folder.*`streakline up` starts one here"):
        stack.load()


@pytest.mark.parametrize("text", PORTS)
def test_ports_that_nobody_knows_stop_no_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(laptop_cloud, "PORTS", tmp_path / "ports.json")
    assert laptop_cloud.known_ports() == {}
    laptop_cloud.PORTS.write_text(text)
    assert laptop_cloud.known_ports() == {}
    monkeypatch.setattr(processes, "pid_of", lambda _: 1)
    with pytest.raises(RuntimeError, match="does not say at which port: `streakline down`"):
        laptop_cloud._ports()
