"""Reads the settings of users that no ledger has from the lake: pauses, skipped dates and zones."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time

from adapters.platform.objects import Objects
from analytics.lake.curated_files import table_of
from analytics.lake.user_rows import small_database
from analytics.recompute.user_fold import SETTINGS, dates_of, opening_of, pauses_of
from analytics.what_if.timeline import Timeline
from analytics.what_if.user_history import UserSettings
from rules.days import UnknownZone, today
from rules.engagement.streak import YEAR, paused_dates_a_year

Pauses = tuple[tuple[date, date], ...]
# The newest row of each profile, with all pauses. A profile archives pauses that ended more than a year
# before a date, so older versions have those.
NEWEST_SETTINGS = f"""
CREATE TABLE settings AS
WITH newest AS (
  SELECT user_id, unnest(arg_max({{{", ".join(f"'{n}': {n}" for n in SETTINGS)}}}, version)) FROM profiles
  GROUP BY user_id
), archived AS (SELECT user_id, pauses, archived_until FROM newest WHERE archived_until IS NOT NULL),
listed AS (
  SELECT user_id, pauses, NULL AS until FROM archived UNION SELECT profiles.user_id, profiles.pauses,
    archived.archived_until - {YEAR.days} FROM profiles JOIN archived USING (user_id)
), each AS (
  SELECT DISTINCT user_id, until, unnest(string_split(pauses, ',')) AS pause FROM listed WHERE pauses > ''
), known AS (
  SELECT user_id, string_agg(DISTINCT pause, ',' ORDER BY pause) AS all_pauses FROM each
  WHERE until IS NULL OR split_part(pause, '/', 2)::DATE <= until GROUP BY user_id
)
SELECT newest.* REPLACE (coalesce(all_pauses, pauses) AS pauses) FROM newest LEFT JOIN known USING (user_id)
"""  # noqa: S608 (no input)
WITH_COVER = """SELECT user_id, pauses, skipped_dates, opening FROM settings
WHERE pauses > '' OR skipped_dates > '' OR opening > ''"""
ZONES = "SELECT DISTINCT timezone FROM settings WHERE timezone > ''"
USERS_OF_ZONES = "SELECT user_id, timezone FROM settings WHERE timezone IN (SELECT unnest(?))"


@dataclass(frozen=True, slots=True)
class Todays:
    """The date that is today, for each user."""

    in_utc: date
    others: Mapping[str, date] = field(default_factory=dict)  # by user; only of users with another date

    def of(self, user: str) -> date:
        """Return a user's date."""
        return self.others.get(user, self.in_utc)


def user_settings(
    objects: Objects, timeline: Timeline, now: datetime
) -> tuple[dict[str, UserSettings], Todays]:
    """Return the settings of users who have pauses, skipped dates or an opening; and every user's date."""
    db = small_database()
    with table_of(db, "profiles", objects, "streaks"):
        db.execute(NEWEST_SETTINGS)
        rows = db.execute(WITH_COVER).fetchall()
        in_utc = now.astimezone(UTC).date()
        today_of = {zone: _today(now, zone) for (zone,) in db.execute(ZONES).fetchall()}
        others = db.execute(
            USERS_OF_ZONES, [[zone for zone, day in today_of.items() if day != in_utc]]
        ).fetchall()
    settings = {}
    for user, pauses_text, skipped_text, opening_text in rows:
        pauses = pauses_of(pauses_text)
        skipped = frozenset(dates_of(skipped_text))
        allowed, _ = judged_pauses(pauses, timeline)
        settings[user] = UserSettings(pauses, skipped, opening_of(opening_text), allowed)
    return settings, Todays(in_utc, {user: today_of[zone] for user, zone in others})


def _today(now: datetime, zone: str) -> date:
    try:
        return today(now, zone)
    except UnknownZone:
        return now.astimezone(UTC).date()


def judged_pauses(pauses: Pauses, timeline: Timeline) -> tuple[Pauses, Pauses]:
    """Return the pauses that the books allow, and those that they refuse, in the order of their dates.

    The lake does not say when a user asked for a pause, so the book of the pause's first date judges it. If
    that book has the same terms for pauses as the real one, the pause is allowed, because it was allowed
    then.
    """
    allowed: list[tuple[date, date]] = []
    refused: list[tuple[date, date]] = []
    for first, last in sorted(pauses):
        at = datetime.combine(first, time(12), UTC)
        terms = timeline.pauses(at)
        is_long = (last - first).days + 1 > terms.dates_max
        is_same = terms == timeline.real_at(at).pauses
        is_over = paused_dates_a_year([*allowed, (first, last)]) > terms.dates_a_year
        is_refused = not is_same and (is_long or is_over)
        (refused if is_refused else allowed).append((first, last))
    return tuple(allowed), tuple(refused)
