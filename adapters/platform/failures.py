"""Failure queues: records that no attempt can process wait there, until an operator redrives them."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from rules.days import stamp

# SQS takes 256 KiB in every region. Some bytes are for attributes, which it counts, too.
MESSAGE_BYTES_MAX = 250_000
REASON_MAX = 2_000  # characters


def partial_failures(reasons: Mapping[str, str]) -> dict[str, Any]:
    """Return a handler's answer. reasons: by identifier, why a record must be delivered again, or "".

    Only a redrive gives reasons. It shows them to the operator who started it.
    """
    failures = []
    for identifier, reason in reasons.items():
        failures.append({"itemIdentifier": identifier} | ({"reason": reason} if reason else {}))
    return {"batchItemFailures": failures}


class LargeRecords:
    """A bucket for records that are too large for a message. The message names their URL instead."""

    def __init__(self, s3: Callable[[], Any], bucket: str) -> None:
        """s3: returns the client. Most processes never need it."""
        self._s3, self._bucket = s3, bucket

    def store(self, consumer: str, record: Any) -> dict[str, str]:
        """Store a record; returns {"stored": URL}. A repeated attempt writes the same key."""
        data = json.dumps(record).encode()
        key = f"failures/{consumer}/{hashlib.sha256(data).hexdigest()}.json"
        self._s3().put_object(Bucket=self._bucket, Key=key, Body=data, ContentType="application/json")
        return {"stored": f"s3://{self._bucket}/{key}"}


class FailureQueue:
    """One consumer's failure queue."""

    def __init__(self, sqs: Callable[[], Any], url: str, large: LargeRecords | None = None) -> None:
        """sqs: returns the client. large: where large records are stored; None: they are sent as they are."""
        self._sqs, self._url, self._large = sqs, url, large

    def keep(self, consumer: str, failures: Sequence[tuple[Any, str]], now: datetime) -> None:
        """Send (record, reason) pairs to the queue. Raises the errors of SQS and S3; repeat the batch then.

        It makes one call for each message, because a batch call can fail for some of its messages, and poison
        is rare. If a record is too large for a message, a smaller one that leads to its content is sent.
        """
        for record, reason in failures:
            fields = {"consumer": consumer, "reason": reason[:REASON_MAX], "failed_at": stamp(now)}
            text = json.dumps({**fields, "record": record})
            if len(text) > MESSAGE_BYTES_MAX:
                text = json.dumps({**fields, "record": self._smaller(consumer, record)})
            self._sqs().send_message(QueueUrl=self._url, MessageBody=text)

    def _smaller(self, consumer: str, record: Any) -> Any:
        """Return a smaller record that leads to the content of this one.

        A record of a table's stream goes without its images: a redrive reads the item in the table. Any other
        record is stored in the bucket.
        """
        if isinstance(record, Mapping) and "dynamodb" in record:
            change = record["dynamodb"].items()
            without_images = {name: value for name, value in change if not name.endswith("Image")}
            return {**record, "dynamodb": without_images}
        return self._large.store(consumer, record) if self._large else record
