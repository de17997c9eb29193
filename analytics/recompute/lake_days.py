"""Computes the items that DailyActivity must have, from the curated ledger, by the rules.

`days_between` takes all entries of some dates. `days_touched` takes those of the dates that entries since an
instant have changed. Both put their entries in DuckDB's table `ledger`, from which `_days` computes.
"""

from collections.abc import Iterator
from datetime import date, datetime, timedelta

import duckdb
import pyarrow as pa

from adapters.platform.objects import Objects
from analytics.lake import curated_files, layout
from analytics.lake.curated_files import arrow_table, cursor
from analytics.lake.user_rows import rows_of_users
from analytics.recompute.recompute import READ_AS
from analytics.recompute.user_fold import ENTRY, entry_of
from analytics.recompute.user_shares import ALL, UserShare
from rules.engagement.account import days_with_entries
from rules.engagement.account_state import Day
from rules.engagement.ledger import EARNING

# The columns of an entry on which a day depends. Other columns are not read, because all entries that are
# read are in memory at once.
COLUMNS = (
    *("account_id", "created_at", "kind", "points", "event_id", "event_type", "activity_date"),
    *("cap", "is_passive", "expires_on", "measures"),
)
IS_EARNING = "kind IN (" + ", ".join(f"'{kind}'" for kind in sorted(EARNING)) + ")"
# An entry's date may be this long before its arrival: 72 hours for a late event, a day for zones, a day for
# an entry that waits for its account. A user with later ones (rule 16, backfills) has an old date, and is
# examined with the whole ledger.
DATE_LAG_MAX = timedelta(days=5)

ENTRIES_BETWEEN = "CREATE TEMP TABLE ledger AS FROM read WHERE activity_date BETWEEN ? AND ?"


def days_between(objects: Objects, first: date, last: date, share: UserShare = ALL) -> Iterator[Day]:
    """Yield the days of a share's users from one date to another, both included, user by user."""
    db = cursor()
    with arrow_table(db, "read", _entries(objects, first, share)):
        db.execute(ENTRIES_BETWEEN, [first, last])
    yield from _days(db)


TOUCHED = f"""
CREATE TEMP TABLE touched AS SELECT DISTINCT account_id, activity_date FROM entries
WHERE {IS_EARNING} AND created_at >= ? AND activity_date IS NOT NULL
"""  # noqa: S608 (no input)
ENTRIES_OF_TOUCHED = """
CREATE TEMP TABLE ledger AS FROM entries
SEMI JOIN (FROM touched WHERE activity_date >= ?) AS recent USING (account_id, activity_date)
"""
USERS_OF_OLD_DATES = "SELECT DISTINCT account_id FROM touched WHERE activity_date < ?"


def days_touched(objects: Objects, since: datetime, share: UserShare = ALL) -> tuple[Iterator[Day], set[str]]:
    """Return the days of a share's users that entries since an instant have changed, user by user.

    Also returns the users who have earned points for an older date: other entries of that date may be in
    partitions that are not read here.
    """
    oldest = since.date() - DATE_LAG_MAX
    db = cursor()
    with arrow_table(db, "read", _entries(objects, oldest, share)):
        db.execute("CREATE TEMP TABLE entries AS FROM read")
    db.execute(TOUCHED, [since])
    db.execute(ENTRIES_OF_TOUCHED, [oldest])
    users = {user for (user,) in db.execute(USERS_OF_OLD_DATES, [oldest]).fetchall()}
    return _days(db), users


def _entries(objects: Objects, first: date, share: UserShare) -> pa.RecordBatchReader:
    """Return the entries that can be of an activity date or a later one. A zone may be a day ahead of UTC."""
    since = (first - timedelta(days=1) if first > date.min else first).isoformat()
    files = layout.curated_files(objects, "ledger", since)
    return curated_files.reader(objects, "ledger", COLUMNS, files=files, keep=share.rows_of("account_id"))


# entry_of takes all columns of ENTRY, in order. Those that no day depends on are NULL.
SELECTED = ", ".join(READ_AS.get(name, name) if name in COLUMNS else "NULL" for name in ENTRY)
ENTRIES = f"""
SELECT {SELECTED} FROM ledger
WHERE {IS_EARNING} AND activity_date IS NOT NULL ORDER BY account_id, ledger.created_at
"""  # noqa: S608 (no input)


def _days(db: duckdb.DuckDBPyConnection) -> Iterator[Day]:
    """Yield the days of the entries in the table `ledger`."""
    for _, entries in rows_of_users(db, ENTRIES, entry_of):
        yield from days_with_entries({}, entries).values()
