"""Exports and erasures: DELETE and export of users, and what became of an erasure (rule 10).

Parts whose persons are no users add their own routes.
"""

from dataclasses import dataclass
from typing import Any

from adapters import clock
from adapters.bootstrap import ClientOf, bootstrap
from adapters.platform.keyed_hash import KeyedHash
from adapters.platform.limits import SharedCounters
from adapters.postgresql.sql import PostgresUnavailable
from adapters.privacy.erasure_jobs import ErasureJobs
from adapters.privacy.export_jobs import ExportInvoker, ExportJobs
from adapters.privacy.tombstones import Tombstones
from adapters.settings import with_settings
from ingest.person_services import (
    ERASURE,
    ERASURE_HELP,
    ERASURE_ID,
    EXPORT,
    EXPORT_HELP,
    EXPORT_URL_HELP,
    LIFT_RESULT,
    NO_EXPORT,
    Erasures,
    PersonRoutes,
    PersonServices,
)
from ingest.web.api import Allowance, Api, refuse_erased
from ingest.web.caller import ApiError, Caller
from ingest.web.json_schema import text, user_id
from ingest.web.rate_limit import DAY, RateLimit
from rules.parts import said
from rules.privacy.erasures import Person, PersonKind
from rules.privacy.tombstones import (
    user_subject,
)

PERSON_ROUTES: list[PersonRoutes] = list(said("person_routes"))


@dataclass(frozen=True, slots=True)
class OwnPrivacyApiSettings(Allowance):
    """Settings of this function."""

    payload_bucket: str
    erasures_table: str
    erasure_secret_arn: str
    erasure_function: str  # the function that makes exports
    exports_per_day: int


PrivacyApiSettings = with_settings(OwnPrivacyApiSettings, *(each.settings for each in PERSON_ROUTES))

app = Api(
    "PrivacyApi",
    {
        "user_id": user_id(),
        "erasure_id": text(pattern=ERASURE_ID),
        **{name: schema for each in PERSON_ROUTES for name, schema in each.path.items()},
    },
    PostgresUnavailable,
)
logger, handler = app.logger, app.handler


@bootstrap(PrivacyApiSettings)
def _parts(config: OwnPrivacyApiSettings, client: ClientOf) -> PersonServices:
    dynamodb = client("dynamodb")
    key = KeyedHash(lambda: client("secretsmanager"), config.erasure_secret_arn)
    counters = SharedCounters(lambda: dynamodb, config.limits_table)
    return PersonServices(
        config,
        Erasures(
            ErasureJobs(dynamodb, config.erasures_table), Tombstones(dynamodb, config.erasures_table, key)
        ),
        ExportJobs(dynamodb, config.limits_table),
        ExportInvoker(lambda: client("lambda"), config.erasure_function),
        lambda: client("s3"),
        RateLimit(counters, "exports", config.exports_per_day, window=DAY),
        logger,
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
    return _parts().ask_for_export(caller, PersonKind.USER, user_id)


@app.route("GET /v1/users/{user_id}/export", answer=EXPORT, more=EXPORT_URL_HELP)
def get_user_export(user_id: str) -> dict[str, Any]:
    """How far the export of a user is, and where it can be had."""
    _caller("user_id", user_id).check(user_id)
    job = _parts().exports.get(_parts().digest(user_subject(user_id)), clock.now())
    if job is None:
        raise ApiError(404, "not_found", NO_EXPORT)
    return _parts().export_view(job)


@app.route("POST /v1/users/{user_id}/lift", answer=LIFT_RESULT)
def post_user_lift(user_id: str) -> dict[str, Any]:
    """Let an erased id be used anew (admins).

    What happened before is refused for good.
    """
    _caller("user_id", user_id).check_admin()
    return {"lifted": _parts().erasures.lift(user_subject(user_id), clock.now())}


@app.route("GET /v1/erasures/{erasure_id}", answer=ERASURE)
def get_erasure(erasure_id: str) -> dict[str, Any]:
    """How far an erasure is, and at its end the certificate.

    The id is a secret of whoever asked for the erasure; what it leads to names nobody.
    """
    _caller("erasure_id", erasure_id)
    return _parts().erasures.view(erasure_id)


def _caller(name: str, value: str) -> Caller:
    """Return who calls; raises 400 for a malformed part of the path."""
    app.check_path(name, value)
    return app.caller()


for each in PERSON_ROUTES:
    each.add(app, _parts)
