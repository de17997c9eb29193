"""Failure queues: poison waits there, with its reason, until an operator runs `streakline redrive`."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any


class FailureQueue:
    """One consumer's failure queue."""

    def __init__(self, sqs: Callable[[], Any], url: str) -> None:
        """sqs: returns the client; a batch without poison never calls it."""
        self._sqs, self._url = sqs, url

    def settle(
        self, event: Mapping[str, Any], consumer: str, poison: Sequence[tuple[Any, str]], now: datetime
    ) -> list[str]:
        """Keep the poison of a stream's batch; returns the sequence numbers to report as failed.

        There are none, except on a redrive: then all the poison is reported, and stays in the queue that it
        came from.
        """
        if event.get("streakline_redrive"):
            return [record["dynamodb"]["SequenceNumber"] for record, _ in poison]
        self.keep(consumer, poison, now)
        return []

    def keep(self, consumer: str, failures: Sequence[tuple[Any, str]], now: datetime) -> None:
        """Keep (record, reason) pairs. Raises what SQS raises; the batch must then come again.

        It sends one message a call. Poison is rare, and a batch call can fail for some of its messages.
        """
        for record, reason in failures:
            message = {
                "consumer": consumer,
                "reason": reason,
                "failed_at": now.isoformat(),
                "record": record,
            }
            self._sqs().send_message(QueueUrl=self._url, MessageBody=json.dumps(message))
