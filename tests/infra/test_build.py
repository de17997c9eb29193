"""What a function is built of (Makefile): the source that it may import, and what it reads besides."""

import ast
import os
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

from tests.support.declared import FUNCTIONS, properties
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


def path_of(module: str) -> Path | None:
    """Where a module of ours is; None: it is somebody else's, or a name in a module."""
    base = ROOT / module.replace(".", "/")
    return next((each for each in (base.with_suffix(".py"), base / "__init__.py") if each.is_file()), None)


@cache
def imports(path: Path) -> frozenset[Path]:
    """The modules of ours that a module imports, wherever in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
    return frozenset(found for each in names if (found := path_of(each)))


def read_by(handler: str) -> set[str]:
    """The folders beside the packages that a handler's modules make paths of: `parents[2] / "sql"`."""
    start = path_of(handler.rpartition(".")[0])
    assert start
    seen, waiting = set(), [start]
    while waiting:
        path = waiting.pop()
        seen.add(path)
        waiting += imports(path) - seen
    return {name for path in seen for name in re.findall(r'parent\w*(?:\[\d\])? / "(\w+)"', path.read_text())}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_gets_the_folders_that_its_modules_read(name: str) -> None:
    found = read_by(properties(name)["Handler"])
    assert found == set(READS.get(name, "").split()), f"Makefile: READS_{name} := {' '.join(sorted(found))}"
