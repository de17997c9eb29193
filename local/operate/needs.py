"""What a deployment needs of an AWS account, as the template's resources say it (infra/stacks.py)."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from infra.intrinsics import references
from infra.stacks import TEMPLATE, Stack, read_template, resolve_stacks

SUBNET, ENDPOINT, FUNCTION = "AWS::EC2::Subnet", "AWS::EC2::VPCEndpoint", "AWS::Lambda::Function"
CLUSTER, DATABASE = "AWS::RDS::DBCluster", "AWS::RDS::DBInstance"
# Types whose names follow from the name of the stack -> the property with the name
NAMED = {
    "AWS::Athena::WorkGroup": "Name",
    "AWS::DynamoDB::GlobalTable": "TableName",
    "AWS::ElastiCache::ServerlessCache": "ServerlessCacheName",
    "AWS::Glue::Database": "DatabaseInput.Name",
    "AWS::RDS::DBProxy": "DBProxyName",
    "AWS::SQS::Queue": "QueueName",
}


@dataclass(frozen=True, slots=True)
class Needs:
    """What a deployment makes and reserves in its region."""

    counts: Mapping[str, int] = field(default_factory=dict)  # resources, by type; gateway endpoints: GATEWAY
    reserved: int = 0  # of Lambda's concurrent executions
    names: frozenset[tuple[str, str]] = frozenset()  # type and name of what must not be there before
    # Zones by what is put into them: the name of an endpoint's service, or a type (DATABASE, a workgroup).
    zones: Mapping[str, frozenset[str]] = field(default_factory=dict)
    database: Mapping[str, str] = field(default_factory=dict)  # Engine, EngineVersion, DBInstanceClass
    shards: Mapping[str, int] = field(default_factory=dict)  # by row of infra/app/sizes.yaml


GATEWAY = "gateway endpoint"
WORKGROUP = "AWS::RedshiftServerless::Workgroup"


def needs_of(parameters: Mapping[str, str]) -> Needs:
    """Return the needs of a deployment. parameters: also AWS::Region and AWS::StackName.

    Raises infra.intrinsics.Refusal for what CloudFormation would refuse.
    """
    stacks = resolve_stacks(parameters).values()
    resources = [each for stack in stacks for each in stack.resources.values()]
    counts = Counter(each["Type"] for each in resources)
    gateways = [each for each in resources if each["Properties"].get("VpcEndpointType") == "Gateway"]
    reserved = [each["Properties"].get("ReservedConcurrentExecutions", 0) for each in resources]
    return Needs(
        counts=counts | Counter({GATEWAY: len(gateways)}),
        reserved=sum(map(int, reserved)),
        names=frozenset(each for stack in stacks for each in _names(stack)),
        zones=_zones(stacks),
        database=_database(resources),
        shards=_shards(parameters.get("Size", "small")),
    )


def _shards(size: str) -> dict[str, int]:
    rows = read_template(TEMPLATE)["Mappings"]["Sizes"]
    return {row: int(values[size]) for row, values in rows.items() if row.endswith("Shards")}


def _names(stack: Stack) -> Iterator[tuple[str, str]]:
    for resource in stack.resources.values():
        value: Any = resource["Properties"]
        for key in NAMED.get(resource["Type"], "").split("."):
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, str):
            yield resource["Type"], value


def _zones(stacks: Any) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for stack in stacks:
        zone_of = {
            name: each["Properties"]["AvailabilityZone"]
            for name, each in stack.resources.items()
            if each["Type"] == SUBNET
        }
        for each in stack.resources.values():
            if each["Type"] in (ENDPOINT, WORKGROUP):
                service = stack.flat(each["Properties"].get("ServiceName", each["Type"]))
                subnets = references(each["Properties"].get("SubnetIds", []))
                found.setdefault(service, set()).update(zone_of[name] for name, _ in subnets)
        if stack.path == "/Network":  # the identity cluster gets its subnets from here
            found.setdefault(DATABASE, set()).update(zone_of.values())
    return {name: frozenset(zones) for name, zones in found.items()}


def _database(resources: Any) -> dict[str, str]:
    of_type = {each["Type"]: each["Properties"] for each in resources}
    if DATABASE not in of_type:
        return {}
    cluster = of_type[CLUSTER]
    names = {"Engine": cluster["Engine"], "EngineVersion": cluster["EngineVersion"]}
    return {**names, "DBInstanceClass": of_type[DATABASE]["DBInstanceClass"]}
