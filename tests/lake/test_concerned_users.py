"""Whom the lake names for an amnesty (rule 17): of 100,000 users in files, everybody for whom it changes something."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adapters.platform.objects import FolderObjects
from analytics.amnesty_users import users_concerned
from rules.days import AT_MIDNIGHT
from rules.engagement.account_state import Amnesty, outage_dates

USERS, DATES = 100_000, 12
FIRST = date(2026, 6, 1)
BEGIN = datetime(2026, 6, 7, 21, tzinfo=UTC)
OUTAGE = Amnesty(1, BEGIN, BEGIN + timedelta(hours=5))


@pytest.fixture(scope="module")
def activity() -> np.ndarray:
    """Whether each user was active on each date; every tenth user is new within the outage."""
    chance = np.random.default_rng(7)
    found = chance.random((USERS, DATES)) < chance.choice([0.3, 0.8, 0.97], USERS)[:, None]
    found[::10, :6] = False
    found[1::10] = True
    return found


@pytest.fixture(scope="module")
def lake(activity: np.ndarray, tmp_path_factory: pytest.TempPathFactory) -> FolderObjects:
    """A file of each date; a tenth of its rows come again, later, as of a date that is active no more."""
    folder = tmp_path_factory.mktemp("concerned")
    for number in range(DATES):
        day = FIRST + timedelta(days=number)
        active = np.flatnonzero(activity[:, number])
        undone = np.flatnonzero(~activity[:, number])[::10]
        users = np.concatenate([active, undone, undone])
        events = np.concatenate(
            [np.ones(len(active) + len(undone), np.int64), np.zeros(len(undone), np.int64)]
        )
        at = np.concatenate([np.zeros(len(active) + len(undone), np.int64), np.ones(len(undone), np.int64)])
        place = folder / f"curated/daily_activity/dt={day}"
        place.mkdir(parents=True)
        columns = {
            "user_id": pa.array([f"u{each:06}" for each in users.tolist()]),
            "activity_date": pa.array([day] * len(users), pa.date32()),
            "events_count": pa.array(events),
            "ledger_head": pa.array(at, pa.timestamp("us", "UTC")),
        }
        pq.write_table(pa.table(columns), place / "day.parquet")
    return FolderObjects(folder)


def longest(active: np.ndarray, neutral: list[bool]) -> np.ndarray:
    """The longest run of each user: a date without activity ends it, unless it is neutral."""
    run, most = np.zeros(len(active), np.int64), np.zeros(len(active), np.int64)
    for number, is_neutral in enumerate(neutral):
        run = np.where(active[:, number], run + 1, run if is_neutral else 0)
        most = np.maximum(most, run)
    return most


def test_everybody_is_named_for_whom_it_changes_something(activity: np.ndarray, lake: FolderObjects) -> None:
    named = {int(each[1:]) for each in users_concerned(lake, OUTAGE)}
    dates = [FIRST + timedelta(days=number) for number in range(DATES)]
    for zone in ("Pacific/Honolulu", "UTC", "Pacific/Kiritimati"):
        touched = OUTAGE.dates_in(zone, AT_MIDNIGHT)
        changed = longest(activity, [day in touched for day in dates]) != longest(activity, [False] * DATES)
        assert 1_000 < changed.sum() < USERS
        assert set(np.flatnonzero(changed).tolist()) <= named


def test_who_was_active_on_all_its_dates_is_not_named(activity: np.ndarray, lake: FolderObjects) -> None:
    named = {int(each[1:]) for each in users_concerned(lake, OUTAGE)}
    first, last = outage_dates(OUTAGE)
    span = activity[:, (first - FIRST).days : (last - FIRST).days + 1]
    assert not named & set(np.flatnonzero(span.all(axis=1)).tolist())
    assert len(named) < USERS


def test_a_lake_without_days_names_nobody(tmp_path: Path) -> None:
    assert list(users_concerned(FolderObjects(tmp_path), OUTAGE)) == []
