"""`streakline webhook`: endpoints of outgoing webhooks, what they did not take, and sending it again."""

import json
from datetime import datetime
from typing import Any

import click

from adapters.outgoing.endpoint_store import EndpointStore
from local.command import INSTANT, command, option
from local.operate.functions import invoke
from local.operate.redrive import list_failures, redrive
from local.stack import Stack
from rules.days import stamp

CONSUMER = "deliveries"


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
@option("--endpoint", metavar="ID", help="to this one alone, with --user, --lead or --question")
@option("--user", metavar="ID", help="all that is kept of this user, in order")
@option("--lead", metavar="ID", help="all that is kept of this lead, in order")
@option("--question", metavar="ID", help="that this question was closed")
@option("--since", type=INSTANT, help="of these, from then on")
def replay(
    *,
    stack: Stack,
    endpoint: str | None,
    user: str | None,
    lead: str | None,
    question: str | None,
    since: datetime | None,
) -> Any:
    """Send again what is in DeliveryFailures; or, to one endpoint, all that is kept of somebody."""
    ids = {"user_id": user, "lead_id": lead, "question_id": question}
    subjects = {name: identifier for name, identifier in ids.items() if identifier}
    if not (subjects or endpoint or since):
        return redrive(stack, CONSUMER)
    if not endpoint or len(subjects) != 1:
        raise click.UsageError(
            "--endpoint goes with --user, --lead or --question;"
            " without them all that is in DeliveryFailures is sent"
        )
    request = {"endpoint_id": endpoint, **subjects, **({"since": stamp(since)} if since else {})}
    payload = {"Records": [{"messageId": "replay", "body": json.dumps(request)}], "streakline_redrive": True}
    function = stack.output("WebhookDeliveryFunctionName", "outgoing webhooks")
    if failure := invoke(stack, function, payload).failure():
        raise RuntimeError(failure)
    return {"replayed": request}
