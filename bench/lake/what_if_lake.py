"""A lake for what-if: the recompute's crowd, with all that a judgement reads of an entry, and redemptions."""

from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

from bench.lake.recompute_lakes import Crowd, _days, _write

# What the shipped book says of these. The candidate has other points, caps, a boost and expiry, and lacks the
# last.
TYPES = {"LESSON_COMPLETED": (10, 200), "CONTRIBUTION": (10, 100), "CHECK_IN": (5, 5), "APP_OPENED": (1, 1)}
CANDIDATE: dict[str, Any] = {
    "format": 1,
    "event_types": {
        "LESSON_COMPLETED": {"points": 12, "cap": {"points": 100, "per": "day"}},
        "CONTRIBUTION": {"points": 8, "cap": {"points": 24, "per": "week"}},
        "CHECK_IN": {"points": 5, "cap": {"events": 1, "per": "day"}},
    },
    "boosts": [{"since": "2017-03-01T00:00:00Z", "until": "2017-04-01T00:00:00Z", "factor": 2}],
    "freezes": {"held_max": 5, "free_a_month": 2, "price_points": 100},
    "pauses": {"dates_max": 91, "dates_a_year": 92},
    "expiry": {"after_days": 90},
}
REDEEMED_EVERY, REDEEMED = 50, -150  # entries of a user, and points


def write_lake(folder: Path, crowd: Crowd, rows: int) -> int:
    """Write about so many entries, an event and a profile for each user; returns how many entries."""
    import numpy as np
    import pyarrow as pa

    chance = np.random.default_rng(2)
    total, state = 0, None
    for day, active, ids in _days(folder, crowd, rows):
        seq, balance = state or (np.zeros(len(ids), np.int64), np.zeros(len(ids), np.int64))
        kinds = chance.integers(0, len(TYPES), len(active))
        seq[active] += 1
        spends = (seq[active] % REDEEMED_EVERY == 0) & (balance[active] >= -REDEEMED)
        worth = np.array([points for points, _ in TYPES.values()], np.int64)[kinds]
        points = np.where(spends, REDEEMED, worth)
        balance[active] += points
        users = ids.take(pa.array(active))
        entries = _entries(users, day, seq[active], kinds, points, balance[active], spends)
        _write(folder, "ledger", day, entries)
        _write(folder, "events", day, _events(entries))
        state, total, last_ids = (seq, balance), total + len(active), ids
    same = pa.array(np.zeros(len(last_ids), np.int32))
    profiles = {
        "user_id": last_ids,
        "version": pa.array([1]).take(same),
        "timezone": pa.array(["UTC"]).take(same),
    }
    _write(folder, "streaks", day, profiles)
    return total


def _entries(
    users: Any, day: date, seq: Any, kinds: Any, points: Any, balance: Any, spends: Any
) -> dict[str, Any]:
    """An entry of each of these users at noon: an event's, or a redemption."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    size, same = len(seq), pa.array(np.zeros(len(seq), np.int32))
    earns = pa.array(~spends)
    at = pa.array([datetime.combine(day, time(12), UTC) + timedelta(seconds=1)], pa.timestamp("us", "UTC"))
    names, caps = pa.array(list(TYPES)), pa.array([f"{cap}/day" for _, cap in TYPES.values()])
    begin = pa.array([f"{day}T12:00:00.000000Z#"]).take(same)
    event_id = pc.binary_join_element_wise(begin, users, "")

    def of_earn(values: Any) -> Any:
        return pc.if_else(earns, values, pa.scalar(None, values.type))

    return {
        "account_id": users,
        "created_at": at.take(same),
        "seq": pa.array(seq),
        "kind": pa.array(["EARN", "REDEEM"]).take(pa.array(spends.astype(np.int32))),
        "points": pa.array(points),
        "balance": pa.array(balance),
        "event_id": of_earn(event_id),
        "event_type": of_earn(names.take(pa.array(kinds))),
        "activity_date": of_earn(pa.array([day], pa.date32()).take(same)),
        "rules_version": of_earn(pa.array(np.ones(size, np.int64))),
        "cap": of_earn(caps.take(pa.array(kinds))),
    }


def _events(entries: dict[str, Any]) -> dict[str, Any]:
    import pyarrow as pa

    table = pa.table(entries)
    some = table.filter(table["event_id"].is_valid())
    names = {"account_id": "user_id", "points": "points_awarded", "created_at": "occurred_at"}
    kept = (
        "account_id",
        "event_id",
        "event_type",
        "activity_date",
        "points",
        "rules_version",
        "cap",
        "created_at",
    )
    return {names.get(each, each): some[each] for each in kept}
