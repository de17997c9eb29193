"""Everything under /v1/webhook-endpoints: where outgoing webhooks go (docs/rules.md, rule 18).

Registers endpoints, rotates their secrets, ends them. A secret is shown once, when it is made.
"""

import secrets
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from aws_lambda_powertools.event_handler import Response

from adapters import clock
from adapters.bootstrap import ClientOf, bootstrap
from adapters.hook_store import HookStore, NoHook
from adapters.outgoing.endpoint_store import ENDED, EndpointStore, NoEndpoint
from adapters.outgoing.outbox_store import DeliveryInvoker, OutboxStore, endpoint_share
from adapters.settings.parts import deployed_parts
from ingest.web.api import Allowance, Api, error_response
from ingest.web.caller import ApiError, invalid_field, invalid_fields
from ingest.web.json_schema import (
    INSTANT,
    ORGANIZATION,
    TEXT,
    Schema,
    closed_object,
    list_of,
    text,
    user_id,
    whole,
)
from rules.days import stamp
from rules.hooks import Hook, HookSecret, rotate_hook
from rules.outgoing.notices import (
    ENDPOINTS_MAX,
    OWNED_KINDS,
    PART_OF_TYPE,
    TYPES,
    Endpoint,
    NoticeType,
    silent_filters,
)
from rules.outgoing.webhooks import UrlRefused, secret_of, target_of
from rules.parts import OF_PART, VALUES_OF_PARTS, is_deployed

ENDPOINT_ID = r"^[a-z0-9]{26}$"
KINDS = sorted(str(each) for each in TYPES if each != NoticeType.TEST)
PART_OF_KIND = {str(kind): part.value for kind, part in PART_OF_TYPE.items()}
_VALUE: Schema = {
    "anyOf": [{"type": ["string", "number", "boolean"]}, closed_object({"at_least": {"type": "number"}})]
}
_FIELDS: Schema = {
    "type": "object",
    "maxProperties": 10,
    "additionalProperties": {"type": "array", "minItems": 1, "maxItems": 20, "items": _VALUE},
}
_NEW_ENDPOINT_FIELDS: dict[str, Schema] = {
    "organization_id": text(pattern=ORGANIZATION),
    "url": text("https, at a public address", maxLength=1000),
    "types?": {
        "type": "array",
        "maxItems": len(KINDS),
        "items": {"type": "string", "enum": KINDS, VALUES_OF_PARTS: PART_OF_KIND},
        "description": "of notifications; left out or empty: all of them",
    },
    "filters?": {
        **closed_object(
            {
                f"{kind}?": {**_FIELDS, **({OF_PART: PART_OF_KIND[kind]} if kind in PART_OF_KIND else {})}
                for kind in KINDS
            }
        ),
        "description": "by type: the values that a text or number of `data` must have, or how much at least",
    },
    **{
        f"{kind.whose}?": {
            "type": "array",
            "maxItems": 20,
            "items": user_id(),
            "description": kind.whose_meaning,
            OF_PART: kind.part.value,
        }
        for kind in OWNED_KINDS
    },
    "description?": text(maxLength=200),
}
NEW_ENDPOINT = closed_object(_NEW_ENDPOINT_FIELDS)
_ENDPOINT_FIELDS: dict[str, Schema] = dict(
    sorted(
        {
            "endpoint_id": text(pattern=ENDPOINT_ID),
            **{name.removesuffix("?"): each for name, each in _NEW_ENDPOINT_FIELDS.items()},
            "created_at": INSTANT,
            "disabled": text("why nothing is sent; empty while it is"),
        }.items()
    )
)
ENDPOINT = closed_object(_ENDPOINT_FIELDS)
SECRET = text("it is shown this once")
CREATED_ENDPOINT = closed_object({**_ENDPOINT_FIELDS, "secret": SECRET})
ROTATION = closed_object({"overlap_hours?": whole("24, if left out", 0, 168)})
ROTATED_SECRET = closed_object({"secret": SECRET, "former_until": text("until then both sign")})
ENDPOINT_LIST = closed_object({"endpoints": list_of(ENDPOINT)})
TEST_RESULT = closed_object({"message_id": TEXT})
EMPTY = closed_object({})

