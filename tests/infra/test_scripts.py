"""Scripts and the Makefile run on any Unix: macOS and Alpine have other tools than GNU's."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.template import ROOT

SCRIPTS = (".ci/run", "infra/layer/build", "infra/layer/rds-bundle")
TOOLS = ("cat", "cp", "find", "grep", "ln", "mkdir", "mktemp", "mv", "rm", "sed", "tr", "uname", "xargs")
BUSYBOX = shutil.which("busybox")


def test_every_script_is_looked_at() -> None:
    files = [each for folder in (".ci", "infra", "local") for each in (ROOT / folder).rglob("*")]
    scripts = {
        str(each.relative_to(ROOT))
        for each in files
        if each.is_file() and each.suffix in ("", ".sh") and each.read_bytes()[:2] == b"#!"
    }
    assert scripts == set(SCRIPTS)


@pytest.mark.parametrize("name", SCRIPTS)
def test_shellcheck_finds_nothing(name: str) -> None:
    found = subprocess.run(
        ["shellcheck", "--severity=style", name], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stdout


@pytest.fixture
def posix_tools(tmp_path: Path) -> dict[str, str]:
    """An environment whose small tools are busybox's: they know POSIX options and hardly any of GNU's."""
    if BUSYBOX is None:
        pytest.skip("busybox is not installed: `apt-get install busybox`")
    folder = tmp_path / "tools"
    folder.mkdir()
    for name in TOOLS:
        (folder / name).symlink_to(BUSYBOX)
    kept = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
    return {**kept, "PATH": f"{folder}:{os.environ['PATH']}"}


@pytest.mark.parametrize("name", ["EventsApiFunction", "WarehouseFunction"])
def test_a_function_is_built_with_posix_tools(name: str, tmp_path: Path, posix_tools: dict[str, str]) -> None:
    out = tmp_path / "out"
    out.mkdir()
    command = ["make", f"build-{name}", f"ARTIFACTS_DIR={out}"]
    made = subprocess.run(command, cwd=ROOT, env=posix_tools, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    assert (out / "rules" / "days.py").exists()


# What GNU's tools know and those of macOS do not, though busybox may: a long option, or one of these letters.
SMALL = "cat|cp|date|find|grep|head|ln|mkdir|mktemp|mv|readlink|rm|sed|sort|tail|tr|xargs"
GNU_ONLY = re.compile(
    rf"\b(?:{SMALL})\b[^|;&\n]*? --[a-z]+"
    r"|\bsed -i\b|\bgrep -\w*P|\bcp -\w*[ad]|\breadlink -f|\bfind\b[^|;&\n]* -printf|\bdate -d|\bxargs -\w*[rd]\b"
)


@pytest.mark.parametrize("name", [*SCRIPTS, "Makefile"])
def test_no_option_is_gnu_s_alone(name: str) -> None:
    text = (ROOT / name).read_text().replace("\\\n", " ")
    assert [each[0] for each in GNU_ONLY.finditer(text)] == []
