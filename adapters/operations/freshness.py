"""How fresh the lake is: its newest curated day, its watermark, and the last nightly run's report.

The keys are those of analytics/lake/layout.py; a test holds them equal.
"""

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from adapters.platform.objects import NoObject, Objects
from rules.privacy.tombstones import TellsNobody

WATERMARK = "state/watermark.json"
CURATED_EVENTS = "curated/events/dt={}/"
REPORTS = "reports/"
DAYS_LOOKED_AT = 14
KEPT = timedelta(seconds=15)  # a view that refreshes itself need not list a bucket every time
FreshnessView = dict[str, Any]


class FreshnessUnknown(TellsNobody, LookupError):
    """Nobody can tell how fresh the lake is; the text says why."""


class Freshness:
    """Reads a lake's freshness, and keeps each answer for KEPT."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._kept: dict[str, tuple[datetime, FreshnessView]] = {}

    def lake(self, now: datetime) -> FreshnessView:
        """Return newest_partition (YYYY-MM-DD) and watermark (RFC 3339, null before the first run).

        Raises FreshnessUnknown if no event of the last 14 days is curated.
        """
        return self._remembered("lake", now, lambda: self._lake(now))

    def nightly(self, now: datetime) -> FreshnessView:
        """Return what the newest report says of its run; raises FreshnessUnknown without one."""
        return self._remembered("nightly", now, self._nightly)

    def _remembered(self, name: str, now: datetime, read: Callable[[], FreshnessView]) -> FreshnessView:
        kept = self._kept.get(name)
        if kept is None or not kept[0] <= now < kept[0] + KEPT:
            kept = self._kept[name] = (now, read())
        return kept[1]

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
        reports = (each for each in self._objects.list(REPORTS) if each.key.endswith(".json"))
        newest = max(reports, key=lambda each: each.modified, default=None)
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
