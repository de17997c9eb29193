"""What a day of a traffic asks of AWS, what a month of such days costs, and which limit it reaches first.

A *path*, such as posting five events, was measured in units that AWS counts (units.json), by function:
{"EventsApiFunction": {"write.BPEvents": 5, ...}}. The name of a path that was measured at several sizes ends
with the size: `events.again.5`. Amounts are of a month, by the names of prices, such as `dynamodb.write`.

`cost_of` is the whole calculation: the counts of a day, a month's amounts, their dollars, and the limits.
"""

import json
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

from local.paths import ROOT
from local.plan.part_traffic import PartTraffic
from local.plan.price_list import PriceList, fact
from rules.engagement.boards import pause_between
from rules.engagement.events import RETENTION
from rules.engagement.proof import BUCKETS
from rules.parts import ALL_PARTS, Part, said
from rules.turns import NIGHTS

UNITS = ROOT / "local" / "plan" / "units.json"
Counts = Mapping[str, float]  # by name, such as `write.BPEvents`; or a size's settings
Functions = Mapping[str, Counts]  # the counts of each function
Amounts = dict[str, float]  # counts that were added up; of a month, by the names of prices
TakenPath = tuple[float, Functions]  # how often a path is taken in a day, and the path
DAYS_A_MONTH = 365 / 12
SECONDS_A_DAY = 86_400
GB = 10**9  # bytes
READS, BOARD_READS, REDEMPTIONS = 3, 0.5, 0.02  # of an active user in a day
ACCOUNTS = 4  # for each active user
WEEKLY_ACTIVES = 2  # for each active user of a day: they are on a week's board, and in its league
COHORT = 30  # members, as measured
NEW = 0.01  # the share of active users who do something for the first time
PEAK = 3  # the busiest second of a day against its mean
PUBLISHED_ROWS_MAX = 100  # of one batch, as far as it was measured
SCAN_UNIT_BYTES = 2 * 4096  # an eventually consistent read unit
ARCHIVED_AFTER_DAYS = 90  # LakeBucket's rule archive-raw
ACU_AWAKE = 0.5  # the least capacity of a cluster that may pause, while it is awake
# Amounts that stay the same with more events: the warehouse's nights, and the keys of tables in use.
UNCHANGED = frozenset({"redshift.rpu_hours", "kms.requests"})
# Indexes whose partitions many users write to -> the setting that says how many partitions there are.
SHARED = {"UserStreaks/StreakLeaderboard": "LeaderboardShards", "Feature/ByActivity": "FeatureShards"}


TRAFFIC_OF_PARTS: list[PartTraffic] = list(said("traffic"))


@dataclass(frozen=True, slots=True)
class Traffic:
    """A day, on average."""

    daily_actives: float  # users who do something
    events_per_user: float = 5  # of an active user
    events_per_batch: float = 5  # in one request
    retention_days: float = 365  # for which the system has run: they decide what is stored
    boards: float = 0  # of a week, a month or a season that share no period, each with all users
    leagues: float = 0  # whether one of these boards has leagues: 1, or 0
    of_parts: Mapping[str, float] = field(default_factory=dict)  # by PartTraffic.name

    @property
    def taken(self) -> Iterator[tuple["PartTraffic", float]]:
        """Each part's traffic, with its number."""
        return ((each, self.of_parts.get(each.name, 0)) for each in TRAFFIC_OF_PARTS)

    @property
    def events(self) -> float:
        """Events in a day, those of parts among them."""
        of_parts = sum(each.events * number for each, number in self.taken)
        return self.daily_actives * self.events_per_user + of_parts

    @property
    def accounts(self) -> float:
        """All users with an account."""
        return ACCOUNTS * self.daily_actives

    @property
    def events_a_post(self) -> float:
        """Events in one request."""
        return min(self.events_per_batch, max(1.0, self.events_per_user))


class Limit(NamedTuple):
    """A limit of AWS or of the template."""

    share: float  # that is used at the peak of the day
    name: str
    most: float
    unit: str


