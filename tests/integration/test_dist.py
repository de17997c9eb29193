"""What `make dist` makes: each package of Python is installed in an empty environment and used there, far from the checkout."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from adapters.book_store import shipped_document
from local.cloud.processes import sam, uv
from tests.support.declared import FUNCTIONS, properties
from tests.support.documents import blocks
from tests.support.effort import SOAK, only_soak
from tests.support.node_tools import ENVIRONMENT, packages
from tests.support.template import ROOT

RELEASED = {
    "streakline-*.whl": "the command",
    "streakline-*.tar.gz": "what a deployment is made of",
    "streakline_client-*.whl": "the Python client",
    "streakline.cdx.json": "the packages that the command needs (CycloneDX)",
    **({"streakline-*.tgz": "the TypeScript client, for npm"} if SOAK else {}),
}
OF_CALLER = ("PYTHON", "VIRTUAL_ENV", "STREAKLINE_", "AWS_", "UV_PROJECT", "UV_TOOL")
SECONDS_MAX = 580
# Somebody who is offline: what happens is kept, and shown at once.
PYTHON_APP = """
from streakline_client import Queueing, Streakline

me = Streakline("http://127.0.0.1:9", "token", user="ann", queue=Queueing(path="ann.db", zone="UTC"))
me.track("LESSON_COMPLETED", {"minutes": 12})
print(me.estimate()["current_streak"], len(me.waiting()))
"""


def must(*command: str | Path, cwd: Path, env: Mapping[str, str], seconds: float = SECONDS_MAX) -> str:
    done = subprocess.run(
        [str(each) for each in command],
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def environment(home: Path) -> dict[str, str]:
    """That of a newcomer: a home of his own, and nothing of this checkout. Downloads are kept where they are."""
    cache = os.environ.get("UV_CACHE_DIR") or str(Path.home() / ".cache" / "uv")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OF_CALLER)}
    own = str(Path(sys.executable).parent)
    path = [each for each in kept["PATH"].split(os.pathsep) if each != own]
    tools = {"UV_TOOL_DIR": str(home / "tools"), "UV_TOOL_BIN_DIR": str(home / "bin"), "UV_CACHE_DIR": cache}
    return {**kept, **tools, "HOME": str(home), "PATH": os.pathsep.join([str(home / "bin"), *path])}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of what is released, and what `make dist` printed. `make test` makes the packages of Python alone."""
    folder = tmp_path_factory.mktemp("dist")
    targets = ["dist"] if SOAK else ["dist-python", "dist-sums"]
    if SOAK:
        packages()
    return folder, must("make", *targets, f"DIST={folder}", f"UV={uv()}", cwd=ROOT, env=ENVIRONMENT)


@pytest.fixture(scope="module")
def dist(made: tuple[Path, str]) -> Path:
    return made[0]


@pytest.fixture(scope="module")
def home(dist: Path) -> Iterator[Path]:
    """A home in which the command is installed.

    It is not below pytest's folders: each run of pytest closes these to other users, of whom PostgreSQL's is one.
    """
    (wheel,) = dist.glob("streakline-*.whl")
    with tempfile.TemporaryDirectory() as folder:
        must(
            *(uv(), "tool", "install", "--python", sys.executable, wheel),
            cwd=Path(folder),
            env=environment(Path(folder)),
        )
        yield Path(folder)


def test_checksums_are_those_of_the_files(dist: Path) -> None:
    lines = [line.split(maxsplit=1) for line in (dist / "SHA256SUMS").read_text().splitlines()]
    listed = {name: digest for digest, name in lines}
    assert listed == {
        each.name: hashlib.sha256(each.read_bytes()).hexdigest() for each in dist.glob("streakline*")
    }
    assert len(listed) == len(RELEASED)


def test_the_list_of_packages_has_what_the_command_needs(dist: Path) -> None:
    """The list that a scanner of vulnerabilities reads."""
    listed = json.loads((dist / "streakline.cdx.json").read_text())
    assert (listed["bomFormat"], listed["metadata"]["component"]["name"]) == ("CycloneDX", "streakline")
    names = {each["name"] for each in listed["components"]}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {re.split(r"[\[>=<]", each)[0] for each in project["dependencies"]} <= names
    assert not names & {"pytest", "mypy", "ruff"}


