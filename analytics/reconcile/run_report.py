"""A nightly run's report: reports/{run_id}.json for machines, reports/{run_id}.md for people."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from itertools import chain
from operator import itemgetter
from typing import Any, TypedDict

from adapters.platform.objects import NoObject, Objects
from analytics.curation import spark_job
from analytics.lake import run_notes
from analytics.lake.layout import REPORT_CELL_MAX, REPORT_TITLE, report_key, run_key
from analytics.lake.run_notes import failed_tasks_of_run
from analytics.reconcile.findings import RESULT, Findings, failed_shares
from analytics.reconcile.part_findings import PartFindings
from analytics.reconcile.part_night import PartNight
from analytics.warehouse.night import Kind, State, WarehouseNight
from rules.engagement.reconciliation import Doubt
from rules.parts import ALL_PARTS, said

LISTED_MAX = 1000  # of each kind of finding, in the report for machines
SHOWN_MAX = 50  # in a table of the report for people
EMPTY_TABLE = "None."  # in the report for people; `streakline report` tells clean sections by it
PARTITION = ("entity", "date", "hour", "why")
# The likely fault if very many accounts are in a doubt
FAULT_OF_DOUBT = {
    Doubt.LACKING: "the lake has lost something",
    Doubt.UNPROVEN: "the code that makes or checks hashes must be wrong",
}
# Fields of the report that are of a part: without the part the report has neither them nor their tables.
NIGHTS_OF_PARTS: list[PartNight] = list(said("nights"))
FINDINGS_OF_PARTS: list[PartFindings] = list(said("findings"))
PART_OF_FIELD = {each.field: each.part for each in FINDINGS_OF_PARTS} | {
    each.field: each.part for each in NIGHTS_OF_PARTS
}
CURATION = """SELECT entity, SUM(rows_in) AS rows_in, SUM(curated) AS curated, SUM(duplicates) AS duplicates,
SUM(quarantined) AS quarantined FROM lake.curation GROUP BY entity ORDER BY entity"""


class WarehousePart(TypedDict):
    """The outcome of a night's work in the warehouse."""

    error: Any  # why the work ended early; None: it did not
    not_done: list[dict[str, Any]]  # what, state, reason: loads, models and tests
    lacks: dict[str, int]  # how many partitions the warehouse lacks, by entity
    unread: str | None  # why the report could not ask the warehouse; None: it could
    quiet_since: str  # the run since which there is nothing to ask; "": the warehouse was asked


class Report(TypedDict):
    """A night's report, as reports/{run_id}.json has it, but for `is_whole`."""

    run_id: str
    made_at: str
    parts: list[str]  # the parts that are deployed, of those that may be left out
    error: Any  # why repair, or all of the run, ended early; None: it did not
    # The fields from here to `root` are those of findings.Findings.
    counts: dict[str, int]
    different: list[str]  # ids of users, as in the next three lists
    unrepaired: list[str]
    contended: list[str]
    frozen: list[str]  # their redemptions wait for an admin
    spared: dict[str, int]  # doubt -> how many redemptions do not wait, because the accounts are too many
    root: dict[str, Any] | None  # over all ledgers' heads, as published
    differences: list[dict[str, Any]]  # attributes of items, see differences.Difference
    ledger_and_lake: list[Any]  # disagreements of ledger and lake: (user, what)
    of_parts: dict[str, dict[str, Any]]  # by PartNight.field, which are fields of the file
    warehouse_and_lake: list[Any]  # users for whom the two recomputes disagree
    findings: dict[str, list[Mapping[str, Any]]]  # by PartFindings.field, which are fields of the file
    failed_tests: list[dict[str, Any]]  # of models: model, test, rows
    warehouse: WarehousePart
    curation: list[dict[str, Any]]  # counts by entity, as the warehouse has them
    curation_failures: list[dict[str, Any]]  # partitions that were given up, with the reason
    odd_objects: list[dict[str, str]]  # objects of the lake that wait for an operator, with the reason
    spark: dict[str, Any] | None  # the outcome of the Glue job, if the night was handed to it
    failed_shares: list[dict[str, Any]]  # share, reason
    rebuild: dict[str, Any]  # partitions without raw objects, see run_notes.read_rebuilds


