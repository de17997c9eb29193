"""The routes of hooks: they put vendors' webhooks and browsers' forms on the lead-ingestion queue.

A signed body that is no event is queued, too: the queue's consumer keeps it for an operator, with the reason.
If it were refused, its vendor would only repeat it. A bad form is refused, because anybody can send one.
"""

import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from aws_lambda_powertools.event_handler import Response

from adapters import clock
from adapters.bootstrap import ClientOf, bootstrap
from adapters.hook_store import HookStore
from adapters.leads.lead_queue import LeadPayloads, LeadQueue
from adapters.platform.limits import SharedCounters, network_of
from ingest.leads import forms, sources
from ingest.leads.hooks import HookAuthenticator, HookRequest, KnownHooks, hook_request, origin_of
from ingest.leads.lead_accept import (
    PARTS_MAX,
    PIECES_MAX,
    BadEnvelope,
    OpenedPayload,
    open_payload,
    pieces_of,
    read_envelope,
)
from ingest.leads.lead_schemas import SOURCE
from ingest.leads.sources import Source
from ingest.web.api import (
    SECURITY_HEADERS,
    Allowance,
    Answer,
    Api,
    json_of,
    json_response,
)
from ingest.web.bodies import WEBHOOK_BYTES_MAX
from ingest.web.caller import ApiError, invalid_field, invalid_fields
from ingest.web.json_schema import ORGANIZATION, closed_object, text
from rules.days import stamp
from rules.hooks import Hook
from rules.parts import Part

FORM_BYTES_MAX = 100_000
COUNT_SECONDS = 300  # how long it is kept how many forms an address has sent in a minute
CORS = {"Access-Control-Allow-Methods": "POST", "Access-Control-Allow-Headers": "content-type"}
# A webhook has no token: its signature opens the authenticator.
HOOK = "/v1/hooks/{organization}/{source}"
BODY = {"required": [], "description": "what the vendor sends, signed as the vendor signs"}
ACCEPTED = closed_object({"accepted": {"type": "integer", "minimum": 0}})

app = Api(
    "HooksApi",
    {"organization": text(pattern=ORGANIZATION), "source": text(pattern=SOURCE)},
    part=Part.LEADS,
)
logger, handler = app.logger, app.handler


@dataclass(frozen=True, slots=True)
class HooksApiSettings(Allowance):
    """Settings of this function."""

    lead_queue_url: str
    payload_bucket: str
    # A hook's secret has the name {hook_secret_prefix}{organization_id}/{source}. Example of a prefix:
    # `streakline/hooks/`.
    hook_secret_prefix: str
    currency: str
    phone_regions: str


@dataclass(frozen=True, slots=True)
class _Parts:
    authenticator: HookAuthenticator
    queue: LeadQueue
    counters: SharedCounters
    currency: str
    phone_regions: str


@bootstrap(HooksApiSettings)
def _parts(config: HooksApiSettings, client: ClientOf) -> _Parts:
    store = HookStore(client("secretsmanager"), config.hook_secret_prefix)
    payloads = LeadPayloads(lambda: client("s3"), config.payload_bucket)
    return _Parts(
        HookAuthenticator(KnownHooks(store, time.monotonic)),
        LeadQueue(client("sqs"), config.lead_queue_url, payloads),
        SharedCounters(lambda: client("dynamodb"), config.limits_table),
        config.currency,
        config.phone_regions,
    )


@app.route(f"POST {HOOK}", body=BODY, answer=ACCEPTED, is_open=True)
def post_hook(organization: str, source: str) -> Answer:
    """Take a vendor's webhook, or a browser's form.

    It needs no token, but the source's signature; 401 for whatever does not fit. 200 means that it is kept. A
    delivery that comes again changes nothing. `streakline hook add` makes a hook.
    """
    request, now = hook_request(app.event), clock.now()
    if source in sources.names() and sources.source_named(source).signature is None:
        return _take_form(organization, source, request, now)
    authenticator, name = _parts().authenticator, (organization, source)
    hook, source_format, delivery = authenticator.authenticate_webhook(name, request, now)
    context_fields = {
        "topic": request.headers.get(source_format.topic_header, "")[:128],
        "delivery_id": delivery.delivery_id[:256],
        "is_signed": True,
    }
    if len(request.body) > WEBHOOK_BYTES_MAX:
        raise _keep_refused(hook, request.body, now, f"the body is over {WEBHOOK_BYTES_MAX} bytes")
    payload = json_of(request.body)
    pieces = pieces_of(payload, source)
    if len(pieces) > PIECES_MAX:
        raise _keep_refused(hook, request.body, now, f"the body holds over {PIECES_MAX * PARTS_MAX} events")
    return {"accepted": len(_queue_payload(hook, payload, pieces, context_fields, now).events)}


@app.route(f"GET {HOOK}", answer={"type": "string", "contentMediaType": "text/plain"}, is_open=True)
def get_hook(organization: str, source: str) -> Response[str]:
    """Answer a vendor that asks whether this address is ours."""
    request, name = hook_request(app.event), (organization, source)
    answer = _parts().authenticator.answer_challenge(name, request, app.query, clock.now())
    return Response(200, content_type="text/plain", body=answer, headers=dict(SECURITY_HEADERS))


