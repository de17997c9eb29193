"""The nightly recompute: every user's streak, totals and balance, from the curated lake alone.

The result is runs/{run_id}/streaks.parquet, with one row per user that the lake knows. A row has what was
computed (last_activity_date to ledger_seq, entries, points, sound) and the settings of the newest profile,
which cannot be computed from anything else.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq

from adapters.platform.objects import Objects
from analytics.lake.duckdb_memory import query, registered
from analytics.lake.layout import run_key
from analytics.recompute.activity_runs import create_runs
from analytics.recompute.ledger_totals import Totals
from rules.engagement.streaks import Cover, Streak, fold

RESULT = "streaks.parquet"
REFOLDED = pa.schema(
    [
        ("user_id", pa.string()),
        ("last_activity_date", pa.date32()),
        ("current_streak", pa.int32()),
        ("longest_streak", pa.int32()),
        ("active_days", pa.int32()),
        ("freezes_spent", pa.string()),
    ]
)
JOINED = """
SELECT * FROM (
  SELECT * EXCLUDE (bits), NULL AS freezes_spent FROM runs WHERE bits IS NULL
  UNION ALL BY NAME SELECT * FROM refolded
) FULL JOIN totals USING (user_id) FULL JOIN settings USING (user_id) ORDER BY user_id
"""


@dataclass(frozen=True, slots=True)
class Recomputed:
    """The result: one row per user, by user_id."""

    table: pa.Table

    def save(self, objects: Objects, run_id: str) -> str:
        """Store the table as the nightly run's result; returns its key."""
        data = BytesIO()
        pq.write_table(self.table, data, compression="zstd")
        key = run_key(run_id, RESULT)
        objects.put(key, data.getvalue())
        return key

    @classmethod
    def load(cls, objects: Objects, run_id: str) -> "Recomputed":
        """Read a nightly run's result. Raises adapters.platform.objects.NoObject if there is none."""
        return cls(pq.read_table(BytesIO(objects.get(run_key(run_id, RESULT)))))


def recompute(objects: Objects) -> Recomputed:
    """Recompute all users."""
    totals = Totals.read(objects)
    covers = covers_of(totals)
    dates = create_runs(totals.db, objects, covers)
    streaks = {user: fold(days, covers[user]) for user, days in dates.items()}
    with registered(totals.db, "refolded", table_of(streaks)):
        return Recomputed(query(totals.db, JOINED))


def covers_of(totals: Totals) -> dict[str, Cover]:
    """Return the cover of every user who has or had one."""
    covers = {user: Cover(freezes=tuple(sorted(changes))) for user, changes in totals.freezes.items()}
    listed = "SELECT user_id, pauses, skipped_dates FROM settings WHERE pauses > '' OR skipped_dates > ''"
    for user, paused, skipped in totals.db.execute(listed).fetchall():
        freezes = covers.get(user, Cover()).freezes
        covers[user] = Cover(freezes, pauses_of(paused), frozenset(dates_of(skipped)))
    return covers


def dates_of(text: str | None) -> tuple[date, ...]:
    """Read dates separated by commas, such as `2026-01-30,2026-01-31`."""
    return tuple(date.fromisoformat(each) for each in (text or "").split(",") if each)


def pauses_of(text: str | None) -> tuple[tuple[date, date], ...]:
    """Read pauses separated by commas, such as `2026-01-01/2026-01-31`: both dates are included."""
    pairs = (each.split("/") for each in (text or "").split(",") if each)
    return tuple((date.fromisoformat(first), date.fromisoformat(last)) for first, last in pairs)


def table_of(streaks: Mapping[str, Streak | None]) -> pa.Table:
    """Return a row for each user with a streak."""
    rows = [
        {
            "user_id": user,
            "last_activity_date": streak.last,
            "current_streak": streak.length,
            "longest_streak": streak.longest,
            "active_days": streak.active_days,
            "freezes_spent": ",".join(day.isoformat() for day in streak.spent) or None,
        }
        for user, streak in streaks.items()
        if streak
    ]
    return pa.Table.from_pylist(rows, REFOLDED)
