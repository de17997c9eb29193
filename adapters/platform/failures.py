"""Failure queues: poison waits there, with its reason, until an operator runs `streakline redrive`."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any


def partial_failures(reasons: Mapping[str, str]) -> dict[str, Any]:
    """Return a handler's answer. reasons: identifier of each record to come again -> why, or "".

    Only a redrive gives reasons: it shows them to the operator who asked for it.
    """
    listed = [
        {"itemIdentifier": each} | ({"reason": reason} if reason else {}) for each, reason in reasons.items()
    ]
    return {"batchItemFailures": listed}


class FailureQueue:
    """One consumer's failure queue."""

    def __init__(self, sqs: Callable[[], Any], url: str) -> None:
        """sqs: returns the client; a batch without poison never calls it."""
        self._sqs, self._url = sqs, url
        self._reasons: dict[str, str] = {}

    def settle(
        self, event: Mapping[str, Any], consumer: str, poison: Sequence[tuple[Any, str]], now: datetime
    ) -> list[str]:
        """Keep the poison of a stream's batch; returns the sequence numbers to report as failed.

        There are none, except on a redrive: then all the poison is reported, and stays in the queue that it
        came from.
        """
        self._reasons = {}
        if event.get("streakline_redrive"):
            self._reasons = {record["dynamodb"]["SequenceNumber"]: reason for record, reason in poison}
            return list(self._reasons)
        self.keep(consumer, poison, now)
        return []

    def answer(self, again: Iterable[str]) -> dict[str, Any]:
        """Return a handler's answer that lists the records to come again, after `settle`."""
        return partial_failures({each: self._reasons.get(each, "") for each in again})

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
