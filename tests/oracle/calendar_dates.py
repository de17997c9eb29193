"""Rule 1, read again: instants, zones, and the dates that calendars have or skip. Imports nothing of the product."""

import re
from datetime import UTC, date, datetime, time, timedelta, timezone
from functools import cache
from itertools import pairwise
from zoneinfo import ZoneInfo

DAY, MIDNIGHT = timedelta(days=1), time()
Starts = tuple[tuple[date, time], ...]  # when dates begin, each from its date on; by date
OFFSET = re.compile(r"([+-])(\d\d):(\d\d)")


def instant(text: str) -> datetime:
    """The instant that a text of RFC 3339 names, in UTC."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone(UTC)


def written_offset(text: str) -> str | None:
    """The offset that a text was written with; a bare Z, or -00:00, is none."""
    return None if text.endswith(("Z", "-00:00")) else text[-6:]


def zone_of(name: str) -> timezone | ZoneInfo:
    """A zone by its IANA name or its offset."""
    if found := OFFSET.fullmatch(name):
        size = timedelta(hours=int(found[2]), minutes=int(found[3]))
        return timezone(-size if found[1] == "-" else size)
    return ZoneInfo(name)


def offset_at(name: str, when: datetime) -> timedelta:
    """How far a zone is ahead of UTC at an instant."""
    found = when.astimezone(zone_of(name)).utcoffset()
    assert found is not None
    return found


def named_zone(occurred_at: str, timezone_named: str | None, zone_set: str | None) -> str:
    """The zone that an event counts in: the first of four that is there."""
    return timezone_named or written_offset(occurred_at) or zone_set or "UTC"


def date_in(zone: str, when: datetime, starts: Starts = ()) -> date:
    """The date that an instant has in a zone. Before the start of the day, it is the last one that was there."""
    local, before = when.astimezone(zone_of(zone)), when
    if local.time() >= start_of(local.date(), starts):
        return local.date()
    while before.astimezone(zone_of(zone)).date() >= local.date():
        before -= timedelta(minutes=15)
    return before.astimezone(zone_of(zone)).date()


def start_of(day: date, starts: Starts) -> time:
    """When a date begins by the clock on the wall."""
    return [MIDNIGHT, *(start for since, start in starts if since <= day)][-1]


def first_date_from(at: datetime) -> date:
    """The first date that begins in UTC at an instant or later: what a version says of dates counts from there."""
    day = at.astimezone(UTC).date()
    return day if datetime.combine(day, MIDNIGHT, UTC) == at else day + DAY


@cache
def dates_skipped_by(zone: str, year: int) -> frozenset[date]:
    """The dates of a year that a zone's calendar never had: no hour around them is of that date."""
    noon = datetime(year - 1, 12, 30, 12, tzinfo=UTC)
    seen = [date_in(zone, noon + number * DAY) for number in range(371)]
    suspects = {day + DAY for day, following in pairwise(seen) if following > day + DAY}
    return frozenset(each for each in suspects if not _ever_was(zone, each))


def _ever_was(zone: str, day: date) -> bool:
    begin = datetime(day.year, day.month, day.day, tzinfo=UTC) - DAY
    return any(date_in(zone, begin + timedelta(minutes=15 * number)) == day for number in range(4 * 72))
