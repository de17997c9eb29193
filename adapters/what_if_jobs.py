"""What-ifs as jobs: WhatIfFunction answers a question from the lake, which takes seconds to minutes.

The lake's bucket has the question that was asked last, and for a week the outcome of each: `what_if/`. One is
answered at a time, because a small account may run ten functions at once. Lambda tries a job three times: if
an attempt dies without a word, the next one follows, up to half an hour after the question.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from adapters.platform.aws import Unavailable
from adapters.platform.objects import NoObject, ObjectChanged, Objects
from rules.days import stamp, unstamp

PREFIX = "what_if/"  # the bucket deletes what is a week old
ASKED = f"{PREFIX}asked.json"
# An attempt runs this long at most, which is the timeout of WhatIfFunction. The last one begins at most this
# long after the question. So after two of these nothing runs any more.
ATTEMPT = timedelta(seconds=900)
LOST = "it ended without a report: the log of WhatIfFunction says why. Perhaps the lake is too large for it"


@dataclass(frozen=True, slots=True)
class WhatIfJob:
    """A question: how would another book of rules have changed points and streaks."""

    document: Mapping[str, Any]  # the candidate, as rules.book.document.read_book reads it
    # The dates from which and until which it is in force, from midnight UTC; None: there is no such bound
    span: Sequence[str | None]
    asked_at: str  # a stamp; points have expired until then

    @property
    def job_id(self) -> str:
        """What names the same question each time that it is asked: 32 hexadecimal digits."""
        question = json.dumps([self.document, *self.span], sort_keys=True)
        return hashlib.sha256(question.encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class WhatIfOutcome:
    """What became of a question. It has a report or a reason; neither while it is worked out."""

    job_id: str
    asked_at: str  # a stamp, as finished_at
    finished_at: str = ""
    report: dict[str, Any] | None = None  # as analytics.what_if.summary.summary makes it
    reason: str = ""  # why there is none, in words


class WhatIfRunning(Exception):
    """Another question is being worked out."""

    def __init__(self, asked_at: str) -> None:
        super().__init__(f"another what-if, of {asked_at}, is being worked out: ask again afterwards")


@dataclass(frozen=True, slots=True)
class WhatIfJobs:
    """All what-ifs of the last week."""

    objects: Objects  # the lake

    def ask(self, job: WhatIfJob, wake: Callable[[str], None]) -> WhatIfOutcome:
        """Begin a job; returns its outcome so far. The same question that is under way is answered as it is.

        wake: invokes the function for a job's id; its Unavailable is raised again, and then the job is over.
        Raises WhatIfRunning.
        """
        etag = self.objects.etag(ASKED)  # read first: so a job that came in between is noticed by `put_if`
        last = self._last()
        if last and not self._outcome_of(last, unstamp(job.asked_at)).finished_at:
            if last.job_id != job.job_id:
                raise WhatIfRunning(last.asked_at)
            return WhatIfOutcome(last.job_id, last.asked_at)
        try:
            self.objects.put_if(ASKED, json.dumps(asdict(job)).encode(), etag)
        except ObjectChanged:  # another caller asked at the same time
            return self.ask(job, wake)
        try:
            wake(job.job_id)
        except Unavailable:
            self.finish(job, unstamp(job.asked_at), reason="it could not be begun")
            raise
        return WhatIfOutcome(job.job_id, job.asked_at)

    def outcome(self, job_id: str, now: datetime) -> WhatIfOutcome | None:
        """Return what became of a question; None if nobody has asked it in the last week."""
        last = self._last()
        return self._outcome_of(last, now) if last and last.job_id == job_id else self._stored(job_id)

    def waiting(self, job_id: str, now: datetime) -> WhatIfJob | None:
        """Return a job that is to be worked out; None if it is over, or was never asked."""
        last = self._last()
        is_waiting = last and last.job_id == job_id and not self._outcome_of(last, now).finished_at
        return last if is_waiting else None

    def finish(
        self, job: WhatIfJob, now: datetime, report: dict[str, Any] | None = None, reason: str = ""
    ) -> None:
        """Store what became of a job. Safe to repeat."""
        outcome = WhatIfOutcome(job.job_id, job.asked_at, stamp(now), report, reason)
        self.objects.put(_key(job.job_id), json.dumps(asdict(outcome)).encode())

    def _last(self) -> WhatIfJob | None:
        try:
            return WhatIfJob(**json.loads(self.objects.get(ASKED)))
        except NoObject:
            return None

    def _stored(self, job_id: str) -> WhatIfOutcome | None:
        try:
            return WhatIfOutcome(**json.loads(self.objects.get(_key(job_id))))
        except NoObject:
            return None

    def _outcome_of(self, job: WhatIfJob, now: datetime) -> WhatIfOutcome:
        """Return the outcome of the last job. A stored outcome of an earlier asking does not count."""
        stored = self._stored(job.job_id)
        if stored and stored.asked_at == job.asked_at:
            return stored
        end = unstamp(job.asked_at) + 2 * ATTEMPT
        if now < end:
            return WhatIfOutcome(job.job_id, job.asked_at)
        return WhatIfOutcome(job.job_id, job.asked_at, stamp(end), reason=LOST)


def _key(job_id: str) -> str:
    return f"{PREFIX}{job_id}.json"
