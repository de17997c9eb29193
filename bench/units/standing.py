"""What stands in each size of the template, as its resolved resources say.

That is a month's idle amounts, and the settings that decide how often something is done.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import combinations
from typing import Any, NamedTuple

from infra.stacks import Stack, resolve_stacks
from infra.template_text import parse
from local.paths import ROOT
from local.plan.cost import ACU_AWAKE, DAYS_A_MONTH, GB, SECONDS_A_DAY, SHARED, idle_name, sums
from local.plan.plan_command import SIZES
from local.plan.price_list import fact
from rules.parts import ALL_PARTS, Part, parameters_of
from rules.turns import NIGHTS

Properties = Mapping[str, Any]
UNIT_SECONDS = {"minute": 60, "hour": 3600, "day": SECONDS_A_DAY}
SETS_OF_PARTS = [frozenset(some) for count in range(len(Part), -1, -1) for some in combinations(Part, count)]
PAUSE_SECONDS = 300  # after which an idle cluster sleeps, if its template does not say
# A month's amounts of one resource of a type, by the names of prices.
AMOUNTS_OF_A_RESOURCE: Mapping[str, Mapping[str, float]] = {
    "AWS::CloudWatch::CompositeAlarm": {"alarms.composite": 1},
    "AWS::CloudWatch::Dashboard": {"dashboards.board": 1},
    "AWS::SecretsManager::Secret": {"secrets.secret": 1},
    "AWS::Kinesis::Stream": {"kinesis.stream_hours": fact("month.hours")},
    "AWS::RDS::DBProxy": {"proxy.acu_hours": fact("proxy.acu_min") * fact("month.hours")},
    "AWS::ElastiCache::ServerlessCache": {"valkey.gb_hours": fact("valkey.gb_min") * fact("month.hours")},
    "AWS::StepFunctions::StateMachine": {"states.transitions": fact("night.states") * DAYS_A_MONTH},
}


class Variant(NamedTuple):
    """A size of the template, with some of the parts that may be left out."""

    size: str
    deployed: frozenset[Part] = ALL_PARTS


def sizes() -> dict[str, dict[str, dict[str, float]]]:
    """Return `settings` of each size, and what is idle: with all parts, and without each set of parts."""
    return {
        size: {
            **{idle_name(deployed): _idle(Variant(size, deployed)) for deployed in SETS_OF_PARTS},
            "settings": _settings(Variant(size)),
        }
        for size in SIZES
    }


@cache
def resources(size: Variant) -> Mapping[str, Mapping[str, Any]]:
    """Return the resources of a size and of the stacks that it nests, by their paths: Type and Properties."""
    stacks = _stacks(size).items()
    return {f"{path}{name}": resource for path, stack in stacks for name, resource in stack.resources.items()}


@cache
def _stacks(size: Variant) -> Mapping[str, Stack]:
    return resolve_stacks({"Size": size.size, **parameters_of(size.deployed)})


def called(named: Mapping[str, Any]) -> str:
    """Return the logical id that a template names by Ref or GetAtt; of a function's alias, the function's."""
    reference = named.get("Ref") or named["Fn::GetAtt"]
    name = reference.split(".")[0] if isinstance(reference, str) else str(reference[0])
    return name.removesuffix("Aliaslive")


def fires_a_day(expression: str) -> float:
    """Return how often `rate(15 minutes)` or `cron(30 2 * * ? *)` fires in a day.

    Raises ValueError for an expression of another form.
    """
    if rate := re.fullmatch(r"rate\((\d+) (minute|hour|day)s?\)", expression):
        return SECONDS_A_DAY / (int(rate[1]) * UNIT_SECONDS[rate[2]])
    cron = re.fullmatch(r"cron\((\d+(?:,\d+)*) (\d+(?:,\d+)*|\*) \* \* \? \*\)", expression)
    if not cron:
        raise ValueError(f"the planner does not know the schedule {expression}")
    minutes, hours = cron.groups()
    return float(len(minutes.split(",")) * (24 if hours == "*" else len(hours.split(","))))


def _of(size: Variant, kind: str) -> list[Properties]:
    return [each.get("Properties", {}) for each in resources(size).values() if each["Type"] == kind]


def _schedules(size: Variant) -> Iterator[Properties]:
    return (each for each in _of(size, "AWS::Scheduler::Schedule") if each.get("State") != "DISABLED")


def _fires(schedules: Iterable[Properties]) -> float:
    return sum(fires_a_day(schedule["ScheduleExpression"]) for schedule in schedules)


def _rpu_hours(size: Variant) -> float:
    (workgroup,) = _of(size, "AWS::RedshiftServerless::Workgroup")
    seconds = fact("redshift.statements") * fact("redshift.statement_seconds")
    return float(workgroup["BaseCapacity"]) * seconds / 3600


def _settings(size: Variant) -> dict[str, float]:
    """Return what decides how often something is done, and the API's throttle."""
    rows = parse((ROOT / "template.yaml").read_text())["Mappings"]["Sizes"]
    parameters = _stacks(size)["/"].parameters
    mappings = _of(size, "AWS::Lambda::EventSourceMapping")
    publisher = next(each for each in mappings if "PublisherFunction" in called(each["FunctionName"]))
    clusters = [each["ServerlessV2ScalingConfiguration"] for each in _of(size, "AWS::RDS::DBCluster")]
    deliveries = _of(size, "AWS::KinesisFirehose::DeliveryStream")
    intervals = [each["ExtendedS3DestinationConfiguration"]["BufferingHints"] for each in deliveries]
    stages = [each["DefaultRouteSettings"] for each in _of(size, "AWS::ApiGatewayV2::Stage")]
    snapshots = (
        schedule
        for schedule in _schedules(size)
        # The function's other schedules, with an input of their own, refresh lists.
        if "RanksFunction" in str(schedule["Target"]) and schedule["Target"]["Input"] == "{}"
    )
    return {
        **{row: float(rows[row][size.size]) for row in SHARED.values()},
        "log_days": float(parameters["LogRetentionDays"]),
        "objects_an_hour": 3600 / min(float(each["IntervalInSeconds"]) for each in intervals),
        "pause_seconds": sum(float(cluster.get("SecondsUntilAutoPause", 0)) for cluster in clusters),
        "publisher_seconds": float(publisher["MaximumBatchingWindowInSeconds"]),
        "requests_per_second": min(float(each["ThrottlingRateLimit"]) for each in stages),
        "rpu_hours_a_night": _rpu_hours(size),
        "snapshots_a_day": _fires(snapshots),
    }


