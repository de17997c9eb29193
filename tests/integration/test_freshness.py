"""How fresh the lake is, as the nightly run leaves it."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from adapters.freshness import Freshness, FreshnessUnknown
from adapters.platform.objects import FolderObjects, StoredObject
from analytics.curation.plan import move_watermark
from analytics.lake import layout
from analytics.reconcile.findings import Findings
from analytics.reconcile.run_report import gather, publish

NOW = datetime(2026, 3, 10, 6, 0, 59, 400_000, tzinfo=UTC)


class Counting(FolderObjects):
    """A folder that counts how often it is listed."""

    listed: list[str] = []  # noqa: RUF012 (one test's)

    def list(self, prefix: str) -> Iterator[StoredObject]:
        self.listed.append(prefix)
        return super().list(prefix)


def test_freshness_follows_the_lake_as_the_nightly_run_leaves_it(tmp_path: Path) -> None:
    lake = FolderObjects(tmp_path)
    with pytest.raises(FreshnessUnknown, match="last 14 days"):
        Freshness(lake).lake(NOW)
    with pytest.raises(FreshnessUnknown, match="no report"):
        Freshness(lake).nightly()
    lake.put(layout.curated_key(layout.Partition("events", "2026-03-07", None)), b"x")
    lake.put(layout.curated_key(layout.Partition("events", "2026-03-08", "23")), b"x")
    lake.put(layout.curated_key(layout.Partition("ledger", "2026-03-09", "01")), b"x")
    assert Freshness(lake).lake(NOW) == {"newest_partition": "2026-03-08", "watermark": None}
    move_watermark(lake, NOW)
    assert Freshness(lake).lake(NOW)["watermark"] == NOW.isoformat()
    publish(lake, gather(lake, "nightly-1", NOW, {"Error": "States.Timeout"}))
    failed = Freshness(lake).nightly()
    assert (failed["run_id"], failed["made_at"], failed["failed"]) == ("nightly-1", NOW.isoformat(), True)
    assert "States.Timeout" in failed["error"]
    findings = Findings(users=3, different=["u"])
    findings.save(lake, "nightly-2")
    publish(lake, gather(lake, "nightly-2", NOW + timedelta(days=1)))
    newest = Freshness(lake).nightly()
    assert newest == {
        "run_id": "nightly-2",
        "made_at": (NOW + timedelta(days=1)).isoformat(),
        "failed": False,
        "error": None,
        "different": 1,
        "unrepaired": 0,
        "counts": findings.counts,
    }
