"""Compares the recompute from the lake with the warehouse's, which is a model in SQL.

It compares sums over 4,096 groups of users first. Then it compares user by user in the groups whose sums
differ. A group is a part of a hash, since ids may all begin alike: so one user who differs costs the reading
of few others.
"""

from typing import Any

import pyarrow as pa

from analytics.lake.duckdb_memory import connect, query, registered
from analytics.warehouse.statements import literal
from analytics.warehouse.warehouse import Warehouse

COLUMNS = (
    "last_activity_date",
    "current_streak",
    "longest_streak",
    "active_days",
    "freezes_spent",
    "total_bestie_points",
    "balance",
)
OURS, THEIRS = "recomputed", "marts.streaks_recomputed"
GROUPS_MAX = 20
GROUP = "SUBSTRING(MD5(user_id), 1, 3)"
# DuckDB and Redshift both run it. It has a blind spot: if two users of one group had each other's figures,
# the sums would be equal.
SUMS = f"""
SELECT {GROUP} AS bucket, COUNT(*) AS users,
  SUM(COALESCE(current_streak, 0)) AS current_days, SUM(COALESCE(longest_streak, 0)) AS longest_days,
  SUM(COALESCE(active_days, 0)) AS active_days, SUM(COALESCE(total_bestie_points, 0)) AS earned,
  SUM(COALESCE(balance, 0)) AS balance, SUM(LENGTH(COALESCE(freezes_spent, ''))) AS spent,
  SUM(COALESCE(last_activity_date - CAST('1970-01-01' AS DATE), 0)) AS last_days
FROM {{table}} GROUP BY {GROUP}
"""  # noqa: S608 (no input)
USERS = f"SELECT user_id, {{columns}} FROM {{table}} WHERE {GROUP} IN ({{buckets}})"  # noqa: S608 (no input)
Row = tuple[Any, ...]
Rows = list[dict[str, Any]]


def disagreements(warehouse: Warehouse, recomputed: pa.Table) -> list[dict[str, Any]]:
    """Return the users for whom the two recomputes differ, from the first GROUPS_MAX groups that differ.

    Each has user_id, lake and warehouse (the figures as text). Raises StatementFailed.
    """
    db = connect()
    known = recomputed.filter(
        pa.compute.or_(recomputed["entries"].is_valid(), recomputed["last_activity_date"].is_valid())
    )
    with registered(db, OURS, known):

        def ours(sql: str) -> Rows:
            rows: Rows = query(db, sql).to_pylist()
            return rows

        sums = [
            _by_first(ours(SUMS.format(table=OURS))),
            _by_first(warehouse.rows(SUMS.format(table=THEIRS))),
        ]
        buckets = sorted(b for b in sums[0].keys() | sums[1].keys() if sums[0].get(b) != sums[1].get(b))
        if not buckets:
            return []
        listed = ", ".join(map(literal, buckets[:GROUPS_MAX]))
        asked = [
            USERS.format(columns=", ".join(COLUMNS), table=table, buckets=listed) for table in (OURS, THEIRS)
        ]
        mine, other = _by_first(ours(asked[0])), _by_first(warehouse.rows(asked[1]))
    users = sorted(user for user in mine.keys() | other.keys() if mine.get(user) != other.get(user))
    return [{"user_id": user, "lake": mine.get(user), "warehouse": other.get(user)} for user in users]


def _by_first(rows: list[dict[str, Any]]) -> dict[str, Row]:
    """Index rows by their first column. The others become text, as the Data API may answer with text."""
    found = {}
    for row in rows:
        first, *rest = row.values()
        found[str(first)] = tuple("" if value is None else str(value) for value in rest)
    return found
