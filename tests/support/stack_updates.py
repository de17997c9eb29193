"""What a deployment does to a stack that is there: the stacks of two deployments, compared.

CloudFormation first creates and changes resources, then moves aliases to new versions of functions, for ten minutes
with a tenth of the calls, and deletes at the end what is no longer declared. So for ten minutes versions from before
run on what has been changed already.

Within one stack a replacement is followed to whatever names the replaced resource; from a nested stack to another one
it is not, but there the replacement itself is found.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

from infra.intrinsics import REGION, references
from infra.stacks import Stack
from tests.support.calls import known
from tests.support.permitted_calls import faults

Stacks = Mapping[str, Stack]  # by path, as infra.stacks.resolve_stacks gives them
Resources = Mapping[str, Mapping[str, Any]]

CUSTOM = "AWS::CloudFormation::CustomResource"
SECRET = "AWS::SecretsManager::Secret"
# What holds data, or names that the world knows.
STATEFUL = {
    *(
        "AWS::DynamoDB::Table",
        "AWS::DynamoDB::GlobalTable",
        "AWS::S3::Bucket",
        "AWS::Kinesis::Stream",
        "AWS::KinesisFirehose::DeliveryStream",
    ),
    *("AWS::SQS::Queue", "AWS::SNS::Topic", SECRET),
    *("AWS::Cognito::UserPool", "AWS::Cognito::UserPoolClient", "AWS::Cognito::UserPoolDomain"),
    *("AWS::Cognito::UserPoolGroup", "AWS::ApiGatewayV2::Api"),
    *("AWS::Glue::Database", "AWS::Glue::Table", "AWS::CloudFormation::Stack"),
    *("AWS::RDS::DBCluster", "AWS::RDS::DBInstance", "AWS::RDS::DBProxy"),
    *("AWS::RedshiftServerless::Namespace", "AWS::RedshiftServerless::Workgroup"),
    *("AWS::ElastiCache::ServerlessCache", "AWS::EC2::VPC"),
}
# Whose new one costs nobody anything: each deployment that changes code or settings makes them.
MADE_ANEW = {"AWS::Lambda::Version", "AWS::Lambda::LayerVersion"}


class Alone(NamedTuple):
    """Properties of which AWS takes one in an update; CloudFormation sends all that have changed in one request."""

    properties: frozenset[str]
    source: str


ALONE = {
    "AWS::RedshiftServerless::Workgroup": Alone(
        frozenset(
            {
                *("BaseCapacity", "MaxCapacity", "EnhancedVpcRouting", "ConfigParameters", "Port"),
                *(
                    "PricePerformanceTarget",
                    "PubliclyAccessible",
                    "SubnetIds",
                    "SecurityGroupIds",
                    "TrackName",
                ),
            }
        ),
        'UpdateWorkgroup: "You can\'t update multiple parameters in one request", and UpdateHandler of'
        " aws-cloudformation-resource-providers-redshift-serverless, which sends all that differ",
    ),
    "AWS::RedshiftServerless::Namespace": Alone(
        frozenset({"AdminUserPassword", "IamRoles", "KmsKeyId", "LogExports"}),
        'UpdateNamespace: "you can\'t update both kmsKeyId and logExports in a single request"',
    ),
}
# What AWS does one at a time, by type: a list's items that are new or gone.
ITEM_ALONE = {
    "AWS::DynamoDB::Table": (
        "GlobalSecondaryIndexes",
        "IndexName",
        "UpdateTable creates or deletes one global secondary index a request",
    )
}
# What versions from before use until the shift is over. Off, or without an item: they fail at once.
IN_USE_SWITCHES = {
    "AWS::RDS::DBCluster": ("EnableHttpEndpoint", "EnableIAMDatabaseAuthentication"),
}
IN_USE_ITEMS = {
    "AWS::EC2::SecurityGroup": ("SecurityGroupIngress",),
    "AWS::EC2::VPCEndpoint": ("RouteTableIds",),
}
# Custom resources whose Ref is another one whenever one of their properties changes.
DIGESTS = {"CheckedSettings"}


def differences(before: Stacks, after: Stacks) -> Iterator[str]:
    """Give a sentence for each thing that a deployment would do and nobody wants: PATH/ID: what."""
    for path in sorted({*before, *after}):
        old, new = resources_at(before, path), resources_at(after, path)
        anew = replaced(old, new)
        for sentence in (
            *refusals(old, new),
            *losses(old, new, anew),
            *taken_away(old, new),
            *_untold_properties(old, new),
        ):
            yield f"{path.rstrip('/')}/{sentence}"
    yield from (f"/{each}" for each in untold(before, after))
    calls = {name: some for name, some in known().items() if name in aliased(before["/"])}
    yield from (
        f"/{each}, and a version from before does so" for each in faults(after["/"], calls, before["/"])
    )


def resources_at(stacks: Stacks, path: str) -> Resources:
    return stacks[path].resources if path in stacks else {}


def refusals(old: Resources, new: Resources) -> Iterator[str]:
    """What one call of AWS's API cannot change together, or at all."""
    for name in sorted(old.keys() & new.keys()):
        kind, properties = new[name]["Type"], new[name]["Properties"]
        if old[name]["Type"] != kind:
            yield f"{name}: its type cannot be changed from {old[name]['Type']} to {kind}"
            continue
        were = old[name]["Properties"]
        changed = {each for each in {*were, *properties} if were.get(each) != properties.get(each)}
        if kind in ALONE and len(alone := sorted(changed & ALONE[kind].properties)) > 1:
            yield f"{name}: AWS refuses to change {' and '.join(alone)} in one update"
        if kind in ITEM_ALONE:
            prop, key, _ = ITEM_ALONE[kind]
            names = [{each[key] for each in some.get(prop, ())} for some in (were, properties)]
            if len(names[0] ^ names[1]) > 1:
                yield f"{name}: AWS refuses to add and take away {sorted(names[0] ^ names[1])} in one update"