def test_it_is_told_what_each_file_is_and_how_large(made: tuple[Path, str]) -> None:
    folder, printed = made
    for name, kind in RELEASED.items():
        (file,) = folder.glob(name)
        assert f"{file.stat().st_size} bytes  {file.name}: {kind}\n" in printed


@only_soak(
    "tests/integration/test_dist.py::test_the_command_has_all_that_the_source_distribution_has, "
    "test_the_python_client_works_alone, and in tests/unit/local/test_commands.py the same command of "
    "the checkout"
)
def test_the_command_works_without_a_checkout(home: Path, tmp_path: Path) -> None:
    env = environment(home)
    assert must("streakline", "--version", cwd=tmp_path, env=env) == "streakline 0.9.0\n"
    book = tmp_path / "book.json"
    book.write_text(json.dumps(shipped_document()))
    checked = must("streakline", "rules", "check", book, cwd=tmp_path, env=env)
    assert checked.startswith("book.json: a book of rules\n  APP_OPENED: 1 points, at most 1 a day\n")
    plan = must("streakline", "plan", "--daily-actives", "10000", cwd=tmp_path, env=env)
    assert plan.startswith("10,000 daily actives, 50,000 events a day; us-east-1\n")
    book.write_text(json.dumps({**shipped_document(), "surprise": 1}))
    done = subprocess.run(
        ["streakline", "rules", "check", str(book)], cwd=tmp_path, env=env, capture_output=True, check=False
    )
    assert (done.returncode, b"surprise" in done.stderr, b"Traceback" in done.stderr) == (1, True, False)
    done = subprocess.run(["streakline", "demo"], cwd=tmp_path, env=env, capture_output=True, check=False)
    assert (done.returncode, b"run it in a checkout" in done.stderr, done.stdout) == (1, True, b"")
    assert [each.name for each in tmp_path.iterdir()] == ["book.json"]