@dataclass(frozen=True, slots=True)
class Cost:
    """What a traffic costs in a size of the template, and which limit it reaches first."""

    idle: Amounts  # dollars of a month in which nobody does anything
    running: Amounts  # dollars beyond these
    events: float  # of a month; answers are events, too
    limit: Limit

    @property
    def dollars(self) -> float:
        """Dollars of a month."""
        return sum(self.idle.values()) + sum(self.running.values())

    @property
    def per_million_events(self) -> float | None:
        """Dollars of a million events more; None without events."""
        growing = sum(dollars for name, dollars in self.running.items() if name not in UNCHANGED)
        return 1e6 * growing / self.events if self.events else None


def idle_name(deployed: Collection[Part]) -> str:
    """Return under which name units.json has the idle amounts of a size with some parts."""
    return ".".join(["idle", *(f"without-{part}" for part in Part if part not in deployed)])


def cost_of(traffic: Traffic, size: str, prices: PriceList, deployed: Collection[Part] = ALL_PARTS) -> Cost:
    """Work out a traffic's cost in a size of the template, with some parts.

    Raises BadPriceList, and ValueError for traffic of a part that is left out.
    """
    asked_of = {each.part: number for each, number in traffic.taken}
    for part, asked in asked_of.items():
        if asked and part not in deployed:
            raise ValueError(f"there is traffic of {part}, and the deployment leaves {part} out")
    standing = units()["sizes"][size]
    standing = standing | {"idle": standing[idle_name(deployed)]}
    day = day_of(traffic, standing["settings"])
    beyond_idle = monthly_amounts(traffic, standing["settings"], day)
    amounts = sums([standing["idle"], beyond_idle])
    idle, dollars = prices.dollars(standing["idle"]), prices.dollars(amounts)
    running = {name: amount - idle.get(name, 0.0) for name, amount in dollars.items()}
    return Cost(idle, running, traffic.events * DAYS_A_MONTH, max(limits(day, standing["settings"])))


@cache
def units() -> dict[str, Any]:
    """Return `paths` and `sizes` of the measured units; a size has what is `idle`, and `settings`."""
    content: dict[str, Any] = json.loads(UNITS.read_text())
    return content


def sums(parts: Iterable[Counts], times: float = 1.0) -> Amounts:
    """Return counts added up by their names."""
    added: Amounts = defaultdict(float)
    for counts in parts:
        for name, count in counts.items():
            added[name] += times * count
    return dict(added)


def of_kind(counts: Counts, kind: str) -> Amounts:
    """Return the counts of a kind, such as `write`, by what follows in their names, such as `table/index`."""
    prefix = f"{kind}."
    return {name.removeprefix(prefix): count for name, count in counts.items() if name.startswith(prefix)}


def by_target(functions: Functions, kind: str) -> Amounts:
    """Return the counts of a kind over all functions, by what follows in their names."""
    return sums(of_kind(counts, kind) for counts in functions.values())


def total(functions: Functions, kind: str) -> float:
    """Return the sum of all counts of a kind, over all functions and tables."""
    return sum(by_target(functions, kind).values())


def sum_of_paths(parts: Iterable[TakenPath]) -> dict[str, Amounts]:
    """Return the counts of paths, each taken so many times, by function."""
    counts_of: dict[str, list[Counts]] = defaultdict(list)
    for times, functions in parts:
        for function, counts in functions.items():
            counts_of[function].append(sums([counts], times))
    return {function: sums(counts) for function, counts in counts_of.items()}


def path_at_size(stem: str, size: float) -> Functions:
    """Return a path's counts at a size: on the line through the two measured sizes that are next to it."""
    paths = units()["paths"]
    sizes = sorted(int(name.rpartition(".")[2]) for name in paths if name.rpartition(".")[0] == stem)
    index = min(max(1, bisect_left(sizes, size)), len(sizes) - 1)
    low, high = sizes[index - 1], sizes[index]
    share = (size - low) / (high - low)
    return sum_of_paths([(1 - share, paths[f"{stem}.{low}"]), (share, paths[f"{stem}.{high}"])])


