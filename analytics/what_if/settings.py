"""What the newest profiles say that cannot be computed: pauses, skipped dates, and which date is today."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time

from adapters.platform.objects import Objects
from analytics.lake.curated_files import table_of
from analytics.recompute.activity_runs import dates_of, opening_of, pauses_of
from analytics.recompute.ledger_totals import NEWEST
from analytics.what_if.ledger_parts import small
from analytics.what_if.timeline import Timeline
from rules.days import UnknownZone, today
from rules.engagement.streak import Checkpoint, paused_dates_a_year

Pauses = tuple[tuple[date, date], ...]
NONE_SETTLED = "CREATE TEMP VIEW settled AS SELECT * FROM profiles WHERE false"
LISTED = """SELECT user_id, pauses, skipped_dates, opening FROM settings
WHERE pauses > '' OR skipped_dates > '' OR opening > ''"""
ZONES = "SELECT DISTINCT timezone FROM settings WHERE timezone > ''"
LIVING_IN = "SELECT user_id, timezone FROM settings WHERE timezone IN (SELECT unnest(?))"


@dataclass(frozen=True, slots=True)
class UserSettings:
    """pauses: both dates included. skipped: dates that are no misses. opening: see Cover."""

    pauses: Pauses = ()
    skipped: frozenset[date] = frozenset()
    opening: Checkpoint | None = None


@dataclass(frozen=True, slots=True)
class Todays:
    """Which date is today. in_utc: there; others: users in whose zone it is another one."""

    in_utc: date
    others: Mapping[str, date] = field(default_factory=dict)

    def of(self, user: str) -> date:
        """Return a user's date."""
        return self.others.get(user, self.in_utc)


def user_settings(objects: Objects, now: datetime) -> tuple[dict[str, UserSettings], Todays]:
    """Return the settings of the users who have pauses, skipped dates or an opening; and everybody's date."""
    db = small()
    with table_of(db, "profiles", objects, "streaks"):
        db.execute(NONE_SETTLED)
        db.execute(NEWEST)
        rows = db.execute(LISTED).fetchall()
        in_utc = now.astimezone(UTC).date()
        there = {zone: _today(now, zone) for (zone,) in db.execute(ZONES).fetchall()}
        others = db.execute(LIVING_IN, [[zone for zone, day in there.items() if day != in_utc]]).fetchall()
    settings = {
        user: UserSettings(pauses_of(pauses), frozenset(dates_of(skipped)), opening_of(opening))
        for user, pauses, skipped, opening in rows
    }
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
