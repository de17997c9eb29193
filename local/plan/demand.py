"""What a day's traffic comes to: measured paths and how often each is taken, batches of streams, what is
stored, what leaves when it is old.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta

from local.plan.environments import DAYS_A_MONTH, SECONDS_A_DAY, Deployment, EventSource
from local.plan.measured_units import Functions, MeasuredUnits, Spent, add, minus, tables_of, together
from local.plan.price_list import fact
from local.plan.traffic import Part, Traffic
from rules.engagement.boards import PAUSE_MAX, USERS_A_SECOND
from rules.engagement.events import RETENTION
from rules.outgoing.notices import KEPT

BOARDS = ("streaks", "points")
MINUTES_A_DAY = 24 * 60


def event_parts(traffic: Traffic, units: MeasuredUnits) -> Iterator[Part]:
    """Yield the posts: each active user's first of the day, which extends the streak, and further ones."""
    users, size = traffic.daily_actives, traffic.events_a_post
    if not traffic.events:
        return
    fresh = users * traffic.new_users
    yield fresh, post(units, "first", size)
    yield users - fresh, post(units, "next", size)
    yield users * (traffic.posts_per_user - 1), post(units, "again", size)


def post(units: MeasuredUnits, kind: str, size: float) -> Spent:
    """Return the cost of a post of so many events: of a known date, and what the kind adds to that."""
    found = units.at("events.again", size)
    if kind == "again":
        return found
    return add(found, minus(units.paths[f"events.{kind}.1"], units.paths["events.again.1"]))


def reading_parts(traffic: Traffic, units: MeasuredUnits) -> Iterator[Part]:
    """Yield what users read and buy. What a board costs may depend on how many users are on it."""
    users = traffic.daily_actives
    yield users * traffic.reads_per_user, units.paths["read.profile"]
    yield users * traffic.redemptions_per_user, units.paths["redeem.reward"]
    for path in ("hold", "hold.capture"):
        yield users * traffic.holds_per_user, units.paths[path]
    yield traffic.accounts * traffic.expiries_per_account / 10, units.paths["expiry.10"]
    yield traffic.events * traffic.clawbacks, units.paths["clawback"]
    for board in BOARDS:
        for what in ("top", "rank"):
            each = users * traffic.boards_per_user / (2 * len(BOARDS))
            if each:
                yield each, on_a_line(units, f"board.{board}.{what}", traffic.accounts)


