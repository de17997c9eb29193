"""Exports and erasures: DELETE and export of users and leads, and what became of an erasure (rule 10).

Who is who is asked of PostgreSQL. If it sleeps, the first request may take half a minute or end in a 5xx: the
next one finds it awake.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from adapters import clock
from adapters.bootstrap import ClientOf, bootstrap
from adapters.platform.keyed_hash import KeyedHash
from adapters.platform.limits import SharedCounters
from adapters.postgresql.postgres import database
from adapters.postgresql.sql import Database, PostgresUnavailable
from adapters.privacy.erasers import IdentityEraser
from adapters.privacy.erasure_jobs import ErasureJobs, begin_erasure
from adapters.privacy.export_jobs import ExportInvoker, ExportJob, ExportJobs
from adapters.privacy.tombstones import Tombstones
from ingest.leads.erased_leads import ErasedLeads
from ingest.leads.lead_schemas import LEAD_ID, LOOKUP
from ingest.leads.lead_views import NO_LEAD
from ingest.leads.spelling import named_identity
from ingest.web.api import Allowance, Api, refuse_erased
from ingest.web.caller import ApiError, Caller
from ingest.web.json_schema import ANY, COUNT, TEXT, closed_object, list_of, one_of, text, user_id, whole
from ingest.web.rate_limit import DAY, RateLimit
from rules.days import stamp
from rules.parts import Part
from rules.privacy.erasures import Person, PersonKind
from rules.privacy.tombstones import (
    identity_subject,
    lead_subject,
    lift_entries,
    user_subject,
)

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


@dataclass(frozen=True, slots=True)
class PrivacyApiSettings(Allowance):
    """Settings of this function."""

    payload_bucket: str
    identity_url: str
    erasures_table: str
    erasure_secret_arn: str
    erasure_function: str  # the function that makes exports
    phone_regions: str
    exports_per_day: int


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

    def of_lead(self, lead_id: str, caller: Caller) -> dict[str, Any] | None:
        """Return the erasure whose tombstone stands over a lead, if the caller reached the lead."""
        erasure_id = self.leads().erasure_of(lead_id, caller)
        return self.view(erasure_id) if erasure_id else None

    def leads(self) -> ErasedLeads:
        """Return the erased leads, as they are at this moment."""
        self.tombstones.look()
        return ErasedLeads(self.jobs, self.tombstones)

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

app = Api(
    "PrivacyApi",
    {
        "user_id": user_id(),
        "lead_id": text(pattern=LEAD_ID),
        "erasure_id": text(pattern=ERASURE_ID),
    },
    PostgresUnavailable,
)
logger, handler = app.logger, app.handler


@dataclass(frozen=True, slots=True)
class _Parts:
    config: PrivacyApiSettings
    database: Database | None
    erasures: Erasures
    exports: ExportJobs
    waker: ExportInvoker
    s3: Callable[[], Any]
    per_day: RateLimit

    def digest(self, subject: str) -> str:
        return self.erasures.tombstones.digest(subject)

    def lead(self, lead_id: str, caller: Caller) -> Person:
        """Return whose lead it is; raises 404 if nobody knows it, or the caller does not reach it."""
        assert self.database is not None  # noqa: S101 (leads have a database)
        lead = Person(self.digest(lead_subject(lead_id)), leads=(lead_id,))
        person = IdentityEraser(self.database).person(lead)
        if not person.organization or not caller.reaches(person.organization):
            raise ApiError(404, "not_found", NO_LEAD)
        return person


@bootstrap(PrivacyApiSettings)
def _parts(config: PrivacyApiSettings, client: ClientOf) -> _Parts:
    dynamodb = client("dynamodb")
    key = KeyedHash(lambda: client("secretsmanager"), config.erasure_secret_arn)
    url = config.identity_url
    counters = SharedCounters(lambda: dynamodb, config.limits_table)
    return _Parts(
        config,
        database(url) if url else None,
        Erasures(
            ErasureJobs(dynamodb, config.erasures_table), Tombstones(dynamodb, config.erasures_table, key)
        ),
        ExportJobs(dynamodb, config.limits_table),
        ExportInvoker(lambda: client("lambda"), config.erasure_function),
        lambda: client("s3"),
        RateLimit(counters, "exports", config.exports_per_day, window=DAY),
    )


refuse_erased(
    app,
    lambda user: _parts().erasures.stands(user_subject(user)),
    *("delete_user", "post_user_lift", "get_erasure"),
)


@app.route("DELETE /v1/users/{user_id}", status=202, answer=ERASURE, more=ERASURE_HELP)
def delete_user(user_id: str) -> dict[str, Any]:
    """Erase a user (the user, or an admin).

    All that is known of the user is deleted; it cannot be undone.
    """
    _caller("user_id", user_id).check(user_id)
    person = Person(_parts().digest(user_subject(user_id)), user_id)
    erasure = _parts().erasures.begin(user_id, person, clock.now())
    logger.info("erasure", extra={"erasure_id": erasure["erasure_id"]})
    return erasure


@app.route("POST /v1/users/{user_id}/export", status=202, answer=EXPORT, more=EXPORT_HELP)
def post_user_export(user_id: str) -> dict[str, Any]:
    """Ask for everything that is known of a user, as a ZIP of JSON and CSV."""
    caller = _caller("user_id", user_id)
    caller.check(user_id)
    return _ask_for_export(caller, PersonKind.USER, user_id)


@app.route("GET /v1/users/{user_id}/export", answer=EXPORT, more=EXPORT_URL_HELP)
def get_user_export(user_id: str) -> dict[str, Any]:
    """How far the export of a user is, and where it can be had."""
    _caller("user_id", user_id).check(user_id)
    job = _parts().exports.get(_parts().digest(user_subject(user_id)), clock.now())
    if job is None:
        raise ApiError(404, "not_found", NO_EXPORT)
    return _export_view(job)


@app.route("POST /v1/users/{user_id}/lift", answer=LIFT_RESULT)
def post_user_lift(user_id: str) -> dict[str, Any]:
    """Let an erased id be used anew (admins).

    What happened before is refused for good.
    """
    _caller("user_id", user_id).check_admin()
    return {"lifted": _parts().erasures.lift(user_subject(user_id), clock.now())}


@app.route("DELETE /v1/leads/{lead_id}", status=202, answer=ERASURE, more=ERASURE_HELP, part=Part.LEADS)
def delete_lead(lead_id: str) -> dict[str, Any]:
    """Erase a lead, with all leads that are the same person.

    Addresses, numbers and ids of the person make no lead again, either.
    """
    caller = _caller("lead_id", lead_id)
    caller.check_leads()
    erasure = _parts().erasures.of_lead(lead_id, caller)
    if erasure is None:
        person = _parts().lead(lead_id, caller)
        erasure = _parts().erasures.begin(lead_id, person, clock.now())
    logger.info("erasure", extra={"erasure_id": erasure["erasure_id"]})
    return erasure


@app.route("POST /v1/leads/{lead_id}/export", status=202, answer=EXPORT, more=EXPORT_HELP, part=Part.LEADS)
def post_lead_export(lead_id: str) -> dict[str, Any]:
    """Ask for everything that is known of a lead, as a ZIP of JSON and CSV."""
    caller = _exporter_of(lead_id, NO_LEAD)
    organization = _parts().lead(lead_id, caller).organization
    return _ask_for_export(caller, PersonKind.LEAD, lead_id, organization)


@app.route("GET /v1/leads/{lead_id}/export", answer=EXPORT, more=EXPORT_URL_HELP, part=Part.LEADS)
def get_lead_export(lead_id: str) -> dict[str, Any]:
    """How far the export of a lead is, and where it can be had."""
    caller = _exporter_of(lead_id, NO_EXPORT)
    job = _parts().exports.get(_parts().digest(lead_subject(lead_id)), clock.now())
    if job is None or not caller.reaches(job.organization):
        raise ApiError(404, "not_found", NO_EXPORT)
    return _export_view(job)


@app.route("POST /v1/leads/lift", body=LOOKUP, answer=LIFT_RESULT, part=Part.LEADS)
def post_lead_lift() -> dict[str, Any]:
    """Let an erased person's addresses, numbers and ids make a lead anew (admins).

    One of them is named; all that were erased with it are lifted. What happened before is refused for good.
    """
    app.admin()
    body = app.body()
    named = named_identity(body, _parts().config.phone_regions)
    subject = identity_subject(body["organization_id"], named.channel, named.external_id)
    return {"lifted": _parts().erasures.lift(subject, clock.now())}


@app.route("GET /v1/erasures/{erasure_id}", answer=ERASURE)
def get_erasure(erasure_id: str) -> dict[str, Any]:
    """How far an erasure is, and at its end the certificate.

    The id is a secret of whoever asked for the erasure; what it leads to names nobody.
    """
    _caller("erasure_id", erasure_id)
    return _parts().erasures.view(erasure_id)


def _exporter_of(lead_id: str, unknown: str) -> Caller:
    """Return who asks for the export of a lead; raises 403, and 410 or 404 if the lead was erased."""
    caller = _caller("lead_id", lead_id)
    caller.check_leads()
    _parts().erasures.leads().check(lead_id, caller, unknown)
    return caller


def _ask_for_export(caller: Caller, kind: PersonKind, subject: str, organization: str = "") -> dict[str, Any]:
    """Begin an export, or answer the one that is under way; raises 429.

    A counter of a day may outlive an erasure, so the caller's keyed hash is its name.
    """
    parts, now = _parts(), clock.now()
    if not caller.is_admin:
        parts.per_day.check(parts.digest(user_subject(caller.user_id)), 1, now)
    digest = parts.digest(user_subject(subject) if kind is PersonKind.USER else lead_subject(subject))
    job = parts.exports.ask(digest, organization, now, lambda job: parts.waker.wake(kind, subject, job))
    logger.info("export", extra={"export_id": job.job_id})
    return _export_view(job)


def _export_view(job: ExportJob) -> dict[str, Any]:
    """Return how far an export is. A finished one has a new URL each time."""
    view: dict[str, Any] = {"export_id": job.job_id, "asked_at": _instant(job.asked_at)}
    if not job.finished_at:
        return view | {"status": "running"}
    place, now = {"Bucket": _parts().config.payload_bucket, "Key": job.key}, int(clock.now().timestamp())
    seconds = min(URL_SECONDS, job.expires_at - now)
    return view | {
        "status": "finished",
        "finished_at": _instant(job.finished_at),
        "bytes": job.size,
        "url": _parts().s3().generate_presigned_url("get_object", Params=place, ExpiresIn=seconds),
        "url_expires_at": _instant(now + seconds),
        "expires_at": _instant(job.expires_at),
    }


def _instant(second: int) -> str:
    return stamp(datetime.fromtimestamp(second, UTC))


def _caller(name: str, value: str) -> Caller:
    """Return who calls; raises 400 for a malformed part of the path."""
    app.check_path(name, value)
    return app.caller()
