"""`streakline webhook`: endpoints of outgoing webhooks, what they did not take, and sending it again."""

import json
from datetime import datetime
from typing import Any

import click

from adapters.outgoing.endpoint_store import EndpointStore
from local.command import INSTANT, command, option
from local.operate.functions import invoke
from local.operate.redrive import redrive
from local.stack import Stack
from rules.days import stamp

CONSUMER = "deliveries"


@command("webhook list")
def list_endpoints(stack: Stack) -> Any:
    """Print the endpoints, and what they did not take."""
    store = EndpointStore(stack.client("dynamodb"), stack.tables["WebhookEndpoints"])
    endpoints = [
        {
            "endpoint_id": each.endpoint_id,
            "url": each.url,
            "disabled": each.disabled,
            "organization_id": each.organization_id,
        }
        for each in store.all()
    ]
    left = redrive(stack, only_list=True, only=CONSUMER)["left"]
    return {"endpoints": endpoints, "left": left}


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
    named = {"user_id": user, "lead_id": lead, "question_id": question}
    named = {name: each for name, each in named.items() if each}
    if not (named or endpoint or since):
        return redrive(stack, only=CONSUMER)
    if not endpoint or len(named) != 1:
        raise click.UsageError(
            "--endpoint goes with --user, --lead or --question;"
            " without them all that is in DeliveryFailures is sent"
        )
    asked = {"endpoint_id": endpoint, **named, **({"since": stamp(since)} if since else {})}
    payload = {"Records": [{"messageId": "replay", "body": json.dumps(asked)}], "streakline_redrive": True}
    function = stack.output("WebhookDeliveryFunctionName", "outgoing webhooks")
    if failure := invoke(stack, function, payload).failure():
        raise RuntimeError(failure)
    return {"replayed": asked}
