"""What the tests of a part give to tests that are about all parts."""

from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from rules.parts import Part


def modules_of_parts(name: str) -> Iterator[ModuleType]:
    """Yield the module `name` in the part's folder of tests/support, for each part that has it."""
    for part in Part:
        folder = f"tests.support.{part}"
        if find_spec(folder) and find_spec(f"{folder}.{name}"):
            yield import_module(f"{folder}.{name}")
