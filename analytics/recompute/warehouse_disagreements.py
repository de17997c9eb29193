"""Compares the recompute from the lake with the warehouse's recompute, which is a model in SQL.

First it compares sums over 4,096 groups of users. Then it compares user by user in the groups whose sums
differ. So if one user differs, few others are read. A user's group is a part of a hash of the id, because all
ids may begin with the same characters.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from analytics.lake.curated_files import arrow_table, cursor, query
from analytics.recompute.user_shares import UserShare
from analytics.warehouse.statements import literal
from analytics.warehouse.warehouse import Warehouse
from rules.turns import SHARE_DIGITS, share_of_digits

COLUMNS = (
    "last_activity_date",
    "current_streak",
    "longest_streak",
    "active_days",
    "freezes_spent",
    "total_bestie_points",
    "balance",
)
LAKE_TABLE = "recomputed"  # in DuckDB, with the users of one share as the lake has them
WAREHOUSE_MODEL = "marts.streaks_recomputed"
GROUPS_MAX = 20  # the users of at most so many groups are compared
GROUP = f"SUBSTRING(MD5(user_id), 1, {SHARE_DIGITS})"
# DuckDB and Redshift both run this statement. It has a blind spot: if two users of one group had each other's
# figures, the sums would be equal.
SUMS = f"""
SELECT {GROUP} AS user_group, COUNT(*) AS users,
  SUM(COALESCE(current_streak, 0)) AS current_days, SUM(COALESCE(longest_streak, 0)) AS longest_days,
  SUM(COALESCE(active_days, 0)) AS active_days, SUM(COALESCE(total_bestie_points, 0)) AS earned,
  SUM(COALESCE(balance, 0)) AS balance, SUM(LENGTH(COALESCE(freezes_spent, ''))) AS spent,
  SUM(COALESCE(last_activity_date - CAST('1970-01-01' AS DATE), 0)) AS last_days
FROM {{table}} GROUP BY {GROUP}
"""  # noqa: S608 (no input)
USERS_OF_GROUPS = f"SELECT user_id, {{columns}} FROM {{table}} WHERE {GROUP} IN ({{groups}})"  # noqa: S608 (no input)
Texts = tuple[str, ...]  # the values of a row but for the first one
Rows = list[dict[str, Any]]


def disagreements(warehouse: Warehouse, recomputed: Iterable[tuple[UserShare, pa.Table]]) -> Rows:
    """Return the users for whom the two recomputes differ, from the first GROUPS_MAX groups that differ.

    recomputed: shares of the users, one after the other; users of other shares are not compared. A row has
    user_id, lake and warehouse (COLUMNS as texts, or None for no such user). Raises StatementFailed.
    """
    warehouse_sums = _by_first(warehouse.rows(SUMS.format(table=WAREHOUSE_MODEL)))
    lake_users: dict[str, Texts] = {}
    groups: list[str] = []
    for share, table in recomputed:
        share_sums = {group: row for group, row in warehouse_sums.items() if _is_in(group, share)}
        differing = _differing_groups(table, share_sums, GROUPS_MAX - len(groups))
        groups += differing.groups
        lake_users |= differing.users
    if not groups:
        return []
    warehouse_users = _by_first(warehouse.rows(_users_statement(WAREHOUSE_MODEL, groups)))
    return [
        {"user_id": user, "lake": lake_users.get(user), "warehouse": warehouse_users.get(user)}
        for user in sorted(lake_users.keys() | warehouse_users.keys())
        if lake_users.get(user) != warehouse_users.get(user)
    ]


def _users_statement(table: str, groups: Iterable[str]) -> str:
    """Return the statement that reads the users of some groups."""
    return USERS_OF_GROUPS.format(
        columns=", ".join(COLUMNS), table=table, groups=", ".join(map(literal, groups))
    )


def _is_in(group: str, share: UserShare) -> bool:
    """Whether the users of a group are in a share. No group has users of two shares."""
    return share_of_digits(group, share.of) == share.number


class DifferingGroups(NamedTuple):
    """Groups of users whose sums differ."""

    groups: list[str]
    users: dict[str, Texts]  # all users of these groups, as the lake has them


def _differing_groups(table: pa.Table, warehouse_sums: dict[str, Texts], groups_max: int) -> DifferingGroups:
    """Return the first groups of a share whose sums differ. table: the share's users (lake_users.ROWS)."""
    db = cursor()
    # The share also has users of whom the lake has only settings. The warehouse's model leaves them out.
    has_figures = pc.or_(table["entries"].is_valid(), table["last_activity_date"].is_valid())
    with arrow_table(db, LAKE_TABLE, table.filter(has_figures)):
        lake_sums = _by_first(query(db, SUMS.format(table=LAKE_TABLE)).to_pylist())
        all_groups = sorted(lake_sums.keys() | warehouse_sums.keys())
        differing = [group for group in all_groups if lake_sums.get(group) != warehouse_sums.get(group)]
        groups = differing[:groups_max]
        if not groups:
            return DifferingGroups([], {})
        users = _by_first(query(db, _users_statement(LAKE_TABLE, groups)).to_pylist())
        return DifferingGroups(groups, users)


def _by_first(rows: list[dict[str, Any]]) -> dict[str, Texts]:
    """Return rows by their first column. All values become text: the Data API may answer with text."""
    by_first = {}
    for row in rows:
        first, *rest = row.values()
        by_first[str(first)] = tuple("" if value is None else str(value) for value in rest)
    return by_first
