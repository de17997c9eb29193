"""`streakline webhooks`: endpoints of outgoing webhooks, what they did not take, and sending it again."""

import argparse
import json
from collections.abc import Mapping
from typing import Any

from adapters.outgoing.endpoint_store import EndpointStore
from local.operate.invocations import invoke
from local.operate.redrive import redrive
from local.stack import Stack
from rules.days import parse_moment, stamp

CONSUMER = "deliveries"


def run(arguments: argparse.Namespace, stack: Stack) -> None:
    """Carry out one action; prints JSON. Raises RuntimeError for what cannot be done."""
    if arguments.action == "list":
        store = EndpointStore(stack.client("dynamodb"), stack.tables["WebhookEndpoints"])
        for each in store.all():
            about = {"endpoint_id": each.endpoint_id, "url": each.url, "disabled": each.disabled}
            _tell({**about, "organization_id": each.organization_id})
        _tell(redrive(stack, only_list=True, only=CONSUMER))
    elif _named(arguments) or arguments.endpoint or arguments.since:
        _tell(_of_one(arguments, stack))
    else:
        _tell(redrive(stack, only=CONSUMER))


def _named(arguments: argparse.Namespace) -> dict[str, str]:
    """Return whose notifications are meant, as messages name them."""
    named = {"user_id": arguments.user, "lead_id": arguments.lead, "question_id": arguments.question}
    return {name: each for name, each in named.items() if each}


def _of_one(arguments: argparse.Namespace, stack: Stack) -> Mapping[str, Any]:
    named = _named(arguments)
    if not arguments.endpoint or len(named) != 1:
        raise RuntimeError(
            "replay takes --endpoint with --user, --lead or --question;"
            " without them it sends what is in DeliveryFailures"
        )
    asked = {"endpoint_id": arguments.endpoint, **named}
    if arguments.since:
        try:
            asked["since"] = stamp(parse_moment(arguments.since).utc)
        except ValueError as error:
            raise RuntimeError(f"--since {error}") from None
    payload = {"Records": [{"messageId": "replay", "body": json.dumps(asked)}], "streakline_redrive": True}
    if failure := invoke(stack, stack.output("DeliverFunctionName", "outgoing webhooks"), payload).failure():
        raise RuntimeError(failure)
    return {"replayed": asked}


def _tell(told: Mapping[str, Any]) -> None:
    print(json.dumps(told))
