"""Everything under /v1/webhook-endpoints: where outgoing webhooks go (docs/rules.md, rule 18)."""

from datetime import timedelta
from functools import cache
from typing import Any

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response

from adapters import clock, settings
from adapters.leads.hooks.hook_store import HookStore, NoHook
from adapters.logs import Logger
from adapters.outgoing.endpoint_store import EndpointStore, NoEndpoint
from adapters.outgoing.trial_messages import TrialMessages
from adapters.outgoing.waking import Waker
from adapters.platform.aws import client
from adapters.platform.fencing.turn import fenced
from adapters.settings.outgoing import EndpointsApiSettings
from ingest.outgoing.endpoint_schemas import EMPTY, NEW_ENDPOINT, ROTATION
from ingest.outgoing.managing import Managing, endpoint_view
from ingest.web.caller import ApiError, caller_of
from ingest.web.http import answer, failure, json_body, resolver

logger = Logger(service="endpoints-api")
app: APIGatewayHttpResolver = resolver(logger)
OVERLAP_HOURS = 24


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


def _check_admin() -> None:
    caller_of(app.current_event.raw_event).check_admin()


@app.exception_handler([NoEndpoint, NoHook])
def missing(_: Exception) -> Response[str]:
    """Answer 404."""
    return failure(ApiError(404, "not_found", "there is no such endpoint"))


@app.post("/v1/webhook-endpoints")
def post_endpoint() -> Response[str]:
    """Register an endpoint."""
    _check_admin()
    body = json_body(app.current_event.raw_event, NEW_ENDPOINT)
    made, secret = _parts().register(body, clock.now())
    logger.info("registered", extra={"endpoint_id": made.endpoint_id})
    return answer(201, {**endpoint_view(made), "secret": secret})


@app.get("/v1/webhook-endpoints")
def get_endpoints() -> Response[str]:
    """Return all endpoints, without their secrets."""
    _check_admin()
    return answer(200, {"endpoints": [endpoint_view(each) for each in _parts().endpoints.all()]})


@app.delete("/v1/webhook-endpoints/<endpoint_id>")
def delete_endpoint(endpoint_id: str) -> Response[str]:
    """End an endpoint."""
    _check_admin()
    _parts().end(endpoint_id)
    return answer(200, {})


@app.post("/v1/webhook-endpoints/<endpoint_id>/secret")
def post_endpoint_secret(endpoint_id: str) -> Response[str]:
    """Rotate a secret."""
    _check_admin()
    body = json_body(app.current_event.raw_event, ROTATION)
    hours = timedelta(hours=body.get("overlap_hours", OVERLAP_HOURS))
    return answer(200, _parts().rotate(endpoint_id, hours, clock.now()))


@app.post("/v1/webhook-endpoints/<endpoint_id>/test")
def post_endpoint_test(endpoint_id: str) -> Response[str]:
    """Send a test message."""
    _check_admin()
    json_body(app.current_event.raw_event, EMPTY)
    return answer(202, {"message_id": _parts().test(endpoint_id, clock.now())})


@app.post("/v1/webhook-endpoints/<endpoint_id>/enable")
def post_endpoint_enable(endpoint_id: str) -> Response[str]:
    """Send to an endpoint again."""
    _check_admin()
    json_body(app.current_event.raw_event, EMPTY)
    return answer(200, endpoint_view(_parts().endpoints.set_disabled(endpoint_id, "")))


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Lambda entry."""
    return app.resolve(event, context)
