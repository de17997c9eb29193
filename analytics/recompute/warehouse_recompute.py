"""The warehouse's own recompute, unloaded for the accounts that a night looks at, and for no others.

These are accounts whose newest profile in the lake differs from marts.streaks_recomputed, those with an entry
or a profile since they were compared last, and those whose turn it is. The figures are the ones that the
column-wise recompute makes (recompute.py); tests hold both against each other.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from adapters.platform.objects import Objects
from analytics.lake.curated_files import arrow_table, connect, query
from analytics.recompute.activity_runs import STREAK
from analytics.recompute.ledger_totals import EARNED
from analytics.recompute.recompute import RECOMPUTED, RecomputedUsers
from analytics.recompute.settled_users import USERS, UserShare
from analytics.warehouse.statements import literal
from analytics.warehouse.warehouse import Warehouse
from rules.engagement.reconciliation import DIGEST_BITS, HASH_DIGITS, share_of_hash, turn_digits

HALF = DIGEST_BITS // 2
EPOCH = "TIMESTAMP '1970-01-01 00:00:00'"


def _text(column: str, length: int = 0) -> str:
    return f"COALESCE({f'CAST({column} AS VARCHAR({length}))' if length else column}, '')"


# Twin of analytics.recompute.ledger_totals.HASH: the same texts, with the same separator.
_TEXTS = " || CHR(31) || ".join(
    (
        _text(f"DATEDIFF(microsecond, {EPOCH}, created_at)", 20),
        *(_text("seq", 20), _text("kind"), _text("points", 20), _text("balance", 20)),
        *(_text("event_id"), _text("event_type"), _text("activity_date", 10), _text("reward_id")),
        *(_text("reverses"), _text('"freeze"'), _text("freeze_date", 10)),
        *(_text("rules_version", 20), _text("cap"), "CASE WHEN is_passive THEN 'True' ELSE '' END"),
        *(_text("expires_on", 10), _text("held_at"), _text("reason"), _text("brand"), _text("measures")),
    )
)
# The last eight bytes of the hash are a number, its last byte first: here in two halves, as each fits BIGINT.
_HIGH, _LOW = (
    f"STRTOL({' || '.join(f'SUBSTRING(hash, {place}, 2)' for place in places)}, 16)"
    for places in ((31, 29, 27, 25), (23, 21, 19, 17))
)
_DIFFERENT = " OR ".join(
    f"COALESCE(recomputed.{name}, {nothing}) <> COALESCE(profiles.{name}, {nothing})"
    for name, nothing in (
        *((name, "0") for name in ("longest_streak", "active_days", "total_bestie_points", "balance")),
        ("last_activity_date", "DATE '0001-01-01'"),
    )
)
# A profile may list the last of these dates alone, and tell how many there were before: a date and its comma
# are 11 characters.
_SPENT = """
COALESCE(profiles.freezes_spent, '') <>
  RIGHT(COALESCE(recomputed.freezes_spent, ''), LENGTH(COALESCE(profiles.freezes_spent, '')))
OR LENGTH(COALESCE(recomputed.freezes_spent || ',', '')) <>
  11 * COALESCE(profiles.freezes_archived, 0) + LENGTH(COALESCE(profiles.freezes_spent || ',', ''))