def _paths(traffic: Traffic, settings: Counts) -> Iterator[TakenPath]:
    paths, users, events = units()["paths"], traffic.daily_actives, traffic.events_a_post
    posts = traffic.events_per_user / events
    yield NEW * users * min(1.0, posts), path_at_size("events.first", events)
    yield (1 - NEW) * users * min(1.0, posts), path_at_size("events.next", events)
    yield users * max(0.0, posts - 1), path_at_size("events.again", events)
    yield READS * users, paths["read.profile"]
    yield REDEMPTIONS * users, paths["redeem.reward"]
    for board in ("streaks.top", "streaks.rank", "points.top", "points.rank"):
        yield BOARD_READS / 4 * users, paths[f"board.{board}.160"]  # a list ends after a hundred of a shard
    # A schedule's invocations are among the idle amounts. A snapshot replaces the one before it.
    snapshot = _of_tables(path_at_size("board.snapshot", traffic.accounts))
    pause_seconds = max(1.0, pause_between(int(traffic.accounts)).total_seconds())
    yield min(settings["snapshots_a_day"], SECONDS_A_DAY / pause_seconds), snapshot
    yield from _boards_and_leagues(traffic, min(settings["snapshots_a_day"], SECONDS_A_DAY / pause_seconds))
    for each, number in traffic.taken:
        yield from ((number * times, paths[path]) for path, times in each.paths.items())


def _boards_and_leagues(traffic: Traffic, snapshots: float) -> Iterator[TakenPath]:
    """Yield what boards and leagues of the book add to a day. snapshots: how many are made in it.

    Both are differences of measured paths: of a snapshot with a board and without, of an event that joins a
    league and one that does not, and of a snapshot that closes a cohort.
    """
    paths, users = units()["paths"], traffic.daily_actives
    playing = WEEKLY_ACTIVES * users
    if traffic.boards:
        yield traffic.boards * snapshots, _of_tables(path_at_size("board.period.week", playing))
        yield -traffic.boards * snapshots, _of_tables(path_at_size("board.period.none", playing))
        yield traffic.boards * BOARD_READS * users, paths["board.period.read"]
    if traffic.leagues:
        yield playing / 7, _of_tables(paths["league.event.joining"])
        yield -playing / 7, _of_tables(paths["league.event.again"])
        yield BOARD_READS * users, paths["league.read"]
        yield playing / 7 / COHORT, _of_tables(paths[f"league.closing.{COHORT}"])
        yield -playing / 7 / COHORT, _of_tables(path_at_size("board.period.week", COHORT))


def _of_tables(functions: Functions) -> Functions:
    """Return the counts of a path without its invocations and logs, and without what replaces an item."""
    kinds = ("read.", "write.", "calls.", "to.")
    return {
        function: {name: count for name, count in counts.items() if name.startswith(kinds)}
        for function, counts in functions.items()
    }


def day_of(traffic: Traffic, settings: Counts) -> Functions:
    """Return the counts of a day, by function.

    The publisher gets a table's rows in batches: those that come within its window, shard by shard.
    """
    parts = list(_paths(traffic, settings))
    for table, rows in lake_rows(sum_of_paths(parts)).items():
        rows_per_window = (
            rows / SECONDS_A_DAY / fact("dynamodb.stream_shards") * settings["publisher_seconds"]
        )
        rows_per_post = traffic.events_a_post if table in ("BPEvents", "RewardsLedger") else 1.0
        fill = min(PUBLISHED_ROWS_MAX, max(rows_per_post, rows_per_window))
        parts.append((rows / fill, path_at_size(f"publish.{table}", fill)))
    return sum_of_paths(parts)


def lake_rows(day: Functions) -> Amounts:
    """Return the rows of a day that go to the lake, by table."""
    return {table: rows for table, rows in by_target(day, "to.PublisherFunction").items() if rows > 0}


