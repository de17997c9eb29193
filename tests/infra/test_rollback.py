"""The first deployment may fail at any resource: what has been made by then can be deleted, and nothing stays.

CloudFormation makes a resource once all are there that it names. So at the moment at which one fails, each resource may
have been made that does not come after it, and what begins by itself (a custom resource, a schedule) may have written.
"""

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from infra.intrinsics import references
from infra.stacks import Stack
from tests.support.calls import known
from tests.support.template import DEPLOYMENTS, stacks_of

BUCKET, SCHEDULE = "AWS::S3::Bucket", "AWS::Scheduler::Schedule"
CUSTOM, MACHINE = "AWS::CloudFormation::CustomResource", "AWS::StepFunctions::StateMachine"
WRITES = ("s3:PutObject ", "s3:CopyObject ", "s3:CreateMultipartUpload ")
# What may come after a first write, because it is made in seconds, of parts that are all there, or not at all.
QUICK = {
    *("AWS::ApiGatewayV2::Route", "AWS::ApiGatewayV2::Integration", "AWS::ApiGatewayV2::Authorizer"),
    *("AWS::ApiGatewayV2::Stage", "AWS::Cognito::UserPoolGroup", "AWS::Logs::MetricFilter"),
    *("AWS::Lambda::Permission", "AWS::Lambda::EventSourceMapping", "AWS::S3::BucketPolicy"),
    *("AWS::SNS::Subscription", "AWS::SQS::QueuePolicy", SCHEDULE, "AWS::Athena::WorkGroup"),
    *("AWS::Lambda::Version", "AWS::Lambda::Alias", "AWS::CodeDeploy::DeploymentGroup"),
    *("AWS::Logs::LogGroup", "AWS::IAM::Role", "AWS::CodeDeploy::Application"),
}
# Who writes into a bucket only if somebody has asked for it by the API, whose address nobody knows by then.
ASKED = {("ErasureSchedule", "PayloadBucket")}
DELETABLE = {"Delete", "RetainExceptOnCreate", "Snapshot"}
PROTECTIONS = ("DeletionProtection", "DeletionProtectionEnabled", "EnableTerminationProtection")


def hindrances(stack: Stack) -> Iterator[str]:
    """Give a sentence for each resource that a rollback of the creation could not delete."""
    before = {name: _named(resource) & stack.resources.keys() for name, resource in stack.resources.items()}
    for name, resource in sorted(stack.resources.items()):
        properties = resource["Properties"]
        if resource.get("DeletionPolicy", "Delete") not in DELETABLE:
            yield f"{name} stays behind"
        if any(str(properties.get(each, "")).lower() in ("true", "active") for each in PROTECTIONS):
            yield f"{name} is protected against deletion"
        if resource["Type"] == "AWS::SecretsManager::Secret" and "Name" in properties:
            yield f"{name} keeps its name for days after its deletion"
        for function in sorted(_begun(stack, resource)):
            for bucket in sorted(_written(stack, function) - {each for one, each in ASKED if one == name}):
                made = _ancestors(before, name)
                later = {
                    each
                    for each, other in stack.resources.items()
                    if each not in {*made, name} and other["Type"] not in QUICK
                }
                if later:
                    yield f"{bucket} is not empty: {name} begins {function}; then {_first(later)} may fail"


def _first(names: set[str]) -> str:
    return f"{min(names)} (and {len(names) - 1} others)" if len(names) > 1 else min(names)


def _named(resource: Mapping[str, Any]) -> set[str]:
    return {*resource["DependsOn"], *(each for each, _ in references(resource))}


def _ancestors(before: Mapping[str, set[str]], name: str) -> set[str]:
    found: set[str] = set()
    new = before[name]
    while new:
        found |= new
        new = {each for one in new for each in before[one]} - found
    return found


def _begun(stack: Stack, resource: Mapping[str, Any]) -> set[str]:
    """The functions that a resource begins once it is made, directly or by a state machine."""
    if resource["Type"] == CUSTOM:
        named = resource["Properties"]["ServiceToken"]
    elif resource["Type"] == SCHEDULE and resource["Properties"].get("State") == "ENABLED":
        named = resource["Properties"]["Target"]["Arn"]
    else:
        return set()
    begun = {each for each, _ in references(named)}
    for each in [*begun]:
        if stack.resources[each]["Type"] == MACHINE:
            begun |= _named(stack.resources[each])
    return begun & known().keys()


def _written(stack: Stack, function: str) -> set[str]:
    """The buckets into which a function is known to write."""
    variables = stack.resources[function]["Properties"]["Environment"]["Variables"]
    written = [call.partition(" ")[2] for call in known()[function] if call.startswith(WRITES)]
    names = {name for each in written for name in each.partition("/")[0].split("|")}
    return {
        bucket
        for name in names
        for bucket, _ in references(variables.get(name))
        if stack.resources[bucket]["Type"] == BUCKET
    }


@pytest.mark.parametrize("deployment", DEPLOYMENTS)
def test_a_first_deployment_that_fails_can_be_rolled_back(deployment: str) -> None:
    for path, stack in stacks_of(deployment).items():
        found = [*hindrances(stack)]
        if path == "/Regions":  # both regions share the register: infra/regions.yaml
            found = [each for each in found if not each.startswith("Register ")]
        assert found == [], path


def test_nights_write_into_buckets() -> None:
    """Else the test above would see nothing."""
    root = stacks_of("small")["/"]
    begun = _begun(root, root.resources["NightlySchedule"])
    assert begun >= {"CurateFunction", "ReconcileFunction"}
    assert {each for one in begun for each in _written(root, one)} == {"LakeBucket", "RootsBucket"}


# ---- planted faults


def store_at_deployment(resources: dict[str, Any]) -> None:
    """As when the Glue job's code was stored at the first deployment."""
    resources["CurateJobCode"] = {
        "Type": CUSTOM,
        "DependsOn": [],
        "Properties": {"ServiceToken": {"Fn::GetAtt": ["CurateFunction", "Arn"]}},
    }


def begin_nights_at_once(resources: dict[str, Any]) -> None:
    del resources["NightlySchedule"]["Metadata"]


def retain(resources: dict[str, Any]) -> None:
    resources["LakeBucket"]["DeletionPolicy"] = "Retain"


def protect(resources: dict[str, Any]) -> None:
    resources["RewardsLedger"]["Properties"]["DeletionProtectionEnabled"] = "true"


@pytest.mark.parametrize(
    ("plant", "said"),
    [
        (store_at_deployment, "LakeBucket is not empty: CurateJobCode begins CurateFunction; then "),
        (begin_nights_at_once, "RootsBucket is not empty: NightlySchedule begins ReconcileFunction; then "),
        (retain, "LakeBucket stays behind"),
        (protect, "RewardsLedger is protected against deletion"),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_what_hinders_a_rollback_is_noticed(plant: Callable[[dict[str, Any]], None], said: str) -> None:
    root = stacks_of("small")["/"]
    resources = deepcopy({**root.resources})
    plant(resources)
    found = [*hindrances(replace(root, resources=resources))]
    assert any(each.startswith(said) for each in found), found
