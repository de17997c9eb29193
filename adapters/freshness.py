"""How fresh the lake is: its newest curated day, its watermark, and its last nightly run."""

import json
from datetime import datetime, timedelta
from typing import Any

from adapters.platform.objects import NoObject, Objects
from rules.privacy.tombstones import SafeToLog

WATERMARK = "state/watermark.json"
CURATED_EVENTS = "curated/events/dt={}/"  # with a day
REPORTS = "reports/"
DAYS_LOOKED_AT = 14
FreshnessView = dict[str, Any]


class FreshnessUnknown(SafeToLog, LookupError):
    """Nobody can say how fresh the lake is. The text says why."""


class Freshness:
    """Reads how fresh a lake is."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def lake(self, now: datetime) -> FreshnessView:
        """Return newest_partition (YYYY-MM-DD) and watermark (RFC 3339, null before the first run).

        Raises FreshnessUnknown if no event of the last 14 days is curated.
        """
        # One request a day, from tomorrow backwards (a sender's clock may be ahead). So a lake of many years
        # costs no more requests than a new one.
        for back in range(-1, DAYS_LOOKED_AT):
            day = (now - timedelta(days=back)).date().isoformat()
            listed = self._objects.list(CURATED_EVENTS.format(day))
            if any(stored.key.endswith(".parquet") for stored in listed):
                return {"newest_partition": day, "watermark": self._watermark()}
        raise FreshnessUnknown(f"nothing is curated of the last {DAYS_LOOKED_AT} days")

    def _watermark(self) -> str | None:
        try:
            return str(json.loads(self._objects.get(WATERMARK))["watermark"])
        except NoObject:
            return None

    def _report(self, key: str) -> FreshnessView | None:
        """Return a nightly report; None for an object that is none, or is gone."""
        try:
            report = json.loads(self._objects.get(key))
        except (NoObject, ValueError):
            return None
        return report if isinstance(report, dict) and "is_whole" in report else None

    def nightly(self) -> FreshnessView:
        """Return what the newest nightly report says of its run.

        Raises FreshnessUnknown if there is no report yet.
        """
        listed = sorted(self._objects.list(REPORTS), key=lambda stored: stored.modified, reverse=True)
        reports = (self._report(stored.key) for stored in listed if stored.key.endswith(".json"))
        report = next(filter(None, reports), None)
        if report is None:
            raise FreshnessUnknown("there is no report of a nightly run yet")
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
