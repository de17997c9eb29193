"""What a function is built of (Makefile): the source that it may import, and what it reads besides."""

import os
import re
import subprocess
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
