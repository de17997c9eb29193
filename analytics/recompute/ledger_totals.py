"""What SQL over the lake asks of ledger and profiles: which entries earn, and the newest settings."""

from analytics.recompute.user_fold import SETTINGS
from rules.engagement.ledger import EARNING
from rules.engagement.streak import YEAR

EARNED = "kind IN (" + ", ".join(f"'{each}'" for each in sorted(EARNING)) + ")"
# A profile puts away pauses that ended more than a year before a date: older versions have these.
NEWEST = f"""
CREATE TABLE settings AS
WITH versions AS (
  SELECT user_id, {", ".join(SETTINGS)} FROM profiles
  UNION ALL SELECT user_id, {", ".join(SETTINGS)} FROM settled WHERE version IS NOT NULL
), newest AS (
  SELECT user_id, unnest(arg_max({{{", ".join(f"'{n}': {n}" for n in SETTINGS)}}}, version)) FROM versions
  GROUP BY user_id
), archived AS (SELECT user_id, pauses, archived_until FROM newest WHERE archived_until IS NOT NULL),
listed AS (
  SELECT user_id, pauses, NULL AS until FROM archived UNION SELECT versions.user_id, versions.pauses,
    archived.archived_until - {YEAR.days} FROM versions JOIN archived USING (user_id)
), each AS (
  SELECT DISTINCT user_id, until, unnest(string_split(pauses, ',')) AS pause FROM listed WHERE pauses > ''
), known AS (
  SELECT user_id, string_agg(DISTINCT pause, ',' ORDER BY pause) AS told FROM each
  WHERE until IS NULL OR split_part(pause, '/', 2)::DATE <= until GROUP BY user_id
)
SELECT newest.* REPLACE (coalesce(told, pauses) AS pauses) FROM newest LEFT JOIN known USING (user_id)
"""  # noqa: S608 (no input)
