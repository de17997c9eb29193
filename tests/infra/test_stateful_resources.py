"""What holds data, or names that the world knows, keeps its logical id and its type.

CloudFormation knows a resource by its logical id. A template without that id deletes the resource, or leaves it
behind for nobody if its DeletionPolicy is Retain; another id makes a new, empty one beside it.
"""

import json

import pytest

from infra.resources import TABLE
from tests.support.stack_updates import STATEFUL
from tests.support.template import DEPLOYMENTS, ROOT, stacks_of, template

RECORD = "tests/infra/stateful_resources.json"
RECORDED: dict[str, dict[str, str]] = json.loads((ROOT / RECORD).read_text())


def lost(recorded: dict[str, str], found: dict[str, str], path: str) -> list[str]:
    """What a deployment would do to each recorded resource that a template no longer declares as it was."""
    said = []
    for logical_id, kind in recorded.items():
        if logical_id not in found:
            said.append(
                f"{logical_id} ({kind}) is gone from {path}: CloudFormation would delete it with what it holds, or,"
                f" where it is retained, leave it behind; under another id it is replaced by an empty one."
                f" If that is meant, take its line out of {RECORD}."
            )
        elif found[logical_id] != kind:
            said.append(
                f"{logical_id} in {path} was {kind} and is {found[logical_id]}: CloudFormation refuses to change a"
                f" type; under a new id the old one is deleted. If that is meant, change its line in {RECORD}."
            )
    return said


def declared(path: str) -> dict[str, str]:
    return {name: each["Type"] for name, each in template(path)["Resources"].items()}


@pytest.mark.parametrize("path", RECORDED)
def test_nothing_that_holds_data_is_deleted_or_replaced(path: str) -> None:
    said = lost(RECORDED[path], declared(path), path)
    assert not said, "\n".join(said)


@pytest.mark.parametrize("path", RECORDED)
def test_whatever_holds_data_is_recorded(path: str) -> None:
    found = {name: kind for name, kind in declared(path).items() if kind in STATEFUL}
    missing = found.keys() - RECORDED[path].keys()
    lines = [f'"{name}": "{found[name]}"' for name in sorted(missing)]
    assert not missing, f'new in {path}: add to "{path}" in {RECORD}: {", ".join(lines)}'


def test_a_nested_stack_that_holds_data_has_a_record() -> None:
    nested = [
        each["Properties"]["TemplateURL"]
        for each in template()["Resources"].values()
        if "TemplateURL" in each["Properties"]
    ]
    holding = {path for path in nested if STATEFUL & set(declared(path).values())}
    assert set(RECORDED) == {"template.yaml", *holding}


def retained() -> set[str]:
    """What stays when a stack is deleted, as docs/uninstall.md may call it: by logical id, or by its output."""
    return {
        f"{name}Name" if each["Type"] == "AWS::S3::Bucket" else f"{name}Id" if "UserPool" in name else name
        for deployment in DEPLOYMENTS
        for stack in stacks_of(deployment).values()
        for name, each in stack.resources.items()
        if each.get("DeletionPolicy", "Delete") not in ("Delete", "Snapshot") and each["Type"] != TABLE
    }


def test_whoever_uninstalls_is_told_of_each_thing_that_stays() -> None:
    """Tables are told of together: the page lists them by their outputs."""
    told = (ROOT / "docs/uninstall.md").read_text().partition("## Step by step")[0]
    assert len(retained()) > 5
    assert [name for name in sorted(retained()) if f"`{name}`" not in told] == []
