"""Finds the users whom an amnesty may concern (rule 17), in the lake, so that no other account is read.

`streakline amnesty` (local/amnesty_command.py) asks these accounts.
"""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from adapters.platform.objects import Objects
from analytics.lake.curated_files import connect, table_of
from rules.engagement.account_state import Amnesty, outage_dates
from rules.lake.residues import is_residue

# No run lasts so long without activity: a year has 92 paused dates, and freezes for few more.
RUN_GAP_MAX = timedelta(days=365)
BATCH_ROWS = 20_000
# Users who were active before the outage, or on one of its dates, but not on all of them.
ACTIVE_BEFORE = """
WITH days AS (
  SELECT user_id, activity_date, arg_max(events_count, ledger_head) AS events FROM daily_activity
  WHERE activity_date BETWEEN $reach AND $last GROUP BY user_id, activity_date
)
SELECT user_id FROM days WHERE events > 0
GROUP BY user_id
HAVING count(*) FILTER (activity_date >= $first) < $dates
ORDER BY user_id
"""
# Users who have, or have had, a skipped date of the outage: a revoked amnesty is taken from them.
WITH_SKIPPED_DATE = """
WITH newest AS (
  SELECT user_id, arg_max(skipped_dates, version) AS skipped FROM streaks GROUP BY user_id
)
SELECT DISTINCT user_id FROM (SELECT user_id, unnest(string_split(skipped, ',')) AS day FROM newest)
WHERE try_cast(day AS DATE) BETWEEN $first AND $last
ORDER BY user_id
"""


def users_concerned(objects: Objects, amnesty: Amnesty) -> Iterator[str]:
    """Yield the ids of the users whom an amnesty may concern, in order.

    These are users who may have lost a date; for a revoked amnesty, users who may have it. The account itself
    decides whether anything changes, because its zone decides which dates the outage has touched.
    """
    first, last = outage_dates(amnesty)
    values: dict[str, Any] = {"first": first, "last": last}
    if amnesty.revoked_at:
        entity, sql = "streaks", WITH_SKIPPED_DATE
    else:
        entity, sql = "daily_activity", ACTIVE_BEFORE
        values |= {"reach": first - RUN_GAP_MAX, "dates": (last - first).days + 1}
    db = connect()
    with table_of(db, entity, objects, entity):
        reader = db.sql(sql, params=values).to_arrow_reader(BATCH_ROWS)
        for batch in reader:
            yield from (user for user in batch.column(0).to_pylist() if not is_residue(user))
