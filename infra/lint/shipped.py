"""What cfn-lint ships of AWS: actions and what they act on, each type's schema. cfn-lint is not loaded."""

import json
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from infra.lint.expanded import REGION


def _read(path: str) -> dict[str, Any]:
    spec = find_spec("cfnlint")
    assert spec is not None  # noqa: S101 (it is in the lock file)
    (folder,) = spec.submodule_search_locations or []
    found: dict[str, Any] = json.loads((Path(folder) / "data" / path).read_text())
    return found


@cache
def actions() -> Mapping[str, Any]:
    """Return services -> Actions (in small letters) -> Resources, and Resources -> ARNFormats.

    It is AWS's service authorization reference.
    """
    return _read("AdditionalSpecs/Policies.json")


@cache
def identifiers(kind: str) -> list[str]:
    """Return the properties that identify a resource of a type in an account, and that a template may set."""
    types = _read(f"schemas/providers/{REGION}.json")
    if kind not in types:
        return []
    schema = _read(f"schemas/resources/{types[kind]}.json")
    read_only = {*schema.get("readOnlyProperties", [])}
    return [each.rpartition("/")[2] for each in schema.get("primaryIdentifier", []) if each not in read_only]