"""
# A streak that has lapsed is stored as 0.
_LENGTH = "profiles.current_streak <> 0 AND profiles.current_streak <> COALESCE(recomputed.current_streak, 0)"
SELECT = f"""
WITH profiles AS (
  SELECT * FROM (
    SELECT user_id, version, timezone, timezone_chosen, pauses, skipped_dates, tz_review, updated_at,
      COALESCE(current_streak, 0) AS current_streak, longest_streak, active_days, last_activity_date,
      total_bestie_points, balance, freezes_spent, freezes_archived, archived_until, opening,
      ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY version DESC) AS place
    FROM lake.streaks
  ) AS versions WHERE place = 1
), named AS (
  SELECT COALESCE(recomputed.user_id, profiles.user_id) AS user_id
  FROM marts.streaks_recomputed AS recomputed
  FULL OUTER JOIN profiles ON profiles.user_id = recomputed.user_id
  WHERE {_DIFFERENT} OR {_SPENT} OR ({_LENGTH})
    OR SUBSTRING(MD5(COALESCE(recomputed.user_id, profiles.user_id)), 4, 3) IN ({{digits}})
  UNION SELECT account_id AS user_id FROM lake.ledger WHERE created_at >= {{since}}
  UNION SELECT user_id FROM lake.streaks WHERE updated_at >= {{since}}
), entries AS (
  SELECT ledger.account_id, created_at, seq, kind, points, balance, MD5({_TEXTS}) AS hash,
    ROW_NUMBER() OVER (PARTITION BY ledger.account_id ORDER BY created_at DESC) AS place
  FROM lake.ledger AS ledger
  INNER JOIN named ON named.user_id = ledger.account_id
), totals AS (
  SELECT account_id AS user_id, COUNT(CASE WHEN seq > 0 THEN 1 END) AS numbered,
    CAST(SUM(CASE WHEN {EARNED} THEN points ELSE 0 END) AS BIGINT) AS earned,
    CAST(SUM(points) AS BIGINT) AS points, MAX(CASE WHEN place = 1 THEN balance END) AS balance,
    DATEDIFF(microsecond, {EPOCH}, MAX(created_at)) AS head_us,
    MAX(CASE WHEN place = 1 THEN seq END) AS ledger_seq, MIN(seq) AS first_seq, MAX(seq) AS last_seq,
    CAST(SUM(seq) AS BIGINT) AS seq_sum,
    CAST(SUM(CASE WHEN seq > 0 THEN {_HIGH} ELSE 0 END) AS BIGINT) AS hash_high,
    CAST(SUM(CASE WHEN seq > 0 THEN {_LOW} ELSE 0 END) AS BIGINT) AS hash_low
  FROM entries GROUP BY account_id
)
SELECT named.user_id, recomputed.last_activity_date, recomputed.current_streak, recomputed.longest_streak,
  recomputed.active_days, recomputed.freezes_spent, numbered, earned, totals.points, totals.balance, head_us,
  ledger_seq, first_seq, last_seq, seq_sum, hash_high, hash_low, version, timezone, timezone_chosen, pauses,
  skipped_dates, tz_review, DATEDIFF(microsecond, {EPOCH}, updated_at) AS updated_us, archived_until, opening
