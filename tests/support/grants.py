"""What the functions of template.yaml may do, and what their code asks for: both as plain data."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from tests.support.template import ROOT

# Where handlers, and what puts them together, live. An adapter is handed its client.
CALLERS = ("ingest", "processors", "analytics")


def statements(node: Any) -> Iterator[dict[str, Any]]:
    """Every policy statement in a template's value, whatever condition it hangs on."""
    if isinstance(node, dict):
        if "Effect" in node:
            yield node
            return
        node = list(node.values())
    if isinstance(node, list):
        for each in node:
            yield from statements(each)


def actions(statement: dict[str, Any]) -> set[str]:
    """The actions that a statement names, in each branch of its conditions."""
    found, left = set[str](), [statement["Action"]]
    while left:
        each = left.pop()
        if isinstance(each, str):
            found.add(each)
        else:
            left += each["Fn::If"][1:] if isinstance(each, dict) else each
    return found


def referred(node: Any) -> set[str]:
    """The logical ids that a template's value refers to."""
    if isinstance(node, dict):
        found: set[str] = set()
        for name, value in node.items():
            if name == "Ref":
                found.add(value)
            elif name == "Fn::GetAtt":
                found.add(value.partition(".")[0] if isinstance(value, str) else value[0])
            elif name == "Fn::Sub" and isinstance(value, str):
                found |= {each.partition(".")[0] for each in re.findall(r"\$\{([A-Za-z0-9.]+)\}", value)}
            else:
                found |= referred(value)
        return found
    if isinstance(node, list):
        return {name for each in node for name in referred(each)}
    return set()


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
