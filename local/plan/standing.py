"""What stands in each size of the template: a month's idle amounts, settings that decide how often things are
done, and limits. All of it follows from the resolved resources.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from infra.stacks import resolve_stacks
from infra.template_text import parse
from local.paths import ROOT
from local.plan.month import DAYS_A_MONTH, GB, SECONDS_A_DAY
from local.plan.price_list import fact
from rules.turns import NIGHTS

Properties = Mapping[str, Any]
SIZES = ("small", "standard", "large")
UNIT_SECONDS = {"minute": 60, "hour": 3600, "day": SECONDS_A_DAY}
SHARDS = ("LeaderboardShards", "FeatureShards", "StatsShards")
ACU_AWAKE = 0.5  # the least that a cluster has that may pause and is awake
# A month's amounts of one resource.
EACH: Mapping[str, Mapping[str, float]] = {
    "AWS::CloudWatch::CompositeAlarm": {"alarms.composite": 1},
    "AWS::CloudWatch::Dashboard": {"dashboards.board": 1},
    "AWS::SecretsManager::Secret": {"secrets.secret": 1},
    "AWS::Kinesis::Stream": {"kinesis.stream_hours": fact("month.hours")},
    "AWS::RDS::DBProxy": {"proxy.acu_hours": fact("proxy.acu_min") * fact("month.hours")},
    "AWS::ElastiCache::ServerlessCache": {"valkey.gb_hours": fact("valkey.gb_min") * fact("month.hours")},
    "AWS::StepFunctions::StateMachine": {"states.transitions": fact("night.states") * DAYS_A_MONTH},
}


@cache
def resources(size: str) -> Mapping[str, Mapping[str, Any]]:
    """Return the resources of a size, those of nested stacks included: Type and Properties by logical id."""
    stacks = resolve_stacks({"Size": size}).items()
    return {f"{place}{name}": each for place, stack in stacks for name, each in stack.resources.items()}


def _of(size: str, kind: str) -> Iterator[Properties]:
    return (
        resource.get("Properties", {}) for resource in resources(size).values() if resource["Type"] == kind
    )


def sizes(statements: int) -> dict[str, dict[str, dict[str, float]]]:
    """Return idle amounts, settings and concurrency of each size: see TemplateSize.

    statements: those of a night in the warehouse.
    """
    return {size: _size(size, statements) for size in SIZES}


def _size(size: str, statements: int) -> dict[str, dict[str, float]]:
    root = resolve_stacks({"Size": size})["/"]
    rows = parse((ROOT / "template.yaml").read_text())["Mappings"]["Sizes"]
    schedules = [each for each in _of(size, "AWS::Scheduler::Schedule") if each.get("State") != "DISABLED"]
    wakes = _fires(
        schedule for schedule in schedules if '"announce"' in str(schedule["Target"].get("Input", ""))
    )
    snapshots = (schedule for schedule in schedules if "RanksFunction" in str(schedule["Target"]))
    capacity = sum(float(each["BaseCapacity"]) for each in _of(size, "AWS::RedshiftServerless::Workgroup"))
    rpu_hours = capacity * statements * fact("redshift.statement_seconds") / 3600
    publisher = next(
        mapping for mapping in _mappings(size) if "PublisherFunction" in called(mapping["FunctionName"])
    )
    clusters = [each["ServerlessV2ScalingConfiguration"] for each in _of(size, "AWS::RDS::DBCluster")]
    firehose = [
        float(each["ExtendedS3DestinationConfiguration"]["BufferingHints"]["IntervalInSeconds"])
        for each in _of(size, "AWS::KinesisFirehose::DeliveryStream")
    ]
    throttles = [
        float(each["DefaultRouteSettings"]["ThrottlingRateLimit"])
        for each in _of(size, "AWS::ApiGatewayV2::Stage")
        if "DefaultRouteSettings" in each
    ]
    return {
        "idle": _idle(size, _fires(schedules), wakes, rpu_hours),
        "settings": {
            **{row: float(rows[row][size]) for row in SHARDS},
            "log_days": float(root.parameters["LogRetentionDays"]),
            "objects_an_hour": 3600 / min(firehose),
            "pause_seconds": sum(float(cluster.get("SecondsUntilAutoPause", 0)) for cluster in clusters),
            "publisher_batch": float(publisher["BatchSize"]),
            "publisher_seconds": float(publisher["MaximumBatchingWindowInSeconds"]),
            "requests_per_second": min(throttles),
            "rpu_hours_a_night": rpu_hours,
            "snapshots_a_day": _fires(
                snapshot for snapshot in snapshots if snapshot["Target"]["Input"] == "{}"
            ),
        },
        "concurrency": _concurrency(size),
    }


def _mappings(size: str) -> Iterator[Properties]:
    return _of(size, "AWS::Lambda::EventSourceMapping")


def called(named: Mapping[str, Any]) -> str:
    """Return the logical id that a template names by Ref, by GetAtt, or (a function) by its alias."""
    found = named.get("Ref") or named["Fn::GetAtt"]
    name = found.split(".")[0] if isinstance(found, str) else str(found[0])
    return name.removesuffix("Aliaslive")


def _concurrency(size: str) -> dict[str, float]:
    found: dict[str, float] = defaultdict(float)
    for each in _mappings(size):
        found[called(each["FunctionName"])] += float(
            each.get("ScalingConfig", {}).get("MaximumConcurrency", 0)
        )
    for name, each in resources(size).items():
        if each["Type"] == "AWS::Lambda::Function":
            found[name.strip("/")] += float(each["Properties"].get("ReservedConcurrentExecutions", 0))
    return {name: most for name, most in sorted(found.items()) if most}


def _idle(size: str, fires: float, wakes: float, rpu_hours: float) -> dict[str, float]:
    """Return a month's amounts. fires, wakes: of schedules a day, and of those that ask the database."""
    amounts: dict[str, float] = defaultdict(float)
    for kind, some in EACH.items():
        for _ in _of(size, kind):
            for name, amount in some.items():
                amounts[name] += amount
    metrics = set()
    for alarm in _of(size, "AWS::CloudWatch::Alarm"):  # one on an expression is billed for each metric in it
        amounts["alarms.standard"] += max(1, sum("MetricStat" in each for each in alarm.get("Metrics", ())))
        if alarm.get("Namespace") and not alarm["Namespace"].startswith("AWS/"):
            metrics.add((alarm["Namespace"], alarm["MetricName"]))
    amounts["metrics.custom"] += len(metrics)
    for endpoint in _of(size, "AWS::EC2::VPCEndpoint"):
        if endpoint.get("VpcEndpointType") == "Interface":
            subnets = endpoint["SubnetIds"]
            zones = len(subnets.split(",") if isinstance(subnets, str) else subnets)
            amounts["endpoints.hours"] += zones * fact("month.hours")
    for cluster in _of(size, "AWS::RDS::DBCluster"):
        scaling, instances = (
            cluster["ServerlessV2ScalingConfiguration"],
            list(_of(size, "AWS::RDS::DBInstance")),
        )
        amounts["aurora.acu_hours"] += len(instances) * _acus(scaling, wakes) * fact("month.hours")
        amounts["secrets.secret"] += bool(cluster.get("ManageMasterUserPassword"))
        amounts["rdsdata.requests"] += wakes * DAYS_A_MONTH if cluster.get("EnableHttpEndpoint") else 0
    calls = fires * DAYS_A_MONTH
    for name in ("scheduler.invocations", "lambda.requests", "xray.traces"):
        amounts[name] += calls
    amounts["logs.in_gb"] += calls * fact("logs.platform_bytes") / GB
    queues = {name.strip("/") for name, each in resources(size).items() if each["Type"] == "AWS::SQS::Queue"}
    polls = sum(called(mapping["EventSourceArn"]) in queues for mapping in _mappings(size))
    amounts["sqs.requests"] += polls * fact("sqs.polls_per_second") * fact("month.hours") * 3600
    # Where nothing comes, the night asks the warehouse once in 28 nights.
    amounts["redshift.rpu_hours"] += rpu_hours * DAYS_A_MONTH / NIGHTS
    return {name: round(amount, 6) for name, amount in sorted(amounts.items()) if amount}


def _acus(scaling: Properties, wakes: float) -> float:
    """Return the mean capacity of an instance that nobody asks; it sleeps once its pause is over."""
    if least := float(scaling.get("MinCapacity", 0)):
        return least
    return ACU_AWAKE * min(1.0, wakes * float(scaling.get("SecondsUntilAutoPause", 300)) / SECONDS_A_DAY)


def _fires(schedules: Any) -> float:
    return sum(fires_a_day(schedule["ScheduleExpression"]) for schedule in schedules)


def fires_a_day(expression: str) -> float:
    """Return how often `rate(15 minutes)` or `cron(30 2 * * ? *)` fires a day; raises ValueError."""
    if found := re.fullmatch(r"rate\((\d+) (minute|hour|day)s?\)", expression):
        return SECONDS_A_DAY / (int(found[1]) * UNIT_SECONDS[found[2]])
    found = re.fullmatch(r"cron\((\d+(?:,\d+)*) (\d+(?:,\d+)*|\*) \* \* \? \*\)", expression)
    if not found:
        raise ValueError(f"the planner does not know the schedule {expression}")
    hours = 24 if found[2] == "*" else len(found[2].split(","))
    return float(len(found[1].split(",")) * hours)
