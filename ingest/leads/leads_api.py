"""Everything under /v1/leads: puts integrations' webhooks on the queue, and reads what is known of leads."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response

from adapters import clock, settings
from adapters.leads.groups.person_events import PersonEvents
from adapters.leads.lead_payloads import LeadPayloads
from adapters.leads.lead_queue import LeadQueue
from adapters.leads.memory_store import MemoryStore
from adapters.logs import Logger
from adapters.platform.aws import client
from adapters.platform.fencing.turn import fenced
from adapters.privacy.tombstones import Tombstones, tombstones_of
from adapters.settings.exchange_rates import exchange_rates
from adapters.settings.leads import LeadsApiSettings
from ingest.leads.decoding import DecodedEvent, PayloadPart
from ingest.leads.lead_accept import BadEnvelope, OpenedPayload, open_payload, path_of, read_envelope
from ingest.leads.lead_schemas import (
    INTEGRATION,
    LEAD_EVENTS,
    LEAD_ID,
    ORGANIZATION,
    REVERSAL,
    UNMERGE_COMMAND,
)
from ingest.leads.lead_views import NO_EVENT, LeadViews
from ingest.web.caller import ApiError, Caller, caller_of, invalid_field, invalid_fields
from ingest.web.exact_json import exact_json
from ingest.web.http import GUARD, answer, json_body, resolver, shortened
from ingest.web.validate import first_problem
from rules.days import stamp
from rules.privacy.tombstones import lead_subject

BY_CHARACTERS_MAX = 128
FINDING = {"organization_id": ORGANIZATION, "integration": INTEGRATION, "external_event_id": r"^.{1,512}$"}

logger = Logger(service="leads-api")
app: APIGatewayHttpResolver = resolver(logger)


@dataclass(frozen=True, slots=True)
class _Parts:
    queue: LeadQueue
    views: LeadViews
    currency: str
    phone_regions: str
    erased: Tombstones


@cache
def _parts() -> _Parts:
    config, dynamodb = settings.read(LeadsApiSettings), fenced(client("dynamodb"))
    payloads = LeadPayloads(lambda: client("s3"), config.payload_bucket)
    views = LeadViews(
        PersonEvents.of(dynamodb, config),
        MemoryStore(dynamodb, config.memory_table),
        config.currency,
        exchange_rates(config.exchange_rates),
        config.campaign_grace_days,
    )
    queue = LeadQueue(client("sqs"), config.lead_queue_url, payloads)
    return _Parts(queue, views, config.currency, config.phone_regions, tombstones_of(config))


@app.post("/v1/leads/events")
def post_events() -> Response[str]:
    """Put a webhook on the queue, then answer 202 with its events; 422 if all of its parts are refused."""
    caller = _caller()
    caller.check_leads()
    body, now = json_body(app.current_event.raw_event, LEAD_EVENTS, batch="payload"), clock.now()
    caller.check_organization(body["organization_id"])
    try:
        stamped = body | {"received_at": stamp(now)}
        sent = read_envelope(stamped, _parts().currency, now, _parts().phone_regions)
    except BadEnvelope as bad:
        raise invalid_field(bad.field, bad.reason) from None
    opened = open_payload(body["payload"], sent, now)
    if opened.refused and not opened.events and not opened.broken:
        raise invalid_fields([(each.field, each.reason) for each in opened.refused])
    if opened.events or opened.broken:
        _parts().queue.put(sent.message())
    for error in opened.broken:
        logger.error("a decoder broke", exc_info=error, extra={"source": sent.source_type})
    logger.info("leads", extra={"source": sent.source_type, "events": len(opened.events)})
    return answer(202, _receipt(opened))


def _receipt(opened: OpenedPayload) -> dict[str, Any]:
    """Return what became of the webhook. undecoded: parts that broke a decoder; the queue holds them too."""
    events = [_event_receipt(each, part) for each, part in opened.events]
    rejected = [{"field": each.field, "reason": each.reason} for each in opened.refused]
    more = {"rejected": shortened(rejected), "undecoded": len(opened.broken)}
    return {"accepted": len(events), "events": events} | {name: each for name, each in more.items() if each}


def _event_receipt(event: DecodedEvent, part: PayloadPart) -> dict[str, Any]:
    omissions = [{"field": path_of(part, each.field), "reason": each.reason} for each in event.omissions]
    named = {"external_event_id": event.external_event_id, "event_type": event.event_type}
    return named | ({"omissions": shortened(omissions)} if omissions else {})


@app.get("/v1/leads")
def find_lead() -> Response[str]:
    """The lead that an integration's event was stored for."""
    caller = _caller()
    caller.check_leads()
    wanted = {name: _query().get(name, "") for name in FINDING}
    for name, pattern in FINDING.items():
        if problem := first_problem({"type": "string", "pattern": pattern}, wanted[name]):
            raise ApiError(400, "invalid_parameter", f"{name} {problem[1]}")
    if not caller.reaches(wanted["organization_id"]):
        raise ApiError(404, "not_found", NO_EVENT)
    source = f"{wanted['organization_id']}/{wanted['integration']}"
    return _exactly(_parts().views.find(source, wanted["external_event_id"]))


