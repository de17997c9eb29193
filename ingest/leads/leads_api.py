"""Everything under /v1/leads: puts integrations' webhooks on the queue, and reads what is known of leads."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aws_lambda_powertools.event_handler import Response

from adapters import clock
from adapters.bootstrap import ClientOf, bootstrap
from adapters.leads.lead_queue import LeadPayloads, LeadQueue
from adapters.leads.memory_store import MemoryStore
from adapters.leads.person_events import PersonEvents
from adapters.privacy.erasure_jobs import ErasureJobs
from adapters.privacy.tombstones import tombstones_of
from ingest.leads import sources
from ingest.leads.erased_leads import ErasedLeads
from ingest.leads.lead_accept import BadEnvelope, OpenedPayload, open_payload, path_of, read_envelope
from ingest.leads.lead_schemas import (
    FEATURES_VIEW,
    INTEGRATION,
    LEAD_EVENTS,
    LEAD_ID,
    RECEIPT,
    REVERSAL,
    UNMERGE_COMMAND,
)
from ingest.leads.lead_views import NO_EVENT, LeadViews
from ingest.leads.readers import DecodedEvent, PayloadPart
from ingest.web.api import (
    SECURITY_HEADERS,
    Allowance,
    Api,
    exact_json,
    json_body,
    shorten_details,
)
from ingest.web.bodies import WEBHOOK_BYTES_MAX
from ingest.web.caller import ApiError, Caller, invalid_field, invalid_fields
from ingest.web.json_schema import ORGANIZATION, TEXT, text
from ingest.web.routes import PAGE, in_query
from ingest.web.validate import first_problem
from rules.days import stamp
from rules.leads.lead_events import EVENT_TYPES
from rules.leads.settings import exchange_rates
from rules.parts import Part

FIND_PARAMETERS = {
    "organization_id": ORGANIZATION,
    "integration": INTEGRATION,
    "external_event_id": r"^.{1,512}$",
}
# The document shows the body as the door validates it, and also lists the names of the sources.
SOURCE = LEAD_EVENTS["properties"]["source"] | {"enum": sources.names()}
WEBHOOK = LEAD_EVENTS | {"properties": LEAD_EVENTS["properties"] | {"source": SOURCE}}

app = Api(
    "LeadsApi",
    {"lead_id": text(pattern=LEAD_ID), "change": {"type": "integer", "minimum": 1}},
    part=Part.LEADS,
)
logger, handler = app.logger, app.handler


@dataclass(frozen=True, slots=True)
class LeadsApiSettings(Allowance):
    """Settings of this function."""

    lead_queue_url: str
    payload_bucket: str
    event_table: str
    memory_table: str
    feature_table: str
    group_events_table: str
    currency: str  # currency, phone_regions, campaign_grace_days: as in the parameter Settings
    phone_regions: str
    exchange_rates: str
    campaign_grace_days: int
    erasures_table: str
    erasure_secret_arn: str


@dataclass(frozen=True, slots=True)
class _Parts:
    queue: LeadQueue
    views: LeadViews
    currency: str
    phone_regions: str
    erased: ErasedLeads


@bootstrap(LeadsApiSettings)
def _parts(config: LeadsApiSettings, client: ClientOf) -> _Parts:
    dynamodb = client("dynamodb")
    payloads = LeadPayloads(lambda: client("s3"), config.payload_bucket)
    views = LeadViews(
        PersonEvents.of(dynamodb, config),
        MemoryStore(dynamodb, config.memory_table),
        config.currency,
        exchange_rates(config.exchange_rates),
        config.campaign_grace_days,
    )
    queue = LeadQueue(client("sqs"), config.lead_queue_url, payloads)
    erased = ErasedLeads(ErasureJobs(dynamodb, config.erasures_table), tombstones_of(config, client))
    return _Parts(queue, views, config.currency, config.phone_regions, erased)


@app.route("POST /v1/leads/events", body=WEBHOOK, status=202, answer=RECEIPT)
def post_lead_event() -> dict[str, Any]:
    """Send an integration's webhook.

    202 means that the webhook is kept and will not be lost. Its lead and its events become visible a moment
    later; after a pause in which nobody sent anything, this may take half a minute, because the database of
    identities has to wake up.
    """
    caller = app.caller()
    caller.check_leads()
    body = json_body(app.event, LEAD_EVENTS, batch="payload", bytes_max=WEBHOOK_BYTES_MAX)
    now = clock.now()
    caller.check_organization(body["organization_id"])
    try:
        stamped = body | {"received_at": stamp(now)}
        envelope = read_envelope(stamped, _parts().currency, now, _parts().phone_regions)
    except BadEnvelope as bad:
        raise invalid_field(bad.field, bad.reason) from None
    opened = open_payload(body["payload"], envelope, now)
    if opened.refusals and not opened.events and not opened.decoder_bugs:
        raise invalid_fields([(each.field, each.reason) for each in opened.refusals])
    if opened.events or opened.decoder_bugs:
        _parts().queue.put(envelope.message())
    for error in opened.decoder_bugs:
        logger.error("a decoder broke", exc_info=error, extra={"source": envelope.source_type})
    logger.info("leads", extra={"source": envelope.source_type, "events": len(opened.events)})
    return _receipt(opened)


def _receipt(opened: OpenedPayload) -> dict[str, Any]:
    """Return what became of the webhook. undecoded: parts that broke a decoder; the queue has them too."""
    events = [_event_receipt(each, part) for each, part in opened.events]
    rejected = [{"field": each.field, "reason": each.reason} for each in opened.refusals]
    more = {"rejected": shorten_details(rejected), "undecoded": len(opened.decoder_bugs)}
    return {"accepted": len(events), "events": events} | {name: each for name, each in more.items() if each}


def _event_receipt(event: DecodedEvent, part: PayloadPart) -> dict[str, Any]:
    omissions = [
        {"field": path_of(part, omission.field), "reason": omission.reason} for omission in event.omissions
    ]
    named = {"external_event_id": event.external_event_id, "event_type": event.event_type}
    return named | ({"omissions": shorten_details(omissions)} if omissions else {})


@app.route("GET /v1/leads", [in_query(parameter, TEXT, required=True) for parameter in FIND_PARAMETERS])
def find_lead() -> Response[str]:
    """The lead that an integration's event was stored for."""
    caller = app.caller()
    caller.check_leads()
    wanted = {name: app.query.get(name, "") for name in FIND_PARAMETERS}
    for name, pattern in FIND_PARAMETERS.items():
        if problem := first_problem({"type": "string", "pattern": pattern}, wanted[name]):
            raise ApiError(400, "invalid_parameter", f"{name} {problem[1]}")
    if not caller.reaches(wanted["organization_id"]):
        raise ApiError(404, "not_found", NO_EVENT)
    source = f"{wanted['organization_id']}/{wanted['integration']}"
    found = _parts().views.find(source, wanted["external_event_id"])
    _parts().erased.check(found["lead_id"], caller, NO_EVENT)
    return _exact_response(found)


