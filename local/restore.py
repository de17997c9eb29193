"""`streakline restore`: brings back from the lake what the tables had before an instant (rule 21).

It writes only what is missing, so it may be killed and run again.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click

from adapters.engagement.projections import Projections
from adapters.platform.item_tables import ItemTable
from adapters.platform.objects import S3Objects
from adapters.privacy.tombstones import Tombstones
from adapters.settings.choices import settings_of
from analytics.curation.curate import curate
from analytics.curation.plan import plan
from analytics.reconcile.reconcile_user import Reconciler
from analytics.restore.part_restore import PartRestore, RestoreInput
from analytics.restore.restorer import RESTORED, Restorer, RestoreReport, copy_table
from analytics.restore.user_rows import USERS_ENTITIES, LakeBefore
from local.command import FILE_OUT, Function, Reader, command, option
from local.stack import Stack
from local.stores import accounts_of, books_of, cache_of, lake_of, tombstones_of
from rules.days import parse_moment, stamp
from rules.engagement.events import RETENTION
from rules.lake.table_items import KEYS
from rules.parts import said

PROGRESS_USERS = 1000  # users between two lines of progress
REASONS_MAX = 20  # printed ones; the report has all
PARTS: list[PartRestore] = list(said("restores"))
RESTORABLE = (*RESTORED, *(table for part in PARTS for table in part.replaceable))
FROM_ROWS = tuple(table for part in PARTS for table in part.filled)
ENTITIES_READ = (*USERS_ENTITIES, *(entity for part in PARTS for entity in part.entities))
TABLE_KEYS = {
    **KEYS,
    "RewardsLedger": ("account_id", "created_at"),
    "BPEvents": ("user_id", "event_id"),
    "Friends": ("user_id", "friend_id"),
    **{table: key for part in PARTS for table, key in part.keys.items()},
}
# What a restore does not bring back, by store; then what follows, or what to do. Point-in-time recovery has
# the items of tables (--from-table).
NOT_IN_THE_LAKE = {
    **{store: reason for part in PARTS for store, reason in part.not_in_the_lake.items()},
    "WebhookEndpoints": "addresses of the customer's systems; declare them again",
    "Notifications": "what the customer's systems were told; they may be told again",
    "Erasures": "erasures under way, and certificates; erase these persons again (tombstones are there)",
    "IdempotencyKeys": "digests of leads' events, states of orders, counts of hooks, and notes of imports;"
    " another event under an old id is a duplicate, and a webhook of an old order is kept as a conflict",
    "PayloadBucket": "large webhooks; the bucket may still have them",
    "Friends": "who is whose friend, has asked whom, has blocked whom; point-in-time recovery has it",
    "Boards": "final results of periods that were final two weeks ago, which the warehouse has, and the open"
    " week's cohorts of leagues; the next snapshot makes all else anew",
    "Limits": "counts of the last minute; they start again",
    "Redis": "nothing; rounds fill it",
    "Warehouse": "nothing; nights load from the lake what it lacks",
}


def whole_second(text: str) -> datetime:
    """Read a whole second; raises ValueError."""
    instant = parse_moment(text).utc
    if instant.microsecond:
        raise ValueError("no whole second: streams tell seconds")
    return instant


def table_copy(text: str) -> tuple[str, str]:
    """Read TABLE=NAME; raises ValueError."""
    table, is_there, name = text.partition("=")
    if not (table and is_there and name):
        raise ValueError("must be TABLE=NAME")
    return table, name


def _tables_option(name: str, tables: Sequence[str], text: str) -> Callable[[Function], Function]:
    return option(
        name,
        multiple=True,
        type=click.Choice(tables),
        metavar="TABLE",
        help=f"{text}; repeatable",
    )


@command(
    "restore --to 2026-11-24T03:00:00Z", "restore --from-table Responses=responses-0300 --keep UserStreaks"
)
@option(
    "--to",
    type=Reader("instant", whole_second),
    help="what was written before it comes back: a whole second",
    show_default="all",
)
@option(
    "--lake", "lake_bucket", metavar="BUCKET", help="of a stack that is gone", show_default="the stack's own"
)
@option(
    "--from-table",
    multiple=True,
    type=Reader("text", table_copy),
    metavar="TABLE=NAME",
    help="fill a table first from one that came back by point-in-time recovery; repeatable",
)
@_tables_option("--replace", RESTORABLE, "a damaged table: it gets what the lake has, and loses all else")
@_tables_option("--keep", (*RESTORABLE, *FROM_ROWS), "a table to leave alone")
@option("--report", "report_file", type=FILE_OUT, default=Path("restore.json"), help="what could not be had")
def restore(
    *,
    stack: Stack,
    to: datetime | None,
    lake_bucket: str | None,
    from_table: Sequence[tuple[str, str]],
    replace: Sequence[str],
    keep: Sequence[str],
    report_file: Path,
) -> None:
    """Bring back what the tables had before an instant, from the lake. It writes what is missing.

    It may be killed and run again. It fails if something could not be had.
    """
    now = datetime.now(UTC)
    until = to or now.replace(microsecond=0) + timedelta(seconds=1)
    if until > now + timedelta(seconds=1):
        raise RuntimeError(f"--to: {stamp(until)} is in the future")
    lake = lake_of(stack, lake_bucket)
    print(f"curated: {curate_new(lake, now)} partitions that no night has yet", flush=True)
    erased = tombstones_of(stack)
    for table, source in from_table:
        item_count, erased_count = _copy(stack, table, source, erased)
        print(
            f"{table}: {item_count} items from {source}; {erased_count} of persons who were erased",
            flush=True,
        )
    hot_days = int(settings_of(stack.parameters.get("Settings", ""))["EventHotDays"])
    # Events that are older than both have left their table (rule 22).
    before = LakeBefore(lake, until, now, max(RETENTION, timedelta(days=hot_days)))
    result = _restorer(stack, before, erased, keep, replace).run(now, _print_progress)
    given = RestoreInput(before, stack.client("dynamodb"), stack.tables, erased, keep, replace)
    for part in PARTS:
        part.run(given, result, now)
    report = report_of(result, until, before.later(), {table for table, _ in from_table})
    report_file.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print("\n".join(lines(report)))
    if result.lacks:
        raise RuntimeError(f"{len(result.lacks)} things could not be had: {report_file} names them")


def curate_new(lake: S3Objects, now: datetime) -> int:
    """Curate what has arrived since the last night, as the next one would; returns how many partitions."""
    tasks = [task for task in plan(lake, now.date()).tasks if task.entity in ENTITIES_READ]
    for task in tasks:
        curate(lake, task)
    return len(tasks)


def report_of(
    result: RestoreReport, until: datetime, later: Mapping[str, int], copied_tables: set[str]
) -> dict[str, Any]:
    """Return the content of the report's file: counts, each missing thing, and what no lake has.

    later: how many entries and profiles the lake has of `until` or later.
    """
    return {
        "to": stamp(until),
        "users": result.users,
        "erased_persons": result.erased,
        **{name: result.others[name] for part in PARTS for name in part.counted},
        "written": dict(sorted(result.changes.items())),
        "repaired": result.repaired,
        "rows_of_later": later,
        "lacks": [
            {"store": lack.store, "key": lack.key, "reason": lack.reason} for lack in sorted(result.lacks)
        ],
        "not_in_the_lake": {
            name: reason for name, reason in NOT_IN_THE_LAKE.items() if name not in copied_tables
        },
    }


def lines(report: dict[str, Any]) -> Iterator[str]:
    """Yield the report in words."""
    yield f"{report['users']} users as of {report['to']}; {report['erased_persons']} were erased and stay so"
    for part in PARTS:
        yield "; ".join(f"{report[name]} {words}" for name, words in part.counted.items())
    yield (
        ", ".join(f"{table}: {count} written" for table, count in report["written"].items() if count)
        or "all was there"
    )
    if any(report["rows_of_later"].values()):
        yield (
            f"the lake has {report['rows_of_later']['ledger']} entries of later: while it has them, nights"
            " hold their accounts for review (docs/runbook.md, Bringing back)"
        )
    counts = Counter((lack["store"], lack["reason"]) for lack in report["lacks"])
    for (store, reason), count in counts.most_common(REASONS_MAX):
        yield f"lacking, {store}, {count} times: {reason}"
    yield "not from the lake: " + ", ".join(report["not_in_the_lake"])


def _restorer(
    stack: Stack, lake: LakeBefore, erased: Tombstones, keep: Sequence[str], replace: Sequence[str]
) -> Restorer:
    dynamodb, accounts, cache = stack.client("dynamodb"), accounts_of(stack), cache_of(stack)
    projections = Projections(dynamodb, stack.tables["UserStreaks"], stack.tables["DailyActivity"])
    books = books_of(stack).books
    reconciler = Reconciler(accounts, projections, cache, may_repair=True, books=books)
    return Restorer(lake, _tables(stack, RESTORED), accounts, reconciler, cache, erased, keep, replace)


def _tables(stack: Stack, names: Iterable[str]) -> dict[str, ItemTable]:
    dynamodb = stack.client("dynamodb")
    deployed = [name for name in names if name in stack.tables]
    return {name: ItemTable(dynamodb, stack.tables[name], TABLE_KEYS[name]) for name in deployed}


def _copy(stack: Stack, table: str, source: str, erased: Tombstones) -> tuple[int, int]:
    if table not in stack.tables:
        raise RuntimeError(f"--from-table: there is no table {table}, but {', '.join(sorted(stack.tables))}")
    dynamodb = stack.client("dynamodb")
    schema = dynamodb.describe_table(TableName=stack.tables[table])["Table"]["KeySchema"]
    # HASH, the partition key, sorts before RANGE.
    keys = [key["AttributeName"] for key in sorted(schema, key=lambda key: str(key["KeyType"]))]
    return copy_table(
        ItemTable(dynamodb, source, keys), ItemTable(dynamodb, stack.tables[table], keys), erased
    )


def _print_progress(result: RestoreReport) -> None:
    if result.users % PROGRESS_USERS == 0:
        print(f"{result.users} users", flush=True)
