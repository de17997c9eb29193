"""A part that may be left out is imported by its own folders alone."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from rules.parts import Part
from tests.support.template import ROOT

CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
PROTECTED = {each["name"]: each for each in CONTRACTS["contracts"] if each["type"] == "protected"}


def broken_contracts(root: Path) -> list[str]:
    """Return the names of the contracts that a tree breaks, as `make check` finds them."""
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    ran = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert "Contracts:" in ran.stdout, ran.stdout + ran.stderr
    return [name for name in PROTECTED if f"{name} BROKEN" in ran.stdout]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tree")
    shutil.copy(ROOT / "pyproject.toml", root)
    for name in CONTRACTS["root_packages"]:
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    return root


@pytest.mark.parametrize(
    ("module", "line", "broken"),
    [
        ("rules/engagement/points.py", "", []),
        *(
            (module, f"import rules.{part}.{name}\n", [f"{part} are known to their manifest alone"])
            for part in Part
            for module, name in (("local/demo.py", "part"), ("processors/publisher.py", "lake_entities"))
        ),
    ],
)
def test_a_planted_import_is_found(tree: Path, module: str, line: str, broken: list[str]) -> None:
    path = tree / module
    text = path.read_text()
    path.write_text(text + line)
    try:
        assert broken_contracts(tree) == broken
    finally:
        path.write_text(text)


def test_each_part_has_its_contract_which_excepts_nobody() -> None:
    # A part that was taken out of the code leaves its contract behind.
    assert PROTECTED.keys() >= {f"{part} are known to their manifest alone" for part in Part}
    for protected in PROTECTED.values():
        assert protected["allowed_importers"] == protected["protected_modules"]
