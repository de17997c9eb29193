"""Exports and erasures: DELETE and export of users and leads, and what became of an erasure (rule 10).

Who is who is asked of PostgreSQL. If it sleeps, the first request may take half a minute or end in a 5xx: the
next one finds it awake.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response

from adapters import clock, settings
from adapters.engagement.engagement_cache import EngagementCache
from adapters.logs import Logger
from adapters.platform.aws import client
from adapters.platform.fencing.turn import fenced
from adapters.platform.keyed_hash import KeyedHash
from adapters.platform.shared_counters import SharedCounters
from adapters.postgresql.databases import database
from adapters.postgresql.sql import Database, PostgresUnavailable
from adapters.privacy.erasure_jobs import ErasureJobs
from adapters.privacy.export_jobs import ExportJob, ExportJobs, ExportWaker
from adapters.privacy.people_erasers import IdentityEraser
from adapters.privacy.person import Person
from adapters.privacy.tombstones import Tombstones
from adapters.settings.privacy import PrivacyApiSettings
from ingest.leads.lead_schemas import LEAD_ID, LOOKUP
from ingest.leads.lead_views import NO_LEAD
from ingest.leads.spelling import named_identity
from ingest.privacy.erasing import Erasing
from ingest.privacy.privacy_routes import ERASURE_ID
from ingest.web.caller import ApiError, Caller, caller_of
from ingest.web.erased import GONE, refuse_erased
from ingest.web.http import answer, json_body, resolver
from ingest.web.json_schema import USER_ID
from ingest.web.rate_limit import Limits, RateLimit
from rules.days import stamp
from rules.privacy.erasures import PersonKind
from rules.privacy.tombstones import identity_subject, lead_subject, user_subject

URL_SECONDS = 3600
NO_EXPORT = "nobody has asked for such an export in the last day"
logger = Logger(service="privacy-api")
app: APIGatewayHttpResolver = resolver(logger, PostgresUnavailable)


@dataclass(frozen=True, slots=True)
class _Parts:
    config: PrivacyApiSettings
    database: Database | None
    erasing: Erasing
    exports: ExportJobs
    waker: ExportWaker
    s3: Callable[[], Any]
    per_day: RateLimit

    def digest(self, subject: str) -> str:
        return self.erasing.tombstones.digest(subject)

    def lead(self, lead_id: str, caller: Caller) -> Person:
        """Return a lead; raises 404 if nobody knows it, or the caller does not reach it."""
        assert self.database is not None  # noqa: S101 (leads have a database)
        found = IdentityEraser(self.database).person(
            Person(self.digest(lead_subject(lead_id)), leads=(lead_id,))
        )
        if not found.organization or not caller.reaches(found.organization):
            raise ApiError(404, "not_found", NO_LEAD)
        return found


@cache
def _parts() -> _Parts:
    config, dynamodb = settings.read(PrivacyApiSettings), fenced(client("dynamodb"))
    key = KeyedHash(lambda: client("secretsmanager"), config.erasure_secret_arn)
    url = config.identity_url
    limits = Limits(EngagementCache(""), SharedCounters(dynamodb, config.limits_table))
    return _Parts(
        config,
        database(url) if url else None,
        Erasing(
            ErasureJobs(dynamodb, config.erasures_table), Tombstones(dynamodb, config.erasures_table, key)
        ),
        ExportJobs(dynamodb, config.limits_table),
        ExportWaker(lambda: client("lambda"), config.erasure_function),
        lambda: client("s3"),
        limits.of_a_day("exports", config.exports_per_day),
    )


refuse_erased(app, lambda: _parts().erasing, "delete_user", "post_user_lift", "get_erasure")


@app.delete("/v1/users/<user_id>")
def delete_user(user_id: str) -> Response[str]:
    """Erase a user."""
    _caller("user_id", USER_ID, user_id).check(user_id)
    person = Person(_parts().digest(user_subject(user_id)), user_id)
    told = _parts().erasing.begin(user_id, person, clock.now())
    logger.info("erasure", extra={"erasure_id": told["erasure_id"]})
    return answer(202, told)


@app.post("/v1/users/<user_id>/export")
def post_user_export(user_id: str) -> Response[str]:
    """Ask for everything that is known of a user."""
    caller = _caller("user_id", USER_ID, user_id)
    caller.check(user_id)
    return _ask_for_export(caller, PersonKind.USER, user_id)


@app.get("/v1/users/<user_id>/export")
def get_user_export(user_id: str) -> Response[str]:
    """How far the export of a user is."""
    _caller("user_id", USER_ID, user_id).check(user_id)
    job = _parts().exports.get(_parts().digest(user_subject(user_id)), clock.now())
    if job is None:
        raise ApiError(404, "not_found", NO_EXPORT)
    return answer(200, _view(job))


@app.post("/v1/users/<user_id>/lift")
def post_user_lift(user_id: str) -> Response[str]:
    """Let an erased id be used anew."""
    _caller("user_id", USER_ID, user_id).check_admin()
    return answer(200, {"lifted": _parts().erasing.lift(user_subject(user_id), clock.now())})


@app.delete("/v1/leads/<lead_id>")
def delete_lead(lead_id: str) -> Response[str]:
    """Erase a lead with all leads of the same person."""
    caller = _caller("lead_id", LEAD_ID, lead_id)
    caller.check_leads()
    told = _parts().erasing.of_lead(lead_id, caller)
    if told is None:
        person = _parts().lead(lead_id, caller)
        told = _parts().erasing.begin(lead_id, person, clock.now())
    logger.info("erasure", extra={"erasure_id": told["erasure_id"]})
    return answer(202, told)


@app.post("/v1/leads/<lead_id>/export")
def post_lead_export(lead_id: str) -> Response[str]:
    """Ask for everything that is known of a lead."""
    caller = _exporter_of(lead_id)
    organization = _parts().lead(lead_id, caller).organization
    return _ask_for_export(caller, PersonKind.LEAD, lead_id, organization)


@app.get("/v1/leads/<lead_id>/export")
def get_lead_export(lead_id: str) -> Response[str]:
    """How far the export of a lead is."""
    caller = _exporter_of(lead_id)
    job = _parts().exports.get(_parts().digest(lead_subject(lead_id)), clock.now())
    if job is None or not caller.reaches(job.organization):
        raise ApiError(404, "not_found", NO_EXPORT)
    return answer(200, _view(job))


@app.post("/v1/leads/lift")
def post_lead_lift() -> Response[str]:
    """Let an erased person's identities make a lead anew."""
    caller_of(app.current_event.raw_event).check_admin()
    body = json_body(app.current_event.raw_event, LOOKUP)
    named = named_identity(body, _parts().config.phone_regions)
    subject = identity_subject(body["organization_id"], named.channel, named.external_id)
    return answer(200, {"lifted": _parts().erasing.lift(subject, clock.now())})


