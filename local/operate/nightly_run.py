"""`streakline night`: the nightly run by hand, over what is new or over days that are made anew."""

import contextlib
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from itertools import chain
from typing import Any

import click

from adapters import clock
from adapters.platform.items import decode_item, encode_item
from adapters.platform.tables import query_all
from local.command import DAY, command, option, show
from local.operate.functions import invoke
from local.progress import working
from local.stack import Stack
from rules.lake.entities import ENTITIES, Unplaceable, row_of

SECONDS_MAX = 1800
LAPTOP_POLL_SECONDS, AWS_POLL_SECONDS = 0.3, 5.0
BY_HAND = "by-hand"  # how the names of such runs begin
SUCCEEDED = "SUCCEEDED"
# States of the run (infra/nightly.asl.json) whose names do not say what is done; a choice is no work.
STATE_WORDS = {
    "Curate": "raw objects become Parquet files",
    "Forget": "who was erased leaves the lake",
    "SideBySide": "accounts are compared, and the warehouse is loaded and built",
    "Retain": "old events leave their table",
}
FINAL_STATUSES = (SUCCEEDED, "FAILED", "TIMED_OUT", "ABORTED")
BACKFILL_POLL_SECONDS = 15.0  # Glue takes a minute or two to start a job
FINAL_JOB_STATES = (SUCCEEDED, "FAILED", "STOPPED", "TIMEOUT", "ERROR", "EXPIRED")
# By entity of the lake: its table, and the attribute that says whose an item is.
TABLES = {
    "events": ("BPEvents", "user_id"),
    "daily_activity": ("DailyActivity", "user_id"),
    "ledger": ("RewardsLedger", "account_id"),
    "streaks": ("UserStreaks", "user_id"),
}


@command("night run", "night run --from 2026-11-01 --to 2026-11-03 --dry-run")
@option("--from", "since", type=DAY, help="first day", show_default="all that is new")
@option("--to", "until", type=DAY, help="last day, included", show_default="all that is new")
@option("--dry-run", is_flag=True, help="report differences, repair nothing")
@option("--everybody", is_flag=True, help="look closely at all, not at whose turn it is")
@option("--full", is_flag=True, help="build the warehouse's models anew, and test all rows")
def run_command(
    *,
    stack: Stack,
    since: date | None,
    until: date | None,
    dry_run: bool,
    everybody: bool,
    full: bool,
    as_json: bool,
) -> None:
    """Do the nightly run now: load the lake and the warehouse, compare, repair. Fails if somebody is left."""
    if (since is None) != (until is None):
        raise click.UsageError("--from and --to go together")
    report = run(stack, since, until, repair=not dry_run, everybody=everybody, full=full)
    show(report, as_json=as_json)
    wrong_users = {*report["unrepaired"], *report["frozen"]}
    if wrong_users and not dry_run:
        raise RuntimeError(f"{len(wrong_users)} users could not be repaired")


@command("night rebuild --from 2026-11-01 --to 2026-11-03 --entity ledger", "night rebuild --user ann")
@option("--from", "since", type=DAY, help="first day", show_default="the user's first")
@option("--to", "until", type=DAY, help="last day, included", show_default="the user's last")
@option("--entity", "entities", multiple=True, help="only this; repeatable", show_default="all")
@option("--user", "users", multiple=True, metavar="ID", help="only days with rows of this user; repeatable")
def rebuild_command(
    *,
    stack: Stack,
    since: date | None,
    until: date | None,
    entities: Sequence[str],
    users: Sequence[str],
) -> Any:
    """Make days of the lake anew from all that came, and load them."""
    days = None
    if users:
        days = account_days(stack, users)
        dates = sorted(map(date.fromisoformat, chain(*days.values())))
        since, until = since or dates[0], until or dates[-1]
    if since is None or until is None:
        raise click.UsageError("say --from and --to, or --user")
    return run(stack, since, until, repair=False, rebuild=True, entities=entities, days=days)


@command("night backfill --from 2025-01-01 --to 2025-12-31 --workers 20 --stack-name streakline")
@option("--from", "since", type=DAY, required=True, help="first day")
@option("--to", "until", type=DAY, required=True, help="last day, included")
@option("--rebuild", is_flag=True, help="also the hours that are curated already")
@option("--workers", default=10, help="of Glue's type G.1X")
def backfill_command(*, stack: Stack, since: date, until: date, rebuild: bool, workers: int) -> Any:
    """Curate many days at once by Spark (Glue), then load them."""
    outcome = run_backfill(stack, since, until, rebuild=rebuild, workers=workers)
    print(outcome, file=sys.stderr, flush=True)
    return run(stack, since, until, repair=False)


def start(
    stack: Stack,
    since: date | None,
    until: date | None,
    *,
    repair: bool,
    everybody: bool = False,
    entities: Sequence[str] = (),
    days: Mapping[str, Sequence[str]] | None = None,
    rebuild: bool = False,
    full: bool = False,
    name: str = BY_HAND,
) -> str:
    """Start a nightly run over the days `since` to `until` (both None: all that is new); returns its ARN.

    entities: only these are curated and loaded; none: all. days: dates (YYYY-MM-DD) by entity, when not all
    of the days are wanted. name: how the run's name begins. The others are as the commands' options say.
    """
    options = {
        "from": since.isoformat() if since else None,
        "to": until.isoformat() if until else None,
        "repair": repair,
        "everybody": everybody,
        "entities": list(entities) or None,
        "days": days,
        "rebuild": rebuild,
        "full": full,
    }
    answer = stack.client("stepfunctions").start_execution(
        stateMachineArn=stack.outputs["NightlyArn"],
        name=f"{name}-{datetime.now(UTC):%Y%m%dT%H%M%S%f}",
        input=json.dumps(options),
    )
    return str(answer["executionArn"])


