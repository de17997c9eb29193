"""What the lake says beside the ledger: pauses, skipped dates, zones, and what events were sent with."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from typing import Any

import pyarrow as pa

from adapters.platform.objects import Objects
from analytics.lake.curated_files import arrow_table, query, table_of
from analytics.lake.layout import curated_files
from analytics.lake.user_rows import small_database
from analytics.recompute.profile_texts import dates_of, opening_of, pauses_of
from analytics.recompute.user_fold import SETTINGS
from analytics.what_if.timeline import Timeline
from analytics.what_if.user_fold import UserSettings
from rules.book.book import Book
from rules.days import UnknownZone, today
from rules.engagement.streak import YEAR, paused_dates_a_year

Pauses = tuple[tuple[date, date], ...]
# A profile puts away pauses that ended more than a year before a date: older versions have these.
NEWEST = f"""
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
LISTED = """SELECT user_id, pauses, skipped_dates, opening FROM settings
WHERE pauses > '' OR skipped_dates > '' OR opening > ''"""
ZONES = "SELECT DISTINCT timezone FROM settings WHERE timezone > ''"
LIVING_IN = "SELECT user_id, timezone FROM settings WHERE timezone IN (SELECT unnest(?))"


@dataclass(frozen=True, slots=True)
class Todays:
    """Which date is today. in_utc: there; others: users in whose zone it is another one."""

    in_utc: date
    others: Mapping[str, date] = field(default_factory=dict)

    def of(self, user: str) -> date:
        """Return a user's date."""
        return self.others.get(user, self.in_utc)


def user_settings(
    objects: Objects, timeline: Timeline, now: datetime
) -> tuple[dict[str, UserSettings], Todays]:
    """Return the settings of the users who have pauses, skipped dates or an opening; and everybody's date."""
    db = small_database()
    with table_of(db, "profiles", objects, "streaks"):
        db.execute(NEWEST)
        rows = db.execute(LISTED).fetchall()
        in_utc = now.astimezone(UTC).date()
        there = {zone: _today(now, zone) for (zone,) in db.execute(ZONES).fetchall()}
        others = db.execute(LIVING_IN, [[zone for zone, day in there.items() if day != in_utc]]).fetchall()
    settings = {}
    for user, listed, skipped, opening in rows:
        pauses, dates = pauses_of(listed), frozenset(dates_of(skipped))
        left = pauses_left(pauses, timeline)[0]
        settings[user] = UserSettings(pauses, dates, opening_of(opening), left)
    return settings, Todays(in_utc, {user: there[zone] for user, zone in others})


def _today(now: datetime, zone: str) -> date:
    try:
        return today(now, zone)
    except UnknownZone:
        return now.astimezone(UTC).date()


def pauses_left(pauses: Pauses, timeline: Timeline) -> tuple[Pauses, Pauses]:
    """Return the pauses that the books allow, and those that they do not, in the order of their dates.

    The lake does not say when a pause was asked for: its first date decides which book judges it. Only a book
    with other terms than those that were judges it anew.
    """
    kept: list[tuple[date, date]] = []
    refused: list[tuple[date, date]] = []
    for first, last in sorted(pauses):
        at = datetime.combine(first, time(12), UTC)
        terms = timeline.pauses(at)
        is_long = (last - first).days + 1 > terms.dates_max
        is_same = terms == timeline.real_at(at).pauses
        is_over = paused_dates_a_year([*kept, (first, last)]) > terms.dates_a_year
        (refused if not is_same and (is_long or is_over) else kept).append((first, last))
    return tuple(kept), tuple(refused)


# What the events say that the ledger does not: whose dates contradict each other, and properties.


EVENTS = pa.schema([("user_id", pa.string()), ("event_id", pa.string())])
Refuses = Callable[[Any, Any], bool]
DOUBTED_BYTES = 300_000_000  # of curated files: some five million events
# Of one calendar the dates of later instants are never earlier, and three of them take more than a day.
DOUBTFUL = """
WITH dates AS (
  SELECT user_id, activity_date AS day, min(occurred_at) AS first, max(occurred_at) AS last
  FROM events WHERE hash(user_id) % ? = ? GROUP BY user_id, activity_date
), beside AS (
  SELECT user_id, day, last, lead(day) OVER per_user AS next_day, lead(first) OVER per_user AS next_first,
    lead(day, 2) OVER per_user AS third_day, lead(first, 2) OVER per_user AS third_first
  FROM dates WINDOW per_user AS (PARTITION BY user_id ORDER BY day)
)
SELECT DISTINCT user_id FROM beside
WHERE next_first <= last OR (next_day >= day + 2 AND next_first < last + INTERVAL 1 DAY)
  OR third_first < last + INTERVAL 1 DAY
"""
PROPERTIES = """SELECT DISTINCT event_type, properties FROM events
WHERE event_type IN (SELECT event_type FROM contracts)"""
BROKEN_BY = """SELECT user_id, event_id FROM events SEMI JOIN refused
ON refused.event_type = events.event_type AND refused.properties IS NOT DISTINCT FROM events.properties"""


def doubtful_users(objects: Objects) -> set[str]:
    """Return the users with events whose dates no single calendar gives: a flight, or contradicting zones.

    The events are gone through for some of the users at a time, because sums of all do not fit into memory.
    """
    parts = sum(each.size for each in curated_files(objects, "events")) // DOUBTED_BYTES + 1
    found: set[str] = set()
    with table_of(db := small_database(), "events", objects, "events"):
        for part in range(parts):
            found |= set(query(db, DOUBTFUL, [parts, part])["user_id"].to_pylist())
    return found


def broken_contracts(objects: Objects, book: Book | None, refuses: Refuses) -> pa.Table:
    """Return the events whose properties a book refuses (EVENTS): each text is held against it once.

    refuses: whether a contract refuses properties.
    """
    types = book.event_types.items() if book else ()
    contracts = {name: rule.properties for name, rule in types if rule.properties}
    if not contracts:
        return EVENTS.empty_table()
    with table_of(db := small_database(), "events", objects, "events"):
        with arrow_table(db, "contracts", pa.table({"event_type": list(contracts)})):
            texts = query(db, PROPERTIES).to_pylist()
        found = [
            each for each in texts if refuses(contracts[each["event_type"]], _read_json(each["properties"]))
        ]
        schema = pa.schema([("event_type", pa.string()), ("properties", pa.string())])
        with arrow_table(db, "refused", pa.Table.from_pylist(found, schema)):
            return query(db, BROKEN_BY).cast(EVENTS)


def _read_json(text: str | None) -> Any:
    try:
        return json.loads(text or "{}")
    except ValueError:
        return {}
