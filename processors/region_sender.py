"""Changes of all tables -> the queue of the region that follows (docs/rules.md, rule 23).

All tables write their changes to one Kinesis stream, which keeps them for a week in case the other region is
away. Only the writing region sends: a standby's changes come from the writer, which has them already.
"""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from adapters import settings
from adapters.logs import Logger
from adapters.platform.aws import free_client
from adapters.platform.fence import current_region, process_fence
from processors.batches import BatchResult, ConsumerSettings, Record, stream_consumer
from rules.regions.changes import DELETED_PREFIX, KEYS, ItemChange, change_messages, change_text, with_bytes
from rules.regions.register import Register, sent_epoch

logger = Logger(service="sender")
# The principal that deletes expired items. These deletions are not sent: the other region's tables do the
# same.
EXPIRY_PRINCIPAL = "dynamodb.amazonaws.com"


@dataclass(frozen=True)
class SenderSettings(ConsumerSettings):
    """Changes go to peer_queue_url, in peer_region."""

    tables: str  # JSON, names in the template -> tables' names
    peer_region: str
    peer_queue_url: str


def change_of(record: Mapping[str, Any], stores: Mapping[str, str], epoch: int) -> ItemChange | None:
    """Return a Kinesis record as a change; None for one that is not followed.

    stores: a table's name -> its name in the template. Raises KeyError, ValueError for what is no change.
    """
    fields = json.loads(base64.b64decode(record["kinesis"]["data"]))
    table = stores.get(fields["tableName"])
    deleted_by = (fields.get("userIdentity") or {}).get("principalId")
    if table is None or deleted_by == EXPIRY_PRINCIPAL:
        return None
    change = fields["dynamodb"]
    key = with_bytes(change["Keys"])
    if table == "IdempotencyKeys" and str(key["user_id"]["S"]).startswith(DELETED_PREFIX):
        return None
    image = change.get("NewImage")
    return ItemChange(
        table,
        epoch,
        microseconds(change),
        {name: key[name] for name in KEYS[table]},
        with_bytes(image) if image else None,
        fields["eventName"] == "INSERT",
    )


def microseconds(change: Mapping[str, Any]) -> int:
    """Return when a change was made, by the table's clock, in microseconds. It gives the order of changes."""
    at = int(change["ApproximateCreationDateTime"])
    return at if change.get("ApproximateCreationDateTimePrecision") == "MICROSECOND" else at * 1000


class ChangeSender:
    """Sends changes to a queue. stores: a table's name -> its name in the template."""

    def __init__(self, sqs: Any, queue_url: str, stores: Mapping[str, str], region: str) -> None:
        self._sqs, self._url, self._stores, self._region = sqs, queue_url, stores, region

    def send(self, records: Sequence[Record], register: Register) -> BatchResult:
        """Send what is to be followed, as a whole. Raises what SQS raises; then the batch must come again."""
        outcome = BatchResult()
        epoch = sent_epoch(register, self._region)
        if epoch is None:
            return outcome

        def text(record: Record) -> str | None:
            change = change_of(record, self._stores, epoch)
            return change_text(change) if change else None

        changes = [each for _, each in outcome.read(records, text)]
        for message in change_messages(epoch, changes):
            self._sqs.send_message(QueueUrl=self._url, MessageBody=message)
        outcome.counts["sent"] = len(changes)
        return outcome


@settings.wiring(SenderSettings)
def _parts(config: SenderSettings) -> ChangeSender:
    sqs = free_client("sqs", region=config.peer_region)
    stores = {name: table for table, name in json.loads(config.tables).items()}
    return ChangeSender(sqs, config.peer_queue_url, stores, current_region())


@stream_consumer("sender", logger)
def handler(records: list[Record], _now: datetime) -> BatchResult:
    """Lambda entry: a batch of the stream of changes."""
    turn = process_fence()
    assert turn is not None  # noqa: S101 (the function is there in a deployment of two regions only)
    return _parts().send(records, turn.register())
