"""What stands in each size of the template, as its resolved resources say.

That is a month's idle amounts, the settings that decide how often something is done, and limits. `make units`
writes it to units.json (bench/units/budget.py).
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
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
ACU_AWAKE = 0.5  # the least capacity of an awake cluster that may pause
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


def sizes(statements: int) -> dict[str, dict[str, dict[str, float]]]:
    """Return `idle`, `settings` and `concurrency` of each size, as the fields of TemplateSize.

    statements: how many a night sends to the warehouse.
    """
    return {size: _size(size, statements) for size in SIZES}


@cache
def resources(size: str) -> Mapping[str, Mapping[str, Any]]:
    """Return the resources of a size and of the stacks that it nests: Type and Properties.

    The keys are paths, such as /EventsApiFunction and, in the nested stack Network, /NetworkVpc.
    """
    stacks = resolve_stacks({"Size": size}).items()
    return {f"{path}{name}": resource for path, stack in stacks for name, resource in stack.resources.items()}


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


def _size(size: str, statements: int) -> dict[str, dict[str, float]]:
    capacity = sum(float(each["BaseCapacity"]) for each in _of(size, "AWS::RedshiftServerless::Workgroup"))
    rpu_hours = capacity * statements * fact("redshift.statement_seconds") / 3600
    return {
        "idle": _idle(size, rpu_hours),
        "settings": _settings(size, rpu_hours),
        "concurrency": _concurrency(size),
    }


def _of(size: str, kind: str) -> Iterator[Properties]:
    """Yield the properties of a size's resources of a type."""
    for resource in resources(size).values():
        if resource["Type"] == kind:
            yield resource.get("Properties", {})


def _schedules(size: str) -> list[Properties]:
    schedules = _of(size, "AWS::Scheduler::Schedule")
    return [schedule for schedule in schedules if schedule.get("State") != "DISABLED"]


def _mappings(size: str) -> Iterator[Properties]:
    return _of(size, "AWS::Lambda::EventSourceMapping")


def _fires(schedules: Iterable[Properties]) -> float:
    return sum(fires_a_day(schedule["ScheduleExpression"]) for schedule in schedules)


def _settings(size: str, rpu_hours: float) -> dict[str, float]:
    """Return what decides how often something is done, and the API's throttle.

    rpu_hours: of a night in the warehouse.
    """
    rows = parse((ROOT / "template.yaml").read_text())["Mappings"]["Sizes"]
    parameters = resolve_stacks({"Size": size})["/"].parameters
    publisher = next(each for each in _mappings(size) if "PublisherFunction" in called(each["FunctionName"]))
    clusters = [each["ServerlessV2ScalingConfiguration"] for each in _of(size, "AWS::RDS::DBCluster")]
    buffers = [
        stream["ExtendedS3DestinationConfiguration"]["BufferingHints"]
        for stream in _of(size, "AWS::KinesisFirehose::DeliveryStream")
    ]
    throttles = [
        float(stage["DefaultRouteSettings"]["ThrottlingRateLimit"])
        for stage in _of(size, "AWS::ApiGatewayV2::Stage")
        if "DefaultRouteSettings" in stage
    ]
    snapshots = (
        schedule
        for schedule in _schedules(size)
        # The function's other schedules, with an input of their own, refresh lists.
        if "RanksFunction" in str(schedule["Target"]) and schedule["Target"]["Input"] == "{}"
    )
    return {
        **{row: float(rows[row][size]) for row in SHARDS},
        "log_days": float(parameters["LogRetentionDays"]),
        "objects_an_hour": 3600 / min(float(buffer["IntervalInSeconds"]) for buffer in buffers),
        "pause_seconds": sum(float(cluster.get("SecondsUntilAutoPause", 0)) for cluster in clusters),
        "publisher_batch": float(publisher["BatchSize"]),
        "publisher_seconds": float(publisher["MaximumBatchingWindowInSeconds"]),
        "requests_per_second": min(throttles),
        "rpu_hours_a_night": rpu_hours,
        "snapshots_a_day": _fires(snapshots),
    }


