"""Whether functions reach what they are given, from the network that they are in.

A network that the template makes has no way out but its endpoints, unless it has a NAT gateway. Nothing is
known of subnets that the user names, so nothing is said of them.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from infra.lint.checks.found import Stacks, listed, made, on_aws
from infra.lint.faults import Fault
from infra.lint.resolved import NESTED, Stack, references

# The endpoint's name, where it is not the service's prefix in policies.
ENDPOINTS = {"firehose": "kinesis-firehose", "kinesis": "kinesis-streams"}
# Prefixes without an endpoint: Lambda does this for a function, or it is the database's own port.
WITHOUT = {"logs", "xray", "ec2", "rds-db"}
# What redshift-data does for whoever asks it, by the asker's role.
BY_REDSHIFT_DATA = {"redshift-serverless:GetCredentials"}
# What an event source mapping does, not the function.
BY_MAPPINGS = {
    *(
        "kinesis:DescribeStream",
        "kinesis:DescribeStreamSummary",
        "kinesis:GetRecords",
        "kinesis:GetShardIterator",
    ),
    *("kinesis:ListShards", "kinesis:ListStreams", "kinesis:SubscribeToShard"),
    *("sqs:ChangeMessageVisibility", "sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"),
}
DATABASE = re.compile(r"(rediss?|valkeys?|postgres(ql)?|mysql)://")
WAREHOUSE = "redshift://"
PRIVATE = ("AWS::ElastiCache::", "AWS::RDS::")


def faults(stacks: Stacks) -> Iterator[Fault]:
    """Find functions that cannot reach a service, a database, a cache or a warehouse that they are given."""
    for stack, name, properties in made(stacks, "AWS::Lambda::Function") if on_aws(stacks) else ():
        actions = _actions(stack, properties)
        for reason in (*_warehouse(stack, properties, actions), *_reach(stack, properties, actions)):
            yield Fault(stack.path, name, reason)


def _actions(stack: Stack, properties: Mapping[str, Any]) -> set[str]:
    role = next((name for name, _ in references(properties.get("Role"))), "")
    policies = stack.resources.get(role, {"Properties": {}})["Properties"].get("Policies", [])
    statements = [one for each in policies for one in listed(each["PolicyDocument"]["Statement"])]
    return {action for each in statements for action in listed(each.get("Action", []))}


def _variables(properties: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = properties.get("Environment", {}).get("Variables", {})
    return found


def _warehouse(stack: Stack, properties: Mapping[str, Any], actions: set[str]) -> Iterator[str]:
    for key, value in _variables(properties).items():
        if str(stack.flat(value)).startswith(WAREHOUSE) and "redshift-data:ExecuteStatement" not in actions:
            yield f"its {key} is a warehouse, but its role may not call redshift-data:ExecuteStatement"


def _reach(stack: Stack, properties: Mapping[str, Any], actions: set[str]) -> Iterator[str]:
    subnets = properties.get("VpcConfig", {}).get("SubnetIds", [])
    network = _network(stack, subnets)
    inside = [key for key, value in _variables(properties).items() if _is_private(stack, value)]
    if not subnets:
        yield from (f"its {key} is in a network, but it is in none" for key in inside)
    if network is None or any(each["Type"] == "AWS::EC2::NatGateway" for each in network.resources.values()):
        return
    for key, value in _variables(properties).items():
        if key not in inside and DATABASE.match(str(stack.flat(value))):
            yield f"its {key} is outside, but its network has no way out: the function needs subnets of yours"
    there = {_endpoint(network, each["Properties"]) for each in network.resources.values()}
    for service in sorted(
        {each.partition(":")[0] for each in actions - BY_MAPPINGS - BY_REDSHIFT_DATA} - WITHOUT
    ):
        endpoint = ENDPOINTS.get(service, service)
        if endpoint not in there:
            yield f"it may call {service}, but its network has no endpoint of {endpoint}"


def _network(stack: Stack, subnets: Any) -> Stack | None:
    """Return the stack that makes a function's subnets; None if no template of ours does."""
    for name, _ in references(subnets):
        if stack.types.get(name) == NESTED:
            return stack.nested.get(name)
        if stack.types.get(name) == "AWS::EC2::Subnet":
            return stack
    return None


def _is_private(stack: Stack, value: Any) -> bool:
    """Tell whether a value is the URL of a database or cache that a nested stack makes."""
    made_by = [stack.nested[name] for name, _ in references(value) if name in stack.nested]
    kinds = [each["Type"] for nested in made_by for each in nested.resources.values()]
    return bool(DATABASE.match(str(stack.flat(value)))) and any(kind.startswith(PRIVATE) for kind in kinds)


def _endpoint(network: Stack, properties: Mapping[str, Any]) -> str:
    return str(network.flat(properties.get("ServiceName", ""))).rpartition(".")[2]