@app.get("/v1/erasures/<erasure_id>")
def get_erasure(erasure_id: str) -> Response[str]:
    """How far an erasure is."""
    _caller("erasure_id", ERASURE_ID, erasure_id)
    return answer(200, _parts().erasing.view(erasure_id))


def _exporter_of(lead_id: str) -> Caller:
    """Return who asks for the export of a lead; raises 403, and 410 if the lead was erased."""
    caller = _caller("lead_id", LEAD_ID, lead_id)
    caller.check_leads()
    if _parts().erasing.stands(lead_subject(lead_id)):
        raise ApiError(410, "erased", f"the lead {GONE}")
    return caller


def _ask_for_export(caller: Caller, kind: PersonKind, subject: str, organization: str = "") -> Response[str]:
    """Begin an export, or answer the one that is under way; raises 429.

    A counter of a day may outlive an erasure, so the caller's keyed hash is its name.
    """
    parts, now = _parts(), clock.now()
    if not caller.is_admin:
        parts.per_day.check(parts.digest(user_subject(caller.user_id)), 1, now)
    digest = parts.digest(user_subject(subject) if kind is PersonKind.USER else lead_subject(subject))
    job = parts.exports.ask(digest, organization, now, lambda job: parts.waker.wake(kind, subject, job))
    logger.info("export", extra={"export_id": job.job_id})
    return answer(202, _view(job))


def _view(job: ExportJob) -> dict[str, Any]:
    told: dict[str, Any] = {"export_id": job.job_id, "asked_at": _instant(job.asked_at)}
    if not job.finished_at:
        return told | {"status": "running"}
    where = {"Bucket": _parts().config.payload_bucket, "Key": job.key}
    lasts = min(URL_SECONDS, job.expires_at - int(clock.now().timestamp()))
    url = _parts().s3().generate_presigned_url("get_object", Params=where, ExpiresIn=lasts)
    return told | {
        "status": "finished",
        "finished_at": _instant(job.finished_at),
        "bytes": job.size,
        "url": url,
        "url_expires_at": _instant(int(clock.now().timestamp()) + lasts),
        "expires_at": _instant(job.expires_at),
    }


def _instant(second: int) -> str:
    return stamp(datetime.fromtimestamp(second, UTC))


def _caller(name: str, pattern: str, value: str) -> Caller:
    """Return who calls; raises 400 for a malformed part of the path."""
    if not re.fullmatch(pattern, value, re.ASCII):
        raise ApiError(400, "invalid_parameter", f"{name} must match {pattern}")
    return caller_of(app.current_event.raw_event)


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Lambda entry: an HTTP API request, payload format 2.0."""
    answered = app.resolve(event, context)
    logger.info("answered", extra={"route": event.get("routeKey"), "status": answered["statusCode"]})
    return answered
