"""A deployment on a stack that is there: from each size to each other one, and from the last release to today.

Whoever releases runs `make released` (tests/support/released_templates.py).
"""

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import replace
from functools import cache
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from infra.stacks import Stack, resolve_stacks
from tests.support.released_templates import unpack
from tests.support.stack_updates import ALONE, differences, set_at_creation

SIZES = ("small", "standard", "large")
SMALLER = (("standard", "small"), ("large", "small"))
CACHE = "it holds copies alone, of what the tables have"
# What a change of size may do, and why.
ACCEPTED: dict[str, tuple[tuple[tuple[str, str], ...], str]] = {
    "/Events: AWS::Kinesis::Stream is deleted with what it holds": (
        SMALLER,
        "the operator's guide says to stop those who send to it, and to wait until it is read",
    ),
    "/Cache: AWS::CloudFormation::Stack is deleted with what it holds": (SMALLER, CACHE),
    "/Cache/Valkey: AWS::ElastiCache::ServerlessCache is deleted with what it holds": (SMALLER, CACHE),
    "/Identity/Proxy: AWS::RDS::DBProxy is deleted with what it holds": (
        (("large", "small"), ("large", "standard")),
        "it holds connections",
    ),
    "/Identity/Replica: AWS::RDS::DBInstance is deleted with what it holds": (
        (("large", "small"), ("large", "standard")),
        "the cluster's storage has the data",
    ),
}
# What today's templates do to a stack of the last release, and why that may be.
ACCEPTED_OF_RELEASE = {
    "/CurateJobCode: its function is asked to delete it, and may no longer answer": "no stack of 0.9.0 is known; the"
    " update succeeds all the same, once CloudFormation has waited two minutes at its end",
    "/Identity/ClusterSecurityGroup: SecurityGroupIngress loses": "ProxyIngress adds the same rule seconds later",
}


@cache
def sized(size: str) -> dict[str, Stack]:
    return resolve_stacks({"Size": size})


@pytest.mark.parametrize(("before", "after"), permutations(SIZES, 2))
def test_a_size_can_be_changed_and_nothing_is_lost_but_what_is_listed(before: str, after: str) -> None:
    accepted = {said for said, (changes, _) in ACCEPTED.items() if (before, after) in changes}
    assert {*differences(sized(before), sized(after))} == accepted


@pytest.mark.parametrize("size", SIZES)
def test_a_stack_of_the_last_release_can_be_updated(size: str, tmp_path: Path) -> None:
    released = resolve_stacks({"Size": size}, unpack(tmp_path))
    found = [*differences(released, sized(size))]
    assert [each for each in found if not each.startswith(tuple(ACCEPTED_OF_RELEASE))] == []


@pytest.mark.parametrize("size", SIZES)
def test_the_warehouse_s_base_capacity_is_within_its_greatest(size: str) -> None:
    """AWS refuses a base above the greatest one. As that is the same everywhere, no step between sizes is above it."""
    capacities = sized(size)["/Warehouse"].resources["Workgroup"]["Properties"]
    assert capacities["BaseCapacity"] <= capacities["MaxCapacity"]


def test_each_custom_resource_runs_at_each_deployment_that_changes_anything() -> None:
    for size in SIZES:
        for name, resource in sized(size)["/"].resources.items():
            if resource["Type"] == "AWS::CloudFormation::CustomResource" and name != "CheckedSettings":
                assert resource["Properties"]["Release"] == {"Ref": "CheckedSettings"}, name


def test_the_restrictions_are_of_properties_that_there_are() -> None:
    for size in SIZES:
        for stack in sized(size).values():
            for resource in stack.resources.values():
                if resource["Type"] in ALONE:
                    assert ALONE[resource["Type"]].properties & resource["Properties"].keys()


def test_what_a_resource_keeps_for_ever_is_known() -> None:
    assert "KeySchema" in set_at_creation("AWS::DynamoDB::Table")
    assert "BucketName" in set_at_creation("AWS::S3::Bucket")
    assert "DatabaseName" in set_at_creation("AWS::RDS::DBCluster")


# ---- planted faults: what each change to the stacks of a size makes of its update

Change = Callable[[dict[str, Any]], None]  # changes a stack's resources


def changed(stacks: Mapping[str, Stack], path: str, change: Change) -> dict[str, Stack]:
    resources = deepcopy({**stacks[path].resources})
    change(resources)
    return {**stacks, path: replace(stacks[path], resources=resources)}


def setting(name: str, **properties: Any) -> Change:
    return lambda resources: resources[name]["Properties"].update(properties)


def without(name: str, key: str) -> Change:
    return lambda resources: resources[name]["Properties"].pop(key)


def gone(name: str) -> Change:
    return lambda resources: resources.pop(name)


@pytest.mark.parametrize(
    ("path", "change", "said"),
    [
        (
            "/Warehouse",
            setting("Workgroup", MaxCapacity=256),
            "/Warehouse/Workgroup: AWS refuses to change BaseCapacity and MaxCapacity in one update",
        ),
        (
            "/Identity",
            setting("Cluster", EnableHttpEndpoint=False),
            "/Identity/Cluster: EnableHttpEndpoint is turned off while versions from before use it",
        ),
        (
            "/Identity",
            setting("Cluster", DatabaseName="leads"),
            "/Identity/Cluster: AWS::RDS::DBCluster is made anew, because DatabaseName changes",
        ),
        (
            "/Identity",
            gone("AppSecret"),
            "/Identity/AppSecret: AWS::SecretsManager::Secret is deleted with what it holds",
        ),
        (
            "/Warehouse",
            setting("AdminSecret", GenerateSecretString={"PasswordLength": 64}),
            "/Warehouse/Namespace: it keeps the former value of AdminSecret, which is made anew",
        ),
        (
            "/",
            setting("IdentityApiFunctionRole", Policies=[]),
            "/IdentityApiFunction calls rds-data:ExecuteStatement IDENTITY_URL: its role does not allow it",
        ),
        (
            "/",
            setting("LakeBucket", BucketName="lake"),
            "/LakeBucket: AWS::S3::Bucket is made anew, because BucketName changes",
        ),
        (
            "/Identity",
            gone("Instance"),
            "/Identity/Instance: AWS::RDS::DBInstance is deleted with what it holds",
        ),
        (
            "/",
            setting("Event", GlobalSecondaryIndexes=[]),
            "/Event: AWS refuses to add and take away",
        ),
        (
            "/",
            setting("LeadIngestion", FifoQueue=True),
            "/LeadIngestion: AWS::SQS::Queue is made anew, because FifoQueue changes",
        ),
    ],
)
def test_a_fault_in_a_change_of_size_is_noticed(path: str, change: Change, said: str) -> None:
    found = [*differences(sized("small"), changed(sized("standard"), path, change))]
    assert any(each.startswith(said) for each in found), found


def test_a_password_that_nobody_gives_to_the_database_is_noticed() -> None:
    """The secret is made anew, and the migrations, which give its password to the role, do not run."""
    before = changed(
        changed(sized("standard"), "/Identity", gone("AppSecret")), "/", without("Schema", "Release")
    )
    after = changed(sized("small"), "/", without("Schema", "Release"))
    found = [each for each in differences(before, after) if each.startswith("/Schema")]
    assert len(found) == 1, found
    assert "it does not run" in found[0]
    assert "the value of /Identity/AppSecret" in found[0]
