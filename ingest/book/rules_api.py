"""Everything under /v1/rules: the book in force, its versions, and publishing another one."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from adapters import clock, settings
from adapters.book import BookStore, PublicationConflict
from adapters.platform.aws import client
from adapters.platform.region_clients import fence_writer
from adapters.settings.engagement import RulesApiSettings
from ingest.book.publication import Proposal, publish
from ingest.book.rules_schemas import NOW, PUBLICATION, RULES, VERSION, VERSIONS
from ingest.web.api import Api
from ingest.web.caller import ApiError, Caller, invalid_field, invalid_fields
from ingest.web.json_schema import INSTANT
from ingest.web.paging import instant_in, instant_of
from ingest.web.routes import in_query
from rules.book.book import Version
from rules.book.document import BookRefused, Fault
from rules.days import stamp
from rules.json_values import DoubledKey, unique_keys

app = Api("RulesApi")
logger, handler = app.logger, app.handler


@cache
def _parts() -> BookStore:
    return BookStore(
        fence_writer(client("dynamodb")), settings.read_settings(RulesApiSettings).rule_books_table
    )


def version_view(version: Version, *, is_admin: bool) -> dict[str, Any]:
    """Return what is told of a version beside its document. Who published it is for admins to know."""
    told = {
        "version": version.number,
        "effective_at": stamp(version.effective_at),
        "published_at": stamp(version.published_at),
        "note": version.note,
    }
    return told | {"author": version.author} if is_admin else told


@app.route("GET /v1/rules", [in_query("at", INSTANT)], answer=RULES)
def get_rules() -> dict[str, Any]:
    """The book of rules in force.

    Its schema is components.schemas.Book.
    """
    caller, store, now = app.caller(), _parts(), clock.now()
    at = instant_of(app.query, "at") or now
    if at > now and not caller.is_admin:
        raise ApiError(403, "forbidden", "what is planned is for admins to see")
    version = store.look().at(at)
    shown = version_view(version, is_admin=caller.is_admin)
    return {**shown, "book": store.document(version.number)}


@app.route("GET /v1/rules/versions", answer=VERSIONS)
def get_rule_versions() -> dict[str, Any]:
    """All versions, the newest first (admins)."""
    app.admin()
    versions = [version_view(each, is_admin=True) for each in reversed(_parts().look().versions)]
    return {"versions": versions}


@app.route("POST /v1/rules", body=PUBLICATION, status=201, answer=VERSION)
def post_rules() -> dict[str, Any]:
    """Publish a version of the book (admins).

    Every function knows it within a minute. An event is judged by the version in force when it occurred, as
    far as it is known when the event arrives.
    """
    caller, now = app.admin(), clock.now()
    try:
        body = app.body(pairs=unique_keys)
        version = publish(_parts(), _proposal(body, caller), now)
    except BookRefused as refused:
        raise invalid_fields([(_field(each), each.reason) for each in refused.faults]) from None
    except DoubledKey as doubled:
        raise invalid_field("book", str(doubled)) from None
    except PublicationConflict:
        raise ApiError(
            409, "conflict", "somebody else has just published a version: look at it first"
        ) from None
    logger.info("published", extra={"version": version.number, "author": version.author})
    return version_view(version, is_admin=True)


def _field(fault: Fault) -> str:
    return ".".join(map(str, fault.path)) or "book"


def _proposal(body: Mapping[str, Any], caller: Caller) -> Proposal:
    at = None if body.get("effective", NOW) == NOW else instant_in(body, "effective")
    return Proposal(body["book"], at, caller.user_id, body.get("note", ""), body.get("rerate", False))
