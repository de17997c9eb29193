"""What the newest profiles say that cannot be computed: pauses, and dates that a user's zone skipped."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time

from adapters.platform.objects import Objects
from analytics.lake.curated_files import table_of
from analytics.recompute.ledger_totals import NEWEST
from analytics.recompute.listed_dates import dates_of, pauses_of
from analytics.what_if.ledger_parts import small
from analytics.what_if.timeline import Timeline
from rules.engagement.allowances import paused_dates_a_year

Pauses = tuple[tuple[date, date], ...]
NONE_SETTLED = "CREATE TEMP VIEW settled AS SELECT * FROM profiles WHERE false"
LISTED = """SELECT user_id, pauses, skipped_dates FROM settings
WHERE pauses > '' OR skipped_dates > ''"""


@dataclass(frozen=True, slots=True)
class UserSettings:
    """pauses: both dates included. skipped: dates that are no misses."""

    pauses: Pauses = ()
    skipped: frozenset[date] = frozenset()


def user_settings(objects: Objects) -> dict[str, UserSettings]:
    """Return the settings of the users who have pauses or skipped dates."""
    db = small()
    with table_of(db, "profiles", objects, "streaks"):
        db.execute(NONE_SETTLED)
        db.execute(NEWEST)
        rows = db.execute(LISTED).fetchall()
    return {
        user: UserSettings(pauses_of(pauses), frozenset(dates_of(skipped))) for user, pauses, skipped in rows
    }


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