def replaced(old: Resources, new: Resources) -> dict[str, str]:
    """Logical id -> why CloudFormation makes it anew: a property that is set at creation only has changed."""
    found: dict[str, str] = {}
    while True:
        more = {
            name: place
            for name in (old.keys() & new.keys()) - found.keys()
            if old[name]["Type"] == new[name]["Type"]
            for place in set_at_creation(new[name]["Type"])
            if _at(old[name], place) != (value := _at(new[name], place))
            or found.keys() & {each for each, _ in references(value)}
        }
        if not more:
            return found
        found |= more


@cache
def set_at_creation(kind: str) -> Sequence[str]:
    """Return the properties that a resource keeps for ever, such as BucketName or A/B, from its provider's schema."""
    if kind == CUSTOM:
        return ("ServiceToken",)
    schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema(REGION, kind).schema
    places = [*schema.get("createOnlyProperties", ()), *schema.get("conditionalCreateOnlyProperties", ())]
    return [each.removeprefix("/properties/") for each in places]


def _at(resource: Mapping[str, Any], place: str) -> Any:
    value: Any = resource["Properties"]
    for key in place.split("/"):
        value = value.get(key) if isinstance(value, dict) else value
    return value


def losses(old: Resources, new: Resources, anew: Mapping[str, str]) -> Iterator[str]:
    """What is deleted with what it holds, is left behind for nobody, or is made anew."""
    for name, resource in sorted(old.items()):
        if name not in new and resource["Type"] in STATEFUL:
            fate = resource.get("DeletionPolicy", "Delete")
            fates = {"Delete": "is deleted with what it holds", "Snapshot": "is deleted but for a snapshot"}
            yield f"{name}: {resource['Type']} {fates.get(fate, 'is left behind')}"
        if name not in new and resource["Type"] == CUSTOM:
            yield f"{name}: its function is asked to delete it, and may no longer answer"
        if name in anew and resource["Type"] not in MADE_ANEW:
            yield f"{name}: {resource['Type']} is made anew, because {anew[name]} changes"


