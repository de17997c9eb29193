"""Whoever knows only SAM: `sam build` and `sam deploy --guided`, with git, make, python3 and the SAM CLI, and no uv."""

import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from local.cloud.processes import tool, uv
from tests.support.effort import effort, only_soak
from tests.support.template import ROOT

SECONDS_MAX = 900
LAYERS = ("Dependencies", "Analytics", "Hooks", "Identity")
# What a clean machine has, besides SAM: git, make, python3 and the tools of any Unix.
TOOLS = (
    "bash",
    "cat",
    "cp",
    "env",
    "find",
    "git",
    "grep",
    "id",
    "ln",
    "make",
    "mkdir",
    "mktemp",
    "mv",
    "rm",
    "sed",
    "sh",
    "tr",
)
SIZES = ["small", "standard", "large"][: effort(1, soak=3)]
LIST = "-----BEGIN CERTIFICATE-----\nof RDS\n-----END CERTIFICATE-----\n"
ASKED_ALL = "Looking for resources needed for deployment"  # from here on it speaks to AWS
PROMPT = re.compile(r"\x1b\[1m([^\x1b\n]+)\x1b\[0m(?: \[[^\n]*\])?: $")
# A python3 whose venvs have a pip that installs a uv slowly: half of it first.
PYTHON = """#!/bin/sh
if [ "$1 $2" = "-m venv" ]; then
  mkdir -p "$3/bin" && cp "$(dirname "$0")/slow-pip" "$3/bin/pip"
else
  exec {python} "$@"
fi
"""
PIP = """#!/bin/sh
uv="$(dirname "$0")/uv"
printf '#!/bin/sh\\n' >"$uv" && chmod +x "$uv" && sleep 0.3 && {ends} && printf 'echo "$1" >>uv-calls\\n' >>"$uv"
"""


@pytest.fixture
def machine(tmp_path: Path) -> dict[str, str]:
    """The environment of a machine without uv: the PATH has one folder, with links to what is there."""
    folder = tmp_path / "machine"
    folder.mkdir()
    for name in TOOLS:
        found = shutil.which(name)
        assert found, f"{name} is not on the PATH"
        (folder / name).symlink_to(found)
    (folder / "python3").symlink_to(Path(sys.executable).resolve())
    kept = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "LANG"))}
    more = {
        "AWS_ACCESS_KEY_ID": "nobody",
        "AWS_SECRET_ACCESS_KEY": "nobody",
        "AWS_DEFAULT_REGION": "eu-west-1",
    }
    nowhere = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "SAM_CLI_TELEMETRY": "0"}
    return {**kept, **more, **nowhere, "PATH": str(folder), "HOME": str(tmp_path)}


def pip_of(machine: Mapping[str, str], ends: str) -> None:
    """Give the machine a pip that ends with this command after half of its work."""
    folder = Path(machine["PATH"])
    (folder / "python3").unlink()
    (folder / "sleep").symlink_to(str(shutil.which("sleep")))
    (folder / "chmod").symlink_to(str(shutil.which("chmod")))
    (folder / "dirname").symlink_to(str(shutil.which("dirname")))
    for name, text in (("python3", PYTHON), ("slow-pip", PIP)):
        (folder / name).write_text(text.format(python=Path(sys.executable).resolve(), ends=ends))
        (folder / name).chmod(0o755)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What a layer and the template are made of, and nothing that a set-up has made."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    for name in ("template.yaml", "samconfig.toml", "Makefile", "pyproject.toml", "uv.lock"):
        shutil.copy(ROOT / name, folder)
    shutil.copytree(ROOT / "infra", folder / "infra", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "list.pem").write_text(LIST)
    return folder


def layer(name: str, checkout: Path, machine: Mapping[str, str]) -> subprocess.Popen[str]:
    """Begin to build a layer, as SAM does."""
    out = checkout / "out" / name
    out.mkdir(parents=True)
    env = {**machine, "RDS_BUNDLE_URL": (checkout / "list.pem").as_uri()}
    command = ["make", f"build-{name}Layer", f"ARTIFACTS_DIR={out}"]
    return subprocess.Popen(command, cwd=checkout, env=env, stderr=subprocess.PIPE, text=True)