def seconds_of(counts: Counts) -> float:
    """Return the seconds of a function's executions: its CPU, at its share of a core, and its waits."""
    calls = of_kind(counts, "calls")
    cpu_ms = sum(calls.values()) * fact("lambda.cpu_ms_a_call")
    cpu_ms += sum(of_kind(counts, "read").values()) * fact("lambda.cpu_ms_a_read")
    waits_ms = sum(count * fact(f"latency_ms.{name}") for name, count in calls.items())
    return (cpu_ms * fact("lambda.vcpu_mb") / fact("lambda.memory_mb") + waits_ms) / 1000


def table_bytes(traffic: Traffic, day: Functions) -> Amounts:
    """Return the bytes of each table with its indexes. Claims and events expire; an account has a profile."""
    kept = {"IdempotencyKeys": RETENTION.days, "BPEvents": RETENTION.days}
    days = traffic.retention_days
    stored = {
        table: daily * min(days, kept.get(table, days)) for table, daily in by_target(day, "stored").items()
    }
    profile: float = units()["paths"]["events.first.1"]["EngagementFunction"]["stored.UserStreaks"]
    return stored | {"UserStreaks": traffic.accounts * profile}


def monthly_amounts(traffic: Traffic, settings: Counts, day: Functions) -> Amounts:
    """Return a month's amounts beyond the idle ones."""
    tables = table_bytes(traffic, day)
    daily = sums([_requests(day), _night(traffic, settings, day, tables)])
    amounts = sums([sums([daily], DAYS_A_MONTH), _stored(traffic, settings, day, tables)])
    # A second each is traced, and a share of the others.
    seconds, requests = fact("month.hours") * 3600, amounts["lambda.requests"]
    amounts["xray.traces"] = min(requests, seconds) + max(0.0, requests - seconds) * fact("xray.sampled")
    return amounts


def _requests(day: Functions) -> Amounts:
    calls, sqs, firehose = (by_target(day, kind) for kind in ("calls", "sqs", "firehose"))
    invocations, requests = _invocations(day), _requests_of_doors(day)
    logs = (
        total(day, "logs") + invocations * fact("logs.platform_bytes") + requests * fact("logs.access_bytes")
    )
    return {
        "lambda.requests": invocations,
        "lambda.gb_seconds": sum(map(seconds_of, day.values())) * fact("lambda.memory_mb") / 1024,
        "api.requests": requests,
        "traffic.out_gb": requests * fact("api.answer_bytes") / GB,
        "logs.in_gb": logs / GB,
        "dynamodb.write": total(day, "write"),
        "dynamodb.read": total(day, "read"),
        "secrets.calls": calls.get("secretsmanager", 0.0),
        "sns.requests": calls.get("sns", 0.0),
        # Sends, deliveries from the topic; a receive and a delete for each message: batches are small.
        "sqs.requests": calls.get("sqs", 0.0) + sqs.get("delivered", 0.0) + 2 * sqs.get("messages", 0.0),
        "firehose.in_gb": firehose.get("billed_bytes", 0.0) / GB,
        "firehose.partitioned_gb": firehose.get("bytes", 0.0) / GB,
        "firehose.jq_hours": sum(lake_rows(day).values()) / 1e6 * fact("firehose.jq_hours_per_million_rows"),
        "aurora.io": calls.get("postgres", 0.0) * fact("aurora.io_per_statement"),
    }


def _night(traffic: Traffic, settings: Counts, day: Functions, tables: Counts) -> Amounts:
    """Return a night's amounts: curation of the day's rows, the pass over the tables, the ledger's root.

    tables: the bytes of each.
    """
    rows = lake_rows(day)
    hours = sum(min(24.0, count) for count in rows.values())  # of an entity, with rows
    objects = sum(min(count, 24 * settings["objects_an_hour"]) for count in rows.values())
    ledgers = traffic.daily_actives + (traffic.accounts - traffic.daily_actives) / NIGHTS
    puts = hours * fact("night.s3_puts") + min(BUCKETS, ledgers)
    gets = objects + hours + 2 * min(BUCKETS, ledgers)
    scanned = tables["UserStreaks"] + tables.get("DailyActivity", 0.0)
    scanned += tables.get("RewardsLedger", 0.0) * ledgers / max(1.0, traffic.accounts)
    seconds = sum(rows.values()) * fact("night.us_a_row") / 1e6 + (puts + gets) * fact("latency_ms.s3") / 1000
    seconds += scanned / fact("night.scan_bytes_per_second")
    # What a night asks of the warehouse if nothing has come, once in NIGHTS, is among the idle amounts.
    is_busy = max(0.0, min(1.0, sum(rows.values())) - 1 / NIGHTS)
    return {
        "redshift.rpu_hours": settings["rpu_hours_a_night"] * is_busy,
        "firehose.partitioned_objects": objects,
        "s3.archived": objects * (traffic.retention_days > ARCHIVED_AFTER_DAYS),
        "s3.put": objects + puts,
        "s3.get": gets,
        "lambda.gb_seconds": seconds * fact("lambda.vcpu_mb") / 1024,
        "dynamodb.read": scanned / SCAN_UNIT_BYTES,
    }


