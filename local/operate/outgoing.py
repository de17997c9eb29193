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
    elif arguments.user or arguments.endpoint or arguments.since:
        _tell(_of_user(arguments, stack))
    else:
        _tell(redrive(stack, only=CONSUMER))


def _of_user(arguments: argparse.Namespace, stack: Stack) -> Mapping[str, Any]:
    if not (arguments.user and arguments.endpoint):
        raise RuntimeError(
            "replay takes --user and --endpoint together; without both, what is in DeliveryFailures"
        )
    asked = {"endpoint_id": arguments.endpoint, "user_id": arguments.user}
    if arguments.since:
        try:
            asked["since"] = stamp(parse_moment(arguments.since).utc)
        except ValueError as error:
            raise RuntimeError(f"--since {error}") from None
    payload = {"Records": [{"messageId": "replay", "body": asked}], "streakline_redrive": True}
    if failure := invoke(stack, stack.output("DeliverFunctionName", "outgoing webhooks"), payload).failure():
        raise RuntimeError(failure)
    return {"replayed": asked}


def _tell(told: Mapping[str, Any]) -> None:
    print(json.dumps(told))