@app.route(f"OPTIONS {HOOK}", status=204, is_open=True)
def options_hook(organization: str, source: str) -> Response[str]:
    """Let a page of an allowed origin send a form as JSON."""
    request = hook_request(app.event)
    _parts().authenticator.authenticate_form((organization, source), request)
    return Response(
        204, headers=_cors(request.headers) | CORS | SECURITY_HEADERS | {"Access-Control-Max-Age": "600"}
    )


def _keep_refused(hook: Hook, body: bytes, now: datetime, reason: str) -> ApiError:
    """Keep a signed body that is refused, for an operator; return the refusal."""
    digest = hashlib.sha256(body).hexdigest()
    message = {"organization_id": hook.organization_id, "source": hook.source, "received_at": stamp(now)}
    _parts().queue.put_refused(message, body, f"{reason}: it has {len(body)}, sha256 {digest}")
    logger.warning("a webhook is refused and kept", extra={**message, "bytes": len(body), "reason": reason})
    return ApiError(413, "too_large", reason)


def _queue_payload(
    hook: Hook, payload: Any, pieces: list[Any], context_fields: Mapping[str, Any], now: datetime
) -> OpenedPayload:
    """Queue a payload with any event in its pieces, and return it opened.

    Signed parts that are no event are queued, too, for the queue's consumer to keep. Those of a form raise
    422.
    """
    message = {"organization_id": hook.organization_id, "source": hook.source, "payload": payload}
    message |= {name: value for name, value in context_fields.items() if value}
    message["received_at"] = stamp(now)
    try:
        envelope = read_envelope(message, _parts().currency, now, _parts().phone_regions)
    except BadEnvelope as bad:
        raise invalid_field(bad.field, bad.reason) from None
    opened = open_payload(payload, envelope, now, PIECES_MAX * PARTS_MAX)
    if opened.refusals and not envelope.context.is_signed:
        raise invalid_fields([(part.field, part.reason) for part in opened.refusals])
    if opened.events or opened.refusals or opened.decoder_bugs:
        for piece in pieces:
            _parts().queue.put(replace(envelope, payload=piece).message())
    counts = {
        "events": len(opened.events),
        "refused": len(opened.refusals),
        "broken": len(opened.decoder_bugs),
    }
    logger.info("hook", extra={"organization": hook.organization_id, "source": hook.source, **counts})
    return opened


def _take_form(organization: str, source_name: str, request: HookRequest, now: datetime) -> Response[str]:
    hook, source = _parts().authenticator.authenticate_form((organization, source_name), request)
    try:
        return _queue_form(hook, source, request, now)
    except ApiError as refused:
        refused.headers |= _cors(request.headers)  # or the page's script cannot read what is wrong
        raise


def _queue_form(hook: Hook, source: Source, request: HookRequest, now: datetime) -> Response[str]:
    minute, second = divmod(int(now.timestamp()), 60)
    counter = f"form#{hook.organization_id}/{hook.source}#{_address_digest(hook, request.address)}#{minute}"
    if _parts().counters.add(counter, 1, now, COUNT_SECONDS) > hook.per_minute:
        wait = str(60 - second)
        raise ApiError(429, "rate_limited", "too many forms of one address", None, {"Retry-After": wait})
    fields = form_fields(request)
    if not fields.pop(hook.honeypot, ""):
        context_fields = {"delivery_id": _submission_id(fields, now)}
        assert source.from_browser is not None  # noqa: S101 (the authenticator has seen to it)
        payload = source.from_browser(fields)
        _queue_payload(hook, payload, [payload], context_fields, now)
    # A robot that filled in the honeypot gets the same answer, and nothing is kept.
    if hook.thanks and request.media_type != forms.JSON:
        return Response(303, headers={"Location": hook.thanks, **SECURITY_HEADERS})
    return json_response(200, {"accepted": 1}, _cors(request.headers))


def form_fields(request: HookRequest) -> dict[str, str]:
    """Read a form's fields as ingest.leads.forms does; raises 400, 413 and 415."""
    if len(request.body) > FORM_BYTES_MAX:
        raise ApiError(413, "too_large", f"the form is over {FORM_BYTES_MAX} bytes")
    if request.media_type not in forms.MEDIA_TYPES:
        media_types = ", ".join(forms.MEDIA_TYPES)
        raise ApiError(415, "unsupported_media_type", f"content-type must be one of {media_types}")
    try:
        return forms.read_form(request.headers["content-type"], request.body)
    except forms.NoForm as error:
        raise ApiError(400, "invalid_json", f"the form cannot be read: {error}"[:300]) from None


def _address_digest(hook: Hook, address: str) -> str:
    key = hook.secrets[0].value.encode()
    return hmac.digest(key, network_of(address).encode(), "sha256").hex()[:32]


def _submission_id(fields: Mapping[str, str], now: datetime) -> str:
    """Return the id of a submitted form: the same fields on the same date (UTC) are one submission.

    With a `submission_id` of the page's own the date does not matter.
    """
    day = "" if fields.get("submission_id") else now.date().isoformat()
    text = json.dumps([day, sorted(fields.items())])
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _cors(headers: Mapping[str, str]) -> dict[str, str]:
    return {"Access-Control-Allow-Origin": origin_of(headers) or "null", "Vary": "Origin"}
