"""Histories and opening positions are taken in on the deployed cloud, by the command line (rule 20)."""

import csv
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from local.api import Api
from local.stack import Stack
from tests.e2e.conftest import is_indexed, printed

pytestmark = pytest.mark.xdist_group("cloud")


def written(file: Path, rows: list[dict[str, str]]) -> Path:
    with file.open("w", newline="") as text:
        writer = csv.DictWriter(text, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return file


def test_a_history_and_a_position_come_in_once_and_are_compared(
    stack: Stack, admin: Api, user: str, tmp_path: Path
) -> None:
    now = datetime.now(UTC)
    days = [now - timedelta(days=day) for day in (400, 399, 398)]
    old = {"user_id": user, "event_type": "LESSON_COMPLETED", "timezone": "UTC"}
    history = [{**old, "occurred_at": day.isoformat()} for day in days]
    yesterday = (now - timedelta(days=1)).date().isoformat()
    position = {"user_id": f"p-{user}", "as_of": yesterday, "last_date": yesterday, "streak": "12"}
    files = (
        written(tmp_path / "history.csv", history),
        written(tmp_path / "positions.csv", [{**position, "longest": "40", "balance": "250"}]),
    )
    for attempt in ("first", "again"):
        told = [printed("events", "import", str(file)) for file in files]
        assert "3 rows" in told[0], attempt
        assert all("1 users compared, row by row" in each for each in told), attempt
        long_ago, moved = (admin.get(f"/v1/users/{name}") for name in (user, f"p-{user}"))
        assert (long_ago["current_streak"], long_ago["longest_streak"]) == (0, 3)
        assert long_ago["total_bestie_points"] == 30
        assert (moved["current_streak"], moved["longest_streak"]) == (12, 40)
        assert moved["balance"] == 250
        assert is_indexed(stack, f"p-{user}")
    compared = list(csv.DictReader((tmp_path / "positions.compared.csv").open()))
    assert len(compared) == 1
