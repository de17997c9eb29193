"""The nightly recompute: every user's streak, totals and balance, from the curated lake alone.

Written to runs/{run_id}/streaks.parquet: one row per user that the lake knows. Beside what it
computes (last_activity_date to ledger_seq, entries, sound) it holds the settings of the profile's
newest version, which nothing else tells.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from io import BytesIO
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from adapters.platform.objects import Objects
from analytics.lake.duckdb_memory import registered
from analytics.lake.layout import run_key
from analytics.recompute.activity_runs import runs_of
from analytics.recompute.ledger_totals import Totals
from analytics.recompute.plain_streaks import NEVER, Runs, day_number
from analytics.recompute.user_numbers import Users
from rules.engagement.streaks import Cover, Streak

RESULT = "streaks.parquet"
JOINED = """
SELECT * FROM runs FULL JOIN totals USING (user_id) FULL JOIN settings USING (user_id) ORDER BY user_id
"""


@dataclass(frozen=True, slots=True)
class Recomputed:
    """One row per user, by user_id."""

    table: pa.Table

    def save(self, objects: Objects, run_id: str) -> str:
        """Store as the run's result; returns its key."""
        data = BytesIO()
        pq.write_table(self.table, data, compression="zstd")
        key = run_key(run_id, RESULT)
        objects.put(key, data.getvalue())
        return key

    @classmethod
    def load(cls, objects: Objects, run_id: str) -> "Recomputed":
        """Read a run's result; raises adapters.platform.objects.NoObject."""
        return cls(pq.read_table(BytesIO(objects.get(run_key(run_id, RESULT)))))


def recompute(objects: Objects) -> Recomputed:
    """Recompute all users."""
    totals = Totals.read(objects)
    covers = covers_of(totals)
    users, runs = runs_of(objects, covers)
    refolded = runs.refold(covers.values())
    with registered(totals.db, "runs", table_of(users, runs, refolded)):
        return Recomputed(totals.db.sql(JOINED).to_arrow_table())


def covers_of(totals: Totals) -> dict[str, Cover]:
    """Return the cover of every user who has or had one."""
    covers = {user: Cover(freezes=tuple(sorted(changes))) for user, changes in totals.freezes.items()}
    listed = "SELECT user_id, pauses, skipped_dates FROM settings WHERE pauses > '' OR skipped_dates > ''"
    for user, paused, skipped in totals.db.execute(listed).fetchall():
        freezes = covers.get(user, Cover()).freezes
        covers[user] = Cover(freezes, pauses_of(paused), frozenset(dates_of(skipped)))
    return covers


def dates_of(text: str | None) -> tuple[date, ...]:
    """Read dates separated by commas."""
    return tuple(date.fromisoformat(each) for each in (text or "").split(",") if each)


def pauses_of(text: str | None) -> tuple[tuple[date, date], ...]:
    """Read `first/last` pairs separated by commas."""
    pairs = (each.split("/") for each in (text or "").split(",") if each)
    return tuple((date.fromisoformat(first), date.fromisoformat(last)) for first, last in pairs)


def table_of(users: Users, runs: Runs, refolded: Mapping[int, Streak]) -> pa.Table:
    """Return all users with activity; refolded: streaks by code that replace the plain runs."""
    spent: list[str | None] = [None] * runs.kept
    for code, streak in refolded.items():
        runs.last[code], runs.length[code] = day_number(streak.last), streak.length
        runs.longest[code], runs.active_days[code] = streak.longest, streak.active_days
        spent[code] = ",".join(day.isoformat() for day in streak.spent) or None
    rest = pa.nulls(len(users.ids) - runs.kept, pa.string())
    columns: dict[str, Any] = {
        "user_id": users.ids,
        "last_activity_date": pa.array(runs.last).cast(pa.date32()),
        "current_streak": pa.array(runs.length),
        "longest_streak": pa.array(runs.longest),
        "active_days": pa.array(runs.active_days),
        "freezes_spent": pa.concat_arrays([pa.array(spent, pa.string()), rest]),
    }
    return pa.table(columns).filter(pa.array(runs.last != NEVER))