def _stored(traffic: Traffic, settings: Counts, day: Functions, tables: Counts) -> Amounts:
    """Return a month's amounts of what is stored or kept awake. tables: the bytes of each."""
    rows, unarchived = sum(lake_rows(day).values()), min(traffic.retention_days, ARCHIVED_AFTER_DAYS)
    raw, curated = (rows * fact(f"lake.{kind}_bytes") / GB for kind in ("raw", "curated"))
    statements = by_target(day, "calls").get("postgres", 0.0)
    awake = statements * settings.get("pause_seconds", 0) / SECONDS_A_DAY
    tables_in_use = {target.partition("/")[0] for target, count in by_target(day, "write").items() if count}
    return {
        "dynamodb.storage_gb": sum(tables.values()) / GB,
        "dynamodb.backup_gb": sum(tables.values()) / GB,
        "s3.storage_gb": raw * unarchived + curated * traffic.retention_days,
        "s3.archive_gb": raw * (traffic.retention_days - unarchived),
        # A cluster that may pause is awake for a while after each statement. It is asked by the Data API.
        "aurora.acu_hours": ACU_AWAKE * min(1.0, awake) * fact("month.hours"),
        "rdsdata.requests": statements * DAYS_A_MONTH * ("pause_seconds" in settings),
        "redshift.storage_gb": curated * traffic.retention_days,
        "kms.requests": len(tables_in_use) * fact("kms.requests_a_table_hour") * fact("month.hours"),
        "logs.kept_gb": _requests(day)["logs.in_gb"] * settings["log_days"],
        "cognito.monthly_actives": traffic.daily_actives,
    }


def _invocations(day: Functions) -> float:
    return sum(counts.get("invocations", 0.0) for counts in day.values())


def _requests_of_doors(day: Functions) -> float:
    return _invocations({name: counts for name, counts in day.items() if name.endswith("ApiFunction")})


def limits(day: Functions, settings: Counts) -> Iterator[Limit]:
    """Yield the limits, with the shares of them that a day's peak uses."""
    a_second, writes = PEAK / SECONDS_A_DAY, by_target(day, "write")
    for index, partitions in SHARED.items():
        most = fact("dynamodb.partition_writes") * settings[partitions]
        yield Limit(writes.get(index, 0.0) * a_second / most, f"{index}'s partitions", most, "write units/s")
    for kind in ("write", "read"):
        most = fact(f"dynamodb.table_{kind}s")
        of_tables = sums({target.partition("/")[0]: n} for target, n in by_target(day, kind).items())
        for table, count in of_tables.items():
            yield Limit(count * a_second / most, f"the table {table}", most, f"{kind} units/s")
    most, requests = settings["requests_per_second"], _requests_of_doors(day)
    yield Limit(requests * a_second / most, "the API's throttle (template)", most, "requests/s")
    most, at_once = fact("lambda.concurrency"), sum(map(seconds_of, day.values()))
    yield Limit(at_once * a_second / most, "Lambda's concurrency", most, "executions at once")
    most, sent = fact("firehose.bytes_per_second"), by_target(day, "firehose").get("bytes", 0.0)
    yield Limit(sent * a_second / most, "Firehose's bytes", most, "bytes/s")
