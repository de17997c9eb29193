"""The oracle is a second reading of docs/rules.md: worth something only while it borrows nothing from the first."""

import ast
import sys
from pathlib import Path

import pytest

from tests.support.template import ROOT
from tests.unit.architecture.test_rooms import imported

ORACLE = ROOT / "tests" / "oracle"
PRODUCT = {"rules", "adapters", "ingest", "processors", "analytics", "local", "bench"}
# What the rules are read in. The rest of the folder drives the product.
READINGS = (
    *("calendar_dates", "streak_reading", "repair_reading", "bonus_reading", "points_reading", "facts"),
    *("ledger_reading", "board_reading", "league_reading", "friend_reading"),
)


def borrowed(source: str) -> set[str]:
    """What a reading may not import: all but the standard library and the other readings."""
    found = imported(source) - sys.stdlib_module_names - {"tests"}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tests"):
            found |= {node.module or ""} - {f"tests.oracle.{each}" for each in READINGS}
        elif isinstance(node, ast.Import):
            found |= {each.name for each in node.names if each.name.startswith("tests")}
    return found


@pytest.mark.parametrize("name", READINGS)
def test_a_reading_imports_other_readings_alone(name: str) -> None:
    assert not borrowed((ORACLE / f"{name}.py").read_text())


@pytest.mark.parametrize("path", sorted(ORACLE.glob("*.py")), ids=lambda path: path.stem)
def test_nothing_of_the_oracle_imports_the_rules(path: Path) -> None:
    assert "rules" not in imported(path.read_text())
