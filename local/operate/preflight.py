"""`streakline preflight`: what of a deployment would fail in an AWS account, before anything is made.

It only reads. What a deployment needs follows from the template (local/operate/needs.py). Of a stack that is
there already, what it has is not needed again.
"""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click
from botocore.exceptions import ClientError, EndpointConnectionError

from infra.intrinsics import TWO_ZONES, Refusal
from ingest.release import StackNameRefused, check_stack_name
from local.aws_errors import AWS_ERRORS, explain_error
from local.command import command, option, parameters_option, show
from local.operate.verdict import Problem
from local.stack import UNKNOWN_STACK, fresh_client

if TYPE_CHECKING:
    from local.operate.needs import Needs

UNRESERVED_MIN = 100  # executions that AWS leaves to the functions without a reservation
WORKGROUPS_MAX = 25  # of Redshift Serverless in a region, by default; Service Quotas tells nothing of it
VPCS, GATEWAYS = ("vpc", "L-F678F1CE"), ("vpc", "L-1B52E74A")  # service and code of a quota
ZONE_PARAMETER = "name zones that have it by AvailabilityZones"
WITH_QUOTA = "ask for more in the console of Service Quotas"
# By the beginning of a type: the role with which AWS's service acts, once for an account.
SERVICE_ROLES = {
    "AWS::DynamoDB::GlobalTable": "AWSServiceRoleForDynamoDBReplication",
    "AWS::ElastiCache::": "AWSServiceRoleForElastiCache",
    "AWS::RDS::": "AWSServiceRoleForRDS",
    "AWS::RedshiftServerless::": "AWSServiceRoleForRedshift",
}
# By type: the service, the call and its argument that find one by its name; the code that says there is none.
FINDS = {
    "AWS::Athena::WorkGroup": ("athena", "get_work_group", "WorkGroup", "InvalidRequestException"),
    "AWS::DynamoDB::GlobalTable": ("dynamodb", "describe_table", "TableName", "ResourceNotFoundException"),
    "AWS::ElastiCache::ServerlessCache": (
        *("elasticache", "describe_serverless_caches", "ServerlessCacheName"),
        "ServerlessCacheNotFoundFault",
    ),
    "AWS::Glue::Database": ("glue", "get_database", "Name", "EntityNotFoundException"),
    "AWS::RDS::DBProxy": ("rds", "describe_db_proxies", "DBProxyName", "DBProxyNotFoundFault"),
    "AWS::SQS::Queue": ("sqs", "get_queue_url", "QueueName", "AWS.SimpleQueueService.NonExistentQueue"),
}
STREAM = "AWS::Kinesis::Stream"
REGISTER = "AWS::DynamoDB::GlobalTable"
REGISTER_MEND = "deploy without WitnessRegion, and it is used again; or delete it, as docs/uninstall.md says"
DELETE = "delete it: sam delete --stack-name {}"
# By state of a stack, what to do before a deployment can succeed.
STATES = {
    "CREATE_FAILED": DELETE,
    "DELETE_FAILED": f"{DELETE}; its events name what hinders that",
    "ROLLBACK_COMPLETE": f"it is what a failed first deployment leaves: {DELETE}",
    "ROLLBACK_FAILED": f"{DELETE}; its events name what hinders that",
    "UPDATE_ROLLBACK_FAILED": "mend what its events name, then"
    " aws cloudformation continue-update-rollback --stack-name {}",
}
Client = Callable[[str], Any]  # a service's name -> a client of the region


@dataclass(slots=True)
class Findings:
    """What was found of an account."""

    where: str
    problems: list[Problem] = field(default_factory=list)  # what would fail
    unseen: dict[str, str] = field(default_factory=dict)  # what could not be read -> why
    notes: list[str] = field(default_factory=list)  # what fails no deployment, and is to be known


@dataclass(frozen=True, slots=True)
class Plan:
    """A deployment that is to be made."""

    name: str
    region: str
    parameters: Mapping[str, str]
    needs: "Needs"
    has: "Needs"  # what the stack has already, if it is there

    def more(self, kind: str) -> int:
        """Return how many resources of a type the deployment adds."""
        return max(0, self.needs.counts.get(kind, 0) - self.has.counts.get(kind, 0))


