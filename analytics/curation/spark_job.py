"""Curation by Spark on Glue: the job's code in the lake bucket, its start, its state, and a worker's task.

Afterwards the night's functions do all of its tasks. A task that the job has done leaves nothing for them to
do. So the night is complete however its job ends.
"""

import io
import json
import logging
import zipfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from adapters.platform.objects import NoObject, Objects, objects_at
from analytics.curation.curate import curate, curate_in_run
from analytics.lake.bookkeeping import Counts
from analytics.lake.layout import Partition, run_key

logger = logging.getLogger(__name__)
PACKAGED = Path(__file__).resolve().parents[2]
PACKAGES = ("rules", "adapters", "analytics")
SCRIPT = "analytics/steps/curate_spark.py"
SCRIPT_KEY, PACKAGES_KEY = "jobs/curate_spark.py", "jobs/packages.zip"
NOTE = "spark.json"  # of a run
SUCCEEDED, REFUSED = "SUCCEEDED", "REFUSED"
OVER = frozenset({SUCCEEDED, REFUSED, "FAILED", "STOPPED", "TIMEOUT", "ERROR", "EXPIRED"})
NIGHT_MINUTES_MAX = 180  # the state machine has six hours


def packages() -> bytes:
    """Return a ZIP of the source that the job imports."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in PACKAGES:
            for path in sorted((PACKAGED / package).rglob("*.py")):
                archive.write(path, path.relative_to(PACKAGED))
    return packed.getvalue()


def put_code(objects: Objects) -> None:
    """Store the job's script, and what it imports, where the template says that they are."""
    objects.put(PACKAGES_KEY, packages())
    objects.put(SCRIPT_KEY, (PACKAGED / SCRIPT).read_bytes())


@dataclass(frozen=True, slots=True)
class SparkJob:
    """The Glue job that curates large nights."""

    objects: Objects
    glue: Any  # a botocore client
    name: str  # the job's

    def start(self, arguments: Mapping[str, str], **options: Any) -> str:
        """Start a run of this version's code, and return its id. Raises Glue's refusal.

        arguments: see analytics/steps/curate_spark.py. options: of StartJobRun, such as NumberOfWorkers.
        """
        put_code(self.objects)
        job_arguments = {f"--{name}": value for name, value in arguments.items()}
        job_run = self.glue.start_job_run(JobName=self.name, Arguments=job_arguments, **options)
        return str(job_run["JobRunId"])

    def go_on(self, run_id: str) -> dict[str, Any]:
        """Start a night's job, or ask for its state. Returns {"job_run", "state", "reason", "is_over"}."""
        note = read_job_note(self.objects, run_id)
        if note is None:
            note = self._start(run_id)
        elif not note["is_over"]:
            run = self.glue.get_job_run(JobName=self.name, RunId=note["job_run"])["JobRun"]
            note |= {"state": run["JobRunState"], "reason": run.get("ErrorMessage", "")}
        note["is_over"] = note["state"] in OVER
        self.objects.put(run_key(run_id, NOTE), json.dumps(note).encode())
        return note

    def _start(self, run_id: str) -> dict[str, Any]:
        try:
            job_run = self.start({"run": run_id}, Timeout=NIGHT_MINUTES_MAX)
        except ClientError as error:  # another run is under way, or the account has no more capacity
            return {"job_run": "", "state": REFUSED, "reason": str(error)}
        return {"job_run": job_run, "state": "STARTING", "reason": ""}


def read_job_note(objects: Objects, run_id: str) -> dict[str, Any] | None:
    """Return the state of a night's job, as go_on has stored it; None if the night has none."""
    try:
        note: dict[str, Any] = json.loads(objects.get(run_key(run_id, NOTE)))
    except NoObject:
        return None
    return note


def curate_one(url: str, task: Partition, *, is_rebuild: bool = False) -> Counts:
    """Curate a task of the lake at a URL. It logs if a rebuild lacks raw objects."""

    def log_lack(reason: str) -> None:
        logger.warning("%s: %s", task, reason)

    return curate(objects_at(url), task, rebuild=is_rebuild, note_lack=log_lack)


def curate_for_run(url: str, run_id: str, task: Partition, arrived: Collection[str] | None) -> Counts:
    """Curate a task of a nightly run. A failure is logged, and leaves the task to the run's functions.

    arrived: see `curate`.
    """
    try:
        return curate_in_run(objects_at(url), run_id, task, rebuild=False, arrived=arrived)
    except Exception:
        logger.exception("task failed: %s", task)
        return Counts()
