"""How many messages each queue has: those that wait, and those that are being processed."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

WAITING, IN_FLIGHT = "ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"
DELAYED = "ApproximateNumberOfMessagesDelayed"
FAILURES = "failures"  # the end of the name of a queue whose messages wait for an operator
AT_ONCE_MAX = 8  # queues that are asked at the same time


class QueueDepths:
    """Counts the messages of queues."""

    def __init__(self, sqs: Callable[[], Any], urls: Mapping[str, str]) -> None:
        """sqs: returns the client, when it is first needed. urls: the queues' URLs by their names."""
        self._sqs, self._urls = sqs, dict(urls)

    def read(self) -> list[dict[str, Any]]:
        """Return for each queue, ordered by name: name, kind (work or failure), waiting and in_flight.

        For a queue that does not answer, both counts are null, and reason says why.
        """
        if not self._urls:
            return []
        sqs = self._sqs()
        with ThreadPoolExecutor(min(AT_ONCE_MAX, len(self._urls))) as pool:
            return list(pool.map(lambda name: self._depth(sqs, name), sorted(self._urls)))

    def _depth(self, sqs: Any, name: str) -> dict[str, Any]:
        kind = "failure" if name.lower().endswith(FAILURES) else "work"
        try:
            answer = sqs.get_queue_attributes(
                QueueUrl=self._urls[name], AttributeNames=[WAITING, IN_FLIGHT, DELAYED]
            )
            counts = {key: int(value) for key, value in answer["Attributes"].items()}
            waiting = counts[WAITING] + counts.get(DELAYED, 0)
            return {"name": name, "kind": kind, "waiting": waiting, "in_flight": counts[IN_FLIGHT]}
        except Exception as error:  # noqa: BLE001 (one queue's trouble hides nothing of the others)
            unknown = {"waiting": None, "in_flight": None, "reason": str(error)[:200]}
            return {"name": name, "kind": kind, **unknown}
