"""How often each measured path is taken in a day, and the amounts of a month of such days.

Amounts are by the names of prices, such as `dynamodb.write`. `monthly_amounts`, at the end, adds up what the
functions before it return of a day. A path whose name ends in a number was measured with so many at once.
"""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from math import ceil

from local.plan.measured_units import (
    Functions,
    MeasuredUnits,
    Spent,
    TemplateSize,
    add,
    by_target,
    sum_of_paths,
    total,
)
from local.plan.price_list import fact
from local.plan.traffic import Traffic
from rules.engagement.boards import pause_between
from rules.engagement.events import RETENTION
from rules.engagement.proof import BUCKETS
from rules.outgoing.notices import KEPT
from rules.turns import NIGHTS

Amounts = dict[str, float]
Part = tuple[float, Functions]  # how often a path is taken, and the path
DAYS_A_MONTH = 365 / 12
SECONDS_A_DAY = 86_400
HOURS_A_DAY, MINUTES_A_DAY = 24, 24 * 60
GB = 10**9  # bytes
ACU_MIN = 0.5  # of a cluster that may pause, while it is awake
PUBLISHER = "PublisherFunction"
DOORS = (
    *("EventsApiFunction", "UsersApiFunction", "LeadsApiFunction", "QuestionsApiFunction"),
    "PollsApiFunction",
)
SCAN_UNIT_BYTES = 2 * 4096  # an eventually consistent read unit
ARCHIVED_AFTER_DAYS = 90  # LakeBucket's rule archive-raw


def _engagement(traffic: Traffic, units: MeasuredUnits, size: TemplateSize) -> Iterator[Part]:
    """Yield posts, what users read and buy, and the counts of everybody for the boards."""
    users, events, paths = traffic.daily_actives, traffic.events_a_post, units.paths
    if traffic.events:
        new_users = users * traffic.new_users
        yield new_users, units.at("events.first", events)
        yield users - new_users, units.at("events.next", events)
        yield users * (traffic.posts_per_user - 1), units.at("events.again", events)
    read_hits, board_hits = (fact(f"cache.{name}_hits") * size.has_cache for name in ("read", "board"))
    yield from _read(users * traffic.reads_per_user, paths["read.profile"], read_hits)
    yield users * traffic.redemptions_per_user, paths["redeem.reward"]
    for path in ("hold", "hold.capture"):
        yield users * traffic.holds_per_user, paths[path]
    yield traffic.accounts * traffic.expiries_per_account / 10, paths["expiry.10"]
    yield traffic.events * traffic.clawbacks, paths["clawback"]
    board_reads = ("streaks.top", "streaks.rank", "points.top", "points.rank")
    times = users * traffic.boards_per_user / len(board_reads)  # each board equally often
    for path in board_reads:
        # A list ends after the first hundred of each shard: more users do not make it dearer.
        yield from _read(times, paths[f"board.{path}.160"], board_hits if path == "streaks.top" else 0.0)
    yield _snapshots(traffic, units, size)


def _snapshots(traffic: Traffic, units: MeasuredUnits, size: TemplateSize) -> Part:
    """Return the counts of everybody for the boards. With many accounts there is a pause between them."""
    most = size.settings["snapshots_a_day"]
    pause = pause_between(int(traffic.accounts))
    # A schedule's invocations are among the idle amounts. A snapshot replaces the one before it.
    left_out = ("invocations", "logs.bytes", "stored.Boards")
    snapshot = {
        function: {name: count for name, count in counts.items() if name not in left_out}
        for function, counts in units.at("board.snapshot", traffic.accounts).items()
    }
    return min(most, timedelta(days=1) / pause if pause else most), snapshot


def _read(times: float, path: Functions, hits: float) -> Iterator[Part]:
    """Yield a path of reads, so many times. hits: the share of them that the cache answers."""
    yield times * (1 - hits), path
    yield times * hits, {"UsersApiFunction": {"invocations": 1.0}}