def test_layers_that_are_built_at_once_get_a_whole_uv(checkout: Path, machine: dict[str, str]) -> None:
    pip_of(machine, "true")
    for building in [layer(name, checkout, machine) for name in LAYERS]:
        _, said = building.communicate()
        assert building.returncode == 0, said
    assert (checkout / "uv-calls").read_text().split().count("export") == len(LAYERS)
    assert [str(each.relative_to(checkout / ".local")) for each in (checkout / ".local").glob("*/*")] == [
        "bin/uv"
    ]


def test_where_no_uv_can_be_had_the_build_says_what_to_install(
    checkout: Path, machine: dict[str, str]
) -> None:
    pip_of(machine, "false")
    building = layer("Hooks", checkout, machine)
    _, said = building.communicate()
    assert building.returncode != 0
    assert "install uv first" in said
    assert not [*(checkout / ".local").glob("*/*")], "nothing half is left"


def guided(folder: Path, machine: Mapping[str, str], answers: Mapping[str, str]) -> str:
    """Run `sam deploy --guided` on a terminal until it has asked all; return what it printed.

    answers: by prompt; at all others Enter is pressed, once.
    """
    executable = tool("sam")
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.execve(executable, ["sam", "deploy", "--guided"], dict(machine))
    printed, answered, deadline = "", 0, time.monotonic() + SECONDS_MAX
    try:
        while ASKED_ALL not in printed:
            assert time.monotonic() < deadline, printed
            if select.select([terminal], [], [], 0.2)[0]:
                printed += os.read(terminal, 65536).decode()
            if (asked := PROMPT.search(printed, answered)) is not None:
                assert printed.count(f"\x1b[1m{asked[1]}\x1b[0m") == 1, f"asks for ever: {printed[-500:]}"
                os.write(terminal, answers.get(asked[1], "").encode() + b"\n")
                answered = len(printed)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)
    assert "Confirm changes before deploy" in printed
    return printed


@pytest.mark.parametrize("size", SIZES)
def test_enter_at_each_prompt_reaches_the_confirmation(
    size: str, checkout: Path, machine: dict[str, str]
) -> None:
    printed = guided(checkout, machine, {} if size == "small" else {"Parameter Size": size})
    assert printed.count("Parameter ") == len(re.findall(r"(?m)^  \w+:\n    Type:", _parameters()))


def _parameters() -> str:
    return (ROOT / "template.yaml").read_text().partition("\nParameters:\n")[2].partition("\nMappings:\n")[0]


@pytest.fixture(params=["clone", "source distribution"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """What somebody gets: a clone, or the unpacked source distribution, in a folder whose name has a blank."""
    folder = tmp_path / "what I got"
    if request.param == "clone":
        files = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
        )
        for name in filter(None, files.stdout.split("\0")):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
        return folder
    command = ["make", "dist-python", f"DIST={tmp_path / 'dist'}", f"UV={uv()}"]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (archive,) = (tmp_path / "dist").glob("streakline-*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    return next(folder.iterdir())


@only_soak(
    "tests/integration/test_sam_alone.py::test_layers_that_are_built_at_once_get_a_whole_uv,"
    " test_enter_at_each_prompt_reaches_the_confirmation, and the builds of the laptop cloud"
)
@pytest.mark.parametrize(
    "how", [["--parallel"], ["--config-env", "bare", "--build-in-source"]], ids=["parallel", "one by one"]
)
def test_sam_builds_and_asks(how: list[str], source: Path, machine: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "list.pem").write_text(LIST)
    env = {**machine, "RDS_BUNDLE_URL": (tmp_path / "list.pem").as_uri()}
    done = subprocess.run(
        [tool("sam"), "build", *how], cwd=source, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    built = source / ".aws-sam" / "build"
    assert (built / "IdentityLayer" / "python" / "rds-global-bundle.pem").read_text() == LIST
    assert (built / "PageFunction" / "page" / "index.html").exists()
    guided(source, machine, {})