def taken_away(old: Resources, new: Resources) -> Iterator[str]:
    """What is turned off, or closed, while versions from before use it."""
    for name in sorted(old.keys() & new.keys()):
        kind, were, are = new[name]["Type"], old[name]["Properties"], new[name]["Properties"]
        for each in IN_USE_SWITCHES.get(kind, ()):
            if were.get(each) and not are.get(each):
                yield f"{name}: {each} is turned off while versions from before use it"
        for each in IN_USE_ITEMS.get(kind, ()):
            gone = [item for item in were.get(each, ()) if item not in are.get(each, ())]
            if gone:
                yield f"{name}: {each} loses {_text(gone)} while versions from before use it"


def untold(before: Stacks, after: Stacks) -> Iterator[str]:
    """Custom resources that do not run although their function would give out something else by now.

    That is: another value of a variable, or of a secret that a variable names.
    """
    old, new = before["/"], after["/"]
    renewed = {
        name
        for name in DIGESTS
        if name in old.resources and _changed(old.resources[name], new.resources.get(name))
    }
    secrets = [each for path in sorted(after) for each in _other_values(before, after, path)]
    for name, resource in sorted(new.resources.items()):
        if resource["Type"] != CUSTOM or name not in old.resources:
            continue
        runs = _changed(old.resources[name], resource) or renewed & {each for each, _ in references(resource)}
        were, are = (_variables(stack, resource) for stack in (old, new))
        why = [each for each in sorted({*were, *are}) if were.get(each) != are.get(each)]
        why += [
            f"the value of {secret}" for secret, arn in secrets if any(arn in each for each in are.values())
        ]
        if why and not runs:
            yield f"{name}: it does not run, although {', '.join(why)} changes"


def _changed(old: Mapping[str, Any], new: Mapping[str, Any] | None) -> bool:
    return new is None or old["Properties"] != new["Properties"]


def _variables(stack: Stack, custom: Mapping[str, Any]) -> dict[str, str]:
    function = next(each for each, _ in references(custom["Properties"]["ServiceToken"]))
    found = stack.resources[function]["Properties"]["Environment"]["Variables"]
    return {name: str(value) for name, value in stack.flat(found).items()}


def _other_values(before: Stacks, after: Stacks, path: str) -> Iterator[tuple[str, str]]:
    """Give path and stand-in ARN of each secret that has another value after a deployment."""
    old, new = resources_at(before, path), resources_at(after, path)
    anew = replaced(old, new)
    for name, resource in new.items():
        is_new = name not in old or name in anew
        if resource["Type"] == SECRET and (is_new or _generation(old[name]) != _generation(resource)):
            yield f"{path.rstrip('/')}/{name}", after[path].get(name)


def _untold_properties(old: Resources, new: Resources) -> Iterator[str]:
    """Resources that keep a secret's former value: their property, which reads it, stays as it was."""
    for name, resource in sorted(new.items()):
        if resource["Type"] == SECRET and name in old and _generation(old[name]) != _generation(resource):
            for user, using in sorted(new.items()):
                text = json.dumps(using["Properties"])
                reads = "{{resolve:secretsmanager:" in text and name in {
                    each for each, _ in references(using)
                }
                if reads and not _changed(old.get(user, using), using):
                    yield f"{user}: it keeps the former value of {name}, which is made anew"


def _generation(secret: Mapping[str, Any]) -> Any:
    """CloudFormation makes another value when this changes."""
    return [secret["Properties"].get(each) for each in ("GenerateSecretString", "SecretString")]


def aliased(root: Stack) -> set[str]:
    """The functions that are called by an alias, so that versions from before get calls after a change."""
    return {
        function
        for resource in root.resources.values()
        if resource["Type"] == "AWS::Lambda::Alias"
        for function, _ in references(resource["Properties"]["FunctionName"])
    }


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
