"""A month's amounts of a plan, by the names of prices: what `idle` does not have."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from local.plan.demand import (
    ARCHIVED_AFTER_DAYS,
    HOT,
    a_day,
    batches,
    lake_rows,
    leaves,
    naive_day,
    naively_published,
    published,
    snapshots,
    stored,
    table_bytes,
    units_a_month,
    waiting,
)
from local.plan.environments import DAYS_A_MONTH, Deployment, fires_a_day
from local.plan.idle import GB, acu_hours, add_to, asked_warehouse
from local.plan.measured_units import MeasuredUnits, Spent, add, tables_of, together, total, with_cache
from local.plan.price_list import fact
from local.plan.traffic import Traffic
from rules.engagement.proof import BUCKETS
from rules.engagement.reconciliation import NIGHTS

# The nightly run of a day's rows: objects, tasks, the pass over the live tables, and how long they take.


HOURS = 24
# What a batch of the state machine's map holds at most: analytics/curation/plan.py.
BATCH_TASKS, BATCH_BYTES = 200, 64 * 1024 * 1024
# An eventually consistent read unit; and what a query of it is rounded up by on average.
HALF_UNIT_BYTES, ROUNDED_UP = 2 * 4096, 0.25
# Three states and the start of a child execution.
TRANSITIONS_A_BATCH = 4


@dataclass(frozen=True, slots=True)
class Night:
    """objects: raw objects of the day. batches: calls of the curating function. cpu_seconds: of all of them.

    task_seconds: of the largest hour. scanned_bytes, scan_units: of the pass over profiles, days, ledgers and
    items of features.
    """

    objects: float
    s3_puts: float
    s3_gets: float
    batches: float
    cpu_seconds: float
    task_seconds: float
    scanned_bytes: float
    scan_units: float


def a_night(traffic: Traffic, deployed: Deployment, units: MeasuredUnits, day: Spent) -> Night:
    """Return what the night after such a day has to do. Each table's rows are spread over 24 hours."""
    objects = puts = gets = cpu = packed = largest = 0.0
    for table, rows in lake_rows(day).items():
        hours = min(float(HOURS), rows)
        each = min(rows / hours, _objects_an_hour(deployed))
        asked = units.at("curate.hour", each)
        objects += hours * each
        puts, gets = puts + hours * total(asked, "s3.put"), gets + hours * total(asked, "s3.get")
        seconds = rows * units.here.get(f"curate_us.{table}", 0.0) / 1e6
        cpu, packed = cpu + seconds, packed + rows * units.here.get(f"raw_bytes.{table}", 0.0)
        largest = max(largest, seconds / hours * traffic.peak)
    tasks = HOURS * len(lake_rows(day))
    batches = max(ceil(packed / BATCH_BYTES), ceil(tasks / BATCH_TASKS)) if packed else 0
    files = len(lake_rows(day)) * min(1.0, traffic.retention_days / NIGHTS)  # whose seals have their turn
    puts, gets = puts + files, gets + files
    scanned, scan_units = _scan(traffic, units, day)
    return Night(objects, puts, gets, batches, cpu, largest, scanned, scan_units)


def _objects_an_hour(deployed: Deployment) -> float:
    """Firehose leaves an object of a partition each time that its buffer's interval is over."""
    intervals = [
        float(each["ExtendedS3DestinationConfiguration"]["BufferingHints"]["IntervalInSeconds"])
        for _, each in deployed.of_type("AWS::KinesisFirehose::DeliveryStream")
    ]
    return 3600 / min(intervals)


def _scan(traffic: Traffic, units: MeasuredUnits, day: Spent) -> tuple[float, float]:
    """Return bytes and read units of the pass.

    It reads the profiles of all accounts, all days that are stored, and ledgers and leads whose turn it is.
    """
    tables = table_bytes(traffic, units, day)
    measured = units.paths["nightly.scan"]
    items, reads = tables_of(measured, "items"), tables_of(measured, "read")
    days = tables_of(units.paths["events.next.1"], "stored")["DailyActivity"]
    counts = {"UserStreaks": traffic.accounts, "DailyActivity": tables.get("DailyActivity", 0.0) / days}
    size = sum(tables.get(table, 0.0) for table in counts)
    scanned = sum(count * reads[table] / items[table] for table, count in counts.items())
    ledgers, ledger_bytes = _compared(traffic, tables)
    leads = traffic.leads / NIGHTS * tables_of(units.paths["lead.read.features"], "read")["Feature"]
    scanned += ledger_bytes / HALF_UNIT_BYTES + ledgers * ROUNDED_UP + leads
    return size + ledger_bytes, scanned


