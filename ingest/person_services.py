"""Erasures and exports of persons, as callers see them (docs/rules.md, rule 10)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from adapters import clock
from adapters.logs import Logger
from adapters.privacy.erasure_jobs import ErasureJobs, begin_erasure
from adapters.privacy.export_jobs import ExportInvoker, ExportJob, ExportJobs
from adapters.privacy.tombstones import Tombstones
from ingest.web.api import Api
from ingest.web.caller import ApiError, Caller
from ingest.web.json_schema import ANY, COUNT, TEXT, Schema, closed_object, list_of, one_of, text, whole
from ingest.web.rate_limit import RateLimit
from rules.days import stamp
from rules.privacy.erasures import Person, PersonKind
from rules.privacy.tombstones import lead_subject, lift_entries, user_subject

URL_SECONDS = 3600
NO_EXPORT = "nobody has asked for such an export in the last day"
ERASURE_ID = r"^[0-9a-f]{32}$"
LIFT_RESULT = closed_object({"lifted": COUNT})
ERASURE_HELP = (
    "Everything online is gone within the hour, lake and warehouse in two nights some days apart;"
    " GET /v1/erasures/{erasure_id} shows what is awaited until when, and then the certificate."
    " The id answers 410 until an admin lifts that. Asking again answers the same."
)
EXPORT_HELP = (
    "It is made meanwhile: GET tells when it is finished, and its URL. Asking again while it is being made"
    " answers the same export, and goes on with one that got stuck. But for admins, a caller may ask some"
    " times a day: 429."
)
EXPORT_URL_HELP = (
    "Of the newest export that was asked for. Once it is finished, `url` has it, for an hour; each request"
    " makes a new one, until `expires_at`, a day later."
)


ERASURE = closed_object(
    {
        "erasure_id": text(pattern=ERASURE_ID),
        "status": one_of(["open", "finished"]),
        "started_at?": TEXT,
        "found?": {"type": "object", "additionalProperties": whole()},
        "awaits?": list_of(TEXT),
        "deadline?": TEXT,
        "certificate?": ANY,
    },
)
EXPORT = closed_object(
    {
        "export_id": text(pattern=ERASURE_ID),
        "status": one_of(["running", "finished"]),
        "asked_at": TEXT,
        **dict.fromkeys(("finished_at?", "url?", "url_expires_at?", "expires_at?"), TEXT),
        "bytes?": whole("", 1),
    },
)


@dataclass(frozen=True, slots=True)
class Erasures:
    """Erasures as their callers see them."""

    jobs: ErasureJobs
    tombstones: Tombstones

    def begin(self, subject: str, person: Person, now: datetime) -> dict[str, Any]:
        """Write tombstones and erasure; returns what `view` does. One that is under way or done is answered.

        subject: the id that was named.
        """
        return self.view(begin_erasure(self.jobs, self.tombstones, subject, person, now))

    def view(self, erasure_id: str) -> dict[str, Any]:
        """Return how far an erasure is; raises 404."""
        certificate = self.jobs.certificate(erasure_id)
        if certificate:
            return {"erasure_id": erasure_id, "status": "finished", "certificate": certificate}
        erasure = self.jobs.get(erasure_id)
        if erasure is None:
            raise ApiError(404, "not_found", "there is no such erasure")
        return {
            "erasure_id": erasure_id,
            "status": "open",
            "started_at": erasure.started_at,
            "found": dict(erasure.found),
            "awaits": list(erasure.awaits),
            "deadline": erasure.deadline,
        }

    def lift(self, subject: str, now: datetime) -> int:
        """Lift the tombstone of a subject, with those of the same person; returns how many.

        Raises 409 while the erasure is under way. Safe to repeat.
        """
        tombstones = self.tombstones.look()
        entries = list(lift_entries(tombstones, self.tombstones.digest(subject), stamp(now)))
        if entries and self.jobs.get(entries[0].erasure_id):
            raise ApiError(409, "erasure_open", "the erasure is not finished yet")
        self.jobs.note(entries)
        return len(entries)

    def stands(self, subject: str) -> bool:
        """Whether a tombstone stands over a subject, at this moment."""
        self.tombstones.look()
        return self.tombstones.stands(subject)


@dataclass(frozen=True, slots=True)
class PersonServices:
    """What the routes of persons work with."""

    config: Any  # PrivacyApiSettings
    erasures: Erasures
    exports: ExportJobs
    waker: ExportInvoker
    s3: Callable[[], Any]
    per_day: RateLimit
    logger: Logger

    def digest(self, subject: str) -> str:
        """Return the keyed hash of a subject."""
        return self.erasures.tombstones.digest(subject)

    def ask_for_export(
        self, caller: Caller, kind: PersonKind, subject: str, organization: str = ""
    ) -> dict[str, Any]:
        """Begin an export, or answer the one that is under way; raises 429.

        A counter of a day may outlive an erasure, so the caller's keyed hash is its name.
        """
        now = clock.now()
        if not caller.is_admin:
            self.per_day.check(self.digest(user_subject(caller.user_id)), 1, now)
        digest = self.digest(user_subject(subject) if kind is PersonKind.USER else lead_subject(subject))
        job = self.exports.ask(digest, organization, now, lambda job: self.waker.wake(kind, subject, job))
        self.logger.info("export", extra={"export_id": job.job_id})
        return self.export_view(job)

    def export_view(self, job: ExportJob) -> dict[str, Any]:
        """Return how far an export is. A finished one has a new URL each time."""
        view: dict[str, Any] = {"export_id": job.job_id, "asked_at": _instant(job.asked_at)}
        if not job.finished_at:
            return view | {"status": "running"}
        place, now = {"Bucket": self.config.payload_bucket, "Key": job.key}, int(clock.now().timestamp())
        seconds = min(URL_SECONDS, job.expires_at - now)
        return view | {
            "status": "finished",
            "finished_at": _instant(job.finished_at),
            "bytes": job.size,
            "url": self.s3().generate_presigned_url("get_object", Params=place, ExpiresIn=seconds),
            "url_expires_at": _instant(now + seconds),
            "expires_at": _instant(job.expires_at),
        }


def _instant(second: int) -> str:
    return stamp(datetime.fromtimestamp(second, UTC))


@dataclass(frozen=True, slots=True)
class PersonRoutes:
    """The routes by which persons of a part, who are no users, are erased and exported."""

    settings: Mapping[str, type]  # further settings of the function
    path: Mapping[str, Schema]  # the parameters of their paths
    # Adds the routes to the function's, given what returns the services
    add: Callable[[Api, Callable[[], PersonServices]], None]