def gather(
    objects: Objects, run_id: str, now: datetime, error: Any = None, warehouse_error: Any = None
) -> Report:
    """Return the report of the results that the run's steps have stored, without those of the warehouse.

    error: why repair, or all of the run, ended early. warehouse_error: why the warehouse's work ended early.
    Raises NoObject if the reconciliation has stored nothing and there is no error to report.
    """
    findings = _read_findings(objects, run_id, error)
    failed_tests, warehouse = _warehouse_part(objects, run_id, warehouse_error)
    return {
        "run_id": run_id,
        "made_at": now.isoformat(),
        "parts": sorted(ALL_PARTS),
        "error": error,
        "counts": findings["counts"],
        "different": findings["different"],
        "unrepaired": findings["unrepaired"],
        "contended": findings["contended"],
        "frozen": findings["frozen"][:LISTED_MAX],
        "spared": findings["spared"],
        "root": findings["root"],
        "differences": findings["differences"][:LISTED_MAX],
        "ledger_and_lake": findings["disagreements"][:LISTED_MAX],
        "of_parts": {each.field: each.short_result(objects, run_id, LISTED_MAX) for each in NIGHTS_OF_PARTS},
        "warehouse_and_lake": [],
        "findings": {each.field: [] for each in FINDINGS_OF_PARTS},
        "failed_tests": failed_tests,
        "warehouse": warehouse,
        "curation": [],
        "curation_failures": failed_tasks_of_run(objects, run_id),
        "odd_objects": run_notes.odd_objects(objects, run_id),
        "spark": spark_job.read_job_note(objects, run_id),
        "failed_shares": failed_shares(objects, run_id),
        "rebuild": run_notes.read_rebuilds(objects, run_id),
    }


def _read_findings(objects: Objects, run_id: str, error: Any) -> dict[str, Any]:
    """Return the comparison's findings. They are empty if an error has kept it from storing any."""
    try:
        findings: dict[str, Any] = json.loads(objects.get(run_key(run_id, RESULT)))
    except NoObject:
        if error is None:
            raise
        return {**asdict(Findings()), "counts": {}}
    return findings


def with_warehouse(
    report: Report,
    user_disagreements: Sequence[Any],
    curation: Sequence[Mapping[str, Any]],
    findings: Mapping[str, Sequence[Mapping[str, Any]]],
) -> Report:
    """Return the report with the warehouse's part.

    user_disagreements: see warehouse_disagreements. curation: counts by entity. findings: those of parts, by
    PartFindings.field.
    """
    return {
        **report,
        "findings": {name: list(rows) for name, rows in findings.items()},
        "warehouse_and_lake": list(user_disagreements)[:LISTED_MAX],
        "curation": [{name: _count(value) for name, value in row.items()} for row in curation],
    }


def _warehouse_part(objects: Objects, run_id: str, error: Any) -> tuple[list[dict[str, Any]], WarehousePart]:
    night = WarehouseNight.read(objects, run_id)
    items = night.items if night else []
    not_done = [
        {"what": f"{item.kind} {item.name}", "state": item.state, "reason": item.reason}
        for item in items
        if item.state in (State.FAILED, State.SKIPPED)
    ]
    unloaded = {place for places in run_notes.read_unloaded(objects).values() for place in places}
    return [failure for item in items for failure in item.found], {
        "error": error,
        "not_done": sorted(not_done, key=itemgetter("state")),
        "lacks": dict(sorted(Counter(place.entity for place in unloaded).items())),
        "unread": None,
        "quiet_since": night.quiet_since if night else "",
    }


