"""Which modules of ours a module imports, and the AWS clients that its handler's modules make."""

import ast
from functools import cache
from pathlib import Path

from tests.support.template import ROOT

# Where handlers, and what puts them together, live. An adapter is handed its client.
CALLERS = ("ingest", "processors", "analytics")


def path_of(module: str) -> Path | None:
    """Where a module of ours is; None: it is somebody else's, or a name in a module."""
    base = ROOT / module.replace(".", "/")
    return next((each for each in (base.with_suffix(".py"), base / "__init__.py") if each.is_file()), None)


@cache
def imports_of(path: Path) -> frozenset[str]:
    """The modules of ours that a file imports, wherever in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
    return frozenset(each for each in names if path_of(each))


def reached(module: str) -> dict[str, Path]:
    """A module and all modules of ours that it imports, directly or not, with their files."""
    found, left = dict[str, Path](), [module]
    while left:
        each = left.pop()
        path = path_of(each)
        if path and each not in found:
            found[each] = path
            left += imports_of(path)
    return found


@cache
def services_in(path: Path) -> frozenset[str]:
    """The AWS services that a module makes clients of: `client("sqs")`."""
    return frozenset(
        node.args[0].value
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "client"
        and node.args
        and isinstance(node.args[0], ast.Constant)
        and isinstance(node.args[0].value, str)
    )


def services_of(module: str) -> dict[str, str]:
    """By service, a module reached from this one that makes a client of it."""
    return {
        service: each
        for each, path in sorted(reached(module).items())
        if each.partition(".")[0] in CALLERS
        for service in services_in(path)
    }