FROM named
LEFT JOIN marts.streaks_recomputed AS recomputed ON recomputed.user_id = named.user_id
LEFT JOIN totals ON totals.user_id = named.user_id
LEFT JOIN profiles ON profiles.user_id = named.user_id
"""  # noqa: S608 (our own text)
COUNT = """SELECT COUNT(*) AS users FROM marts.streaks_recomputed"""
# What came by UNLOAD, as the column-wise recompute has it before its last statement.
_ADDED = {
    "cover": "NULL",
    "freezes": "NULL",
    "head_at": "make_timestamptz(head_us)",
    "digest": f"(hash_high::HUGEINT * {1 << HALF} + hash_low) % {1 << DIGEST_BITS}",
    "updated_at": "make_timestamptz(updated_us)",
    # Without a streak the warehouse has zeros.
    **{name: f"CASE WHEN last_activity_date IS NOT NULL THEN {name} END" for name, _ in STREAK},
}
_USERS = f"SELECT {', '.join(f'{_ADDED.get(name, name)} AS {name}' for name in USERS.names)} FROM unloaded"  # noqa: S608


def accounts_query(since: datetime, turns: Collection[int]) -> str:
    """Return the query, in Redshift's SQL, for the figures of the accounts that a night looks at.

    since: entries and profiles of this instant or later. turns: the slices whose turn it is.
    """
    moment = literal(since.astimezone(UTC).replace(tzinfo=None))
    return SELECT.format(since=moment, digits=", ".join(map(literal, turn_digits(turns))))


def unloaded_accounts(objects: Objects, keys: Sequence[str]) -> RecomputedUsers:
    """Return what the warehouse has unloaded into some files, as the column-wise recompute tells it."""
    found = [pq.read_table(pa.BufferReader(objects.get(key))) for key in keys]
    rows = [each for each in found if each.num_rows]
    if not rows:
        return RecomputedUsers(_recompute(USERS.empty_table()))
    with arrow_table(db := connect(), "unloaded", pa.concat_tables(rows, promote_options="permissive")):
        return RecomputedUsers(_recompute(query(db, _USERS).cast(USERS)))


def _recompute(users: pa.Table) -> pa.Table:
    with arrow_table(db := connect(), "users", users):
        return query(db, RECOMPUTED)


# Compares the recompute from the lake with the warehouse's, which is a model in SQL.
#
# It compares sums over 4,096 groups of users first. Then it compares user by user in the groups whose sums
# differ. A group is a part of a hash, since ids may all begin alike: so one user who differs costs the
# reading of few others.


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
GROUP = f"SUBSTRING(MD5(user_id), 1, {HASH_DIGITS})"
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
WAREHOUSE_USERS = f"SELECT user_id, {{columns}} FROM {{table}} WHERE {GROUP} IN ({{buckets}})"  # noqa: S608 (no input)
Row = tuple[Any, ...]
Rows = list[dict[str, Any]]


def disagreements(warehouse: Warehouse, recomputed: Iterable[tuple[UserShare, pa.Table]]) -> Rows:
    """Return the users for whom the two recomputes differ, from the first GROUPS_MAX groups that differ.

    recomputed: shares of the users, one after the other; users of other shares are not compared.
    Each has user_id, lake and warehouse (the figures as text). Raises StatementFailed.
    """
    theirs = _by_first(warehouse.rows(SUMS.format(table=THEIRS)))
    mine: dict[str, Row] = {}
    buckets: list[str] = []
    for share, table in recomputed:
        of_share = {group: row for group, row in theirs.items() if _is_of(share, group)}
        found, users = _differing_users(table, of_share, GROUPS_MAX - len(buckets))
        buckets += found
        mine |= users
    if not buckets:
        return []
    listed = ", ".join(map(literal, buckets))
    asked = WAREHOUSE_USERS.format(columns=", ".join(COLUMNS), table=THEIRS, buckets=listed)
    other = _by_first(warehouse.rows(asked))
    wrong = sorted(user for user in mine.keys() | other.keys() if mine.get(user) != other.get(user))
    return [{"user_id": user, "lake": mine.get(user), "warehouse": other.get(user)} for user in wrong]


def _is_of(share: UserShare, group: str) -> bool:
    return share_of_hash(group, share.of) == share.number


def _differing_users(
    table: pa.Table, theirs: dict[str, Row], groups_max: int
) -> tuple[list[str], dict[str, Row]]:
    """Return the first groups of a share whose sums differ; and their users."""
    db = connect()
    known = table.filter(pa.compute.or_(table["entries"].is_valid(), table["last_activity_date"].is_valid()))
    with arrow_table(db, OURS, known):
        ours = _by_first(query(db, SUMS.format(table=OURS)).to_pylist())
        differ = sorted(each for each in ours.keys() | theirs.keys() if ours.get(each) != theirs.get(each))
        if not (some := differ[:groups_max]):
            return [], {}
        listed = ", ".join(map(literal, some))
        asked = WAREHOUSE_USERS.format(columns=", ".join(COLUMNS), table=OURS, buckets=listed)
        return some, _by_first(query(db, asked).to_pylist())


def _by_first(rows: list[dict[str, Any]]) -> dict[str, Row]:
    """Index rows by their first column. The others become text, as the Data API may answer with text."""
    found = {}
    for row in rows:
        first, *rest = row.values()
        found[str(first)] = tuple("" if value is None else str(value) for value in rest)
    return found