def _concurrency(size: str) -> dict[str, float]:
    """Return the executions at once that a function may have, or that are reserved for it, if limited."""
    limits: dict[str, float] = defaultdict(float)
    for mapping in _mappings(size):
        most = mapping.get("ScalingConfig", {}).get("MaximumConcurrency", 0)
        limits[called(mapping["FunctionName"])] += float(most)
    for path, resource in resources(size).items():
        if resource["Type"] == "AWS::Lambda::Function":
            reserved = resource["Properties"].get("ReservedConcurrentExecutions", 0)
            limits[path.strip("/")] += float(reserved)
    return {name: limit for name, limit in sorted(limits.items()) if limit}


def _idle(size: str, rpu_hours: float) -> dict[str, float]:
    """Return the amounts of a month in which nobody does anything, by the names of prices.

    rpu_hours: of a night in the warehouse.
    """
    amounts: dict[str, float] = defaultdict(float)
    for kind, amounts_of_one in AMOUNTS_OF_A_RESOURCE.items():
        count = sum(1 for _ in _of(size, kind))
        for name, amount in amounts_of_one.items():
            amounts[name] += count * amount
    _add_alarms(amounts, size)
    for endpoint in _of(size, "AWS::EC2::VPCEndpoint"):
        if endpoint.get("VpcEndpointType") == "Interface":
            subnets = endpoint["SubnetIds"]
            zones = len(subnets.split(",") if isinstance(subnets, str) else subnets)
            amounts["endpoints.hours"] += zones * fact("month.hours")
    _add_clusters(amounts, size)
    calls = _fires(_schedules(size)) * DAYS_A_MONTH
    for name in ("scheduler.invocations", "lambda.requests", "xray.traces"):
        amounts[name] += calls
    amounts["logs.in_gb"] += calls * fact("logs.platform_bytes") / GB
    queues = {path.strip("/") for path, each in resources(size).items() if each["Type"] == "AWS::SQS::Queue"}
    polled = sum(called(mapping["EventSourceArn"]) in queues for mapping in _mappings(size))
    amounts["sqs.requests"] += polled * fact("sqs.polls_per_second") * fact("month.hours") * 3600
    # Where nothing comes, the night asks the warehouse once in 28 nights.
    amounts["redshift.rpu_hours"] += rpu_hours * DAYS_A_MONTH / NIGHTS
    return {name: round(amount, 6) for name, amount in sorted(amounts.items()) if amount}


def _add_alarms(amounts: dict[str, float], size: str) -> None:
    """Add the alarms, and the metrics of our own that they watch."""
    custom_metrics = set()
    for alarm in _of(size, "AWS::CloudWatch::Alarm"):
        # An alarm on an expression is billed for each metric in the expression.
        amounts["alarms.standard"] += max(1, sum("MetricStat" in each for each in alarm.get("Metrics", ())))
        if alarm.get("Namespace") and not alarm["Namespace"].startswith("AWS/"):
            custom_metrics.add((alarm["Namespace"], alarm["MetricName"]))
    amounts["metrics.custom"] += len(custom_metrics)


def _add_clusters(amounts: dict[str, float], size: str) -> None:
    """Add Aurora's capacity, its secret, and the statements of the schedule that announces identities."""
    wakes = _fires(each for each in _schedules(size) if '"announce"' in str(each["Target"].get("Input", "")))
    instances = sum(1 for _ in _of(size, "AWS::RDS::DBInstance"))
    for cluster in _of(size, "AWS::RDS::DBCluster"):
        mean_acus = _idle_acus(cluster["ServerlessV2ScalingConfiguration"], wakes)
        amounts["aurora.acu_hours"] += instances * mean_acus * fact("month.hours")
        amounts["secrets.secret"] += bool(cluster.get("ManageMasterUserPassword"))
        amounts["rdsdata.requests"] += wakes * DAYS_A_MONTH if cluster.get("EnableHttpEndpoint") else 0


def _idle_acus(scaling: Properties, wakes: float) -> float:
    """Return the mean capacity of an instance that only a schedule asks. wakes: how often in a day.

    An instance that may pause is awake from each statement until its pause begins.
    """
    if minimum := float(scaling.get("MinCapacity", 0)):
        return minimum
    awake_seconds = wakes * float(scaling.get("SecondsUntilAutoPause", PAUSE_SECONDS))
    return ACU_AWAKE * min(1.0, awake_seconds / SECONDS_A_DAY)
