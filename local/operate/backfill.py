"""Curates many days at once: puts the Spark job's code into the lake bucket and runs the job on Glue."""

import io
import time
import zipfile
from collections.abc import Callable
from datetime import date
from typing import Any

from local.paths import ROOT
from local.stack import Stack

PACKAGES = ("rules", "adapters", "analytics")
SCRIPT = ROOT / "infra" / "jobs" / "curate_spark.py"
POLL_SECONDS = 15.0
SUCCEEDED = "SUCCEEDED"
DONE = (SUCCEEDED, "FAILED", "STOPPED", "TIMEOUT", "ERROR", "EXPIRED")


def packages() -> bytes:
    """Return a ZIP of the source that the job imports."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in PACKAGES:
            for path in sorted((ROOT / package).rglob("*.py")):
                archive.write(path, path.relative_to(ROOT))
    return packed.getvalue()


def run(
    stack: Stack,
    since: date,
    until: date,
    *,
    rebuild: bool,
    workers: int,
    pause: Callable[[float], None] = time.sleep,
) -> str:
    """Curate the raw rows of the days `since` to `until`; returns what to look up in Glue.

    rebuild: also the hours whose raw objects are curated already. workers: of Glue's type G.1X, at least 2.
    Raises RuntimeError on a laptop, which has no Glue, and with Glue's reason if the job does not succeed.
    """
    if "CurateJobName" not in stack.outputs:
        raise RuntimeError("no Glue here: `streakline recompute --from DAY --to DAY` curates these days, too")
    bucket, job = stack.outputs["LakeBucketName"], stack.outputs["CurateJobName"]
    s3, glue = stack.client("s3"), stack.client("glue")
    s3.put_object(Bucket=bucket, Key="jobs/curate_spark.py", Body=SCRIPT.read_bytes())
    s3.put_object(Bucket=bucket, Key="jobs/packages.zip", Body=packages())
    asked = {"--from": since.isoformat(), "--to": until.isoformat(), "--rebuild": str(rebuild).lower()}
    started = glue.start_job_run(JobName=job, Arguments=asked, WorkerType="G.1X", NumberOfWorkers=workers)[
        "JobRunId"
    ]
    state = _ended(glue, job, started, pause)
    if state["JobRunState"] != SUCCEEDED:
        reason = state.get("ErrorMessage", "no reason is given; see its log")
        raise RuntimeError(f"run {started} of the Glue job {job}: {state['JobRunState']}: {reason}")
    return f"run {started} of the Glue job {job} succeeded"


def _ended(glue: Any, job: str, started: str, pause: Callable[[float], None]) -> dict[str, Any]:
    while True:
        state: dict[str, Any] = glue.get_job_run(JobName=job, RunId=started)["JobRun"]
        if state["JobRunState"] in DONE:
            return state
        pause(POLL_SECONDS)
