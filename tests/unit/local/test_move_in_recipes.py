"""The recipes of docs/guides/move-in.md, carried out: what they write is a file that can be taken in."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from adapters.book_store import shipped_version
from adapters.privacy.tombstones import NO_ERASURES
from local.move_in.histories import check_row
from local.move_in.import_command import is_of_positions
from local.paths import ROOT
from local.row_files import FileRow, RefusedRow, columns_of, read_rows
from rules.book.book import Books
from rules.engagement.opening_positions import position_of

GUIDE = (ROOT / "docs" / "guides" / "move-in.md").read_text()
SHOWN = re.compile(r'```sql title="DuckDB"\n-- (.+?) -> .+?\n(.+?)```', re.DOTALL)
RECIPES: dict[str, str] = dict(SHOWN.findall(GUIDE))
NOW = datetime(2026, 3, 11, tzinfo=UTC)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def carried_out(recipe: str, written: str) -> list[FileRow]:
    duckdb.sql(RECIPES[recipe])
    rows = list(read_rows(Path(written)))
    assert not [each for each in rows if isinstance(each, RefusedRow)]
    return [each for each in rows if isinstance(each, FileRow)]


def bodies(rows: list[FileRow]) -> list[Any]:
    found = [check_row(each, Books([shipped_version()]), NOW, NO_ERASURES) for each in rows]
    assert not [each for each in found if isinstance(each, RefusedRow)], found
    return found


def test_the_guide_has_three_recipes() -> None:
    assert set(RECIPES) == {"trophy", "a table of activities", "Google Analytics (BigQuery export)"}


def test_from_trophy(here: Path) -> None:
    (line,) = re.findall(r"`trophy.ndjson` has lines such as `(.+?)`", GUIDE)
    gone = {"id": "bob", "asked_on": "2026-03-10", "streak": {"length": 0, "periodEnd": None}}
    (here / "trophy.ndjson").write_text(f"{line}\n{json.dumps({**gone, 'points': {'total': 0}})}\n")
    ann, bob = (position_of(each.values, NOW.date()) for each in carried_out("trophy", "positions.ndjson"))
    assert is_of_positions(columns_of(here / "positions.ndjson"))
    assert (ann.user_id, ann.streak, str(ann.last_date), ann.balance) == ("ann", 12, "2026-03-10", 340)
    assert (bob.user_id, bob.streak, bob.last_date, bob.balance) == ("bob", 0, None, 0)


def test_from_a_table(here: Path) -> None:
    (here / "activities.csv").write_text(
        "id,user_id,finished_at,time_zone\n7,12,2019-05-01 22:30:00+00,Europe/Berlin\n8,12,2020-05-01 10:00:00+02,\n"
    )
    first, second = bodies(carried_out("a table of activities", "events.csv"))
    assert (first["user_id"], first["occurred_at"], first["timezone"]) == (
        "12",
        "2019-05-01T22:30:00Z",
        "Europe/Berlin",
    )
    assert (second["idempotency_key"], second["occurred_at"]) == ("lesson-8", "2020-05-01T08:00:00Z")


def test_from_google_analytics(here: Path) -> None:
    duckdb.sql("""
        COPY (SELECT * FROM (VALUES
            ('ann', 1577882096000000, 'lesson_complete', 1), (NULL, 1577882096000001, 'lesson_complete', 2),
            ('ann', 1577882096000000, 'page_view', 3),
            ('ben', 1577882096000000, 'lesson_complete', 4), ('ben', 1577882096000000, 'lesson_complete', 4)
        ) AS rows(user_id, event_timestamp, event_name, event_bundle_sequence_id))
        TO 'analytics-1.parquet' (FORMAT parquet)""")
    events = bodies(carried_out("Google Analytics (BigQuery export)", "events.parquet"))
    assert [each["user_id"] for each in events] == ["ann", "ben", "ben"]
    assert {each["occurred_at"] for each in events} == {"2020-01-01T12:34:56Z"}
    assert len({each["idempotency_key"] for each in events}) == 3, "two of one batch are two"
    again = bodies(carried_out("Google Analytics (BigQuery export)", "events.parquet"))
    assert [each["idempotency_key"] for each in again] == [each["idempotency_key"] for each in events]