def is_built(objects: Objects, run_id: str, model: str) -> bool:
    """Whether a model was built in this run, after everything was loaded."""
    night = WarehouseNight.read(objects, run_id)
    items = night.items if night else []
    is_loaded = all(item.state is State.DONE for item in items if item.kind is Kind.LOAD)
    done = {item.name for item in items if item.kind is Kind.MODEL and item.state is State.DONE}
    return is_loaded and model in done


def is_whole(report: Report) -> bool:
    """Whether every step of the run has succeeded, and no object of the lake waits for an operator.

    Failed tests and differences are findings, and not failures.
    """
    warehouse = report["warehouse"]
    failures = (
        report["error"],
        report["curation_failures"],
        report["odd_objects"],
        report["failed_shares"],
    )
    return not any((*failures, warehouse["error"], warehouse["not_done"], warehouse["unread"]))


def is_settled(report: Report) -> bool:
    """Whether the warehouse need not be asked until new rows come: it lacks no rows, and nothing is wrong."""
    findings = (report["warehouse_and_lake"], *report["findings"].values(), report["failed_tests"])
    return is_whole(report) and not any((*findings, report["warehouse"]["lacks"]))


def _count(value: Any) -> Any:
    return value if isinstance(value, str) else int(value)


def publish(objects: Objects, report: Report) -> list[str]:
    """Store the report in both forms; returns their keys."""
    for_machines = {**report, **report["findings"], **report["of_parts"], "is_whole": is_whole(report)}
    del for_machines["findings"], for_machines["of_parts"]
    for name, part in PART_OF_FIELD.items():
        if part not in report["parts"]:
            del for_machines[name]
    texts = {"json": json.dumps(for_machines, indent=1, default=str), "md": markdown(report)}
    keys = {suffix: report_key(report["run_id"], suffix) for suffix in texts}
    for suffix, text in texts.items():
        objects.put(keys[suffix], text.encode())
    return list(keys.values())


def markdown(report: Report) -> str:
    """Return the report as text for people, with shortened tables."""
    deployed = report["parts"]
    counts = [(name.replace("_", " "), number) for name, number in report["counts"].items()]
    found = chain(report["differences"], *(each["differences"] for each in report["of_parts"].values()))
    differences = map(_difference_row, found)
    tests = _columns(report["failed_tests"], "model", "test", "rows")
    users = _columns(report["warehouse_and_lake"], "user_id", "lake", "warehouse")
    shares = _columns(report["failed_shares"], "share", "reason")
    found_by_parts = [
        each.table(report["findings"][each.field]) for each in FINDINGS_OF_PARTS if each.part in deployed
    ]
    tables_of_parts = chain.from_iterable(
        each.tables(report["of_parts"][each.field]) for each in NIGHTS_OF_PARTS if each.part in deployed
    )
    curation = [tuple(row.values()) for row in report["curation"]]
    odd_objects = _columns(report["odd_objects"], "object", "reason")
    parts = [
        f"{REPORT_TITLE}{report['run_id']}\n\nMade at {report['made_at']}.",
        *_failures(report),
        *_spark(report["spark"]),
        *_quiet(report["warehouse"]),
        _table(
            "Partitions that could not be curated", PARTITION, _partition_rows(report["curation_failures"])
        ),
        _table("Objects that wait for an operator", ("object", "why"), odd_objects),
        *_rebuild(report["rebuild"]),
        _table("Shares of the users that could not be compared", ("share", "why"), shares),
        _table("Root over all ledgers", ("what", "value"), list((report["root"] or {}).items())),
        _table("Figures", ("what", "number"), counts),
        _table(
            "Differences", ("user", "table", "date", "attribute", "stored", "expected"), list(differences)
        ),
        _table("Ledger and lake disagree", ("user", "what"), report["ledger_and_lake"]),
        *(_table(*table) for table in tables_of_parts),
        _table("Redemptions wait for an admin", ("user",), [(user,) for user in report["frozen"]]),
        _table("The recomputes of warehouse and lake disagree", ("user", "lake", "warehouse"), users),
        *(_table(*table) for table in found_by_parts),
        *_warehouse(report["warehouse"]),
        _table("Failed tests", ("model", "test", "rows"), tests),
        _table("Curation", ("entity", "in", "curated", "duplicates", "quarantined"), curation),
    ]
    return "\n\n".join(parts) + "\n"


