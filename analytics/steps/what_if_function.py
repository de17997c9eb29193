"""Computes what another book of rules would have led to. An admin waits for it (adapters/what_if_jobs.py)."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from adapters import clock
from adapters.bootstrap import ClientOf, bootstrap
from adapters.logs import Logger, error_summary
from adapters.platform.objects import NoObject, Objects, S3Objects
from adapters.what_if_jobs import ATTEMPT, LOST, WhatIfJob, WhatIfJobs
from analytics.what_if.figures import WhatIfQuestion
from analytics.what_if.summary import summary
from analytics.what_if.what_if import what_if
from rules.book.document import read_book
from rules.days import unstamp

logger = Logger(service="what-if")
BOOK_NAME = "this book"  # in the report; a report of the command has the file's name instead
REPLACED = "the nightly run has replaced files of the lake meanwhile: ask again"


@dataclass(frozen=True, slots=True)
class WhatIfSettings:
    """Settings of this function."""

    lake_bucket: str


def work_out(objects: Objects, job_id: str, now: datetime) -> bool:
    """Compute a job's report; returns whether the job was waiting.

    Safe to repeat: the report is always as of the moment at which the job was asked for. An error is stored
    as the job's outcome, and then raised.
    """
    jobs = WhatIfJobs(objects)
    job = jobs.waiting(job_id, now)
    if job is None:
        return False
    if now >= unstamp(job.asked_at) + ATTEMPT:  # the attempts before this one have died
        jobs.finish(job, now, reason=LOST)
        return True
    try:
        report = summary(what_if(objects, _question(job)), BOOK_NAME)
    except Exception as error:
        reason = f"{error_summary(error)} ended it: the log of WhatIfFunction says where"
        jobs.finish(job, clock.now(), reason=REPLACED if isinstance(error, NoObject) else reason)
        raise
    jobs.finish(job, clock.now(), report)
    return True


def _question(job: WhatIfJob) -> WhatIfQuestion:
    since, until = (datetime.fromisoformat(f"{day}T00:00:00Z") if day else None for day in job.span)
    return WhatIfQuestion(read_book(job.document), unstamp(job.asked_at), since, until)


@bootstrap(WhatIfSettings)
def _parts(config: WhatIfSettings, client: ClientOf) -> Objects:
    return S3Objects(client("s3"), config.lake_bucket)


@logger.inject_lambda_context
def handler(event: dict[str, Any], _context: Any) -> dict[str, bool]:
    """Lambda entry: {"job_id"} -> {"worked_out"}; see work_out."""
    worked_out = work_out(_parts(), event["job_id"], clock.now())
    # The id of an unknown job may be any text, so it is not logged.
    logger.info("done", extra={"job_id": event["job_id"] if worked_out else "unknown"})
    return {"worked_out": worked_out}