def _leads_and_questions(traffic: Traffic, units: MeasuredUnits) -> Iterator[Part]:
    """Yield webhooks, the morning's refresh and reads of leads; questions, answers; outgoing webhooks."""
    paths = units.paths
    yield traffic.lead_events, paths["lead.next"]
    yield traffic.leads / 4, paths["lead.refresh.4"]
    for resource in ("features", "memory", "events"):
        yield traffic.lead_reads / 3, paths[f"lead.read.{resource}"]
    yield traffic.questions, paths["question.asked"]
    messages = add(add({}, paths["question.told.4"]), paths["question.asked"], -1)
    yield traffic.questions * traffic.phones / 4, messages
    yield traffic.answers, paths["question.answered"]
    yield traffic.questions, paths["question.polled"]
    if endpoints := traffic.webhook_endpoints:
        yield MINUTES_A_DAY, units.at("webhook.swept", endpoints)  # the sweeper runs each minute
        yield traffic.changes, units.at("webhook.told", endpoints)
        yield traffic.changes * endpoints, paths["webhook.delivered.1"]


def lake_rows(day: Functions) -> dict[str, float]:
    """Return the rows a day that go to the lake, by table."""
    return {
        target.partition(".")[2]: rows
        for target, rows in by_target(day, "to").items()
        if target.startswith(PUBLISHER) and rows > 0
    }


def a_day(traffic: Traffic, units: MeasuredUnits, size: TemplateSize) -> Spent:
    """Return the counts of a day, by function.

    The publisher gets rows in batches, from each shard of a stream by itself. A batch is filled by the rows
    that come within the window of its mapping.
    """
    day = sum_of_paths([*_engagement(traffic, units, size), *_leads_and_questions(traffic, units)])
    for table, rows in lake_rows(day).items():
        rows_per_post = traffic.events_a_post if table in ("BPEvents", "RewardsLedger") else 1.0
        rows_per_shard_second = rows / SECONDS_A_DAY / fact("dynamodb.stream_shards")
        rows_per_window = rows_per_shard_second * size.settings["publisher_seconds"]
        fill = min(size.settings["publisher_batch"], max(1.0, rows_per_post, rows_per_window))
        add(day, units.at(f"publish.{table}", fill), rows / fill)
    return day


def seconds_of(counts: Mapping[str, float]) -> float:
    """Return the seconds of a function's executions. counts: the function's.

    They are its CPU time, at the share of a core that comes with its memory, and its waits for answers.
    """
    calls = {
        name.removeprefix("calls."): count for name, count in counts.items() if name.startswith("calls.")
    }
    reads = sum(count for name, count in counts.items() if name.startswith("read."))
    cpu = sum(calls.values()) * fact("lambda.cpu_ms_a_call") + reads * fact("lambda.cpu_ms_a_read")
    core_share = min(1.0, fact("lambda.memory_mb") / fact("lambda.vcpu_mb"))
    waits = sum(count * fact(f"latency_ms.{name}") for name, count in calls.items())
    return (cpu / core_share + waits) / 1000


def table_bytes(traffic: Traffic, units: MeasuredUnits, day: Functions, hot_days: float) -> dict[str, float]:
    """Return the bytes of each table with its indexes. hot_days: EventHotDays; 0: events expire."""
    kept_days = {
        "Notifications": KEPT.days,
        "IdempotencyKeys": RETENTION.days,
        "BPEvents": hot_days or RETENTION.days,
    }
    table_sizes = {
        table: daily_bytes * min(traffic.retention_days, kept_days.get(table, traffic.retention_days))
        for table, daily_bytes in by_target(day, "stored").items()
        if daily_bytes > 0
    }
    # A profile for each account, however often it changes.
    profile = by_target(units.paths["events.first.1"], "stored")["UserStreaks"]
    return table_sizes | {"UserStreaks": traffic.accounts * profile}


