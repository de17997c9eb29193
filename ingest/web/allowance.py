"""How much anybody may ask for in a minute: one check before each route of every function behind the API.

Reads with a token count for the caller; admins are not counted. Writes have limits of their own kind. Without
a token nobody is known but the address, as the gateway saw it. No header says it: a sender writes those.
"""

import hashlib
from collections.abc import Callable
from functools import cache
from typing import Any

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response

from adapters import clock, settings
from adapters.platform.aws import client
from adapters.platform.limits import SharedCounters, network_of
from adapters.platform.turn import fenced
from adapters.settings.common import Allowance
from ingest.web.caller import caller_of
from ingest.web.rate_limit import RequestLimit

# A quarter of what the gateway lets through at the door of hooks.
REQUESTS_OF_ADDRESS = 3_000


@cache
def _parts() -> tuple[RequestLimit, RequestLimit]:
    """Return the limits of callers' reads, and of addresses."""
    config = settings.read(Allowance)

    def counters() -> SharedCounters:  # few processes are asked so much that they need them
        return SharedCounters(fenced(client("dynamodb")), config.limits_table)

    reads = RequestLimit(counters, "reads", config.reads_per_minute)
    return reads, RequestLimit(counters, "requests", REQUESTS_OF_ADDRESS)


def check_allowance(
    app: APIGatewayHttpResolver, route: Callable[[APIGatewayHttpResolver], Any]
) -> Response[Any]:
    """Count a request, as a middleware of a router does; raises 429."""
    event: dict[str, Any] = app.current_event.raw_event
    (reads, requests), context = _parts(), event["requestContext"]
    if not context.get("authorizer"):
        address = network_of(context["http"].get("sourceIp", ""))
        requests.check(hashlib.sha256(address.encode()).hexdigest()[:32], clock.now())
    elif context["http"]["method"] == "GET" and not (caller := caller_of(event)).is_admin:
        reads.check(caller.user_id, clock.now())
    answered: Response[Any] = route(app)
    return answered
