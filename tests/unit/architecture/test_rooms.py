"""The house: what rules may import, and that each folder says what it holds.

Which room may import which is import-linter's to hold (pyproject.toml).
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.template import ROOT

PRODUCT = ("rules", "adapters", "ingest", "processors", "analytics", "local", "bench")


def folders() -> Iterator[Path]:
    for name in PRODUCT:
        yield from sorted({each.parent for each in (ROOT / name).rglob("*.py")})


def imported(source: str) -> set[str]:
    """The top-level packages that a module's text imports, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {each.name.partition(".")[0] for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add("." * node.level + (node.module or "").partition(".")[0])
    return found


def foreign(source: str) -> set[str]:
    """What a rule may not import: all but the standard library and rules."""
    return imported(source) - sys.stdlib_module_names - {"rules"}


def test_rules_import_the_standard_library_alone() -> None:
    found = {
        str(each.relative_to(ROOT)): sorted(names)
        for each in (ROOT / "rules").rglob("*.py")
        if (names := foreign(each.read_text()))
    }
    assert not found, "rules/ may import the standard library and rules/ alone; move this to adapters/"


@pytest.mark.parametrize("folder", folders(), ids=lambda each: str(each.relative_to(ROOT)))
def test_a_room_says_what_it_holds(folder: Path) -> None:
    door = folder / "__init__.py"
    assert door.exists(), f"{door.relative_to(ROOT)} is missing"
    assert ast.get_docstring(ast.parse(door.read_text())), f"{door.relative_to(ROOT)} has no docstring"