def _night(traffic: Traffic, size: TemplateSize, day: Functions, tables: Mapping[str, float]) -> Amounts:
    """Return a night's amounts: curation of the day's rows, the pass over the tables, the ledger's root.

    tables: the bytes of each.
    """
    rows = lake_rows(day)
    hours = {
        table: min(float(HOURS_A_DAY), count) for table, count in rows.items()
    }  # hours of the day with rows
    objects_an_hour = size.settings["objects_an_hour"]
    objects = sum(min(count, hours[table] * objects_an_hour) for table, count in rows.items())
    ledgers_read = traffic.daily_actives + (traffic.accounts - traffic.daily_actives) / NIGHTS
    # The expected number of different buckets of the proof that so many ledgers fall into
    buckets = BUCKETS * (1 - (1 - 1 / BUCKETS) ** ledgers_read)
    seals = len(rows) * min(1.0, traffic.retention_days / NIGHTS)
    puts = sum(hours.values()) * fact("night.s3_puts") + seals + buckets
    gets = objects + sum(hours.values()) + seals + 2 * buckets  # a bucket is read twice
    ledgers = tables.get("RewardsLedger", 0.0) * ledgers_read / max(1.0, traffic.accounts)
    scan_bytes = tables["UserStreaks"] + tables.get("DailyActivity", 0.0) + ledgers
    batches = ceil(HOURS_A_DAY * len(rows) / fact("night.batch_tasks"))
    row_seconds = sum(rows.values()) * fact("night.us_a_row") / 1e6
    scan_seconds = scan_bytes / fact("night.scan_bytes_per_second")
    s3_seconds = (puts + gets) * fact("latency_ms.s3") / 1000
    # What a night asks of the warehouse if nothing has come, once in NIGHTS, is among the idle amounts.
    quiet = 1 / NIGHTS
    return {
        "redshift.rpu_hours": size.settings["rpu_hours_a_night"]
        * max(0.0, min(1.0, sum(rows.values())) - quiet),
        "firehose.partitioned_objects": objects,
        "s3.archived": objects if traffic.retention_days > ARCHIVED_AFTER_DAYS else 0.0,
        "s3.put": objects + puts,
        "s3.get": gets,
        "states.transitions": batches * fact("night.batch_states"),
        "lambda.requests": batches,
        "lambda.gb_seconds": (row_seconds + scan_seconds + s3_seconds) * fact("lambda.vcpu_mb") / 1024,
        "dynamodb.read": scan_bytes / SCAN_UNIT_BYTES + traffic.leads / NIGHTS,
    }


def _executions(day: Functions) -> Amounts:
    """Return a day's amounts of executions, with the doors' requests and logs."""
    invocations = sum(counts.get("invocations", 0.0) for counts in day.values())
    requests = sum(day.get(door, {}).get("invocations", 0.0) for door in DOORS)
    logs = (
        total(day, "logs") + invocations * fact("logs.platform_bytes") + requests * fact("logs.access_bytes")
    )
    return {
        "lambda.requests": invocations,
        "lambda.gb_seconds": sum(map(seconds_of, day.values())) * fact("lambda.memory_mb") / 1024,
        "api.requests": requests,
        "traffic.out_gb": requests * fact("api.answer_bytes") / GB,
        "secrets.calls": by_target(day, "calls").get("secretsmanager", 0.0),
        "logs.in_gb": logs / GB,
    }