@app.get("/v1/leads/<lead_id>/events")
def get_events(lead_id: str) -> Response[str]:
    """Events, newest first."""
    _reader(lead_id)
    return _exactly(_parts().views.events(lead_id, _query(), clock.now()))


@app.get("/v1/leads/<lead_id>/memory")
def get_memory(lead_id: str) -> Response[str]:
    """What is remembered."""
    _reader(lead_id)
    return _exactly(_parts().views.memory(lead_id, _query(), clock.now()))


@app.get("/v1/leads/<lead_id>/features")
def get_features(lead_id: str) -> Response[str]:
    """Features."""
    _reader(lead_id)
    return _exactly(_parts().views.features(lead_id, clock.now()))


@app.post("/v1/leads/changes/<change>/reversal")
def post_reversal(change: str) -> Response[str]:
    """Undo a merge of leads: a command for the queue's consumer."""
    caller = _caller()
    caller.check_leads()
    if not (change.isascii() and change.isdigit() and 0 < len(change) < 19 and int(change)):
        raise ApiError(400, "invalid_parameter", "change must be a whole number from 1")
    body = json_body(app.current_event.raw_event, REVERSAL)
    command = {
        "command": UNMERGE_COMMAND,
        "change": int(change),
        "reason": body["reason"],
        "by": caller.user_id[:BY_CHARACTERS_MAX],
    }
    if organization := _organization_of(change, body.get("organization_id"), caller):
        command["organization_id"] = organization
    _parts().queue.put(command)
    return answer(202, {"change": int(change)})


def _organization_of(change: str, named: str | None, caller: Caller) -> str | None:
    """Return whose change it is, None if an admin did not say; raises 404 for another's."""
    if caller.is_admin:
        return named
    asked = caller.organizations & {named} if named else caller.organizations
    for each in sorted(asked):
        if _parts().views.has_change(each, change):
            return each
    raise ApiError(404, "not_found", "there is no such change")


def _caller() -> Caller:
    return caller_of(app.current_event.raw_event)


def _reader(lead_id: str) -> None:
    """Raise 401 or 403 unless the caller may read leads, 400 for a malformed id, 404 for another's lead,
    410 for one that was erased.
    """
    caller = _caller()
    caller.check_leads()
    if problem := first_problem({"type": "string", "pattern": LEAD_ID}, lead_id):
        raise ApiError(400, "invalid_parameter", f"lead_id {problem[1]}")
    if not caller.is_admin:
        _parts().views.check_reach(lead_id, caller)
    tombstone = _parts().erased.of(lead_subject(lead_id))
    if tombstone and tombstone.stands:
        raise ApiError(410, "erased", "the lead was erased")


def _query() -> Mapping[str, str]:
    return app.current_event.query_string_parameters or {}


def _exactly(body: Mapping[str, Any]) -> Response[str]:
    return Response(200, content_type="application/json", body=exact_json(body), headers=dict(GUARD))


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Lambda entry: an HTTP API request, payload format 2.0."""
    return app.resolve(event, context)
