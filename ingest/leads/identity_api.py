"""What an operator asks and does about who is who: find a lead, see its changes, merge by hand.

These routes speak to PostgreSQL themselves, so that the operator hears at once what is refused. If the
database sleeps, the first request may take half a minute or end in a 5xx: the next one finds it awake.
"""

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response

from adapters import clock, settings
from adapters.leads.identity_store import CannotMend, IdentityStore
from adapters.leads.lead_payloads import LeadPayloads
from adapters.leads.lead_queue import LeadQueue
from adapters.logs import Logger
from adapters.platform.aws import client
from adapters.postgresql.databases import database
from adapters.postgresql.sql import PostgresUnavailable
from adapters.settings.leads import IdentityApiSettings
from ingest.leads.lead_schemas import ANNOUNCE_COMMAND, LEAD_ID, LOOKUP, MERGE
from ingest.leads.lead_views import NO_LEAD
from ingest.leads.spelling import named_identity
from ingest.web.caller import ApiError, Caller, caller_of
from ingest.web.http import answer, json_body, resolver
from ingest.web.paging import LIMIT_DEFAULT, LIMIT_MAX, cursor_of, integer, page
from ingest.web.validate import first_problem

BY_CHARACTERS_MAX = 128
NUMBER = re.compile(r"\d{1,18}", re.ASCII)  # of a change, a bigint

logger = Logger(service="identity-api")
app: APIGatewayHttpResolver = resolver(logger, PostgresUnavailable)


@dataclass(frozen=True, slots=True)
class _Parts:
    identities: IdentityStore
    queue: LeadQueue
    phone_regions: str


@cache
def _parts() -> _Parts:
    config = settings.read(IdentityApiSettings)
    queue = LeadQueue(client("sqs"), config.lead_queue_url, LeadPayloads(lambda: None, ""))
    return _Parts(IdentityStore(database(config.identity_url)), queue, config.phone_regions)


@app.post("/v1/leads/lookup")
def post_lookup() -> Response[str]:
    """The lead that an address, a number or an id of WhatsApp's belongs to, however it is written."""
    caller, body = _caller(), json_body(app.current_event.raw_event, LOOKUP)
    wanted = named_identity(body, _parts().phone_regions)
    organization = body["organization_id"]
    found = _parts().identities.lookup(organization, wanted) if caller.reaches(organization) else None
    if found is None:
        raise ApiError(404, "not_found", NO_LEAD)
    return answer(200, {"lead_id": found["root"], "is_verified": found["is_verified"]})


@app.get("/v1/leads/<lead_id>/changes")
def get_changes(lead_id: str) -> Response[str]:
    """A page of the merges, undoings and refusals of a lead, newest first, with who did it and why."""
    caller = _caller()
    if problem := first_problem({"type": "string", "pattern": LEAD_ID}, lead_id):
        raise ApiError(400, "invalid_parameter", f"lead_id {problem[1]}")
    query = app.current_event.query_string_parameters or {}
    limit, before = integer(query, "limit", LIMIT_DEFAULT, LIMIT_MAX), cursor_of(query)
    if before and not NUMBER.fullmatch(before):
        raise ApiError(400, "invalid_parameter", "cursor is not one that a page returned")
    number = int(before) if before else None
    changes = _parts().identities.history(_reach(caller), lead_id, number, limit)
    if changes is None:
        raise ApiError(404, "not_found", NO_LEAD)
    shown = ("number", "kind", "at", "evidence", "reversed_by")
    rows = [{name: each[name] for name in shown} for each in changes]
    return answer(200, {"lead_id": lead_id, **page("changes", rows, limit, "number")})


@app.post("/v1/leads/merges")
def post_merge() -> Response[str]:
    """Merge two leads because an operator says so; their events follow a moment later."""
    caller, body = _caller(), json_body(app.current_event.raw_event, MERGE)
    one, other = body["leads"]
    told = {"reason": body["reason"], "by": caller.user_id[:BY_CHARACTERS_MAX]}
    try:
        number, changes = _parts().identities.merge_by_hand(
            _reach(caller), (one, other), told, unite=body.get("unite", False), now=clock.now()
        )
    except CannotMend as reason:
        if reason.is_unknown:
            raise ApiError(404, "not_found", str(reason)) from None
        raise ApiError(409, "kept_apart", str(reason)) from None
    if changes:
        _parts().queue.put({"command": ANNOUNCE_COMMAND})
    logger.info("merged by hand", extra={"change": number, "by": told["by"]})
    return answer(200, {"change": number})


def _caller() -> Caller:
    caller = caller_of(app.current_event.raw_event)
    caller.check_leads()
    return caller


def _reach(caller: Caller) -> list[str] | None:
    """Return the organizations that the caller reaches; None: all."""
    return None if caller.is_admin else sorted(caller.organizations)


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Lambda entry: an HTTP API request, payload format 2.0."""
    return app.resolve(event, context)
