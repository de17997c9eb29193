"""Where what cannot be processed waits, with its reason, until an operator looks (`streakline redrive`)."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from adapters.batches import chunks

# SQS takes 10 messages and 256 KB in a call; a record is at most one event.
SEND_MAX = 10


class NotKept(Exception):
    """The failure queue did not take a record: it must be delivered again."""


class FailureQueue:
    """One consumer's failure queue."""

    def __init__(self, sqs: Any, url: str) -> None:
        self._sqs, self._url = sqs, url

    def keep(self, consumer: str, failures: Sequence[tuple[Any, str]], now: datetime) -> None:
        """Keep (record, reason) pairs; raises NotKept if any was not taken."""
        for chunk in chunks(failures, SEND_MAX):
            entries = [
                {
                    "Id": str(number),
                    "MessageBody": json.dumps(
                        {
                            "consumer": consumer,
                            "reason": reason,
                            "failed_at": now.isoformat(),
                            "record": record,
                        }
                    ),
                }
                for number, (record, reason) in enumerate(chunk)
            ]
            answer = self._sqs.send_message_batch(QueueUrl=self._url, Entries=entries)
            if answer.get("Failed"):
                raise NotKept(str(answer["Failed"]))
