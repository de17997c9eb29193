"""`streakline webhook`: endpoints of outgoing webhooks, what they did not take, and sending it again."""

import json
from datetime import datetime
from typing import Any

import click

from adapters.outgoing.endpoint_store import EndpointStore
from local.command import INSTANT, Function, command, option
from local.operate.functions import invoke
from local.operate.redrive import list_failures, redrive
from local.stack import Stack
from rules.days import stamp
from rules.outgoing.notices import HOLDER_NAMES

CONSUMER = "deliveries"
# Of whom or what notifications are, as messages name it: user_id, lead_id
HOLDERS = ("user", *(name.removesuffix("_id") for name in HOLDER_NAMES.values()))
HOLDER_OPTIONS = " or ".join(f"--{word}" for word in HOLDERS)


def _holder_options(function: Function) -> Function:
    """Add an option for each kind of holder."""
    for word in reversed(HOLDERS):
        meaning = f"all that is kept of this {word}, in order"
        function = option(f"--{word}", metavar="ID", help=meaning)(function)
    return function


@command("webhook list")
def list_endpoints(stack: Stack) -> Any:
    """Print the endpoints, and what they did not take."""
    store = EndpointStore(stack.client("dynamodb"), stack.tables["WebhookEndpoints"])
    endpoints = [
        {
            "endpoint_id": endpoint.endpoint_id,
            "url": endpoint.url,
            "disabled": endpoint.disabled,
            "organization_id": endpoint.organization_id,
        }
        for endpoint in store.all()
    ]
    return {"endpoints": endpoints, "left": list_failures(stack, CONSUMER)}


@command("webhook replay", "webhook replay --endpoint 5f1c --user ann --since 2026-11-01T00:00:00Z")
@option("--endpoint", metavar="ID", help=f"to this one alone, with {HOLDER_OPTIONS}")
@_holder_options
@option("--since", type=INSTANT, help="of these, from then on")
def replay(
    *,
    stack: Stack,
    endpoint: str | None,
    since: datetime | None,
    **holders: str | None,
) -> Any:
    """Send again what is in DeliveryFailures; or, to one endpoint, all that is kept of somebody."""
    subjects = {f"{word}_id": identifier for word, identifier in holders.items() if identifier}
    if not (subjects or endpoint or since):
        return redrive(stack, CONSUMER)
    if not endpoint or len(subjects) != 1:
        raise click.UsageError(
            f"--endpoint goes with {HOLDER_OPTIONS}; without them all that is in DeliveryFailures is sent"
        )
    request = {"endpoint_id": endpoint, **subjects, **({"since": stamp(since)} if since else {})}
    payload = {"Records": [{"messageId": "replay", "body": json.dumps(request)}], "streakline_redrive": True}
    function = stack.output("WebhookDeliveryFunctionName", "outgoing webhooks")
    if failure := invoke(stack, function, payload).failure():
        raise RuntimeError(failure)
    return {"replayed": request}
