"""Lakes to recompute: users with random active dates, a ledger entry for each, and a profile.

Files are as curation leaves them: one a day, sorted by key, zstd. Ids are texts of 36 characters.
"""

import uuid
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any, NamedTuple

FIRST = date(2017, 1, 1)


class Crowd(NamedTuple):
    """How often users are active: on a share of all dates."""

    name: str
    days: int
    share: float


DENSE = Crowd("dense", 400, 0.5)
SPARSE = Crowd("sparse", 3650, 12 / 365)


def write_activity(folder: Path, crowd: Crowd, rows: int) -> int:
    """Write the active days of about this many user-days; returns how many."""
    return sum(len(active) for _, active, _ in _days(folder, crowd, rows))


def write_whole(folder: Path, crowd: Crowd, rows: int) -> int:
    """Write active days, a ledger entry for each, and a profile a user; returns how many active days."""
    import numpy as np
    import pyarrow as pa

    total, taken = 0, None
    for day, active, ids in _days(folder, crowd, rows):
        seq = np.zeros(len(ids), np.int64) if taken is None else taken
        seq[active] += 1
        _write(folder, "ledger", day, _entries(ids.take(pa.array(active)), day, seq[active]))
        taken, total = seq, total + len(active)
        last_ids = ids
    profiles = {
        "user_id": last_ids,
        "version": pa.array(np.ones(len(last_ids), np.int64)),
        "timezone": pa.array(["UTC"]).take(pa.array(np.zeros(len(last_ids), np.int32))),
    }
    _write(folder, "streaks", day, profiles)
    return total


def _days(folder: Path, crowd: Crowd, rows: int) -> Any:
    import numpy as np
    import pyarrow as pa

    chance = np.random.default_rng(1)
    users = max(1, round(rows / (crowd.days * crowd.share)))
    ids = pa.array(sorted(str(uuid.UUID(bytes=chance.bytes(16))) for _ in range(users)))
    for number in range(crowd.days):
        day = FIRST + timedelta(days=number)
        active = np.flatnonzero(chance.random(users) < crowd.share)
        when = pa.array([day], pa.date32()).take(pa.array(np.zeros(len(active), np.int32)))
        columns = {"user_id": ids.take(pa.array(active)), "activity_date": when}
        _write(folder, "daily_activity", day, columns)
        yield day, active, ids


def _entries(ids: Any, day: date, seq: Any) -> dict[str, Any]:
    """An entry of 5 points for each of these users."""
    import numpy as np
    import pyarrow as pa

    at = pa.array([datetime.combine(day, time(12), UTC)], pa.timestamp("us", "UTC"))
    same = pa.array(np.zeros(len(seq), np.int32))
    return {
        "account_id": ids,
        "created_at": at.take(same),
        "seq": pa.array(seq),
        "kind": pa.array(["EARN"]).take(same),
        "points": pa.array(np.full(len(seq), 5)),
        "balance": pa.array(5 * seq),
    }


def _write(folder: Path, entity: str, day: date, columns: dict[str, Any]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    place = folder / f"curated/{entity}/dt={day}"
    place.mkdir(parents=True, exist_ok=True)
    pq.write_table(
        pa.table(columns),
        place / "day.parquet",
        compression="zstd",
        compression_level=1,
        row_group_size=100_000,
    )
