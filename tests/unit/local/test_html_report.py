"""`streakline report`: what it says of the last night."""

import json
import os
from pathlib import Path
from typing import Any

from adapters.platform.objects import FolderObjects
from analytics.lake.layout import report_key
from local.operate.html_report import _page, last_night

TOLD: dict[str, Any] = {
    "error": None,
    "made_at": "2026-03-10T03:00:00+00:00",
    "different": [],
    "is_whole": True,
    "unrepaired": [],
    "counts": {},
}


def tell(lake: FolderObjects, root: Path, run: str, age_seconds: int, text: str | None = "# Run\n") -> None:
    """Store a run's report, written so long ago. text: for people; None: that was not written."""
    key = report_key(run, "json")
    lake.put(key, json.dumps({**TOLD, "run_id": run}).encode())
    os.utime(root / key, (2_000_000_000 - age_seconds,) * 2)
    if text is not None:
        lake.put(report_key(run, "md"), text.encode())


def test_before_the_first_night_it_says_so(tmp_path: Path) -> None:
    assert "no nightly run yet" in last_night(FolderObjects(tmp_path))


def test_the_newest_night_is_shown_whatever_it_is_called(tmp_path: Path) -> None:
    lake = FolderObjects(tmp_path)
    tell(lake, tmp_path, "z-older", 60, "# Run z-older\n")
    tell(lake, tmp_path, "a-newer", 0, "# Run a-newer\n\n| ann | differs |\n")
    assert last_night(lake) == "# Run a-newer\n\n| ann | differs |\n"


def test_a_night_that_left_only_figures_is_named(tmp_path: Path) -> None:
    lake = FolderObjects(tmp_path)
    tell(lake, tmp_path, "cut-off", 0, None)
    assert "cut-off" in last_night(lake)


def test_what_a_night_says_is_text_in_the_page() -> None:
    page = _page([], [], "| <script>alert(1)</script> & |")
    assert "<script>" not in page
    assert "| &lt;script&gt;alert(1)&lt;/script&gt; &amp; |" in page
