"""The users who may have lost something by an outage (rule 17). The lake names them: no other is read."""

from collections.abc import Iterator
from datetime import timedelta

from adapters.platform.objects import Objects
from analytics.lake.curated_files import connect, table_of
from rules.engagement.amnesty import Amnesty, outage_dates
from rules.lake.residue import is_residue

# No run outlives so long a time without activity: a year has 92 paused dates, and freezes for few more.
REACH = timedelta(days=365)
BATCH_ROWS = 20_000
# Users who were active before the outage, or on one of its dates, but not on all of them.
CONCERNED = """
WITH days AS (
  SELECT user_id, activity_date, arg_max(events_count, ledger_head) AS events FROM daily_activity
  WHERE activity_date BETWEEN $reach AND $last GROUP BY user_id, activity_date
)
SELECT user_id FROM days WHERE events > 0
GROUP BY user_id
HAVING count(*) FILTER (activity_date >= $first) < $dates
ORDER BY user_id
"""
# Those who have an amnesty, or had it: what is revoked is taken off them.
HOLDING = """
WITH newest AS (
  SELECT user_id, arg_max(skipped_dates, version) AS skipped FROM streaks GROUP BY user_id
)
SELECT DISTINCT user_id FROM (SELECT user_id, unnest(string_split(skipped, ',')) AS day FROM newest)
WHERE try_cast(day AS DATE) BETWEEN $first AND $last
ORDER BY user_id
"""


def users_concerned(objects: Objects, amnesty: Amnesty) -> Iterator[str]:
    """Yield the ids of the users whom an amnesty may concern, in order.

    They are those who may have lost something; for a revoked amnesty, those who may have it.
    The account itself decides whether anything changes, because its zone decides which dates are touched.
    """
    first, last = outage_dates(amnesty)
    entity, sql = ("streaks", HOLDING) if amnesty.revoked_at else ("daily_activity", CONCERNED)
    values = {"first": first, "last": last}
    if not amnesty.revoked_at:
        values |= {"reach": first - REACH, "dates": (last - first).days + 1}  # type: ignore[dict-item]
    with table_of(db := connect(), entity, objects, entity):
        reader = db.sql(sql, params=values).to_arrow_reader(BATCH_ROWS)
        for batch in reader:
            yield from (user for user in batch.column(0).to_pylist() if not is_residue(user))