def snapshots(traffic: Traffic, units: MeasuredUnits, fires_a_day: float) -> Iterator[Part]:
    """Yield the counts of everybody for the boards: as often as the schedule fires, less with many users.

    The schedule's own invocations are not in it; they cost something without users, too. Nor is what a count
    stores: the next one takes its place.
    """
    pause = min(timedelta(seconds=traffic.accounts // USERS_A_SECOND), PAUSE_MAX)
    a_day = min(fires_a_day, timedelta(days=1) / pause if pause else fires_a_day)
    counted = on_a_line(units, "board.snapshot", traffic.accounts)
    left_out = ("invocations", "logs.bytes", "stored.Boards")
    yield (
        a_day,
        {
            function: {name: count for name, count in counts.items() if name not in left_out}
            for function, counts in counted.items()
        },
    )


def on_a_line(units: MeasuredUnits, stem: str, size: float) -> Spent:
    """Return a path's cost on the line through its smallest and its largest measured size."""
    low, high = units.sizes[stem][0], units.sizes[stem][-1]
    slope = minus(units.paths[f"{stem}.{high}"], units.paths[f"{stem}.{low}"])
    growing: Functions = {
        function: {name: count for name, count in counts.items() if count > 0}
        for function, counts in slope.items()
    }
    base = add({}, units.paths[f"{stem}.{low}"])
    return add(base, growing, max(0.0, size - low) / (high - low))


def lead_parts(traffic: Traffic, units: MeasuredUnits) -> Iterator[Part]:
    """Yield webhooks, the morning's refresh, and reads."""
    yield traffic.lead_events, units.paths["lead.next"]
    refreshed = units.sizes["lead.refresh"][0]
    yield traffic.leads / refreshed, units.paths[f"lead.refresh.{refreshed}"]
    for what in ("features", "memory", "events"):
        yield traffic.lead_reads / 3, units.paths[f"lead.read.{what}"]


def question_parts(traffic: Traffic, units: MeasuredUnits) -> Iterator[Part]:
    """Yield questions, the phones that are told, answers, and a look at the answers for each question."""
    told = units.sizes["question.told"][0]
    alone = units.paths["question.asked"]
    yield traffic.questions, alone
    yield traffic.questions * traffic.phones / told, minus(units.paths[f"question.told.{told}"], alone)
    yield traffic.answers, units.paths["question.answered"]
    yield traffic.questions, units.paths["question.polled"]


def outgoing_parts(traffic: Traffic, units: MeasuredUnits) -> Iterator[Part]:
    """Yield what endpoints are told, how it gets there, and the schedule. Leads count as users do."""
    if not traffic.webhook_endpoints:
        return
    count, changes = traffic.webhook_endpoints, traffic.told_changes
    yield MINUTES_A_DAY, on_a_line(units, "webhook.swept", count)
    yield changes, on_a_line(units, "webhook.told", count)
    yield changes * count, units.paths[f"webhook.delivered.{units.sizes['webhook.delivered'][0]}"]


def a_day(traffic: Traffic, units: MeasuredUnits) -> Spent:
    """Return what a day's paths cost, by function. The publisher's part is not in it: it works in batches."""
    parts = [
        *event_parts(traffic, units),
        *reading_parts(traffic, units),
        *lead_parts(traffic, units),
        *question_parts(traffic, units),
        *outgoing_parts(traffic, units),
    ]
    return together(parts)


def naive_day(traffic: Traffic, units: MeasuredUnits) -> Spent:
    """Return the same day, with the event path of the naive design in place of ours."""
    size, posts = traffic.events_a_post, traffic.posts_per_user
    parts: list[Part] = [*reading_parts(traffic, units), *lead_parts(traffic, units)]
    parts += [*question_parts(traffic, units), *outgoing_parts(traffic, units)]
    if traffic.events:
        parts.append((traffic.daily_actives, on_a_line(units, "naive.next", size)))
        parts.append((traffic.daily_actives * (posts - 1), on_a_line(units, "naive.again", size)))
    return together(parts)


# How a stream's records come together in invocations, and what the publisher makes of a table's rows.


PUBLISHER = "PublisherFunction"
NAIVE = "NaivePublisher"


@dataclass(frozen=True, slots=True)
class Batches:
    """Invocations a day, and records in each."""

    invocations: float
    fill: float


def batches(records: float, source: EventSource, together: float = 1.0) -> Batches:
    """Return how so many records a day come in batches.

    together: how many of them are written at once. A batch waits for the window of its mapping, on each shard
    of the stream by itself, and holds what came meanwhile.
    """
    if not records:
        return Batches(0.0, 0.0)
    shards = fact("dynamodb.stream_shards")
    waited = records / SECONDS_A_DAY / shards * source.window_seconds
    fill = min(float(source.batch_size), max(1.0, together, waited))
    return Batches(records / fill, fill)


def waiting(day: Spent, function: str) -> dict[str, float]:
    """Return the records a day that wait for a function, by table."""
    found: dict[str, float] = {}
    for place, count in tables_of(day, "to").items():
        consumer, _, table = place.partition(".")
        if consumer == function and count > 0:
            found[table] = count
    return found


def published(day: Spent, deployed: Deployment, units: MeasuredUnits, post_size: float) -> Spent:
    """Return what the publisher costs in a day: each table's rows in batches as full as they come."""
    found: Spent = {}
    for table, rows in waiting(day, PUBLISHER).items():
        source = next(s for s in deployed.mappings if (s.function, s.source) == (PUBLISHER, table))
        at_once = post_size if table in ("BPEvents", "RewardsLedger") else 1.0
        some = batches(rows, source, at_once)
        add(found, units.at(f"publish.{table}", some.fill), some.invocations)
    return found


def naively_published(day: Spent, units: MeasuredUnits) -> Spent:
    """Return what a publisher costs that puts each change by itself: a record and a call each."""
    found: Spent = {}
    for table, rows in waiting(day, NAIVE).items():
        add(found, {NAIVE: units.paths[f"publish.{table}.1"][PUBLISHER]}, rows)
    return found


# What is stored once the system has run for so many days; each part in GB.


GB = 10**9
# Their items expire; the others' stay.
EXPIRING = ("BPEvents", "IdempotencyKeys")
# Raw objects go to the archive class after so many days: LakeBucket's rule archive-raw.
ARCHIVED_AFTER_DAYS = 90
PROFILES = "UserStreaks"
NOTIFICATIONS = "Notifications"


def days_kept(table: str, retention_days: float, event_days: int = 0) -> float:
    """Return how many days of a table's items are there. event_days: EventHotDays."""
    if table == "BPEvents" and event_days:
        return min(retention_days, event_days)
    if table == NOTIFICATIONS:
        return min(retention_days, KEPT.days)
    return min(retention_days, RETENTION.days) if table in EXPIRING else retention_days


def table_bytes(traffic: Traffic, units: MeasuredUnits, day: Spent, event_days: int = 0) -> dict[str, float]:
    """Return the bytes of each table with its indexes; a profile for each account.

    event_days: EventHotDays.
    """
    profile = tables_of(units.paths["events.first.1"], "stored")[PROFILES]
    found = {
        table: bytes_a_day * days_kept(table, traffic.retention_days, event_days)
        for table, bytes_a_day in tables_of(day, "stored").items()
        if bytes_a_day > 0 and table != PROFILES
    }
    return found | ({PROFILES: traffic.accounts * profile} if traffic.accounts else {})


def lake_rows(day: Spent) -> dict[str, float]:
    """Return the rows a day that go to the lake, by table, whichever publisher takes them."""
    found: dict[str, float] = {}
    for publisher in (PUBLISHER, NAIVE):
        for table, rows in waiting(day, publisher).items():
            found[table] = found.get(table, 0.0) + rows
    return found


def stored(traffic: Traffic, units: MeasuredUnits, day: Spent, event_days: int = 0) -> dict[str, float]:
    """Return the amounts of a month's storage, by the names of prices. event_days: EventHotDays."""
    tables = sum(table_bytes(traffic, units, day, event_days).values()) / GB
    raw, curated = (_lake_bytes(day, units, kind) / GB for kind in ("raw", "curated"))
    fresh = min(traffic.retention_days, ARCHIVED_AFTER_DAYS)
    return {
        "dynamodb.storage_gb": tables,
        "dynamodb.backup_gb": tables,
        "s3.storage_gb": raw * fresh + curated * traffic.retention_days,
        "s3.archive_gb": raw * (traffic.retention_days - fresh),
        "redshift.storage_gb": curated * traffic.retention_days,
    }


def _lake_bytes(day: Spent, units: MeasuredUnits, kind: str) -> float:
    sizes: Mapping[str, float] = units.here
    return sum(rows * sizes.get(f"{kind}_bytes.{table}", 0.0) for table, rows in lake_rows(day).items())


# What leaves tables when it is old (rule 22): units of a day once there is something old enough.


READ_UNIT_BYTES = 4096
HOT = "EventHotDays"
# Parameter -> the table whose items leave, or are changed.
TABLES = {HOT: "BPEvents", "PayloadRetentionDays": "Event", "AnswerTextRetentionDays": "Responses"}


@dataclass(frozen=True, slots=True)
class Leaves:
    """One kind of thing. days: the setting's; 0: it never leaves. items, write, read: a day's.

    Each item is read strongly, and deleted or changed at a write: items stay below 1 KB. An answer without
    words and a webhook that is in the bucket are read alone; all are counted, so it is the most. gb: what a
    day's items take in the table and its indexes.
    """

    days: int
    items: float
    write: float
    read: float
    gb: float


def leaves(traffic: Traffic, day: Spent, parameters: Mapping[str, str]) -> dict[str, Leaves]:
    """Return all kinds by their setting. day: see local.plan.demand.a_day."""
    stored = tables_of(day, "stored")
    counts = (traffic.events + traffic.answers, traffic.lead_events, traffic.answers)
    items = dict(zip(TABLES, counts, strict=True))
    found = {}
    for setting, table in TABLES.items():
        count, size = items[setting], stored.get(table, 0.0)
        # Items of a question are one query; others are read one by one.
        read = size / READ_UNIT_BYTES if table == "Responses" else count
        days = int(parameters.get(setting, 0))
        found[setting] = Leaves(days, count, count, read, size / GB)
    return found


def units_a_month(kinds: Mapping[str, Leaves], run_days: float) -> dict[str, float]:
    """Return the units of a month of what leaves, by the names of prices. run_days: since the beginning."""
    leaving = [each for each in kinds.values() if 0 < each.days < run_days]
    return {
        "dynamodb.write": sum(each.write for each in leaving) * DAYS_A_MONTH,
        "dynamodb.read": sum(each.read for each in leaving) * DAYS_A_MONTH,
    }