def _difference_row(difference: Mapping[str, Any]) -> tuple[Any, ...]:
    key = (difference["user_id"], difference["table"], difference["key"])
    return (*key, difference["attribute"] or "(item)", difference["stored"], difference["expected"])


def _columns(rows: Sequence[Mapping[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in rows]


def _spark(job: Mapping[str, Any] | None) -> Iterator[str]:
    if job:
        reason = f": {job['reason']}" if job["reason"] else ""
        yield (
            f"The Glue job curated first (run {job['job_run'] or 'none'}, {job['state']}{reason}). "
            "The night's functions did what it left."
        )


def _failures(report: Report) -> Iterator[str]:
    warehouse = report["warehouse"]
    if report["error"]:
        yield f"**It failed:** {json.dumps(report['error'])}"
    for doubt, number in report["spared"].items():
        why = FAULT_OF_DOUBT[Doubt(doubt)]
        yield f"**{number} accounts are {doubt}, so many that {why}.** Nobody's redemptions wait for it."
    if warehouse["error"]:
        yield f"**The warehouse was away:** {json.dumps(warehouse['error'])}"
    if warehouse["unread"]:
        yield f"**The warehouse was not read:** {warehouse['unread']}"


def _table(title: str, head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return a heading and a table of at most 50 rows, or EMPTY_TABLE."""
    if not rows:
        return f"## {title}\n\n{EMPTY_TABLE}"
    lines = [" | ".join(head), " | ".join("---" for _ in head)]
    lines += [" | ".join(_cell(value) for value in row) for row in rows[:SHOWN_MAX]]
    rest = f"\n\n{len(rows) - SHOWN_MAX} more." if len(rows) > SHOWN_MAX else ""
    return f"## {title}\n\n" + "\n".join(f"| {line} |" for line in lines) + rest


def _cell(value: Any) -> str:
    text = "" if value is None else str(value)
    return text.replace("|", "\\|").replace("\n", " ")[:REPORT_CELL_MAX]


def _partition_rows(notes: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    return [(note["entity"], note["dt"], note["hour"] or "day", note["reason"]) for note in notes]


def _rebuild(notes: Mapping[str, Any]) -> Iterator[str]:
    """Yield the report's part about a rebuild that lacked raw objects (see run_notes.read_rebuilds)."""
    if before := notes["raw_deleted_before"]:
        yield (
            f"**Raw objects that came before {before} are deleted** (RawRetentionDays). Partitions of "
            "that time were made anew from their own rows and from the quarantine, if these are still there."
        )
    if notes["without_raw"]:
        yield _table(
            "Partitions made anew without raw objects", PARTITION, _partition_rows(notes["without_raw"])
        )


def _quiet(warehouse: Mapping[str, Any]) -> Iterator[str]:
    if run_id := warehouse["quiet_since"]:
        yield (
            f"**The warehouse was not asked.** Since run {run_id} there is nothing to be loaded, built, "
            "erased or compared in it. The counts of the curation are of that run."
        )


def _warehouse(warehouse: Mapping[str, Any]) -> Iterator[str]:
    not_done = _columns(warehouse["not_done"], "what", "state", "reason")
    yield _table("Not done in the warehouse", ("what", "state", "why"), not_done)
    yield _table(
        "Partitions that the warehouse lacks", ("entity", "number"), list(warehouse["lacks"].items())
    )
