"""What a comment or a docstring names is there: modules, and what stands in them.

Modules move, and prose stays behind. A reader who follows it finds nothing.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGES = ("adapters", "analytics", "bench", "infra", "ingest", "local", "processors", "rules", "tests")
MODULES = sorted(
    path.relative_to(ROOT).as_posix() for package in PACKAGES for path in (ROOT / package).rglob("*.py")
)
FILE = re.compile(r"(?<![\w/.*-])([\w/]+\.py)\b", re.ASCII)
DOTTED = re.compile(rf"(?<![\w./])((?:{'|'.join(PACKAGES)})(?:\.\w+)+)", re.ASCII)
FOLDER = re.compile(rf"(?<![\w./])((?:{'|'.join(PACKAGES)})(?:/[a-z_]+)+)(?![\w./*-])", re.ASCII)
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef)


def prose(source: str) -> Iterator[str]:
    """The docstrings and comments of a module."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, DOCUMENTED) and (found := ast.get_docstring(node)):
            yield found
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


@cache
def names_in(module: str) -> frozenset[str]:
    """What a module defines, assigns or imports, at any depth."""
    tree = ast.parse((ROOT / module).read_text(encoding="utf-8"))
    names = {each.name for each in ast.walk(tree) if isinstance(each, (ast.FunctionDef, ast.ClassDef))}
    names |= {each.id for each in ast.walk(tree) if isinstance(each, ast.Name)}
    return frozenset(names | {each.name for each in ast.walk(tree) if isinstance(each, ast.alias)})


def is_there(dotted: str) -> bool:
    """Whether a dotted name is a package, a module, or something in one."""
    parts = dotted.split(".")
    for count in range(len(parts), 0, -1):
        path, rest = "/".join(parts[:count]), parts[count:]
        if (ROOT / f"{path}.py").is_file():
            return not rest or rest[0] in names_in(f"{path}.py")
        if (ROOT / path).is_dir():
            return not rest or rest[0] in names_in(f"{path}/__init__.py")
    return False


def missing_in(text: str) -> Iterator[str]:
    """What a text names and nobody finds."""
    yield from (each for each in FILE.findall(text) if not any(f"/{m}".endswith(f"/{each}") for m in MODULES))
    yield from (each for each in DOTTED.findall(text) if not each.endswith(".py") and not is_there(each))
    for each in FOLDER.findall(text):
        if not (ROOT / each).is_dir() and not (ROOT / f"{each}.py").is_file():
            yield each


def missing(source: str) -> list[str]:
    """What a module's prose names and nobody finds. To tell prose from code takes time: few modules need it."""
    if not any(missing_in(source)):
        return []
    return [each for text in prose(source) for each in missing_in(text)]


@pytest.mark.parametrize("package", PACKAGES)
def test_what_prose_names_is_there(package: str) -> None:
    found = {
        module: names
        for module in MODULES
        if module.startswith(f"{package}/")
        if (names := missing((ROOT / module).read_text(encoding="utf-8")))
    }
    assert found == {}