@command("preflight", "preflight --size large --region eu-west-1 --parameter OwnWarehouse=none")
@option("--size", type=click.Choice(["small", "standard", "large"]), default="small", help="the deployment's")
@option("--stack-name", "name", metavar="NAME", default="streakline", help="the stack's name")
@option("--region", help="where the stack is to be", show_default="as AWS_REGION and the profile say")
@parameters_option("another parameter of the template; may be repeated")
def preflight(size: str, name: str, region: str | None, parameters: dict[str, str], as_json: bool) -> None:
    """Say what of a deployment would fail in your AWS account: quotas, zones, names. Only reads."""
    region_name = fresh_client("", region or os.environ.get("AWS_REGION", ""), "sts").meta.region_name
    findings = look_at_account(
        name,
        region_name,
        {**parameters, "Size": size},
        lambda service: fresh_client("", region_name, service),
    )
    if as_json:
        show(as_data(findings), as_json=True)
    else:
        print("\n".join(lines(findings)))
    if findings.problems or findings.unseen:
        raise SystemExit(1)


def as_data(findings: Findings) -> dict[str, Any]:
    """Return the findings for programs."""
    problems = [{"what": each.what, "mend": each.mend} for each in findings.problems]
    return {
        "where": findings.where,
        "would_fail": problems,
        "unseen": findings.unseen,
        "notes": findings.notes,
    }


def lines(findings: Findings) -> Iterator[str]:
    """Yield the findings for people."""
    failing = len(findings.problems)
    verdict = (
        f"{failing} thing{'s' * (failing != 1)} would fail" if failing else "nothing is seen that would fail"
    )
    yield f"{findings.where}: {verdict}"
    yield from (f"- {each.what}: {each.mend}" for each in findings.problems)
    yield from (f"- {what} could not be checked: {why}" for what, why in findings.unseen.items())
    yield from (f"Note: {each}" for each in findings.notes)


def look_at_account(name: str, region: str, parameters: Mapping[str, str], client: Client) -> Findings:
    """Look at an account. parameters: the template's, by name. client: makes the region's clients.

    What cannot be read is in `unseen`. Raises what botocore raises without credentials.
    """
    from local.operate.needs import Needs, needs_of

    findings = Findings(f"{name} (Size={parameters['Size']}) in {region}")
    status = "ENABLED"
    try:
        status = client("account").get_region_opt_status(RegionName=region)["RegionOptStatus"]
    except ClientError as error:
        findings.unseen["the region"] = explain_error(error)
    if not status.startswith("ENABLED"):  # nothing else can be asked there
        findings.problems.append(
            Problem(f"the region {region} is {status}", "enable it for the account first")
        )
        return findings
    known = {"AWS::Region": region, "AWS::StackName": name}
    state, deployed = _deployed(client, name)
    has = Needs()
    if state == "CREATE_COMPLETE" or state.startswith("UPDATE_"):
        with contextlib.suppress(Refusal):  # it is of an older template, which had other parameters
            has = needs_of({**deployed, **known})
    zones = _zones(client)
    try:
        needs = needs_of({**_with_zones(parameters, region, zones), **known})
    except Refusal as refusal:
        findings.problems.append(Problem(str(refusal), "change that parameter"))
        return findings
    plan = Plan(name, region, parameters, needs, has)
    checks: tuple[tuple[str, Callable[[], Iterable[Problem]]], ...] = (
        ("the stack", lambda: _stack_problems(name, state)),
        ("Lambda's concurrency", lambda: _concurrency(client, plan, findings.notes)),
        ("the network's quotas", lambda: _networks(client, plan)),
        ("IAM's roles", lambda: _roles(client, plan, findings.notes)),
        ("the zones", lambda: _zone_problems(client, plan, zones)),
        ("Aurora", lambda: _database(client, plan)),
        ("Redshift Serverless", lambda: _warehouse(client, plan)),
        ("what a smaller size loses", lambda: _losses(plan, findings.notes)),
        ("names", lambda: _names(client, plan)),
        ("secrets", lambda: _secrets(client, plan)),
    )
    for what, check in checks:
        try:
            findings.problems += check()
        except AWS_ERRORS as error:
            findings.unseen[what] = explain_error(error)
    if plan.more("AWS::RDS::DBProxy") or plan.more("AWS::RedshiftServerless::Workgroup"):
        findings.notes.append(
            "AWS does not tell before in which zones it has RDS Proxy and Redshift Serverless:"
            f" if one of them refuses a zone, {ZONE_PARAMETER}"
        )
    return findings


def _deployed(client: Client, name: str) -> tuple[str, dict[str, str]]:
    """Return the state and the parameters of the stack; "" and {} if it is not there."""
    try:
        stack = client("cloudformation").describe_stacks(StackName=name)["Stacks"][0]
    except ClientError as error:
        if error.response["Error"]["Code"] != UNKNOWN_STACK:
            raise
        return "", {}
    given = {each["ParameterKey"]: each.get("ParameterValue", "") for each in stack.get("Parameters", ())}
    return stack["StackStatus"], given


