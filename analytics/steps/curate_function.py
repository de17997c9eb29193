"""Curation's steps of the nightly run: plan, curate a batch of tasks, give up one of them, commit.

A night with much to read is handed to the Spark job first (analytics/curation/spark_job.py). The function
also starts the job for `streakline night backfill`.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from functools import partial
from typing import Any

from aws_lambda_powertools import Metrics
from aws_lambda_powertools.metrics import MetricUnit

from adapters import clock
from adapters.bootstrap import ClientOf, bootstrap
from adapters.logs import Logger
from adapters.platform.objects import Objects, S3Objects
from adapters.settings.parts import deployed_parts
from analytics.curation.curate import curate_in_run
from analytics.curation.plan import FIRST, commit, curated_tasks, plan, write_plan
from analytics.curation.recover import recover
from analytics.curation.spark_job import SparkJob
from analytics.forgetting.lake_pass import changed_partitions
from analytics.lake import layout, run_notes
from analytics.lake.bookkeeping import Counts
from analytics.lake.catalog import Catalog
from analytics.lake.layout import Partition
from analytics.lake.run_notes import failed_tasks, note_failed_task

GIGABYTE = 2**30
STRAYS_NAMED_MAX = 100  # in a report
_STRAY_REASON = {
    "raw": "nobody reads it: it lies under no existing arrived=/dt=/hour=",
    "curated": "nobody reads it: it is no dt=DATE/hour-HH.parquet, day.parquet, or dt=MONTH/month.parquet",
}
logger = Logger(service="curation")
metrics = Metrics(namespace="Streakline", service="curation")


@dataclass(frozen=True, slots=True)
class CurateSettings:
    """Settings of this function."""

    lake_bucket: str
    glue_database: str
    raw_retention_days: int  # how long the lake keeps raw objects; 0: for ever
    curate_job_name: str  # the Glue job that curates large nights
    spark_from_gb: int  # the Glue job curates a night whose raw objects have more GB; 0: it curates none


@dataclass(frozen=True, slots=True)
class _Parts:
    config: CurateSettings
    objects: Objects
    catalog: Catalog
    job: SparkJob


@bootstrap(CurateSettings)
def _parts(config: CurateSettings, client: ClientOf) -> _Parts:
    objects, glue = S3Objects(client("s3"), config.lake_bucket), client("glue")
    catalog = Catalog(glue, config.glue_database, config.lake_bucket, deployed_parts())
    return _Parts(config, objects, catalog, SparkJob(objects, glue, config.curate_job_name))


def _plan(event: dict[str, Any]) -> dict[str, Any]:
    """Recover what Firehose could not place, make Glue's tables, then write the run's plan.

    event: {"run_id", "from"?, "to"?, "entities"?, "days"?, "rebuild"?}.
    from, to: dates. entities: names. days: the only dates to curate, by entity. rebuild: make the files
    anew, those of all dates unless from, to or days limit them. Returns run_id, tasks (their number),
    is_handed_over (whether the Spark job does them), and the keys of the plan's objects: tasks_key and
    batches_key.
    """
    parts = _parts()
    objects = parts.objects
    parts.catalog.ensure()
    today = clock.now().date()
    moved, staying = recover(objects, today, partial(run_notes.note_odd_object, objects, event["run_id"]))
    metrics.add_metric("RecoveredRows", MetricUnit.Count, moved)
    metrics.add_metric("UnplacedRows", MetricUnit.Count, staying)
    rebuild, days = event.get("rebuild") is True, event.get("days") or {}
    planned = plan(
        objects,
        today,
        since_dt=event.get("from") or (FIRST if rebuild else None),
        until_dt=event.get("to"),
        entities=event.get("entities") or list(days),
    )
    _note_strays(objects, event["run_id"], planned.strays)
    if days:
        planned = planned.of_days(days)
    if rebuild:
        _note_deleted(objects, event, today)
    tasks_key, batches_key = write_plan(objects, event["run_id"], planned, rebuild)
    limit = parts.config.spark_from_gb * GIGABYTE
    return {
        "run_id": event["run_id"],
        "tasks": len(planned.tasks),
        "is_handed_over": bool(limit) and planned.raw_bytes > limit and not rebuild,
        "tasks_key": tasks_key,
        "batches_key": batches_key,
    }


def _note_strays(objects: Objects, run_id: str, strays: Sequence[str]) -> None:
    """Note for the report the objects that nobody reads; of very many, some."""
    for key in strays[:STRAYS_NAMED_MAX]:
        run_notes.note_odd_object(objects, run_id, key, _STRAY_REASON[key.partition("/")[0]])


def _note_deleted(objects: Objects, event: dict[str, Any], today: date) -> None:
    """Note for the report that raw objects of some days that are to be made anew are already deleted."""
    retention_days = _parts().config.raw_retention_days
    first_kept = (today - timedelta(days=retention_days)).isoformat()
    if retention_days and (event.get("from") or FIRST) < first_kept:
        run_notes.note_deleted_file(objects, event["run_id"], first_kept)


def _curate(event: dict[str, Any]) -> dict[str, Any]:
    """Curate a batch of the plan: the batch -> the batch with only the tasks that failed, and `counts`.

    counts: the sum over the files. A task that fails does not disturb the others.
    """
    parts = _parts()
    tasks = [Partition(**task) for task in event["tasks"]]
    run_id, rebuild, arrived = event["run_id"], event.get("rebuild") is True, event["arrived"]
    curated, total, failed = [], Counts(), []
    for task in tasks:
        try:
            total += curate_in_run(parts.objects, run_id, task, rebuild=rebuild, arrived=arrived)
            curated.append(task)
        except Exception:
            logger.exception("task failed", extra=asdict(task))
            failed.append(asdict(task))
    parts.catalog.register(curated)
    metrics.add_metric("CuratedRows", MetricUnit.Count, total.curated)
    metrics.add_metric("QuarantinedRows", MetricUnit.Count, total.quarantined)
    return {**event, "tasks": failed, "counts": total.as_dict()}


def _give_up(event: dict[str, Any]) -> dict[str, Any]:
    """Note a task that failed: {"run_id", "task", "error"} -> {}.

    The report names the task, and the next run plans it again.
    """
    note_failed_task(_parts().objects, event["run_id"], Partition(**event["task"]), event["error"])
    return {}


def _commit(event: dict[str, Any]) -> dict[str, Any]:
    """Move the watermark, so that the next run plans only new hours: {"run_id"} -> {"watermark", "failed"}.

    Before that, the partitions that the warehouse lacks are noted. The warehouse's own step notes them, too.
    So if that step has begun, nothing is noted here. failed: how many tasks were given up.
    """
    objects, run_id = _parts().objects, event["run_id"]
    if objects.etag(layout.run_key(run_id, layout.WAREHOUSE_RESULT)) is None:
        partitions = curated_tasks(objects, run_id, layout.run_key(run_id, "tasks.json"))
        run_notes.note_unloaded(objects, run_id, [*partitions, *changed_partitions(objects, run_id)])
    watermark = commit(objects, run_id).isoformat()
    return {"run_id": run_id, "watermark": watermark, "failed": len(failed_tasks(objects, run_id))}


def _spark(event: dict[str, Any]) -> dict[str, Any]:
    """Start the night's job, or ask about it: {"run_id"} -> {"job_run", "state", "reason", "is_over"}."""
    return _parts().job.go_on(event["run_id"])


def _backfill(event: dict[str, Any]) -> dict[str, Any]:
    """Start the job for a range of days: {"arguments", "workers"} -> {"job_run"}. Raises Glue's refusal."""
    options = {"WorkerType": "G.1X", "NumberOfWorkers": event["workers"]}
    return {"job_run": _parts().job.start(event["arguments"], **options)}


STEPS = {
    "plan": _plan,
    "spark": _spark,
    "backfill": _backfill,
    "curate": _curate,
    "give_up": _give_up,
    "commit": _commit,
}


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Lambda entry: {"step", ...}; each step says its input. A failed step raises, and can be repeated."""
    metrics.add_metric("Steps", MetricUnit.Count, 1)
    answer = STEPS[event["step"]](event)
    logger.info("done", extra={"step": event["step"], **answer})
    return answer
