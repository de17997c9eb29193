"""Curates many days at once: has the deployed function start the Spark job on Glue, and waits for its end."""

import time
from collections.abc import Callable
from datetime import date
from typing import Any

from local.operate.invocations import invoke
from local.stack import Stack

POLL_SECONDS = 15.0
SUCCEEDED = "SUCCEEDED"
DONE = (SUCCEEDED, "FAILED", "STOPPED", "TIMEOUT", "ERROR", "EXPIRED")


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
    job, glue = stack.outputs["CurateJobName"], stack.client("glue")
    days = {"from": since.isoformat(), "to": until.isoformat(), "rebuild": str(rebuild).lower()}
    asked = {"step": "backfill", "arguments": days, "workers": workers}
    answer = invoke(stack, stack.outputs["CurateFunctionName"], asked)
    if answer.error:
        raise RuntimeError(f"the Glue job {job} did not start: {answer.answer.get('errorMessage')}")
    started = answer.answer["job_run"]
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