@only_soak(
    "test_a_tool_that_a_cloud_is_built_with_and_that_is_missing_is_named (tests/unit/local/test_processes.py)"
)
def test_without_uv_a_laptop_cloud_is_refused_with_a_sentence(home: Path, tmp_path: Path) -> None:
    env = {**environment(home), "PATH": str(home / "bin")}
    env.pop("UV", None)
    done = subprocess.run(
        ["streakline", "up"], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert (
        done.stderr
        == "streakline: a laptop cloud is built with uv, which is not on the PATH: install it first\n"
    )


def test_the_command_has_all_that_the_source_distribution_has(dist: Path) -> None:
    """A laptop cloud is built from it. What lies beside the wheel's folder is of the package index.

    Each has all that functions, layers and the stack are made of: to build from it is to build from the checkout.
    """
    (wheel,), (archive,) = dist.glob("streakline-*.whl"), dist.glob("streakline-*.tar.gz")
    with zipfile.ZipFile(wheel) as installed, tarfile.open(archive) as source:
        names = {name.removeprefix("streakline/") for name in installed.namelist()}
        files = {each.name.partition("/")[2] for each in source if each.isfile()}
    assert len(files) > 500
    assert files - names <= {"PKG-INFO", ".gitignore", "NOTICE"}
    made_of = {"infra", "sql", "page", *(properties(name)["Handler"].partition(".")[0] for name in FUNCTIONS)}
    found = {
        path.relative_to(ROOT).as_posix()
        for folder in (*made_of, "rules", "adapters", "local")
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    found |= {"template.yaml", "samconfig.toml", "Makefile", "pyproject.toml", "uv.lock"}
    assert found - files == set()


@only_soak(
    "tests/integration/test_dist.py::test_the_command_has_all_that_the_source_distribution_has,"
    " test_the_command_works_without_a_checkout, and tests/e2e/test_smoke.py, whose cloud the checkout starts"
)
def test_a_laptop_cloud_starts_from_an_empty_folder(home: Path, tmp_path: Path) -> None:
    """Its tools are the checkout's, which are installed from the same lock files."""
    env = {**environment(home), "UV": uv()}
    (home / ".streakline").mkdir()
    (home / ".streakline" / "tools").symlink_to(ROOT / ".local" / "tools")
    try:
        must("streakline", "up", cwd=tmp_path, env=env)
        assert must("streakline", "status", cwd=tmp_path, env=env).startswith("All is well")
        page = must("streakline", "page", "--user", "ann", cwd=tmp_path, env=env)
        assert page.startswith("http://127.0.0.1:")
    finally:
        must("streakline", "down", cwd=tmp_path, env=env)
    assert list(tmp_path.iterdir()) == []


@only_soak(
    "tests/integration/test_dist.py::test_the_python_client_works_alone, test_the_command_works_without_a_checkout,"
    " tests/clients/test_typescript.py for the package of npm, and .github/workflows/test.yml, which runs `make demo`"
)
def test_what_the_readme_says_works_as_printed_on_a_new_machine() -> None:
    """All of its lines that no other test runs, one after another in a clone: without uv, in a home of its own.

    The folder is not below pytest's, as that of `home`.
    """
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        follow_readme(Path(folder))


def follow_readme(folder: Path) -> None:
    clone = folder / "clone"
    must("git", "clone", "--quiet", ROOT, clone, cwd=folder, env=os.environ)
    for name in must("git", "ls-files", "-z", "-mo", "--exclude-standard", cwd=ROOT, env=os.environ).split(
        "\0"
    ):
        if name and (ROOT / name).exists():
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, clone / name)
    env = environment(folder)
    node = Path(shutil.which("npm", path=ENVIRONMENT["PATH"]) or "").parent
    without_uv = [each for each in env["PATH"].split(os.pathsep) if not (Path(each) / "uv").exists()]
    env["PATH"] = os.pathsep.join([*without_uv, str(node)])
    lines = [
        line for each in blocks("README.md") if each.mark == "not run" for line in each.text.splitlines()
    ]
    lines = [line for line in lines if not line.startswith("make test ")]
    assert len(lines) > 3
    try:
        must("bash", "--noprofile", "--norc", "-ec", "\n".join(lines), cwd=clone, env=env, seconds=2400)
    finally:
        must("make", "down", cwd=clone, env=env)
    assert must(clone / "app/bin/streakline", "--version", cwd=folder, env=env) == "streakline 0.9.0\n"
    assert must(clone / "app/bin/python", "-c", PYTHON_APP, cwd=folder, env=env) == "1 1\n"
    said = "import {Streakline} from 'streakline'; console.log(typeof Streakline)"
    assert must("node", "--input-type=module", "-e", said, cwd=clone, env=env) == "function\n"


def test_the_python_client_works_alone(dist: Path, tmp_path: Path) -> None:
    env, python = environment(tmp_path), tmp_path / "venv" / "bin" / "python"
    must(uv(), "venv", "--python", sys.executable, tmp_path / "venv", cwd=tmp_path, env=env)
    (wheel,) = dist.glob("streakline_client-*.whl")
    must(uv(), "pip", "install", "--python", python, "--no-index", wheel, cwd=tmp_path, env=env)
    assert must(python, "-c", PYTHON_APP, cwd=tmp_path, env=env) == "1 1\n"


@only_soak(
    "tests/integration/test_dist.py::test_the_command_has_all_that_the_source_distribution_has,"
    " and tests/e2e/test_smoke.py, whose cloud is built of the same files in the checkout"
)
def test_a_deployment_is_built_from_the_source_distribution(dist: Path, tmp_path: Path) -> None:
    (archive,) = dist.glob("streakline-*.tar.gz")
    must("tar", "-xzf", archive, cwd=tmp_path, env=ENVIRONMENT)
    (unpacked,) = tmp_path.iterdir()
    env = environment(tmp_path)
    env |= {"SAM_CLI_TELEMETRY": "0", "AWS_DEFAULT_REGION": "us-east-1"}
    env["PATH"] = os.pathsep.join([str(Path(uv()).parent), env["PATH"]])
    must(*sam(), "build", "PageFunction", cwd=unpacked, env=env)
    built = unpacked / ".aws-sam" / "build"
    assert (built / "template.yaml").exists()
    assert (built / "PageFunction" / "page" / "index.html").exists()
