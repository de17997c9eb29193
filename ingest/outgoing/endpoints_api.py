"""Everything under /v1/webhook-endpoints: where outgoing webhooks go (docs/rules.md, rule 18)."""

from datetime import timedelta
from functools import cache
from typing import Any

from aws_lambda_powertools.event_handler import Response

from adapters import clock, settings
from adapters.leads.hook_store import HookStore, NoHook
from adapters.outgoing.endpoint_store import EndpointStore, NoEndpoint
from adapters.outgoing.notification_store import TrialMessages, Waker
from adapters.platform.aws import client
from adapters.platform.turn import fenced
from adapters.settings.outgoing import EndpointsApiSettings
from ingest.outgoing.endpoint_schemas import (
    EMPTY,
    ENDPOINT,
    ENDPOINT_ID,
    LISTED,
    MADE,
    NEW_ENDPOINT,
    ROTATED,
    ROTATION,
    TESTED,
)
from ingest.outgoing.managing import Managing, endpoint_view
from ingest.web.api import Api
from ingest.web.caller import ApiError
from ingest.web.http import failure
from ingest.web.routes import matching

OVERLAP_HOURS = 24
app = Api("EndpointsApi", {"endpoint_id": matching(ENDPOINT_ID)})
logger, handler = app.logger, app.handler


@cache
def _parts() -> Managing:
    config, dynamodb = settings.read(EndpointsApiSettings), fenced(client("dynamodb"))
    return Managing(
        EndpointStore(dynamodb, config.webhook_endpoints_table),
        HookStore(client("secretsmanager"), config.endpoint_secret_prefix),
        TrialMessages(dynamodb, config.notifications_table),
        Waker(lambda: client("lambda"), config.deliver_function),
        may_be_private=config.private_endpoints,
        is_on=config.outgoing_webhooks,
    )


@app.exception_handler([NoEndpoint, NoHook])
def missing(_: Exception) -> Response[str]:
    """Answer 404."""
    return failure(ApiError(404, "not_found", "there is no such endpoint"))


@app.route("POST /v1/webhook-endpoints", body=NEW_ENDPOINT, status=201, answer=MADE)
def post_endpoint() -> dict[str, Any]:
    """Register an endpoint for outgoing webhooks (admins).

    Messages are signed as Standard Webhooks say. Every function knows it within a minute.
    """
    app.admin()
    body = app.body()
    made, secret = _parts().register(body, clock.now())
    logger.info("registered", extra={"endpoint_id": made.endpoint_id})
    return {**endpoint_view(made), "secret": secret}


@app.route("GET /v1/webhook-endpoints", answer=LISTED)
def get_endpoints() -> dict[str, Any]:
    """All endpoints (admins)."""
    app.admin()
    return {"endpoints": [endpoint_view(each) for each in _parts().endpoints.all()]}


@app.route("DELETE /v1/webhook-endpoints/{endpoint_id}")
def delete_endpoint(endpoint_id: str) -> dict[str, Any]:
    """End an endpoint (admins)."""
    app.admin()
    _parts().end(endpoint_id)
    return {}


@app.route("POST /v1/webhook-endpoints/{endpoint_id}/secret", body=ROTATION, answer=ROTATED)
def post_endpoint_secret(endpoint_id: str) -> dict[str, Any]:
    """Rotate an endpoint's secret: for a while both sign (admins)."""
    app.admin()
    body = app.body()
    hours = timedelta(hours=body.get("overlap_hours", OVERLAP_HOURS))
    return _parts().rotate(endpoint_id, hours, clock.now())


@app.route("POST /v1/webhook-endpoints/{endpoint_id}/test", body=EMPTY, status=202, answer=TESTED)
def post_endpoint_test(endpoint_id: str) -> dict[str, Any]:
    """Send an endpoint a test message (admins)."""
    app.admin()
    app.body()
    return {"message_id": _parts().test(endpoint_id, clock.now())}


@app.route("POST /v1/webhook-endpoints/{endpoint_id}/enable", body=EMPTY, answer=ENDPOINT)
def post_endpoint_enable(endpoint_id: str) -> dict[str, Any]:
    """Send to an endpoint again that had answered 410 Gone (admins)."""
    app.admin()
    app.body()
    return endpoint_view(_parts().endpoints.set_disabled(endpoint_id, ""))
