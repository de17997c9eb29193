"""Failure queues: poison waits there, with its reason, until an operator runs `streakline queue redrive`."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from rules.days import stamp

# 256 KiB, which SQS takes in every region, less some bytes for what it counts besides the text.
MESSAGE_BYTES_MAX = 250_000
REASON_MAX = 2_000


def partial_failures(reasons: Mapping[str, str]) -> dict[str, Any]:
    """Return a handler's answer. reasons: identifier of each record to be delivered again -> why, or "".

    Only a redrive gives reasons: it shows them to the operator who asked for it.
    """
    failures = []
    for identifier, reason in reasons.items():
        failures.append({"itemIdentifier": identifier} | ({"reason": reason} if reason else {}))
    return {"batchItemFailures": failures}


class LargeRecords:
    """A bucket for records that are too large for a message. The message names their URL instead."""

    def __init__(self, s3: Callable[[], Any], bucket: str) -> None:
        """s3: returns the client; most processes never call it."""
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
        """sqs: returns the client; a batch without poison never calls it. large: None: nothing is stored."""
        self._sqs, self._url, self._large = sqs, url, large

    def keep(self, consumer: str, failures: Sequence[tuple[Any, str]], now: datetime) -> None:
        """Send (record, reason) pairs to the queue. Raises what SQS and S3 raise; repeat the batch then.

        It sends one message a call. Poison is rare, and a batch call can fail for some of its messages. If a
        record is too large for a message, a smaller one that leads to its content is sent instead.
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
