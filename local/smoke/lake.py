"""Rows reach the lake; the nightly run curates, loads and compares; the warehouse answers."""

from datetime import UTC, datetime, timedelta
from typing import Any

from adapters.platform.objects import S3Objects
from analytics.curation.raw_lines import readable
from analytics.lake.layout import Place
from analytics.lake.listing import of_place
from analytics.warehouse.warehouse import NoWarehouse, Warehouse, warehouse_at
from local.operate import nightly_run
from local.smoke.asking import must
from local.smoke.steps import SmokeStep, StepSkipped
from local.smoke.subject import Subject
from local.stack import Stack

SKEW = timedelta(minutes=5)  # between this machine's clock and S3's
NOON = "12"
EVENTS = "SELECT COUNT(*) AS events FROM lake.events WHERE user_id = '{user}' AND activity_date = '{day}'"


def rows_arrive(subject: Subject) -> str:
    """The oldest day's event comes through the publisher and Firehose."""
    day = subject.days[0].isoformat()
    what = f"the event is in the lake, for {NOON} h of {day} (on AWS Firehose gathers rows for 5 minutes)"
    return f"found as {subject.until(lambda: _object_with(subject, day), what, subject.waits.lake)}"


def _object_with(subject: Subject, day: str) -> tuple[str | None, Any]:
    """Return the new object that has this test's event; and how many new ones there are."""
    objects, count = S3Objects(subject.stack.client("s3"), subject.stack.outputs["LakeBucketName"]), 0
    arrived = {moment.date().isoformat() for moment in (subject.began - SKEW, datetime.now(UTC) + SKEW)}
    for each in of_place(objects, Place("events", day, NOON), arrived):
        if each.modified < subject.began - SKEW:
            continue
        count += 1
        if f'"{subject.name}"'.encode() in readable(objects.get(each.key)):
            return each.key, count
    return None, f"{count} new objects without it"


def nightly(subject: Subject) -> str:
    """The state machine runs over the oldest day. It repairs nothing: it only looks."""
    stack, day = subject.stack, subject.days[0]
    execution = nightly_run.start(stack, day, day, repair=False, name=subject.name)
    subject.executions.append(execution)
    status = nightly_run.wait(stack, execution, say=lambda _: None)
    must(status == "SUCCEEDED", "a nightly run that succeeds", f"{status}: {execution}")
    report = nightly_run.report_of(stack, execution)
    must(report["error"] is None, "a report without an error", report["error"])
    return f"over {day}: {report['counts']['users']} users, {report['counts']['different']} differ"


def warehouse_of(stack: Stack) -> Warehouse:
    """Return the warehouse that the stack's function loads, with this command's credentials and region."""
    function = stack.outputs["WarehouseFunctionName"]
    told = stack.client("lambda").get_function_configuration(FunctionName=function)
    url = told["Environment"]["Variables"].get("WAREHOUSE_URL", "")
    return warehouse_at(url, data_api=stack.client("redshift-data"))


def warehouse(subject: Subject) -> str:
    """The oldest day's event is in the warehouse, once."""
    found = warehouse_of(subject.stack)
    if isinstance(found, NoWarehouse):
        raise StepSkipped("not deployed: the stack has no warehouse")
    rows = found.rows(EVENTS.format(user=subject.name, day=subject.days[0].isoformat()))
    must([int(each["events"]) for each in rows] == [1], "the one event of the day", rows)
    return "one query: the event of the day, once"


STEPS = (
    SmokeStep("lake", rows_arrive, ("late events",)),
    SmokeStep("nightly run", nightly, ("lake",)),
    SmokeStep("warehouse", warehouse, ("nightly run",)),
)
