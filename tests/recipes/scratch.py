"""A scratch copy of the repository, in which a recipe is carried out."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.support.template import ROOT

PYTHON = Path(sys.executable)
# The copy uses this environment's tools, and its own code.
ENVIRONMENT = {**os.environ, "PATH": f"{PYTHON.parent}:{os.environ['PATH']}"}


@dataclass(frozen=True)
class Ran:
    """How a command ended, and all that it said."""

    code: int
    said: str


@dataclass(frozen=True)
class Scratch:
    """A copy of all files that git knows or would add."""

    root: Path

    def replace(self, file: str, old: str, new: str) -> None:
        """Replace a text that is there exactly once."""
        path = self.root / file
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{file} has {text.count(old)} times: {old!r}"
        path.write_text(text.replace(old, new), encoding="utf-8")

    def after(self, file: str, line: str, new: str) -> None:
        """Insert lines after a text that is there exactly once."""
        self.replace(file, line, line + new)

    def write(self, file: str, text: str) -> None:
        """Write a new file."""
        path = self.root / file
        assert not path.exists(), f"{file} is there already"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def append(self, file: str, text: str) -> None:
        """Write at the end of a file."""
        with (self.root / file).open("a", encoding="utf-8") as end:
            end.write(text)

    def run(self, *command: str) -> Ran:
        """Run a command in the copy."""
        done = subprocess.run(
            command, cwd=self.root, env=ENVIRONMENT, capture_output=True, text=True, check=False
        )
        return Ran(done.returncode, done.stdout + done.stderr)

    def python(self, *arguments: str) -> Ran:
        """Run Python in the copy: its modules come first."""
        return self.run(str(PYTHON), *arguments)

    def notice(self, check: str) -> Ran:
        """Run one check of the gate, a test file or a module; of a test file's words only the errors count."""
        if not check.endswith(".py"):
            return self.python("-m", *check.split())
        ran = self.python("-m", "pytest", "-p", "no:cacheprovider", check)
        errors = [line for line in ran.said.splitlines() if line.startswith("E ")]
        return Ran(ran.code, "\n".join(errors) if ran.code == 1 else ran.said)

    def must(self, ran: Ran) -> None:
        """Demand that a command has succeeded."""
        assert ran.code == 0, ran.said[-3000:]


@dataclass(frozen=True)
class Step:
    """One step of a recipe.

    file: what it touches, as the recipe says it. check: what of `make check` notices when it is left out,
    a test file or a module that is run; "" for the change itself, without which there is nothing to notice.
    told: what that says; by default the file's name.
    """

    file: str
    do: Callable[[Scratch], None]
    check: str
    told: str = ""

    @property
    def message(self) -> str:
        """What must be said when the step is left out."""
        return self.told or self.file


def copied(to: Path) -> Scratch:
    """Copy the repository as it is now, uncommitted changes included."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name)
    (to / ".venv").symlink_to(PYTHON.parent.parent)
    return Scratch(to)