def _compared(traffic: Traffic, tables: Mapping[str, float]) -> tuple[float, float]:
    """Return how many ledgers are compared: of the active users and of a slice; and their bytes."""
    if not traffic.accounts:
        return 0.0, 0.0
    ledgers = traffic.daily_actives + (traffic.accounts - traffic.daily_actives) / NIGHTS
    return ledgers, tables.get("RewardsLedger", 0.0) * ledgers / traffic.accounts


def _proving(traffic: Traffic) -> tuple[float, float]:
    """Return PUTs and GETs of the root over all ledgers (analytics/proof.py).

    The night reads the bucket of each account that it looks at, reads it again to change it, and puts it.
    Besides there are the list of buckets, and the root under two keys.
    """
    if not traffic.accounts:
        return 0.0, 0.0
    looked_at = traffic.daily_actives + (traffic.accounts - traffic.daily_actives) / NIGHTS
    buckets = BUCKETS * (1 - (1 - 1 / BUCKETS) ** looked_at)
    return buckets + 3, 2 * buckets + 3


def nightly(traffic: Traffic, deployed: Deployment, units: MeasuredUnits, day: Spent) -> dict[str, float]:
    """Return a month's amounts of the nightly run, beyond those of a run with nothing to do."""
    night = a_night(traffic, deployed, units, day)
    memory = int(deployed.functions["CurateFunction"]["MemorySize"])
    waits = (night.s3_puts + night.s3_gets) * fact("latency_ms.s3") / 1000
    scan, (root_puts, root_gets) = scan_seconds(night), _proving(traffic)
    quiet = 1 / NIGHTS  # of the nights; these are among the idle ones
    awake = max(0.0, min(1.0, sum(lake_rows(day).values())) - quiet)
    return asked_warehouse(deployed, units, awake * DAYS_A_MONTH) | {
        name: DAYS_A_MONTH * amount
        for name, amount in {
            "firehose.partitioned_objects": night.objects,
            "s3.archived": night.objects if traffic.retention_days > ARCHIVED_AFTER_DAYS else 0.0,
            "s3.put": night.objects + night.s3_puts + root_puts,
            "s3.get": night.s3_gets + root_gets,
            "states.transitions": night.batches * TRANSITIONS_A_BATCH,
            "lambda.requests": night.batches,
            "lambda.gb_seconds": (night.cpu_seconds + waits + scan) * memory / 1024,
            "dynamodb.read": night.scan_units,
        }.items()
    }


def scan_seconds(night: Night) -> float:
    """Return how long the pass over the live tables takes."""
    return night.scanned_bytes / fact("scan.bytes_per_second")


DOORS = (
    *("EventsApiFunction", "UsersApiFunction", "LeadsApiFunction", "QuestionsApiFunction"),
    *("PollsApiFunction", "NaiveDoor"),
)
NAIVE_MB = 1024
Amounts = dict[str, float]


@dataclass(frozen=True)
class Load:
    """A day of a design. day: by function. seconds: of each function's executions in the day."""

    day: Spent
    seconds: Mapping[str, float]


def load(traffic: Traffic, deployed: Deployment, units: MeasuredUnits, *, naive: bool = False) -> Load:
    """Return a day of our design, or of the naive one."""
    units = units_of(deployed, units)
    if naive:
        day = naive_day(traffic, units)
        add(day, naively_published(day, units))
        add(day, published(day, deployed, units, 1.0))
    else:
        day = a_day(traffic, units)
        add(day, together(snapshots(traffic, units, _snapshots_a_day(deployed))))
        add(day, published(day, deployed, units, traffic.events_a_post))
    _batched(day, deployed, traffic.events_a_post)
    return Load(day, {function: _seconds(function, counts, deployed) for function, counts in day.items()})


