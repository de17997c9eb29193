"""What a function is built of (Makefile): the source that it may import, and what it reads besides."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.declared import FUNCTIONS, properties
from tests.support.module_graph import reached
from tests.support.template import ROOT

READS = dict(re.findall(r"(?m)^READS_(\w+) := (.*)$", (ROOT / "Makefile").read_text()))
SHARED = {"rules", "adapters"}


def built(name: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
    command = ["make", f"build-{name}", f"ARTIFACTS_DIR={folder}"]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", ["PageFunction", "EngagementFunction"])
def test_a_function_gets_the_package_of_its_handler_and_what_it_reads(name: str, tmp_path: Path) -> None:
    assert built(name, tmp_path).returncode == 0
    package = properties(name)["Handler"].partition(".")[0]
    assert {each.name for each in tmp_path.iterdir()} == {*SHARED, package, *READS.get(name, "").split()}


def test_what_the_template_does_not_declare_is_not_built(tmp_path: Path) -> None:
    outcome = built("NobodysFunction", tmp_path)
    assert outcome.returncode != 0
    assert "template.yaml has no Handler of NobodysFunction" in outcome.stderr


def read_by(handler: str) -> set[str]:
    """The folders beside the packages that a handler's modules make paths of: `parents[2] / "sql"`."""
    files = reached(handler.rpartition(".")[0]).values()
    return {
        name for path in files for name in re.findall(r'parent\w*(?:\[\d\])? / "(\w+)"', path.read_text())
    }


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_gets_the_folders_that_its_modules_read(name: str) -> None:
    found = read_by(properties(name)["Handler"])
    assert found == set(READS.get(name, "").split()), f"Makefile: READS_{name} := {' '.join(sorted(found))}"


def compiled(folder: Path, kept: Path | None) -> dict[str, bytes]:
    """What compiling a folder makes, by path. It has a file twice, and one that is no Python."""
    for name in ("a/one.py", "b/one.py", "b/broken.py"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("def (\n" if "broken" in name else "def f():\n    return 1\n")
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    environment = {**os.environ, "LAYER_PYTHON": python, "LAYER_COMPILED": str(kept or "")}
    command = [sys.executable, str(ROOT / "infra/layer/compile.py"), str(folder)]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    return {str(each.relative_to(folder)): each.read_bytes() for each in folder.rglob("*.pyc")}


def test_what_was_compiled_before_is_what_would_be_compiled(tmp_path: Path) -> None:
    plainly = compiled(tmp_path / "plainly", None)
    assert len(plainly) == 2
    kept = tmp_path / "kept"
    first = compiled(tmp_path / "first", kept)
    names = {each.name for each in kept.iterdir()}
    assert compiled(tmp_path / "second", kept) == first == plainly
    assert len(names) == 2, "a file's compiled form has its path in it"
    assert {each.name for each in kept.iterdir()} == names
