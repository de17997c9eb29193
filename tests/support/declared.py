"""What template.yaml declares, by kind, for the tests of it."""

import re
from collections.abc import Iterator
from typing import Any

from tests.support.template import resources, template

FUNCTIONS = resources("AWS::Serverless::Function")
TABLES = resources("AWS::DynamoDB::Table")
ALL_MAPPINGS = resources("AWS::Lambda::EventSourceMapping")
MAPPINGS = {name: each for name, each in ALL_MAPPINGS.items() if "StartingPosition" in each["Properties"]}
QUEUE_MAPPINGS = {name: each for name, each in ALL_MAPPINGS.items() if name not in MAPPINGS}
QUEUES = resources("AWS::SQS::Queue")
FAILURES = {name for name in QUEUES if name.endswith("Failures")}
WORK = set(QUEUES) - FAILURES
NO_VALUE = {"Ref": "AWS::NoValue"}
# Functions of the nightly run: they work on a lake, not for somebody who waits.
NIGHTLY = {
    "CurateFunction",
    "CurateLargeFunction",
    "ForgetFunction",
    "RetainFunction",
    "WarehouseFunction",
    "ReconcileFunction",
}


def properties(logical_id: str) -> dict[str, Any]:
    found: dict[str, Any] = template()["Resources"][logical_id]["Properties"]
    return found


def indexes_of(table: dict[str, Any]) -> list[Any]:
    """A table's indexes, with one that only a parameter makes."""
    declared = table.get("GlobalSecondaryIndexes", [])
    found: list[Any] = declared["Fn::If"][1] if isinstance(declared, dict) else declared
    return found


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def logical_ids(value: Any) -> set[str]:
    """Everything that a value names by Ref, GetAtt or Sub."""
    if isinstance(value, dict):
        found = set()
        for name, inner in value.items():
            if name == "Ref":
                found |= {str(inner).removesuffix(".Alias")} - {"AWS::NoValue"}
            elif name == "Fn::GetAtt":
                found.add((inner if isinstance(inner, str) else inner[0]).split(".")[0])
            elif name == "Fn::Sub":
                text, variables = (inner, {}) if isinstance(inner, str) else inner
                named = {each.split(".")[0] for each in re.findall(r"\$\{([^}!]+)\}", text)}
                found |= named - variables.keys() | logical_ids(variables)
            else:
                found |= logical_ids(inner)
        return found
    if isinstance(value, list):
        return set().union(*map(logical_ids, value))
    return set()


def statements(name: str) -> Iterator[tuple[dict[str, Any], str]]:
    """A function's statements, with where each holds: always, on AWS or off it."""
    for policy in properties(name).get("Policies", []):
        for statement in policy.get("Statement", []) if isinstance(policy, dict) else []:
            if "Fn::If" in statement:
                condition, then, otherwise = statement["Fn::If"]
                assert condition in template()["Conditions"]
                yield then, "on"
                if otherwise != NO_VALUE:
                    yield otherwise, "off"
            else:
                yield statement, "always"