def _snapshots_a_day(deployed: Deployment) -> float:
    """Return how often everybody is counted at most: with a cache, before its sets are rebuilt."""
    if deployed.has_cache:
        return fact("cache.rebuilds_a_day")
    return sum(
        fires_a_day(each["ScheduleExpression"])
        for _, each in deployed.of_type("AWS::Scheduler::Schedule")
        if "RanksFunction" in str(each["Target"]) and each["Target"]["Input"] == "{}"
    )


def units_of(deployed: Deployment, units: MeasuredUnits) -> MeasuredUnits:
    """Return what paths cost in an environment: with its cache, if it has one."""
    if not deployed.has_cache:
        return units
    return with_cache(units, {"read": fact("cache.read_hits"), "board": fact("cache.board_hits")})


def _batched(day: Spent, deployed: Deployment, post_size: float) -> None:
    """Put in place of each stream consumer's invocations those that its batches come to."""
    for source in deployed.mappings:
        records = waiting(day, source.function).get(source.source, 0.0)
        if source.kind == "StreamArn" and source.function != "PublisherFunction" and records:
            at_once = post_size if source.source == "BPEvents" else 1.0
            day.setdefault(source.function, {})["invocations"] = batches(records, source, at_once).invocations


def _seconds(function: str, counts: Mapping[str, float], deployed: Deployment) -> float:
    """Return seconds of execution: CPU at the share that the memory brings, and waiting for answers."""
    memory = memory_mb(function, deployed)
    share = min(1.0, memory / fact("lambda.vcpu_mb"))
    waits = sum(
        count * fact(f"latency_ms.{name.removeprefix('calls.')}")
        for name, count in counts.items()
        if name.startswith("calls.")
    )
    return (counts.get("cpu_ms", 0.0) / share + waits) / 1000


def memory_mb(function: str, deployed: Deployment) -> int:
    """Return a function's memory; the naive design's functions have what ours have as a rule."""
    return int(deployed.functions.get(function, {}).get("MemorySize", NAIVE_MB))


def running(
    traffic: Traffic, deployed: Deployment, units: MeasuredUnits, *, naive: bool = False
) -> tuple[Amounts, Load]:
    """Return a month's amounts beyond the idle ones, and the day that they are of."""
    found = load(traffic, deployed, units, naive=naive)
    day, month = found.day, DAYS_A_MONTH
    has_pool = any(deployed.of_type("AWS::Cognito::UserPool"))
    amounts: Amounts = {
        "dynamodb.write": sum(tables_of(day, "write").values()) * month,
        "dynamodb.read": sum(tables_of(day, "read").values()) * month,
        "sns.requests": total(day, "calls.sns") * month,
        "sqs.requests": _queue_requests(day) * month,
        "secrets.secret": traffic.webhook_endpoints,
        "cognito.monthly_actives": traffic.daily_actives if has_pool else 0,
        **_executed(found, deployed, month),
        **_delivered(day, month),
        **_identity(deployed, day),
    }
    add_to(amounts, _cached(traffic, deployed, units, day))
    add_to(amounts, nightly(traffic, deployed, units, day))
    kinds = {} if naive else leaves(traffic, day, deployed.parameters)
    add_to(amounts, stored(traffic, units, day, kinds[HOT].days if kinds else 0))
    add_to(amounts, units_a_month(kinds, traffic.retention_days))
    return {name: amount for name, amount in amounts.items() if amount}, found


