"""Failure queues: poison waits there, with its reason, until an operator runs `streakline queue redrive`."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from rules.days import stamp

# What SQS took everywhere before 2025, less what it counts besides the text.
MESSAGE_BYTES_MAX = 250_000
REASON_MAX = 2_000


def partial_failures(reasons: Mapping[str, str]) -> dict[str, Any]:
    """Return a handler's answer. reasons: identifier of each record to come again -> why, or "".

    Only a redrive gives reasons: it shows them to the operator who asked for it.
    """
    listed = [
        {"itemIdentifier": each} | ({"reason": reason} if reason else {}) for each, reason in reasons.items()
    ]
    return {"batchItemFailures": listed}


class LargeRecords:
    """A bucket for records that are too large for a message. The message names where they are."""

    def __init__(self, s3: Callable[[], Any], bucket: str) -> None:
        """s3: returns the client; most processes never call it."""
        self._s3, self._bucket = s3, bucket

    def store(self, consumer: str, record: Any) -> dict[str, str]:
        """Store a record; a repeated attempt writes the same key."""
        data = json.dumps(record).encode()
        key = f"failures/{consumer}/{hashlib.sha256(data).hexdigest()}.json"
        self._s3().put_object(Bucket=self._bucket, Key=key, Body=data, ContentType="application/json")
        return {"stored": f"s3://{self._bucket}/{key}"}


class FailureQueue:
    """One consumer's failure queue."""

    def __init__(self, sqs: Callable[[], Any], url: str, large: LargeRecords | None = None) -> None:
        """sqs: returns the client; a batch without poison never calls it. large: for what is too large."""
        self._sqs, self._url, self._large = sqs, url, large

    def keep(self, consumer: str, failures: Sequence[tuple[Any, str]], now: datetime) -> None:
        """Keep (record, reason) pairs. Raises what SQS raises; the batch must then come again.

        It sends one message a call. Poison is rare, and a batch call can fail for some of its messages. A
        record that is too large for a message goes without what a redrive finds elsewhere.
        """
        for record, reason in failures:
            about = {"consumer": consumer, "reason": reason[:REASON_MAX], "failed_at": stamp(now)}
            text = json.dumps({**about, "record": record})
            if len(text) > MESSAGE_BYTES_MAX:
                text = json.dumps({**about, "record": self._smaller(consumer, record)})
            self._sqs().send_message(QueueUrl=self._url, MessageBody=text)

    def _smaller(self, consumer: str, record: Any) -> Any:
        """Return a record without its image, which is in its table too; any other by where it is stored."""
        if isinstance(record, Mapping) and "dynamodb" in record:
            image = {name: each for name, each in record["dynamodb"].items() if not name.endswith("Image")}
            return {**record, "dynamodb": image}
        return self._large.store(consumer, record) if self._large else record