ID_LETTERS, ID_LENGTH = "abcdefghijklmnopqrstuvwxyz0123456789", 26  # as ENDPOINT_ID
OVERLAP_HOURS = 24


@dataclass(frozen=True, slots=True)
class EndpointsApiSettings(Allowance):
    """Settings of this function."""

    notifications_table: str
    webhook_endpoints_table: str
    endpoint_secret_prefix: str  # of the names of endpoints' secrets, as hook_secret_prefix is of hooks'
    private_endpoints: bool  # whether endpoints may have private addresses; only on a laptop
    outgoing_webhooks: bool  # whether the deployment sends webhooks
    deliver_function: str  # the function that delivers notifications


@dataclass(frozen=True, slots=True)
class _Parts:
    endpoints: EndpointStore
    secrets: HookStore  # an endpoint's secrets rotate as a hook's do, so they are stored as a hook
    outbox: OutboxStore
    waker: DeliveryInvoker
    may_be_private: bool  # on a laptop
    is_on: bool  # whether the deployment sends webhooks at all

    def check_on(self) -> None:
        if not self.is_on:
            raise ApiError(409, "outgoing_off", "the stack was deployed with OutgoingWebhooks=false")


def _new_secret() -> str:
    return secret_of(secrets.token_bytes(32))


def endpoint_view(endpoint: Endpoint) -> dict[str, Any]:
    """Return what is shown of an endpoint."""
    return {
        "endpoint_id": endpoint.endpoint_id,
        "organization_id": endpoint.organization_id,
        "url": endpoint.url,
        "types": sorted(endpoint.types),
        "filters": endpoint.filters,
        **{kind.whose: sorted(endpoint.whose.get(kind.whose, ())) for kind in OWNED_KINDS},
        "description": endpoint.description,
        "created_at": endpoint.created_at,
        "disabled": endpoint.disabled,
    }


app = Api("EndpointsApi", {"endpoint_id": text(pattern=ENDPOINT_ID)})
logger, handler = app.logger, app.handler


@bootstrap(EndpointsApiSettings)
def _parts(config: EndpointsApiSettings, client: ClientOf) -> _Parts:
    dynamodb = client("dynamodb")
    return _Parts(
        EndpointStore(dynamodb, config.webhook_endpoints_table),
        HookStore(client("secretsmanager"), config.endpoint_secret_prefix),
        OutboxStore(dynamodb, config.notifications_table),
        DeliveryInvoker(lambda: client("lambda"), config.deliver_function),
        may_be_private=config.private_endpoints,
        is_on=config.outgoing_webhooks,
    )


@app.exception_handler([NoEndpoint, NoHook])
def answer_not_found(_: Exception) -> Response[str]:
    """Answer 404."""
    return error_response(ApiError(404, "not_found", "there is no such endpoint"))


@app.route("POST /v1/webhook-endpoints", body=NEW_ENDPOINT, status=201, answer=CREATED_ENDPOINT)
def post_endpoint() -> dict[str, Any]:
    """Register an endpoint for outgoing webhooks (admins).

    Messages are signed as Standard Webhooks say. Every function knows it within a minute.
    """
    app.admin()
    body, parts = app.body(), _parts()
    parts.check_on()
    try:
        target_of(body["url"], may_be_private=parts.may_be_private)
    except UrlRefused as refused:
        raise invalid_field("url", str(refused)) from None
    if problems := list(_undeployed_types(body)):
        raise invalid_fields(problems)
    endpoint = Endpoint(
        "".join(secrets.choice(ID_LETTERS) for _ in range(ID_LENGTH)),
        body["organization_id"],
        body["url"],
        frozenset(body.get("types", ())),
        body.get("filters", {}),
        body.get("description", ""),
        stamp(clock.now()),
        whose={kind.whose: frozenset(body[kind.whose]) for kind in OWNED_KINDS if kind.whose in body},
    )
    if problems := list(silent_filters(endpoint)):
        raise invalid_fields(problems)
    if len(parts.endpoints.all()) >= ENDPOINTS_MAX:
        raise ApiError(409, "endpoints_max", f"there are {ENDPOINTS_MAX} endpoints already")
    secret = _new_secret()
    # As in its end, this write comes first: wherever this fails, no secret is without its endpoint.
    parts.endpoints.put(replace(endpoint, disabled=ENDED))
    parts.secrets.create(Hook(endpoint.organization_id, endpoint.endpoint_id, (HookSecret(secret),)))
    parts.endpoints.put(endpoint)
    logger.info("registered", extra={"endpoint_id": endpoint.endpoint_id})
    return {**endpoint_view(endpoint), "secret": secret}


