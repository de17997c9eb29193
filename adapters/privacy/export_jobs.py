"""Exports of persons as jobs (rule 10). A person has at most one job; it and its file last a day.

A job is an item of the table Limits, under `export#` and the person's keyed hash, so it names nobody. Lambda
tries three times to make the file. If that fails, the next request of the same export tries again.
"""

import json
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from adapters.platform.aws import Unavailable
from adapters.platform.items import decode_item, encode_item
from adapters.platform.tables import get_one, write_if
from adapters.privacy.stores import EXPORTS
from rules.privacy.erasures import PersonKind

# The bucket deletes the file a day after it was made, or somewhat later.
KEPT_SECONDS = 86_400
# A request for an unfinished job invokes the function again if it was last invoked so long ago.
WOKEN_SECONDS = 120


@dataclass(frozen=True, slots=True)
class ExportJob:
    """An export. Its instants are epoch seconds."""

    digest: str  # the keyed hash of the person
    job_id: str  # hexadecimal
    asked_at: int
    woken_at: int  # when the function was last invoked for it
    organization: str = ""  # of a lead: callers of this organization may download the file
    finished_at: int = 0  # 0 until there is a file
    size: int = 0  # in bytes

    @property
    def key(self) -> str:
        """The key of the file in the payload bucket."""
        return f"{EXPORTS}{self.digest}/{self.job_id}.zip"

    @property
    def expires_at(self) -> int:
        """When the job and its file end."""
        return (self.finished_at or self.asked_at) + KEPT_SECONDS


class ExportJobs:
    """All exports of the last day, in the table Limits."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def get(self, digest: str, now: datetime) -> ExportJob | None:
        """Return the newest export of a person, or None; strongly consistent."""
        item = get_one(self._dynamodb, self._table, {"counter": _name(digest)})
        job = _job(decode_item(item)) if item else None
        return job if job and job.expires_at > now.timestamp() else None

    def ask(
        self, digest: str, organization: str, now: datetime, wake: Callable[[ExportJob], None]
    ) -> ExportJob:
        """Return the job of an export: the unfinished one, or a new one.

        wake: invokes the function, unless that was done in the last two minutes. If it raises Unavailable,
        the error is raised again, and the next call of `ask` wakes at once.
        """
        second = int(now.timestamp())
        previous = self.get(digest, now)
        if previous is None or previous.finished_at:
            job = ExportJob(digest, uuid.uuid4().hex, second, second, organization)
        elif previous.woken_at > second - WOKEN_SECONDS:
            return previous
        else:
            job = replace(previous, woken_at=second)
        if not self._put(job, previous):
            return self.get(digest, now) or job  # another caller asked at the same time, and wakes
        try:
            wake(job)
        except Unavailable:
            self._put(replace(job, woken_at=0), job)
            raise
        return job

    def finish(self, job: ExportJob, size: int, now: datetime) -> bool:
        """Note that the file exists. Returns whether the job is still the newest one."""
        finished = replace(job, finished_at=int(now.timestamp()), size=size)
        values = {
            ":at": finished.finished_at,
            ":size": size,
            ":until": finished.expires_at,
            ":job": job.job_id,
        }
        return write_if(
            self._dynamodb.update_item,
            TableName=self._table,
            Key=encode_item({"counter": _name(job.digest)}),
            UpdateExpression="SET finished_at = :at, #size = :size, expires_at = :until",
            ConditionExpression="job_id = :job",
            ExpressionAttributeNames={"#size": "size"},
            ExpressionAttributeValues=encode_item(values),
        )

    def _put(self, job: ExportJob, previous: ExportJob | None) -> bool:
        """Store a job in place of the one that was read; returns False if another caller was first."""
        condition = "attribute_not_exists(job_id) OR expires_at <= :now"
        values: dict[str, Any] = {":now": job.asked_at}
        if previous:
            condition = "job_id = :job AND woken_at = :woken AND finished_at = :finished"
            values = {":job": previous.job_id, ":woken": previous.woken_at, ":finished": previous.finished_at}
        return write_if(
            self._dynamodb.put_item,
            TableName=self._table,
            Item=encode_item(_job_item(job)),
            ConditionExpression=condition,
            ExpressionAttributeValues=encode_item(values),
        )


@dataclass(frozen=True, slots=True)
class ExportInvoker:
    """Invokes the function that makes exports, and does not wait."""

    functions: Callable[[], Any]  # returns the client of Lambda
    name: str

    def wake(self, kind: PersonKind, subject: str, job: ExportJob) -> None:
        """Invoke the function for a person's export. subject: the person's id. Raises Unavailable."""
        request = {"kind": kind.value, "id": subject, "job_id": job.job_id}
        payload = json.dumps({"export": request})
        self.functions().invoke(FunctionName=self.name, InvocationType="Event", Payload=payload)


def _name(digest: str) -> str:
    return f"export#{digest}"


def _job_item(job: ExportJob) -> dict[str, Any]:
    fields = asdict(job)
    return {"counter": _name(fields.pop("digest")), **fields, "expires_at": job.expires_at}


def _job(stored: dict[str, Any]) -> ExportJob:
    fields = {name: value for name, value in stored.items() if name not in {"counter", "expires_at"}}
    return ExportJob(str(stored["counter"]).partition("#")[2], **fields)