def _zones(client: Client) -> list[str]:
    """Return the region's zones that the account may use, without local ones."""
    answer = client("ec2").describe_availability_zones(Filters=[{"Name": "state", "Values": ["available"]}])
    return sorted(
        each["ZoneName"]
        for each in answer["AvailabilityZones"]
        if each.get("ZoneType", "availability-zone") == "availability-zone"
    )


def _with_zones(parameters: Mapping[str, str], region: str, zones: list[str]) -> Mapping[str, str]:
    """Return the parameters with the zones that the template would take; raises Refusal for too few."""
    if parameters.get("AvailabilityZones"):
        return parameters
    wanted = [*zones[:2], *(zones[:1] if region == TWO_ZONES else zones[2:3])]
    if len(wanted) < 3:
        raise Refusal(f"the account has {len(zones)} zones in {region}, and the networks need three")
    return {**parameters, "AvailabilityZones": ",".join(wanted)}


def _stack_problems(name: str, state: str) -> Iterator[Problem]:
    if not state:
        try:
            check_stack_name(name)
        except StackNameRefused as refusal:
            yield Problem(str(refusal), "choose another name")
    elif state in STATES:
        yield Problem(f"the stack {name} is {state}", STATES[state].format(name))
    elif state.endswith("_IN_PROGRESS") and state != "REVIEW_IN_PROGRESS":
        yield Problem(f"the stack {name} is {state}", "wait until that has ended")


def _concurrency(client: Client, plan: Plan, notes: list[str]) -> Iterator[Problem]:
    limit = client("lambda").get_account_settings()["AccountLimit"]
    most, more = limit["ConcurrentExecutions"], plan.needs.reserved - plan.has.reserved
    left = limit["UnreservedConcurrentExecutions"] - more
    mend = f"{WITH_QUOTA} (Lambda, concurrent executions), or take a smaller size"
    if more > 0 and left < UNRESERVED_MIN:
        yield Problem(
            f"the functions of the API reserve {plan.needs.reserved} of Lambda's concurrent executions, and "
            f"{UNRESERVED_MIN} must stay unreserved, but the account has {most}",
            mend,
        )
    elif left < max(UNRESERVED_MIN, plan.needs.reserved):
        notes.append(
            f"of the account's {most:,} concurrent executions {left:,} stay for functions that reserve none: "
            f"stream consumers, nights, leads. Under a load they are throttled: {WITH_QUOTA}"
        )


def _networks(client: Client, plan: Plan) -> Iterator[Problem]:
    """Yield the quotas of VPCs and of gateway endpoints that would be exceeded."""
    from local.operate.needs import GATEWAY

    ec2 = client("ec2")
    if more := plan.more("AWS::EC2::VPC"):
        there = sum(len(page["Vpcs"]) for page in ec2.get_paginator("describe_vpcs").paginate())
        yield from _over(client, VPCS, "VPCs in the region", there, more)
    if more := plan.more(GATEWAY):
        wanted = [{"Name": "vpc-endpoint-type", "Values": ["Gateway"]}]
        pages = ec2.get_paginator("describe_vpc_endpoints").paginate(Filters=wanted)
        there = sum(len(page["VpcEndpoints"]) for page in pages)
        yield from _over(client, GATEWAYS, "gateway endpoints in the region", there, more)


def _over(client: Client, quota: tuple[str, str], what: str, there: int, more: int) -> Iterator[Problem]:
    service, code = quota
    answer = client("service-quotas").get_service_quota(ServiceCode=service, QuotaCode=code)
    yield from _above(int(answer["Quota"]["Value"]), what, there, more)


def _above(most: int, what: str, there: int, more: int) -> Iterator[Problem]:
    if there + more > most:
        yield Problem(
            f"the account may have {most:,} {what} and has {there:,}, and the deployment adds {more}",
            f"{WITH_QUOTA}, or delete what nobody uses",
        )


def _roles(client: Client, plan: Plan, notes: list[str]) -> Iterator[Problem]:
    """Yield that there would be too many roles; note the roles of AWS's services that are not there yet."""
    iam = client("iam")
    summary = iam.get_account_summary()["SummaryMap"]
    yield from _above(summary["RolesQuota"], "roles of IAM", summary["Roles"], plan.more("AWS::IAM::Role"))
    for beginning, role in SERVICE_ROLES.items():
        if any(plan.more(kind) for kind in plan.needs.counts if kind.startswith(beginning)):
            try:
                iam.get_role(RoleName=role)
            except iam.exceptions.NoSuchEntityException:
                notes.append(
                    f"the account has no role {role} yet: AWS makes it during the deployment, if the "
                    "credentials that deploy may call iam:CreateServiceLinkedRole"
                )


