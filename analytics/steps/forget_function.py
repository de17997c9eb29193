"""The nightly run's steps that forget persons.

The step `forget` takes them out of the lake after curation. The step `finish` notes what the night has done
once the warehouse has forgotten them, too.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from aws_lambda_powertools import Metrics
from aws_lambda_powertools.metrics import MetricUnit

from adapters import clock
from adapters.bootstrap import ClientOf, bootstrap
from adapters.logs import Logger
from adapters.platform.objects import ForgettingObjects, S3Objects
from adapters.privacy.erasure_jobs import ErasureJobs, ErasureMoved
from adapters.privacy.tombstones import Tombstones, tombstones_of
from analytics.curation.plan import curated_tasks
from analytics.forgetting.erasees import AllErasees
from analytics.forgetting.lake_pass import LakePass, Progress
from rules.days import stamp, unstamp
from rules.parts import said
from rules.privacy.erasures import Erasure, after_part, after_pass

logger = Logger(service="forgetting")
metrics = Metrics(namespace="Streakline", service="forgetting")
# After that a call begins no more files. The function has 900 s.
SECONDS_MAX = 600.0


@dataclass(frozen=True, slots=True)
class ForgetSettings:
    """Settings of this function."""

    lake_bucket: str
    erasures_table: str
    erasure_secret_arn: str
    lake_settle_seconds: int  # this long after a row was sent, it is in the lake


@dataclass(frozen=True, slots=True)
class ForgetSteps:
    """Both steps, and what they use."""

    objects: ForgettingObjects
    jobs: ErasureJobs
    tombstones: Tombstones | None
    settle_time: timedelta  # see rules.privacy.erasures.after_pass

    def forget(
        self, event: Mapping[str, Any], now: datetime, has_time: Callable[[], bool] = lambda: True
    ) -> dict[str, Any]:
        """Take erased persons out of the lake: {"run_id", "tasks_key"} -> {"is_left", "erasures"}.

        is_left: whether another call is to go on. erasures: for how many erasures the night searches
        everything.
        """
        run_id = event["run_id"]
        progress = Progress.read(self.objects, run_id)
        erasees = AllErasees.of(self.jobs.opened(), now, self._tombstones())
        if progress is None:
            progress = Progress(run_id, stamp(now), sorted(erasees.due))
            progress.save(self.objects)
        if not progress.is_done:
            progress.settle_counts(self.objects)
            curated_places = curated_tasks(self.objects, run_id, event["tasks_key"])
            lake_pass = LakePass(self.objects, erasees, progress, curated_places, has_time)
            lake_pass.run(unstamp(progress.began))
        if progress.is_done and not progress.are_parts_done:
            progress.are_parts_done = True  # unless a pass is due and needs another call
            for part_pass in said("lake_passes"):
                objects_pass = part_pass(self.objects, has_time)
                is_done, row_count = objects_pass.run(now) if objects_pass.is_due(now) else (True, 0)
                progress.are_parts_done = progress.are_parts_done and is_done
                logger.info("rows of what is gone", extra={"pass": part_pass.__name__, "rows": row_count})
            progress.save(self.objects)
        return {"is_left": not progress.are_parts_done, "erasures": len(progress.due)}

    def _tombstones(self) -> Tombstones | None:
        """Return the tombstones; None if nobody was ever erased, so that no row has to be searched."""
        return self.tombstones if self.tombstones and self.tombstones.look() else None

    def finish(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Note the night in the erasures: {"run_id"} -> {"passed"}.

        passed: the number of erasures for which the night has searched everything. Of the others it notes
        only how many rows it has found.
        """
        progress = Progress.read(self.objects, event["run_id"])
        if progress is None:
            return {"passed": 0}
        progress.settle_counts(self.objects)
        # Otherwise the lake or the warehouse may still have rows of a person.
        is_whole = progress.is_done and progress.is_warehouse_done
        passed = 0
        for erasure_id in sorted({*progress.due, *progress.counts}):
            is_passed = is_whole and erasure_id in progress.due
            is_open = self._note_night(erasure_id, progress, is_passed=is_passed)
            passed += is_passed and is_open
        return {"passed": passed}

    def _note_night(self, erasure_id: str, progress: Progress, *, is_passed: bool) -> bool:
        """Note the night in an erasure, as it is now; returns whether it is still open."""
        while erasure := self.jobs.get(erasure_id):
            after = self._after_night(erasure, progress, is_passed=is_passed)
            with suppress(ErasureMoved):  # somebody has signed or changed it since it was read
                if after != erasure:
                    self.jobs.save(after)
                return True
        return False

    def _after_night(self, erasure: Erasure, progress: Progress, *, is_passed: bool) -> Erasure:
        found = progress.counts.get(erasure.erasure_id, {})
        if not is_passed:
            return after_part(erasure, progress.run_id, found)
        began, left = unstamp(progress.began), progress.still_named.get(erasure.erasure_id, 0)
        return after_pass(erasure, progress.run_id, found, self.settle_time, began, left)


@bootstrap(ForgetSettings)
def _parts(config: ForgetSettings, client: ClientOf) -> ForgetSteps:
    return ForgetSteps(
        S3Objects(client("s3"), config.lake_bucket),
        ErasureJobs(client("dynamodb"), config.erasures_table),
        tombstones_of(config, client),
        timedelta(seconds=config.lake_settle_seconds),
    )


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    """Lambda entry: {"step": "forget" or "finish", "run_id", ...}; each step says its input."""
    metrics.add_metric("Steps", MetricUnit.Count, 1)
    steps, end = _parts(), time.monotonic() + SECONDS_MAX
    if event["step"] == "finish":
        answer = steps.finish(event)
    else:
        answer = steps.forget(event, clock.now(), lambda: time.monotonic() < end)
    logger.info("done", extra={"step": event["step"], "run_id": event["run_id"], **answer})
    return {"run_id": event["run_id"], **answer}
