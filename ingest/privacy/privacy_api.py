"""Exports and erasures: DELETE and export of users and leads, and what became of an erasure (rule 10).

Who is who is asked of PostgreSQL. If it sleeps, the first request may take half a minute or end in a 5xx: the
next one finds it awake.
"""

import re
import uuid
from dataclasses import dataclass
from functools import cache
from typing import Any

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response

from adapters import clock, settings
from adapters.engagement.engagement_cache import EngagementCache
from adapters.logs import Logger
from adapters.platform.aws import client
from adapters.platform.keyed_hash import KeyedHash
from adapters.platform.shared_counters import SharedCounters
from adapters.postgresql.databases import database
from adapters.postgresql.sql import PostgresUnavailable
from adapters.privacy.erasure_jobs import ErasureJobs
from adapters.privacy.other_erasers import EXPORTS
from adapters.privacy.people_erasers import IdentityEraser
from adapters.privacy.person import Person
from adapters.privacy.stores import Clients, stores
from adapters.privacy.tombstones import Tombstones
from adapters.questions.fingerprints import Fingerprints
from adapters.settings.privacy import PrivacyApiSettings
from ingest.leads.lead_schemas import LEAD_ID, LOOKUP
from ingest.leads.lead_views import NO_LEAD
from ingest.leads.spelling import named_identity
from ingest.privacy.erasing import Erasing
from ingest.privacy.export import export_zip
from ingest.privacy.privacy_routes import ERASURE_ID
from ingest.web.caller import ApiError, Caller, caller_of
from ingest.web.erased import GONE, refuse_erased
from ingest.web.http import GUARD, answer, json_body, resolver
from ingest.web.json_schema import USER_ID
from ingest.web.rate_limit import Limits, RateLimit
from rules.privacy.erasures import PersonKind
from rules.privacy.tombstones import identity_subject, lead_subject, user_subject

ANSWER_BYTES_MAX = 4_000_000  # as base64 it must be below Lambda's 6 MB
URL_SECONDS = 3600
EXPORTS_PER_MINUTE = 5
logger = Logger(service="privacy-api")
app: APIGatewayHttpResolver = resolver(logger, PostgresUnavailable)


@dataclass(frozen=True, slots=True)
class _Parts:
    config: PrivacyApiSettings
    clients: Clients
    erasing: Erasing
    people: Fingerprints
    per_minute: RateLimit
    per_day: RateLimit

    def user(self, user_id: str) -> Person:
        digest = self.erasing.tombstones.digest(user_subject(user_id))
        return Person(digest, user_id, self.people.of_user(user_id).all)

    def lead(self, lead_id: str, caller: Caller) -> Person:
        """Return a lead; raises 404 if nobody knows it, or the caller does not reach it."""
        assert self.clients.database is not None  # noqa: S101 (leads have a database)
        digest = self.erasing.tombstones.digest(lead_subject(lead_id))
        found = IdentityEraser(self.clients.database).person(Person(digest, leads=(lead_id,)))
        if not found.organization or not caller.reaches(found.organization):
            raise ApiError(404, "not_found", NO_LEAD)
        return found


@cache
def _parts() -> _Parts:
    config, dynamodb = settings.read(PrivacyApiSettings), client("dynamodb")
    key = KeyedHash(lambda: client("secretsmanager"), config.erasure_secret_arn)
    url = config.identity_url
    limits = Limits(EngagementCache(""), SharedCounters(dynamodb, config.limits_table))
    return _Parts(
        config,
        Clients(dynamodb, lambda: client("s3"), lambda: None, database(url) if url else None),
        Erasing(
            ErasureJobs(dynamodb, config.erasures_table), Tombstones(dynamodb, config.erasures_table, key)
        ),
        Fingerprints(lambda: client("secretsmanager"), config.fingerprint_secret_arn),
        limits.of("exports", EXPORTS_PER_MINUTE),
        limits.of_a_day("exports", config.exports_per_day),
    )


refuse_erased(app, lambda: _parts().erasing, "delete_user", "post_user_lift", "get_erasure")


@app.delete("/v1/users/<user_id>")
def delete_user(user_id: str) -> Response[str]:
    """Erase a user."""
    _caller("user_id", USER_ID, user_id).check(user_id)
    told = _parts().erasing.begin(user_id, _parts().user(user_id), clock.now())
    logger.info("erasure", extra={"erasure_id": told["erasure_id"]})
    return answer(202, told)


@app.get("/v1/users/<user_id>/export")
def get_user_export(user_id: str) -> Response[Any]:
    """Everything that is known of a user."""
    caller = _caller("user_id", USER_ID, user_id)
    caller.check(user_id)
    _count_export(caller)
    return _export(PersonKind.USER, user_id, _parts().user(user_id))


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


@app.get("/v1/leads/<lead_id>/export")
def get_lead_export(lead_id: str) -> Response[Any]:
    """Everything that is known of a lead."""
    caller = _caller("lead_id", LEAD_ID, lead_id)
    caller.check_leads()
    if _parts().erasing.stands(lead_subject(lead_id)):
        raise ApiError(410, "erased", f"the lead {GONE}")
    person = _parts().lead(lead_id, caller)
    _count_export(caller)
    return _export(PersonKind.LEAD, lead_id, person)


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


def _count_export(caller: Caller) -> None:
    """Count one export of the caller; raises 429.

    A counter of a day may outlive an erasure, so the caller's keyed hash is its name.
    """
    _parts().per_minute.check(caller.user_id, 1, clock.now())
    if not caller.is_admin:
        digest = _parts().erasing.tombstones.digest(user_subject(caller.user_id))
        _parts().per_day.check(digest, 1, clock.now())


def _export(kind: PersonKind, subject: str, person: Person) -> Response[Any]:
    parts, now = _parts(), clock.now()
    made = export_zip(kind, subject, person, stores(parts.clients, parts.config, now), now)
    name = {"Content-Disposition": 'attachment; filename="export.zip"'}
    if len(made) <= ANSWER_BYTES_MAX:
        return Response(200, content_type="application/zip", body=made, headers={**GUARD, **name})
    s3, key = parts.clients.s3(), f"{EXPORTS}{person.digest}/{uuid.uuid4()}.zip"
    s3.put_object(Bucket=parts.config.payload_bucket, Key=key, Body=made, ContentType="application/zip")
    where = {"Bucket": parts.config.payload_bucket, "Key": key}
    url = s3.generate_presigned_url("get_object", Params=where, ExpiresIn=URL_SECONDS)
    return answer(303, {"url": url}, {"Location": url})


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
