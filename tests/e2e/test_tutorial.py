"""docs/tutorial.md, word for word, on the laptop cloud: every command, and what it says that it prints."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from local.paths import ROOT
from local.stack import Stack

pytestmark = pytest.mark.xdist_group("cloud")
BLOCK = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGE = ROOT / "docs" / "tutorial.md"
LEAST = 6  # commands


def test_every_command_of_the_tutorial_works_and_prints_what_it_says(
    stack: Stack, user: str, tmp_path: Path
) -> None:
    """One shell for all commands, in a folder that looks like the checkout; `make up` finds the cloud running."""
    for each in ROOT.iterdir():
        if each.name not in (".git", ".hypothesis"):
            (tmp_path / each.name).symlink_to(each)
    # Other tests go by the book that is in force: it is published again in the end.
    keep = ".venv/bin/streakline rules show > kept.yaml"
    back = "trap '.venv/bin/streakline rules publish kept.yaml --effective now > /dev/null' EXIT"
    script, expected = ["set -euo pipefail", keep, back], []
    for kind, title, text in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        if kind == "bash":
            script.append(text)
        elif kind == "python":
            (tmp_path / title).write_text(text, encoding="utf-8")
        elif title == "prints":
            expected += text.splitlines()
    assert len(script) > LEAST
    command = ROOT / ".venv" / "bin" / "streakline"
    installed = command.read_bytes()
    done = subprocess.run(
        ["bash", "-c", "\n".join(script)],
        cwd=tmp_path,
        # `make up` is to set up this checkout: it would install the folder in its place.
        env={**os.environ, "APP_USER": user, "UV_PROJECT": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said[-3000:]
    assert command.read_bytes() == installed
    printed = [line.strip() for line in done.stdout.splitlines()]
    assert [line for line in expected if line.strip() not in printed] == [], said[-3000:]
    assert "event_types.LESSON_COMPLETED.points" in done.stdout
