"""Everything under /v1/rules: the book in force, its versions, and publishing another one."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response

from adapters import clock, settings
from adapters.book.book_store import BookStore, PublishedMeanwhile
from adapters.logs import Logger
from adapters.platform.aws import client
from adapters.platform.fencing.turn import fenced
from adapters.settings.engagement import RulesApiSettings
from ingest.book.publishing import Proposal, publish
from ingest.book.rules_schemas import NOW, PUBLICATION
from ingest.web.caller import ApiError, Caller, caller_of, invalid_field, invalid_fields
from ingest.web.http import answer, json_body, resolver
from ingest.web.paging import instant_in, instant_of
from rules.book.reading import BookRefused, Fault
from rules.book.versions import Version
from rules.days import stamp
from rules.json_values import DoubledKey, single_keys

logger = Logger(service="rules-api")
app: APIGatewayHttpResolver = resolver(logger)


@cache
def _parts() -> BookStore:
    return BookStore(fenced(client("dynamodb")), settings.read(RulesApiSettings).rule_books_table)


def _caller() -> Caller:
    return caller_of(app.current_event.raw_event)


def version_view(version: Version, *, is_admin: bool) -> dict[str, Any]:
    """Return what is told of a version beside its document. Who published it is for admins to know."""
    told = {
        "version": version.number,
        "effective_at": stamp(version.effective_at),
        "published_at": stamp(version.published_at),
        "note": version.note,
    }
    return told | {"author": version.author} if is_admin else told


@app.get("/v1/rules")
def get_rules() -> Response[str]:
    """Return the book in force, now or at another instant."""
    caller, store, now = _caller(), _parts(), clock.now()
    at = instant_of(app.current_event.query_string_parameters or {}, "at") or now
    if at > now and not caller.is_admin:
        raise ApiError(403, "forbidden", "what is planned is for admins to see")
    version = store.look().at(at)
    shown = version_view(version, is_admin=caller.is_admin)
    return answer(200, {**shown, "book": store.document(version.number)})


@app.get("/v1/rules/versions")
def get_versions() -> Response[str]:
    """Return all versions, the newest first."""
    _caller().check_admin()
    versions = [version_view(each, is_admin=True) for each in reversed(_parts().look().versions)]
    return answer(200, {"versions": versions})


@app.post("/v1/rules")
def post_rules() -> Response[str]:
    """Publish a version."""
    caller, now = _caller(), clock.now()
    caller.check_admin()
    try:
        body = json_body(app.current_event.raw_event, PUBLICATION, pairs=single_keys)
        version = publish(_parts(), _proposal(body, caller), now)
    except BookRefused as refused:
        raise invalid_fields([(_field(each), each.reason) for each in refused.faults]) from None
    except DoubledKey as doubled:
        raise invalid_field("book", str(doubled)) from None
    except PublishedMeanwhile:
        raise ApiError(
            409, "conflict", "somebody else has just published a version: look at it first"
        ) from None
    logger.info("published", extra={"version": version.number, "author": version.author})
    return answer(201, version_view(version, is_admin=True))


def _field(fault: Fault) -> str:
    return ".".join(map(str, fault.path)) or "book"


def _proposal(body: Mapping[str, Any], caller: Caller) -> Proposal:
    at = None if body.get("effective", NOW) == NOW else instant_in(body, "effective")
    return Proposal(body["book"], at, caller.user_id, body.get("note", ""), body.get("rerate", False))


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Lambda entry."""
    return app.resolve(event, context)
