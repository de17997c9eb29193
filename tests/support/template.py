"""template.yaml as data: so that tests demand of it what the design does, and make tables from it."""

from functools import cache
from typing import Any

from infra.template_text import ROOT, parse
from tests.support.dynamodb_engine import table_definition

__all__ = ["ROOT", "resources", "table_definition", "template"]


@cache
def template(name: str = "template.yaml") -> dict[str, Any]:
    """Return a parsed template."""
    return parse((ROOT / name).read_text())


def resources(kind: str) -> dict[str, dict[str, Any]]:
    """Return the resources of a type, by logical id."""
    found = template()["Resources"].items()
    return {name: each for name, each in found if each["Type"] == kind}
