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

from adapters.bootstrap import ClientOf, bootstrap
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

    tables: str  # JSON: names in the template -> tables' names
    peer_region: str
    peer_queue_url: str


def change_of(record: Mapping[str, Any], template_names: Mapping[str, str], epoch: int) -> ItemChange | None:
    """Return a Kinesis record as a change; None for one that is not followed. template_names: a table's name
    -> its name in the template. Raises KeyError or ValueError for a record that is no change.
    """
    fields = json.loads(base64.b64decode(record["kinesis"]["data"]))
    table = template_names.get(fields["tableName"])
    deleted_by = (fields.get("userIdentity") or {}).get("principalId")
    if table is None or deleted_by == EXPIRY_PRINCIPAL:
        return None
    change = fields["dynamodb"]
    key = with_bytes(change["Keys"])
    # A mark of a deletion: each region writes its own (rules/regions/changes.py).
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
    instant = int(change["ApproximateCreationDateTime"])
    is_microseconds = change.get("ApproximateCreationDateTimePrecision") == "MICROSECOND"
    return instant if is_microseconds else instant * 1000  # else milliseconds


class ChangeSender:
    """Sends changes to a queue. template_names: a table's name -> its name in the template."""

    def __init__(self, sqs: Any, queue_url: str, template_names: Mapping[str, str], region: str) -> None:
        self._sqs, self._queue_url = sqs, queue_url
        self._template_names, self._region = template_names, region

    def send(self, records: Sequence[Record], register: Register) -> BatchResult:
        """Send the changes of a batch that the other region follows.

        Raises what SQS raises. Then nothing counts as sent, and the whole batch must be delivered again.
        """
        outcome = BatchResult()
        epoch = sent_epoch(register, self._region)
        if epoch is None:  # this region is not the writer
            return outcome

        def text_of(record: Record) -> str | None:
            change = change_of(record, self._template_names, epoch)
            return change_text(change) if change else None

        changes = [text for _, text in outcome.read(records, text_of)]
        for message in change_messages(epoch, changes):
            self._sqs.send_message(QueueUrl=self._queue_url, MessageBody=message)
        outcome.counts["sent"] = len(changes)
        return outcome


@bootstrap(SenderSettings)
def _parts(config: SenderSettings, client: ClientOf) -> ChangeSender:
    sqs = free_client("sqs", region=config.peer_region)
    template_names = {name: template_name for template_name, name in json.loads(config.tables).items()}
    return ChangeSender(sqs, config.peer_queue_url, template_names, current_region())


@stream_consumer("sender", logger)
def handler(records: list[Record], _now: datetime) -> BatchResult:
    """Lambda entry: a batch of the stream of changes."""
    fence = process_fence()
    assert fence is not None  # noqa: S101 (the function is there in a deployment of two regions only)
    return _parts().send(records, fence.register())
