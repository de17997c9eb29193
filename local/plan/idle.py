"""What an environment costs in a month in which nobody does anything: it follows from its resources."""

from collections.abc import Callable, Mapping
from typing import Any

from local.paths import ROOT
from local.plan.environments import DAYS_A_MONTH, SECONDS_A_DAY, Deployment, fires_a_day, states_of
from local.plan.measured_units import MeasuredUnits, total
from local.plan.price_list import fact
from rules.engagement.reconciliation import NIGHTS

Properties = Mapping[str, Any]
Amounts = dict[str, float]
GB = 10**9


def add_to(amounts: Amounts, more: Mapping[str, float]) -> Amounts:
    """Add amounts to others; returns these."""
    for name, amount in more.items():
        amounts[name] = amounts.get(name, 0.0) + amount
    return amounts


def idle(deployed: Deployment, units: MeasuredUnits) -> Amounts:
    """Return a month's amounts, by the names of prices."""
    amounts: Amounts = {}
    for kind, rule in RULES.items():
        for _name, properties in deployed.of_type(kind):
            add_to(amounts, rule(properties))
    for extra in (_databases, _schedules, _nightly_warehouse):
        add_to(amounts, extra(deployed, units))
    add_to(amounts, _polls(deployed))
    add_to(amounts, _custom_metrics(deployed))
    return {name: amount for name, amount in amounts.items() if amount}


def _endpoint(properties: Properties) -> Amounts:
    if properties.get("VpcEndpointType") != "Interface":
        return {}
    subnets = properties.get("SubnetIds", [])
    zones = len(subnets.split(",") if isinstance(subnets, str) else subnets)
    return {"endpoints.hours": zones * fact("month.hours")}


def _stream(properties: Properties) -> Amounts:
    if properties.get("StreamModeDetails", {}).get("StreamMode") == "ON_DEMAND":
        return {"kinesis.stream_hours": fact("month.hours")}
    return {"kinesis.shard_hours": int(properties.get("ShardCount", 1)) * fact("month.hours")}


def _proxy(_: Properties) -> Amounts:
    return {"proxy.acu_hours": fact("proxy.acu_min") * fact("month.hours")}


def _cache(_: Properties) -> Amounts:
    return {"valkey.gb_hours": fact("valkey.gb_min") * fact("month.hours")}


def _machine(properties: Properties) -> Amounts:
    key = properties["DefinitionS3Location"]["Key"]
    return {"states.transitions": states_of(ROOT / key) * DAYS_A_MONTH}


def _alarm(properties: Properties) -> Amounts:
    """An alarm on an expression is billed for each metric in it."""
    metrics = sum("MetricStat" in each for each in properties.get("Metrics", ()))
    return {"alarms.standard": max(1.0, float(metrics))}


def _one(name: str) -> Callable[[Properties], Amounts]:
    return lambda _: {name: 1.0}


RULES: Mapping[str, Callable[[Properties], Amounts]] = {
    "AWS::CloudWatch::Alarm": _alarm,
    "AWS::CloudWatch::CompositeAlarm": _one("alarms.composite"),
    "AWS::CloudWatch::Dashboard": _one("dashboards.board"),
    "AWS::SecretsManager::Secret": _one("secrets.secret"),
    "AWS::EC2::VPCEndpoint": _endpoint,
    "AWS::Kinesis::Stream": _stream,
    "AWS::RDS::DBProxy": _proxy,
    "AWS::ElastiCache::ServerlessCache": _cache,
    "AWS::StepFunctions::StateMachine": _machine,
}


def _databases(deployed: Deployment, units: MeasuredUnits) -> Amounts:
    """Aurora's least capacity; a cluster that may pause is awake after each hourly look for announcements."""
    found: Amounts = {}
    for _, cluster in deployed.of_type("AWS::RDS::DBCluster"):
        scaling = cluster.get("ServerlessV2ScalingConfiguration", {})
        instances = sum(1 for _ in deployed.of_type("AWS::RDS::DBInstance"))
        add_to(found, {"aurora.acu_hours": instances * acu_hours(scaling, _wakes_a_day(deployed))})
        if cluster.get("ManageMasterUserPassword"):
            add_to(found, {"secrets.secret": 1})
        if cluster.get("EnableHttpEndpoint"):
            add_to(found, {"rdsdata.requests": _wakes_a_day(deployed) * DAYS_A_MONTH})
    return found


ACU_AWAKE = 0.5  # the least that a cluster has that may pause and is awake


def acu_hours(scaling: Mapping[str, Any], wakes_a_day: float) -> float:
    """Return a month's ACU-hours of an instance at its least capacity. It sleeps once its pause is over."""
    least = float(scaling.get("MinCapacity", 0))
    if least > 0:
        return least * fact("month.hours")
    awake = min(1.0, wakes_a_day * float(scaling.get("SecondsUntilAutoPause", 300)) / SECONDS_A_DAY)
    return ACU_AWAKE * awake * fact("month.hours")


def _wakes_a_day(deployed: Deployment) -> float:
    """The looks for announcements of identity changes, each of which asks the database."""
    return sum(
        fires_a_day(each["ScheduleExpression"])
        for _, each in deployed.of_type("AWS::Scheduler::Schedule")
        if '"announce"' in str(each["Target"].get("Input", "")) and each.get("State") != "DISABLED"
    )


def _schedules(deployed: Deployment, units: MeasuredUnits) -> Amounts:
    """Functions that a schedule calls: an invocation and its log lines each time."""
    times = sum(
        fires_a_day(each["ScheduleExpression"])
        for _, each in deployed.of_type("AWS::Scheduler::Schedule")
        if each.get("State") != "DISABLED"
    )
    calls = times * DAYS_A_MONTH
    return {
        "scheduler.invocations": calls,
        "lambda.requests": calls,
        "logs.in_gb": calls * fact("logs.platform_bytes") / GB,
        "xray.traces": calls,
    }


def _polls(deployed: Deployment) -> Amounts:
    """Each queue that a function is handed batches of is polled all the time."""
    queues = {name for name, _ in deployed.of_type("AWS::SQS::Queue")}
    polled = sum(each.source in queues for each in deployed.mappings)
    return {"sqs.requests": polled * fact("sqs.polls_per_second") * fact("month.hours") * 3600}


def _custom_metrics(deployed: Deployment) -> Amounts:
    """The metrics of our own that alarms watch. What nobody watches is not counted."""
    watched = {
        (each.get("Namespace"), each.get("MetricName"))
        for _, each in deployed.of_type("AWS::CloudWatch::Alarm")
        if each.get("Namespace") and not str(each["Namespace"]).startswith("AWS/")
    }
    return {"metrics.custom": float(len(watched))}


def _nightly_warehouse(deployed: Deployment, units: MeasuredUnits) -> Amounts:
    """Where nothing comes, the nightly run asks the warehouse once in 28 nights."""
    return asked_warehouse(deployed, units, DAYS_A_MONTH / NIGHTS)


def asked_warehouse(deployed: Deployment, units: MeasuredUnits, nights: float) -> Amounts:
    """Return what so many nights cost in the warehouse, which build and test its models."""
    seconds = total(units.paths["nightly.warehouse"], "statements") * fact("redshift.seconds_per_statement")
    capacity = sum(
        float(each.get("BaseCapacity", 0))
        for _, each in deployed.of_type("AWS::RedshiftServerless::Workgroup")
    )
    return {"redshift.rpu_hours": capacity * seconds / 3600 * nights}