def _zone_problems(client: Client, plan: Plan, zones: list[str]) -> Iterator[Problem]:
    """Yield zones that are not there, and endpoints of services that they do not have."""
    used = sorted({zone for each in plan.needs.zones.values() for zone in each})
    if unknown := [zone for zone in used if zone not in zones]:
        mend = f"the account's zones are {', '.join(zones)}: name three of them"
        yield Problem(f"AvailabilityZones has {', '.join(unknown)}, which {plan.region} has not", mend)
        return
    services = sorted(name for name in plan.needs.zones if name.startswith("com.amazonaws."))
    if not services:
        return
    wanted = [{"Name": "service-name", "Values": services}]
    answer = client("ec2").describe_vpc_endpoint_services(Filters=wanted)
    offered = {each["ServiceName"]: {*each["AvailabilityZones"]} for each in answer["ServiceDetails"]}
    for service in services:
        if service not in offered:
            yield Problem(
                f"{plan.region} has no endpoint of {service}", "deploy in another region, or Size=small"
            )
        elif lacking := plan.needs.zones[service] - offered[service]:
            yield Problem(f"{', '.join(sorted(lacking))} has no endpoint of {service}", ZONE_PARAMETER)


def _database(client: Client, plan: Plan) -> Iterator[Problem]:
    from local.operate.needs import DATABASE

    if not plan.needs.database:
        return
    pages = (
        client("rds").get_paginator("describe_orderable_db_instance_options").paginate(**plan.needs.database)
    )
    options = [each for page in pages for each in page["OrderableDBInstanceOptions"]]
    what = "{Engine} {EngineVersion} as {DBInstanceClass}".format(**plan.needs.database)
    if not options:
        mend = "deploy in another region, or bring a database of yours (IdentityUrl)"
        yield Problem(f"{plan.region} has no {what}", mend)
        return
    offered = {zone["Name"] for each in options for zone in each["AvailabilityZones"]}
    if lacking := plan.needs.zones.get(DATABASE, frozenset()) - offered:
        yield Problem(f"{', '.join(sorted(lacking))} has no {what}", ZONE_PARAMETER)


def _warehouse(client: Client, plan: Plan) -> Iterator[Problem]:
    from local.operate.needs import WORKGROUP

    if more := plan.more(WORKGROUP):
        try:
            pages = client("redshift-serverless").get_paginator("list_workgroups").paginate()
            there = sum(len(page["workgroups"]) for page in pages)
        except EndpointConnectionError:
            mend = "deploy in another region, or without a warehouse (OwnWarehouse=none)"
            yield Problem(f"{plan.region} has no Redshift Serverless", mend)
            return
        yield from _above(WORKGROUPS_MAX, "workgroups of Redshift Serverless in the region", there, more)


def _losses(plan: Plan, notes: list[str]) -> Iterator[Problem]:
    """Yield what is no longer found after the change; note what is deleted."""
    for row, shards in plan.needs.shards.items():
        if shards < (before := plan.has.shards.get(row, 0)):
            yield Problem(
                f"{row} falls from {before} to {shards}, and what is in partitions above is no longer found",
                f"keep {before} in infra/app/sizes.yaml, and run make template",
            )
    if plan.needs.counts.get(STREAM, 0) < plan.has.counts.get(STREAM, 0):
        notes.append(
            "the Kinesis stream goes, with what its consumer has not read yet: stop the producers first, and"
            " wait until streakline status shows that EventsStream is not behind"
        )


def _names(client: Client, plan: Plan) -> Iterator[Problem]:
    """Yield what is there already under a name that the deployment is to give."""
    for kind, name in sorted(plan.needs.names - plan.has.names):
        service, call, argument, none = FINDS[kind]
        try:
            getattr(client(service), call)(**{argument: name})
        except ClientError as error:
            if error.response["Error"]["Code"] != none:
                raise
            continue
        what = f"there is already a {kind} of the name {name}"
        mend = f"delete it, or give the stack another name than {plan.name}"
        yield Problem(what, REGISTER_MEND if kind == REGISTER else mend)


def _secrets(client: Client, plan: Plan) -> Iterator[Problem]:
    """Yield the secrets that parameters name and that are not there."""
    secrets = client("secretsmanager")
    for parameter in ("IdentityUrl", "RedisUrl"):
        arn = plan.parameters.get(parameter, "")
        if arn.startswith("arn:"):
            try:
                secrets.describe_secret(SecretId=arn)
            except secrets.exceptions.ResourceNotFoundException:
                yield Problem(f"{parameter} names the secret {arn}, which is not there", "make it first")
