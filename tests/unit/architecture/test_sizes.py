"""How long a function may be: one screen. A module is as long as its subject."""

import ast
from collections.abc import Iterator

import pytest

from tests.support.template import ROOT

FOLDERS = ("rules", "adapters", "ingest", "processors", "analytics", "local", "bench", "client", "infra")
LINES_MAX = 70


def long_functions(source: str) -> Iterator[str]:
    """Yield the functions of a module's text that are longer than a screen: name and lines."""
    for each in ast.walk(ast.parse(source)):
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (each.end_lineno or each.lineno) - each.lineno + 1
            if lines > LINES_MAX:
                yield f"{each.name}: {lines} lines"


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_function_fits_on_a_screen(folder: str) -> None:
    paths = sorted((ROOT / folder).rglob("*.py"))
    found = [
        f"{path.relative_to(ROOT)} {each}" for path in paths for each in long_functions(path.read_text())
    ]
    assert not found, f"divide these by what they do: {found}"