def _undeployed_types(body: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the field and the reason of each type whose part the deployment leaves out."""
    named = [
        *((kind, "types") for kind in body.get("types", ())),
        *((kind, "filters") for kind in body.get("filters", ())),
    ]
    for kind, field in named:
        part = PART_OF_TYPE.get(kind)
        if not is_deployed(part, deployed_parts()):
            yield field, f"{kind}: the stack was deployed without {part}"


@app.route("GET /v1/webhook-endpoints", answer=ENDPOINT_LIST)
def get_endpoints() -> dict[str, Any]:
    """All endpoints (admins)."""
    app.admin()
    return {"endpoints": [endpoint_view(each) for each in _parts().endpoints.all()]}


@app.route("DELETE /v1/webhook-endpoints/{endpoint_id}")
def delete_endpoint(endpoint_id: str) -> dict[str, Any]:
    """End an endpoint (admins)."""
    app.admin()
    # This write comes first: a region that may not write keeps the secret, too.
    endpoint = _parts().endpoints.set_disabled(endpoint_id, ENDED)
    with suppress(NoHook):  # an earlier call has removed it, and failed then
        _parts().secrets.remove(endpoint.organization_id, endpoint_id)
    _parts().endpoints.remove(endpoint_id)  # what waits for it is forgotten within a month
    return {}


@app.route("POST /v1/webhook-endpoints/{endpoint_id}/secret", body=ROTATION, answer=ROTATED_SECRET)
def post_endpoint_secret(endpoint_id: str) -> dict[str, Any]:
    """Rotate an endpoint's secret: for a while both sign (admins)."""
    app.admin()
    overlap, now = timedelta(hours=app.body().get("overlap_hours", OVERLAP_HOURS)), clock.now()
    # A region that may not write rotates no secret.
    organization_id, secret = _parts().endpoints.touch(endpoint_id).organization_id, _new_secret()
    hook = _parts().secrets.get(organization_id, endpoint_id)
    _parts().secrets.replace(rotate_hook(hook, secret, now, overlap))
    return {"secret": secret, "former_until": stamp(now + overlap)}


@app.route("POST /v1/webhook-endpoints/{endpoint_id}/test", body=EMPTY, status=202, answer=TEST_RESULT)
def post_endpoint_test(endpoint_id: str) -> dict[str, Any]:
    """Send an endpoint a test message (admins)."""
    app.admin()
    app.body()
    _parts().check_on()
    message = _parts().outbox.put_test(_parts().endpoints.get(endpoint_id), clock.now())
    _parts().waker.wake([endpoint_share(endpoint_id, message.holder)])
    return {"message_id": message.message_id}


@app.route("POST /v1/webhook-endpoints/{endpoint_id}/enable", body=EMPTY, answer=ENDPOINT)
def post_endpoint_enable(endpoint_id: str) -> dict[str, Any]:
    """Send to an endpoint again that had answered 410 Gone (admins)."""
    app.admin()
    app.body()
    endpoint = _parts().endpoints.set_disabled(endpoint_id, "")
    if endpoint.disabled == ENDED:
        raise ApiError(409, "endpoint_ended", "the endpoint has ended, and its secret may be gone: delete it")
    return endpoint_view(endpoint)
