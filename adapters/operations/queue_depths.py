"""How many messages wait in each queue; all queues are asked at once."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

WAITING, IN_FLIGHT = "ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"
DELAYED = "ApproximateNumberOfMessagesDelayed"
FAILURES = "failures"
AT_ONCE_MAX = 8


class QueueDepths:
    """Queues by name; one whose name ends in "failures" holds what waits for an operator."""

    def __init__(self, sqs: Callable[[], Any], urls: Mapping[str, str]) -> None:
        """sqs: returns the client; called when first needed."""
        self._sqs, self._urls = sqs, dict(urls)

    def read(self) -> list[dict[str, Any]]:
        """Return each queue's counts, by name; for a queue that does not answer, null and the reason."""
        if not self._urls:
            return []
        sqs = self._sqs()
        with ThreadPoolExecutor(min(AT_ONCE_MAX, len(self._urls))) as pool:
            return list(pool.map(lambda name: self._depth(sqs, name), sorted(self._urls)))

    def _depth(self, sqs: Any, name: str) -> dict[str, Any]:
        kind = "failure" if name.lower().endswith(FAILURES) else "work"
        try:
            told = sqs.get_queue_attributes(
                QueueUrl=self._urls[name], AttributeNames=[WAITING, IN_FLIGHT, DELAYED]
            )
            counts = {key: int(value) for key, value in told["Attributes"].items()}
            waiting = counts[WAITING] + counts.get(DELAYED, 0)
            return {"name": name, "kind": kind, "waiting": waiting, "in_flight": counts[IN_FLIGHT]}
        except Exception as error:  # noqa: BLE001 (one queue's trouble hides nothing of the others)
            unknown = {"waiting": None, "in_flight": None, "reason": str(error)[:200]}
            return {"name": name, "kind": kind, **unknown}