@app.route(
    "GET /v1/leads/{lead_id}/events",
    [in_query("type", {"type": "string", "enum": sorted(EVENT_TYPES)}), *PAGE],
)
def get_lead_events(lead_id: str) -> Response[str]:
    """A lead's events, newest first.

    With `type`, those of one type: an event appears there a moment after it was stored.
    """
    _check_reader(lead_id)
    return _exact_response(_parts().views.events(lead_id, app.query, clock.now()))


@app.route("GET /v1/leads/{lead_id}/memory", [in_query("type", TEXT), in_query("key", TEXT)])
def get_lead_memory(lead_id: str) -> Response[str]:
    """What is remembered of a lead."""
    _check_reader(lead_id)
    return _exact_response(_parts().views.memory(lead_id, app.query, clock.now()))


@app.route("GET /v1/leads/{lead_id}/features", answer=FEATURES_VIEW)
def get_lead_features(lead_id: str) -> Response[str]:
    """A lead's features."""
    _check_reader(lead_id)
    return _exact_response(_parts().views.features(lead_id, clock.now()))


@app.route("POST /v1/leads/changes/{change}/reversal", body=REVERSAL, status=202)
def post_lead_reversal(change: str) -> dict[str, Any]:
    """Undo a merge of leads.

    202 means that the command is kept. The merge is undone a moment later; after a pause, this may take half
    a minute.
    """
    caller = app.caller()
    caller.check_leads()
    if not (change.isascii() and change.isdigit() and 0 < len(change) < 19 and int(change)):
        raise ApiError(400, "invalid_parameter", "change must be a whole number from 1")
    body = app.body()
    command = {
        "command": UNMERGE_COMMAND,
        "change": int(change),
        "reason": body["reason"],
        "by": caller.user_id,
    }
    if organization := _organization_of(change, body.get("organization_id"), caller):
        command["organization_id"] = organization
    _parts().queue.put(command)
    return {"change": int(change)}


def _organization_of(change: str, named: str | None, caller: Caller) -> str | None:
    """Return whose change it is, None if an admin did not say; raises 404 for another's."""
    if caller.is_admin:
        return named
    asked = caller.organizations & {named} if named else caller.organizations
    for each in sorted(asked):
        if _parts().views.has_change(each, change):
            return each
    raise ApiError(404, "not_found", "there is no such change")


def _check_reader(lead_id: str) -> None:
    """Raise 400 for a malformed id, 403 or 404 unless the caller may read this lead, 410 if it was erased."""
    caller = app.caller()
    caller.check_leads()
    app.check_path("lead_id", lead_id)
    _parts().erased.check(lead_id, caller)
    if not caller.is_admin:
        _parts().views.check_reach(lead_id, caller)


def _exact_response(body: Mapping[str, Any]) -> Response[str]:
    return Response(
        200, content_type="application/json", body=exact_json(body), headers=dict(SECURITY_HEADERS)
    )