def _services(traffic: Traffic, size: TemplateSize, day: Functions) -> Amounts:
    """Return a day's amounts of all other services."""
    calls, posts = by_target(day, "calls"), traffic.daily_actives * traffic.posts_per_user
    statements = calls.get("postgres", 0.0)
    reads = traffic.daily_actives * (traffic.reads_per_user + traffic.boards_per_user)
    ecpus = posts * fact("valkey.ecpu_a_post") + reads * fact("valkey.ecpu_a_read")
    sent = by_target(day, "sqs")
    return {
        "dynamodb.write": total(day, "write"),
        "dynamodb.read": total(day, "read"),
        "sns.requests": calls.get("sns", 0.0),
        # Sends, deliveries from the topic; a receive and a delete for each message: batches are small.
        "sqs.requests": calls.get("sqs", 0.0) + sent.get("delivered", 0.0) + 2 * sent.get("messages", 0.0),
        "firehose.in_gb": by_target(day, "firehose").get("billed_bytes", 0.0) / GB,
        "firehose.partitioned_gb": by_target(day, "firehose").get("bytes", 0.0) / GB,
        "firehose.jq_hours": sum(lake_rows(day).values()) / 1e6 * fact("firehose.jq_hours_per_million_rows"),
        "aurora.io": statements * fact("aurora.io_per_statement"),
        "rdsdata.requests": statements if "rdsdata.requests" in size.idle else 0.0,
        "valkey.ecpu": ecpus if size.has_cache else 0.0,
    }


def _stored(traffic: Traffic, size: TemplateSize, day: Functions, tables: Mapping[str, float]) -> Amounts:
    """Return a month's amounts of what is stored or kept awake. tables: the bytes of each."""
    rows, unarchived_days = sum(lake_rows(day).values()), min(traffic.retention_days, ARCHIVED_AFTER_DAYS)
    raw, curated = (rows * fact(f"lake.{kind}_bytes") / GB for kind in ("raw", "curated"))
    statements = by_target(day, "calls").get("postgres", 0.0)
    awake = statements * size.settings.get("pause_seconds", 0) / SECONDS_A_DAY
    cache_gb = traffic.accounts * fact("valkey.account_bytes") / GB - fact("valkey.gb_min")
    tables_in_use = {target.partition("/")[0] for target, units in by_target(day, "write").items() if units}
    return {
        "dynamodb.storage_gb": sum(tables.values()) / GB,
        "dynamodb.backup_gb": sum(tables.values()) / GB,
        "s3.storage_gb": raw * unarchived_days + curated * traffic.retention_days,
        "s3.archive_gb": raw * (traffic.retention_days - unarchived_days),
        # A cluster that may pause is awake, with the least that it has then, after each statement.
        "aurora.acu_hours": ACU_MIN * min(1.0, awake) * fact("month.hours"),
        "redshift.storage_gb": curated * traffic.retention_days,
        "valkey.gb_hours": max(0.0, cache_gb) * fact("month.hours") * size.has_cache,
        # DynamoDB asks KMS for the key of each table that is in use.
        "kms.requests": len(tables_in_use) * fact("kms.requests_a_table_hour") * fact("month.hours"),
        "logs.kept_gb": _executions(day)["logs.in_gb"] * size.settings["log_days"],
        "secrets.secret": traffic.webhook_endpoints,
        "cognito.monthly_actives": traffic.daily_actives,
    }


def monthly_amounts(
    traffic: Traffic, units: MeasuredUnits, size: TemplateSize, hot_days: float = 0.0
) -> tuple[Amounts, Spent]:
    """Return a month's amounts beyond the idle ones, and the counts of one of its days, by function."""
    day = a_day(traffic, units, size)
    tables = table_bytes(traffic, units, day, hot_days)
    amounts = _stored(traffic, size, day, tables)
    for day_amounts in (
        _executions(day),
        _services(traffic, size, day),
        _night(traffic, size, day, tables),
    ):
        for name, amount in day_amounts.items():
            amounts[name] = amounts.get(name, 0.0) + DAYS_A_MONTH * amount
    if 0 < hot_days < traffic.retention_days:  # each event that leaves is read, and deleted
        for name in ("dynamodb.write", "dynamodb.read"):
            amounts[name] += DAYS_A_MONTH * (traffic.events + traffic.answers)
    # A second each is traced, and a share of the others.
    seconds, requests = fact("month.hours") * 3600, amounts["lambda.requests"]
    amounts["xray.traces"] = min(requests, seconds) + max(0.0, requests - seconds) * fact("xray.sampled")
    return {name: amount for name, amount in amounts.items() if amount}, day
