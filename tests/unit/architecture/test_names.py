"""One name, one thing: what a reader finds by a class's name is the only class of that name."""

import ast
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from tests.support.template import ROOT

# The client is a package of its own: its Question is what an agent sees of ours.
PRODUCT = ("rules", "adapters", "ingest", "processors", "analytics", "local", "bench")


def classes(source: str) -> set[str]:
    """The public classes at a module's top level."""
    return {
        each.name
        for each in ast.parse(source).body
        if isinstance(each, ast.ClassDef) and not each.name.startswith("_")
    }


def shared(sources: Mapping[str, str]) -> dict[str, list[str]]:
    """Class names with more than one home, by module path -> text; each with its homes."""
    homes: dict[str, list[str]] = defaultdict(list)
    for path, source in sources.items():
        for name in classes(source):
            homes[name].append(path)
    return {name: sorted(paths) for name, paths in homes.items() if len(paths) > 1}


def namesakes(paths: list[Path]) -> dict[str, list[str]]:
    """File names that several of these paths share."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in paths:
        found[path.name].append(str(path))
    return {name: sorted(all_) for name, all_ in found.items() if len(all_) > 1}


def test_a_public_class_name_is_used_for_one_thing() -> None:
    sources = {
        str(path.relative_to(ROOT)): path.read_text()
        for folder in PRODUCT
        for path in (ROOT / folder).rglob("*.py")
    }
    found = shared(sources)
    assert not found, f"give each of these a name that says what it is: {found}"


def test_a_second_home_is_noticed() -> None:
    twice = {"a.py": "class Outcome:\n    pass\n", "b.py": "class Outcome(Exception):\n    pass\n"}
    assert shared(twice) == {"Outcome": ["a.py", "b.py"]}
    assert shared({"a.py": "class _Parts:\n    pass\n", "b.py": "class _Parts:\n    pass\n"}) == {}


def test_no_two_helpers_of_the_tests_share_a_file_name() -> None:
    helpers = [
        path.relative_to(ROOT)
        for path in (ROOT / "tests").rglob("*.py")
        if not path.name.startswith("test_") and path.name not in ("__init__.py", "conftest.py")
    ]
    assert not namesakes(helpers)


def test_namesakes_are_noticed() -> None:
    paths = [Path("tests/support/town.py"), Path("tests/faults/town.py"), Path("tests/support/engine.py")]
    assert namesakes(paths) == {"town.py": ["tests/faults/town.py", "tests/support/town.py"]}
