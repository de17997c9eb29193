"""The nightly run of a day's rows: objects, tasks, the pass over the live tables, and how long they take."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from local.plan.demand.storage import ARCHIVED_AFTER_DAYS, lake_rows, table_bytes
from local.plan.demand.traffic import Traffic
from local.plan.given.environments import Deployment
from local.plan.given.measured_units import MeasuredUnits, Spent, tables_of, total
from local.plan.given.price_list import fact
from local.plan.given.schedules import DAYS_A_MONTH
from local.plan.idle import asked_warehouse
from rules.engagement.proof import BUCKETS
from rules.engagement.reconciliation import NIGHTS

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
    """Return PUTs and GETs of the root over all ledgers (analytics/proving).

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
