"""What the lake tells of a user's past settings: newest files first, and no further back than is needed."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.platform.objects import FolderObjects
from analytics.lake.arrow import arrow_schema
from analytics.lake.layout import Place
from analytics.reconcile.profile_settings import PastSettings, SettingsHistory, changes_of
from rules.engagement.account import TZ_CHANGES_KEPT_MAX
from rules.lake.entities import ENTITIES
from tests.support.lake_sample import event, write

START = datetime(2026, 1, 1, 9, tzinfo=UTC)
ZONES = ("Europe/Berlin", "Asia/Tokyo", None)


def profile(user: str, version: int, zone: str | None) -> dict[str, Any]:
    at = START + timedelta(days=version)
    row = dict.fromkeys(arrow_schema(ENTITIES["streaks"]).names)
    row |= {"user_id": user, "version": version, "timezone_chosen": zone, "updated_at": at}
    return row | {"total_bestie_points": 0, "balance": 0, "timezone": "UTC"}


def write_profiles(objects: FolderObjects, user: str, zones: list[str | None]) -> None:
    """One version a day, beside one of somebody else."""
    for version, zone in enumerate(zones, 1):
        rows = [profile(user, version, zone), profile("other", version, "Asia/Tokyo")]
        write(objects, Place("streaks", f"{START + timedelta(days=version):%Y-%m-%d}", "09"), rows)


@given(st.lists(st.sampled_from(ZONES), max_size=30))
def test_changes_are_those_of_the_whole_history(zones: list[str | None]) -> None:
    with TemporaryDirectory() as folder:
        objects = FolderObjects(Path(folder))
        write_profiles(objects, "o'brien", zones)
        found = SettingsHistory(objects)("o'brien").tz_changes
    every = [(zone, START + timedelta(days=version)) for version, zone in enumerate(zones, 1) if zone]
    assert found[-TZ_CHANGES_KEPT_MAX:] == changes_of(every)[-TZ_CHANGES_KEPT_MAX:]


def test_the_newest_event_that_named_a_zone(tmp_path: Path) -> None:
    objects = FolderObjects(tmp_path)
    for day, zone in ((1, "Asia/Tokyo"), (2, "Europe/Berlin"), (3, None)):
        moment = START + timedelta(days=day)
        rows = [event(user, moment, "CHECK_IN", day, timezone=zone) for user in ("u", f"v{day}")]
        write(objects, Place("events", f"{moment:%Y-%m-%d}", "09"), rows)
    past = SettingsHistory(objects)("u")
    assert (past.observed_zone, past.observed_at[:10]) == ("Europe/Berlin", "2026-01-03")
    assert SettingsHistory(objects)("nobody") == PastSettings()


def test_it_reads_no_further_back_than_version_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user who came last week costs a week, whatever the lake's age; files read ahead apart."""
    objects = FolderObjects(tmp_path)
    for day in range(60):
        at = START - timedelta(days=day + 1)
        write(objects, Place("streaks", f"{at:%Y-%m-%d}", "09"), [profile("other", 1, None)])
    write_profiles(objects, "u", [None, "Asia/Tokyo"])
    read: list[str] = []
    get = FolderObjects.get

    def noted(self: FolderObjects, key: str) -> bytes:
        read.append(key)
        return get(self, key)

    monkeypatch.setattr(FolderObjects, "get", noted)
    assert [zone for _, zone in SettingsHistory(objects)("u").tz_changes] == ["Asia/Tokyo"]
    assert len(read) <= 12
