"""What a function's code asks of AWS: the clients that its handler's modules make."""

import ast
from functools import cache
from pathlib import Path

from tests.support.template import ROOT

# Where handlers, and what puts them together, live. An adapter is handed its client.
CALLERS = ("ingest", "processors", "analytics")


def path_of(module: str) -> Path | None:
    """The file of a product module; None for what is none."""
    base = ROOT / module.replace(".", "/")
    return next((each for each in (base.with_suffix(".py"), base / "__init__.py") if each.is_file()), None)


@cache
def imports_of(module: str) -> frozenset[str]:
    """The product modules that a module imports, wherever in it."""
    file = path_of(module)
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())) if file else ():
        if isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
    return frozenset(each for each in found if each.partition(".")[0] in CALLERS and path_of(each))


def reached(module: str) -> set[str]:
    """A module and all product modules that it imports, directly or not."""
    found, left = set[str](), [module]
    while left:
        each = left.pop()
        if each not in found:
            found.add(each)
            left += imports_of(each)
    return found


def services_in(source: str) -> set[str]:
    """The AWS services that a module makes clients of: `client("sqs")`."""
    return {
        node.args[0].value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "client"
        and node.args
        and isinstance(node.args[0], ast.Constant)
        and isinstance(node.args[0].value, str)
    }


def services_of(module: str) -> dict[str, str]:
    """By service, a module reached from this one that makes a client of it."""
    return {
        service: each
        for each in sorted(reached(module))
        for service in services_in((path_of(each) or ROOT).read_text())
    }
