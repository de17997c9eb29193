"""A part that may be left out is imported by its own folders; leads also by rooms that pyproject.toml lists."""

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


OF_MANIFESTS = [part for part in Part if f"{part} are known to their manifest alone" in PROTECTED]


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
        ("analytics/retention.py", "from rules.leads.identity import Identity\n", []),
        (
            "analytics/lake/listing.py",
            "from rules.leads.identity import Identity\n",
            ["leads are known to few"],
        ),
        *(
            (module, f"import rules.{part}.{name}\n", [f"{part} are known to their manifest alone"])
            for part in OF_MANIFESTS
            for module, name in (("local/demo.py", "part"), ("processors/publisher.py", "lake_entities"))
        ),
        ("processors/publisher.py", "import processors.leads.features\n", ["leads are known to few"]),
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


@pytest.mark.parametrize("name", PROTECTED)
def test_each_room_that_may_know_a_part_does(tree: Path, name: str) -> None:
    """A room that knows it no longer leaves the list."""
    protected = PROTECTED[name]
    own = {module.rpartition(".")[2] for module in protected["protected_modules"]}
    for importer in protected["allowed_importers"]:
        if importer.rpartition(".")[2] in own:
            continue
        folder = tree / importer.replace(".", "/")
        files = folder.rglob("*.py") if folder.is_dir() else [folder.with_suffix(".py")]
        code = "".join(file.read_text() for file in files)
        part = next(iter(own))
        assert any(f"{layer}.{part}" in code for layer in ("adapters", "ingest", "processors", "rules")), (
            importer
        )
