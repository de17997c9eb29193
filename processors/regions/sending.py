"""Changes of all tables -> the queue of the region that follows (rule 23).

The tables write their changes to one Kinesis stream. It keeps them for a week, while the other region is
away. Only the writer's are sent: what a standby takes over is no news to anybody.
"""

import base64
import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from adapters import clock, settings
from adapters.logs import Logger
from adapters.platform.aws import client, free_client
from adapters.platform.failures import FailureQueue
from adapters.platform.fencing.turn import fence, region_here
from adapters.settings.regions import SendingSettings
from rules.regions.changes import GONE, KEYS, ItemChange
from rules.regions.messages import messages, text_of, with_bytes
from rules.regions.register import Register, sent_epoch

logger = Logger(service="sending")
CONSUMER = "sending"
EXPIRED = "dynamodb.amazonaws.com"  # who deletes what has expired; the other region's table does so by itself


def change_of(record: Mapping[str, Any], stores: Mapping[str, str], epoch: int) -> ItemChange | None:
    """Return a Kinesis record as a change; None for one that is not followed.

    stores: a table's name -> its name in the template. Raises KeyError, ValueError for what is no change.
    """
    told = json.loads(base64.b64decode(record["kinesis"]["data"]))
    table = stores.get(told["tableName"])
    by = (told.get("userIdentity") or {}).get("principalId")
    if table is None or by == EXPIRED:
        return None
    change = told["dynamodb"]
    key = with_bytes(change["Keys"])
    if table == "IdempotencyKeys" and str(key["user_id"]["S"]).startswith(GONE):
        return None
    image = change.get("NewImage")
    return ItemChange(
        table,
        epoch,
        microseconds(change),
        {name: key[name] for name in KEYS[table]},
        with_bytes(image) if image else None,
        told["eventName"] == "INSERT",
    )


def microseconds(change: Mapping[str, Any]) -> int:
    """Return when a change was made, as its table says it: by this, DynamoDB tells their order."""
    at = int(change["ApproximateCreationDateTime"])
    return at if change.get("ApproximateCreationDateTimePrecision") == "MICROSECOND" else at * 1000


class ChangeSender:
    """Sends changes to a queue. stores: a table's name -> its name in the template."""

    def __init__(self, sqs: Any, queue_url: str, stores: Mapping[str, str], region: str) -> None:
        self._sqs, self._url, self._stores, self._region = sqs, queue_url, stores, region

    def send(
        self, records: Sequence[Mapping[str, Any]], register: Register
    ) -> tuple[int, list[tuple[Any, str]]]:
        """Send what is to be followed; returns how many changes those were, and poison with its reason.

        Raises what SQS raises; then the batch must come again.
        """
        epoch = sent_epoch(register, self._region)
        if epoch is None:
            return 0, []
        changes: list[str] = []
        poison: list[tuple[Any, str]] = []
        for each in records:
            try:
                if change := change_of(each, self._stores, epoch):
                    changes.append(text_of(change))
            except (KeyError, TypeError, ValueError) as error:
                poison.append((each, f"{type(error).__name__}: {error}"))
        for text in messages(epoch, changes):
            self._sqs.send_message(QueueUrl=self._url, MessageBody=text)
        return len(changes), poison


@cache
def _parts() -> tuple[ChangeSender, FailureQueue]:
    config = settings.read(SendingSettings)
    sqs = free_client("sqs", region=config.peer_region)
    stores = {name: table for table, name in json.loads(config.tables).items()}
    sender = ChangeSender(sqs, config.peer_queue_url, stores, region_here())
    return sender, FailureQueue(lambda: client("sqs"), config.failure_queue_url)


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Lambda entry: a batch of the stream of changes. It is sent as a whole, or comes again."""
    sender, failures = _parts()
    turn = fence()
    assert turn is not None  # noqa: S101 (the function is there in a deployment of two regions only)
    sent, poison = sender.send(event["Records"], turn.register())
    failures.keep(CONSUMER, poison, clock.now())
    logger.info("batch", extra={"sent": sent, "poison": len(poison)})
    return {"batchItemFailures": []}