def _idle(size: Variant) -> dict[str, float]:
    of_resources = (sums([amounts], len(_of(size, kind))) for kind, amounts in AMOUNTS_OF_A_RESOURCE.items())
    # Where nothing comes, the night asks the warehouse once in 28 nights.
    nights = {"redshift.rpu_hours": _rpu_hours(size) * DAYS_A_MONTH / NIGHTS}
    amounts = sums([*of_resources, _alarms(size), _endpoints(size), _clusters(size), _calls(size), nights])
    return {name: round(amount, 6) for name, amount in sorted(amounts.items()) if amount}


def _alarms(size: Variant) -> dict[str, float]:
    alarms = _of(size, "AWS::CloudWatch::Alarm")
    own = {(each["Namespace"], each["MetricName"]) for each in alarms if each.get("Namespace")}
    return {
        # An alarm on an expression is billed for each metric in the expression.
        "alarms.standard": sum(
            max(1, sum("MetricStat" in each for each in alarm.get("Metrics", ()))) for alarm in alarms
        ),
        "metrics.custom": sum(not namespace.startswith("AWS/") for namespace, _ in own),
    }


def _endpoints(size: Variant) -> dict[str, float]:
    zones = 0
    for endpoint in _of(size, "AWS::EC2::VPCEndpoint"):
        if endpoint.get("VpcEndpointType") == "Interface":
            subnets = endpoint["SubnetIds"]
            zones += len(subnets.split(",") if isinstance(subnets, str) else subnets)
    return {"endpoints.hours": zones * fact("month.hours")}


def _clusters(size: Variant) -> dict[str, float]:
    """Return Aurora's capacity, its secret, and the statements of the schedule that announces identities.

    An instance that may pause is awake from each statement until its pause begins.
    """
    wakes = _fires(each for each in _schedules(size) if '"announce"' in str(each["Target"].get("Input", "")))
    clusters, instances = _of(size, "AWS::RDS::DBCluster"), len(_of(size, "AWS::RDS::DBInstance"))
    if not clusters:  # there are no leads
        return {}
    (cluster,) = clusters
    scaling = cluster["ServerlessV2ScalingConfiguration"]
    awake_seconds = wakes * float(scaling.get("SecondsUntilAutoPause", PAUSE_SECONDS))
    acus = float(scaling.get("MinCapacity", 0)) or ACU_AWAKE * min(1.0, awake_seconds / SECONDS_A_DAY)
    return {
        "aurora.acu_hours": instances * acus * fact("month.hours"),
        "secrets.secret": bool(cluster.get("ManageMasterUserPassword")),
        "rdsdata.requests": wakes
        * DAYS_A_MONTH
        * (_stacks(size)["/Identity"].parameters["Access"] == "data-api"),
    }


def _calls(size: Variant) -> dict[str, float]:
    calls = _fires(_schedules(size)) * DAYS_A_MONTH
    queues = {path.strip("/") for path, each in resources(size).items() if each["Type"] == "AWS::SQS::Queue"}
    mappings = _of(size, "AWS::Lambda::EventSourceMapping")
    polled = sum(called(mapping["EventSourceArn"]) in queues for mapping in mappings)
    return {
        **dict.fromkeys(("scheduler.invocations", "lambda.requests", "xray.traces"), calls),
        "logs.in_gb": calls * fact("logs.platform_bytes") / GB,
        "sqs.requests": polled * fact("sqs.polls_per_second") * fact("month.hours") * 3600,
    }