def wait(
    stack: Stack,
    execution: str,
    seconds_max: float = SECONDS_MAX,
    say: Callable[[str], None] = lambda _: None,
) -> str:
    """Wait for a nightly run to end; returns its status. say: gets how far it is, at each look.

    Raises RuntimeError if it takes longer than `seconds_max`. The run goes on.
    """
    client, deadline = stack.client("stepfunctions"), time.monotonic() + seconds_max
    while True:
        status = str(client.describe_execution(executionArn=execution)["status"])
        pages = client.get_paginator("get_execution_history").paginate(executionArn=execution)
        steps = [
            event for page in pages for event in page["events"] if event["type"].endswith("StateEntered")
        ]
        state = steps[-1]["stateEnteredEventDetails"]["name"] if steps else "begins"
        say(f"step {len(steps)}: {STATE_WORDS.get(state, state)}")
        if status in FINAL_STATUSES:
            return status
        if time.monotonic() > deadline:
            raise RuntimeError(f"{execution} has not ended in {seconds_max:.0f} s, and goes on")
        time.sleep(LAPTOP_POLL_SECONDS if stack.is_laptop else AWS_POLL_SECONDS)


def report_of(stack: Stack, execution: str) -> dict[str, Any]:
    """Return a nightly run's report. A run that failed has one too."""
    key = f"reports/{execution.rpartition(':')[2]}.json"
    body = stack.client("s3").get_object(Bucket=stack.outputs["LakeBucketName"], Key=key)["Body"].read()
    report: dict[str, Any] = json.loads(body)
    return report


def run(
    stack: Stack, since: date | None = None, until: date | None = None, *, repair: bool = True, **options: Any
) -> dict[str, Any]:
    """Do a nightly run; returns its report. options: as `start` takes them.

    Raises RuntimeError, with what failed, if the run failed.
    """
    execution = start(stack, since, until, repair=repair, **options)
    with working("nightly run") as tell:
        status = wait(stack, execution, say=tell)
    if status != SUCCEEDED:
        failure = stack.client("stepfunctions").describe_execution(executionArn=execution)
        raise RuntimeError(f"the run {status.lower()}: {failure.get('cause') or failure.get('error')}")
    return report_of(stack, execution)


def run_backfill(
    stack: Stack,
    since: date,
    until: date,
    *,
    rebuild: bool,
    workers: int,
    pause: Callable[[float], None] = time.sleep,
) -> str:
    """Curate the raw rows of the days `since` to `until` by the Spark job; returns what to look up in Glue.

    rebuild: also the hours whose raw objects are curated already. workers: of Glue's type G.1X, at least 2.
    Raises RuntimeError on a laptop, which has no Glue, and with Glue's reason if the job does not succeed.
    """
    if "CurateJobName" not in stack.outputs:
        raise RuntimeError("no Glue here: `streakline night run --from DAY --to DAY` curates these days, too")
    job, glue = stack.outputs["CurateJobName"], stack.client("glue")
    days = {"from": since.isoformat(), "to": until.isoformat(), "rebuild": str(rebuild).lower()}
    request = {"step": "backfill", "arguments": days, "workers": workers}
    invocation = invoke(stack, stack.outputs["CurateFunctionName"], request)
    if invocation.error:
        raise RuntimeError(f"the Glue job {job} did not start: {invocation.answer.get('errorMessage')}")
    job_run = invocation.answer["job_run"]
    while True:
        description = glue.get_job_run(JobName=job, RunId=job_run)["JobRun"]
        state = description["JobRunState"]
        if state in FINAL_JOB_STATES:
            break
        pause(BACKFILL_POLL_SECONDS)
    if state != SUCCEEDED:
        reason = description.get("ErrorMessage", "no reason is given; see its log")
        raise RuntimeError(f"run {job_run} of the Glue job {job}: {state}: {reason}")
    return f"run {job_run} of the Glue job {job} succeeded"


def account_days(stack: Stack, users: Iterable[str]) -> dict[str, list[str]]:
    """Return the dates (YYYY-MM-DD) of the lake's partitions that have rows of some accounts, by entity.

    An item of a table says in which partition its row is. A profile has a row for each of its changes, and
    each entry of the ledger has changed it: so the dates of entries are dates of profiles, too. Raises
    ValueError if no account has any item.
    """
    dates_of_entity: dict[str, set[str]] = {entity: set() for entity in TABLES}
    for user in users:
        for entity, dates in dates_of_entity.items():
            dates.update(_dates_of(stack, entity, user))
    if not any(dates_of_entity.values()):
        raise ValueError("there is nothing of these accounts")
    dates_of_entity["streaks"] |= dates_of_entity["ledger"]
    return {entity: sorted(dates) for entity, dates in dates_of_entity.items()}


def _dates_of(stack: Stack, entity: str, user: str) -> Iterator[str]:
    table, key = TABLES[entity]
    items = query_all(
        stack.client("dynamodb"),
        TableName=stack.tables[table],
        KeyConditionExpression="#key = :user",
        ExpressionAttributeNames={"#key": key},
        ExpressionAttributeValues=encode_item({":user": user}),
    )
    for item in items:
        with contextlib.suppress(Unplaceable):  # the publisher could not place it either: no row of it
            yield str(row_of(ENTITIES[entity], decode_item(item), clock.now())["dt"])