def _executed(found: Load, deployed: Deployment, month: float) -> Amounts:
    """Return what executions cost, with the doors' requests, logs and traces."""
    day = found.day
    invocations = sum(counts.get("invocations", 0.0) for counts in day.values())
    requests = sum(day.get(door, {}).get("invocations", 0.0) for door in DOORS)
    logs = total(day, "logs") + invocations * fact("logs.platform_bytes")
    logs += requests * fact("logs.access_bytes")
    gb_seconds = (s * memory_mb(function, deployed) / 1024 for function, s in found.seconds.items())
    return {
        "lambda.requests": invocations * month,
        "lambda.gb_seconds": sum(gb_seconds) * month,
        "api.requests": requests * month,
        "traffic.out_gb": requests * fact("api.answer_bytes") * month / GB,
        "secrets.calls": total(day, "calls.secretsmanager") * month,
        "kms.requests": _keys_asked_for(day, deployed),
        "logs.in_gb": logs * month / GB,
        "logs.kept_gb": logs * float(deployed.parameters.get("LogRetentionDays", 30)) / GB,
        "xray.traces": traced(invocations * month),
    }


def _keys_asked_for(day: Spent, deployed: Deployment) -> float:
    """DynamoDB asks KMS for the key of each encrypted table that is in use."""
    used = {table.partition("/")[0] for table, written in tables_of(day, "write").items() if written}
    encrypted = {
        name
        for name, each in deployed.of_type("AWS::DynamoDB::Table")
        if each.get("SSESpecification", {}).get("SSEEnabled")
    }
    return len(used & encrypted) * fact("kms.requests_a_table_hour") * fact("month.hours")


def traced(requests: float) -> float:
    """Return how many of a month's requests X-Ray samples: one a second, and a share of the others."""
    seconds = fact("month.hours") * 3600
    return min(requests, seconds) + max(0.0, requests - seconds) * fact("xray.sampled")


def _queue_requests(day: Spent) -> float:
    """Sends, deliveries from the topic, and a receive and a delete for each message: batches are small."""
    return total(day, "calls.sqs") + total(day, "sqs.delivered") + 2 * total(day, "sqs.messages")


def _delivered(day: Spent, month: float) -> Amounts:
    rows = sum(lake_rows(day).values())
    return {
        "firehose.in_gb": total(day, "firehose.billed_bytes") * month / GB,
        "firehose.partitioned_gb": total(day, "firehose.bytes") * month / GB,
        "firehose.jq_hours": rows * month / 1e6 * fact("firehose.jq_hours_per_million_rows"),
    }


def _cached(traffic: Traffic, deployed: Deployment, units: MeasuredUnits, day: Spent) -> Amounts:
    """Valkey: commands, what it holds beyond the least that is billed, and rebuilds of the rank sets."""
    if not any(deployed.of_type("AWS::ElastiCache::ServerlessCache")):
        return {}
    commands = total(day, "redis.commands") - total(day, "redis.scripts")
    scripts = total(day, "redis.scripts") * fact("valkey.ecpu_per_script")
    held = traffic.accounts * fact("valkey.account_bytes") / GB
    scan = units.paths["nightly.scan"]
    # The nightly pass is eventually consistent; a rebuild reads at twice the price.
    a_profile = 2 * total(scan, "read.UserStreaks") / total(scan, "items.UserStreaks")
    rebuilds = fact("cache.rebuilds_a_day") * DAYS_A_MONTH
    return {
        "dynamodb.read": traffic.accounts * a_profile * rebuilds,
        "valkey.ecpu": (commands + scripts) * DAYS_A_MONTH,
        "valkey.gb_hours": max(0.0, held - fact("valkey.gb_min")) * fact("month.hours"),
    }


def _identity(deployed: Deployment, day: Spent) -> Amounts:
    """Aurora: I/O of the statements, and the hours that a cluster which may pause is awake for them."""
    statements = total(day, "calls.postgres")
    found: Amounts = {"aurora.io": statements * fact("aurora.io_per_statement") * DAYS_A_MONTH}
    for _, cluster in deployed.of_type("AWS::RDS::DBCluster"):
        scaling = cluster.get("ServerlessV2ScalingConfiguration", {})
        if float(scaling.get("MinCapacity", 0)) == 0:
            idle_hours = acu_hours(scaling, 0)
            found["aurora.acu_hours"] = acu_hours(scaling, statements) - idle_hours
        if cluster.get("EnableHttpEndpoint"):
            found["rdsdata.requests"] = statements * DAYS_A_MONTH
    return found if statements else {}
