"""How fresh the lake is (Freshness), and how many messages wait in each queue (QueueDepths)."""

import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

from adapters.platform.objects import NoObject, Objects
from rules.privacy.tombstones import SafeToLog

WATERMARK = "state/watermark.json"
CURATED_EVENTS = "curated/events/dt={}/"
REPORTS = "reports/"
DAYS_LOOKED_AT = 14
CACHED_FOR = timedelta(seconds=15)  # so that a page that reloads itself does not list a bucket every time
FreshnessView = dict[str, Any]
WAITING, IN_FLIGHT = "ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"
DELAYED = "ApproximateNumberOfMessagesDelayed"
FAILURES = "failures"
AT_ONCE_MAX = 8


class FreshnessUnknown(SafeToLog, LookupError):
    """It is unknown how fresh the lake is; the text says why."""


class Freshness:
    """Reads a lake's newest curated day, its watermark, and the last nightly report; caches each answer."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._cache: dict[str, tuple[datetime, FreshnessView]] = {}  # when it was read, and the answer

    def lake(self, now: datetime) -> FreshnessView:
        """Return newest_partition (YYYY-MM-DD) and watermark (RFC 3339, null before the first run).

        Raises FreshnessUnknown if no event of the last 14 days is curated.
        """
        return self._cached_view("lake", now, lambda: self._lake(now))

    def nightly(self, now: datetime) -> FreshnessView:
        """Return what the newest report says of its run; raises FreshnessUnknown without one."""
        return self._cached_view("nightly", now, self._nightly)

    def _cached_view(self, name: str, now: datetime, read: Callable[[], FreshnessView]) -> FreshnessView:
        if name in self._cache:
            read_at, view = self._cache[name]
            if read_at <= now < read_at + CACHED_FOR:
                return view
        view = read()
        self._cache[name] = (now, view)
        return view

    def _lake(self, now: datetime) -> FreshnessView:
        # Day by day from tomorrow (a sender's clock may be ahead): a few requests, however long the lake.
        for back in range(-1, DAYS_LOOKED_AT):
            day = (now - timedelta(days=back)).date().isoformat()
            if next(iter(self._objects.list(CURATED_EVENTS.format(day))), None):
                return {"newest_partition": day, "watermark": self._watermark()}
        raise FreshnessUnknown(f"nothing is curated of the last {DAYS_LOOKED_AT} days")

    def _watermark(self) -> str | None:
        try:
            return str(json.loads(self._objects.get(WATERMARK))["watermark"])
        except NoObject:
            return None

    def _nightly(self) -> FreshnessView:
        reports = (report for report in self._objects.list(REPORTS) if report.key.endswith(".json"))
        newest = max(reports, key=lambda report: report.modified, default=None)
        if newest is None:
            raise FreshnessUnknown("there is no report of a nightly run yet")
        report = json.loads(self._objects.get(newest.key))
        error = report["error"] or report.get("warehouse", {}).get("error")
        return {
            "run_id": report["run_id"],
            "made_at": report["made_at"],
            "failed": not report["is_whole"],
            "error": error and str(error)[:200],
            "different": len(report["different"]),
            "unrepaired": len(report["unrepaired"]),
            "counts": report["counts"],
        }


class QueueDepths:
    """Counts the messages of queues, all at once.

    A queue whose name ends in "failures" has messages that wait for an operator.
    """

    def __init__(self, sqs: Callable[[], Any], urls: Mapping[str, str]) -> None:
        """sqs: returns the client; called when first needed. urls: by the queues' names."""
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
            answer = sqs.get_queue_attributes(
                QueueUrl=self._urls[name], AttributeNames=[WAITING, IN_FLIGHT, DELAYED]
            )
            counts = {key: int(value) for key, value in answer["Attributes"].items()}
            waiting = counts[WAITING] + counts.get(DELAYED, 0)
            return {"name": name, "kind": kind, "waiting": waiting, "in_flight": counts[IN_FLIGHT]}
        except Exception as error:  # noqa: BLE001 (one queue's trouble hides nothing of the others)
            unknown = {"waiting": None, "in_flight": None, "reason": str(error)[:200]}
            return {"name": name, "kind": kind, **unknown}
