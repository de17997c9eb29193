"""Steps about the lake: rows reach it, the night curates, loads and compares, the warehouse answers."""

from datetime import UTC, datetime, timedelta
from typing import Any

from analytics.curation.raw_lines import readable_text
from analytics.lake.layout import Place
from analytics.lake.listing import raw_objects_of_place
from analytics.warehouse.duckdb_warehouse import DuckWarehouse
from analytics.warehouse.warehouse import NoWarehouse
from local.operate import nightly_run
from local.smoke.redshift_assumptions import ASSUMPTIONS, check_assumptions
from local.smoke.steps import StepSkipped, Subject, must
from local.stores import lake_of, warehouse_of

SKEW = timedelta(minutes=5)  # between this machine's clock and S3's
NOON = "12"
# What the step `warehouse` shows when it finds rows on Redshift. DuckDB loads without COPY.
COPY_ASSUMPTION = "COPY reads Parquet of zstd"
EVENTS = "SELECT COUNT(*) AS events FROM lake.events WHERE user_id = '{user}' AND activity_date = '{day}'"


def rows_arrive(subject: Subject) -> str:
    """The oldest day's event comes through the publisher and Firehose."""
    day = subject.days[0].isoformat()
    text = f"the event is in the lake, for {NOON} h of {day} (on AWS Firehose gathers rows for 5 minutes)"
    return f"found as {subject.until(lambda: _find_object(subject, day), text, 'lake')}"


def _find_object(subject: Subject, day: str) -> tuple[str | None, Any]:
    """Return the key of the new object that has this test's event, or None; and what was seen instead."""
    objects, count = lake_of(subject.stack), 0
    arrived = {moment.date().isoformat() for moment in (subject.began - SKEW, datetime.now(UTC) + SKEW)}
    for raw_object in raw_objects_of_place(objects, Place("events", day, NOON), arrived):
        if raw_object.modified < subject.began - SKEW:
            continue
        count += 1
        if f'"{subject.name}"'.encode() in readable_text(objects.get(raw_object.key)):
            return raw_object.key, None
    return None, f"{count} new objects without it"


def nightly(subject: Subject) -> str:
    """The state machine runs over the oldest day. It repairs nothing: it only looks."""
    stack, day = subject.stack, subject.days[0]
    execution = nightly_run.start(stack, day, day, repair=False, name=subject.name)
    subject.executions.append(execution)
    status = nightly_run.wait(stack, execution)
    must(status == "SUCCEEDED", "a nightly run that succeeds", f"{status}: {execution}")
    report = nightly_run.report_of(stack, execution)
    must(report["error"] is None, "a report without an error", report["error"])
    return f"over {day}: {report['counts']['users']} users, {report['counts']['different']} differ"


def warehouse(subject: Subject) -> str:
    """The oldest day's event is in the warehouse, once."""
    deployed = warehouse_of(subject.stack)
    if isinstance(deployed, NoWarehouse):
        raise StepSkipped("not deployed: the stack has no warehouse")
    rows = deployed.rows(EVENTS.format(user=subject.name, day=subject.days[0].isoformat()))
    must([int(row["events"]) for row in rows] == [1], "the one event of the day", rows)
    return "one query: the event of the day, once"


def redshift(subject: Subject) -> str:
    """What the warehouse's SQL relies on holds on this workgroup."""
    warehouse = warehouse_of(subject.stack)
    if isinstance(warehouse, NoWarehouse):
        raise StepSkipped("not deployed: the stack has no warehouse")
    holding, wrong = check_assumptions(warehouse)
    must(not wrong, "an answer as documented", wrong)
    if not isinstance(warehouse, DuckWarehouse):
        holding.append(COPY_ASSUMPTION)
    names = [*(assumption.name for assumption in ASSUMPTIONS), COPY_ASSUMPTION]
    unanswered = [name for name in names if name not in holding]
    doubt = f"; DuckDB cannot say whether {', '.join(unanswered)}" if unanswered else ""
    return f"{len(holding)} hold{doubt}"
