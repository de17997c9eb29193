"""Which calendar date an event belongs to (docs/rules.md, rule 1: a day is a date, never 86,400 seconds)."""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

RFC3339 = re.compile(
    r"(\d{4}-\d{2}-\d{2})[Tt](\d{2}:\d{2}:\d{2})(\.\d{1,9})?([Zz]|[+-]\d{2}:\d{2})", re.ASCII
)
OFFSET = re.compile(r"([+-])(\d{2}):(\d{2})", re.ASCII)
ZONE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9+_-]*(/[A-Za-z0-9+_-]+)*", re.ASCII)
OFFSET_HOURS_MAX = 18
LAST_YEAR = 2100  # no later year is searched: the tz database has no skipped date in the future
# Where people live: Baker Island to Kiritimati. Stored zones of earlier versions may be further off.
LEAST_OFFSET, GREATEST_OFFSET = timedelta(hours=-12), timedelta(hours=14)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LAST_CLOCK = datetime(3000, 1, 1, tzinfo=UTC)
STAMP = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z", re.ASCII)
STAMP_KEY = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z(\.\d{6})?", re.ASCII)
WHOLE_SECOND = len("2026-11-20T10:00:00")
MICROSECOND = timedelta(microseconds=1)
DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)
# The times of day at which dates begin, by the clock on the wall: each from its date on until the next.
DayStarts = tuple[tuple[date, time], ...]
AT_MIDNIGHT: DayStarts = ()
LATEST_START = time(6)  # no book lets dates begin later
# The tz database's areas; a zone outside them (an offset, UTC) belongs to the region "other".
REGIONS = (
    "africa", "america", "antarctica", "arctic", "asia",
    "atlantic", "australia", "europe", "indian", "pacific",
)  # fmt: skip
OTHER_REGION = "other"


class UnknownZone(ValueError):
    """The text names no zone: it is neither an IANA name nor an offset such as -07:00."""


@dataclass(frozen=True, slots=True)
class Moment:
    """An instant in UTC, and the offset that it was written with (None for Z and -00:00)."""

    utc: datetime
    offset: str | None


def parse_moment(text: str) -> Moment:
    """Read an RFC 3339 timestamp; digits finer than a microsecond are cut off.

    Raises ValueError, with the reason, for any other text, such as a local time without an offset.
    """
    match = RFC3339.fullmatch(text)
    if match is None:
        raise ValueError("must be an RFC 3339 timestamp with Z or an offset")
    day, clock, fraction, written = match.groups()
    # RFC 3339, 4.3: -00:00 says that the local offset is unknown, as Z does.
    offset = None if written in ("Z", "z", "-00:00") else written
    try:
        local = datetime.fromisoformat(f"{day}T{clock}{(fraction or '.0')[:7]:0<7}")
        return Moment((local.replace(tzinfo=sent_zone(offset or "+00:00"))).astimezone(UTC), offset)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"is not a time that exists: {error}") from None


@lru_cache(maxsize=4096)
def zone(name: str) -> tzinfo:
    """Return the zone of an IANA name or of an offset; raises UnknownZone."""
    if match := OFFSET.fullmatch(name):
        sign, hours, minutes = match.groups()
        if int(hours) > OFFSET_HOURS_MAX or int(minutes) > 59:
            raise UnknownZone(f"offset {name} is out of range")
        delta = timedelta(hours=int(hours), minutes=int(minutes))
        return timezone(-delta if sign == "-" else delta)
    if ZONE_NAME.fullmatch(name) is None:
        raise UnknownZone("must be an IANA zone name or an offset such as -07:00")
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise UnknownZone(f"no zone is called {name}") from None


def sent_zone(name: str) -> tzinfo:
    """Return the zone that a caller names; raises UnknownZone, also for an offset where nobody lives."""
    sent = zone(name)
    if isinstance(sent, timezone) and not LEAST_OFFSET <= sent.utcoffset(None) <= GREATEST_OFFSET:
        raise UnknownZone(f"offset {name} is not from -12:00 to +14:00")
    return sent


def date_of(
    moment: Moment, timezone_given: str | None, zone_stored: str | None, starts: DayStarts
) -> tuple[date, str]:
    """Return the activity date and the zone it was read in.

    The event's own timezone wins, then the offset it was written with, then the user's stored
    zone, then UTC (rule 1).
    """
    if timezone_given:
        sent_zone(timezone_given)  # refuses offsets where nobody lives, which stored zones may have
    name = timezone_given or moment.offset or zone_stored or "UTC"
    return local_date(moment.utc, name, starts), name


def local_date(instant: datetime, name: str, starts: DayStarts) -> date:
    """Return the date that an instant belongs to in a zone. Nothing else turns instants into dates of users.

    A time before the start of its calendar date belongs to the date before: to the last one that the zone
    had. starts: when dates begin (Books.day_starts).
    """
    local = instant.astimezone(zone(name))
    day = local.date()
    if starts and local.time() < start_on(day, starts):
        day -= DAY
        while is_skipped(day, name):
            day -= DAY
    return day


def start_on(day: date, starts: DayStarts) -> time:
    """Return the time of day at which a date begins."""
    return next((start for since, start in reversed(starts) if since <= day), time())


def start_of(day: date, name: str, starts: DayStarts) -> datetime:
    """Return the instant (UTC) at which a local date begins. A date that the zone skips begins with the next.

    If clocks are set back, the first of two equal times counts. If they are set forward over the start, the
    date begins with the jump.
    """
    local = datetime.combine(day, start_on(day, starts), zone(name))
    begin, before = local.astimezone(UTC), local.replace(fold=1).astimezone(UTC)
    while begin - before > SECOND:  # the time does not exist: the jump lies between the two
        middle = before + (begin - before) // 2
        if local_date(middle, name, starts) < day:
            before = middle
        else:
            begin = middle
    return begin.replace(microsecond=0)


@lru_cache(maxsize=4096)
def is_skipped(day: date, name: str) -> bool:
    """Whether the zone's calendar never had this date. Example: 2011-12-30 in Pacific/Apia."""
    calendar = zone(name)
    if isinstance(calendar, timezone) or not date(1900, 1, 1) < day < date(9999, 1, 1):
        return False
    noon = datetime(day.year, day.month, day.day, 12, tzinfo=calendar)
    return noon.astimezone(UTC).astimezone(calendar).date() != day


@lru_cache(maxsize=1024)
def skipped_dates(name: str) -> frozenset[date]:
    """Return the dates since 1970 that a zone skipped: for those who live there, they are no misses.

    A zone that skips a date is a day ahead from then on, so a look at each New Year finds it.
    """
    calendar = zone(name)
    if isinstance(calendar, timezone):
        return frozenset()
    skipped: set[date] = set()
    for year in range(1970, LAST_YEAR):
        first, last = (datetime(each, 1, 1, tzinfo=UTC).astimezone(calendar) for each in (year, year + 1))
        if abs((last.utcoffset() or timedelta()) - (first.utcoffset() or timedelta())) > DAY / 2:
            days = (date(year, 1, 1) + number * DAY for number in range(-1, 367))
            skipped |= {day for day in days if is_skipped(day, name)}
    return frozenset(skipped)


def region_of(name: str) -> str:
    """Return the leaderboard region of a zone: the first part of its IANA name, or "other"."""
    area = name.partition("/")[0].lower()
    return area if area in REGIONS else OTHER_REGION


def stamp(moment: datetime) -> str:
    """Write an instant so that text order is time order: 2026-11-20T10:00:00.000000Z."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def unstamp(text: str) -> datetime:
    """Read what stamp() wrote."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def key_of_stamp(text: str) -> str:
    """Write a stamp as sort keys have it: 2026-11-20T10:00:00Z.250000, or 2026-11-20T10:00:00Z for .000000.

    The whole second comes first, as everybody writes it. So a range from or to 2026-11-20T10:00:00Z means
    that instant; text order is time order, also with `#` and an id behind it. Other text stays as it is.
    """
    if STAMP.fullmatch(text) is None:
        return text
    fraction = text[WHOLE_SECOND:-1]
    return f"{text[:WHOLE_SECOND]}Z" + ("" if fraction == ".000000" else fraction)


def stamp_of_key(text: str) -> str:
    """Read what key_of_stamp() wrote; other text stays as it is."""
    if STAMP_KEY.fullmatch(text) is None:
        return text
    return text[:WHOLE_SECOND] + (text[WHOLE_SECOND + 1 :] or ".000000") + "Z"


def is_stamp(text: str) -> bool:
    """Whether a text is a stamp of the years 1970 to 2999. Days and weeks can be added to any such instant.

    Callers of the API may send stamps as the places of ledger entries.
    """
    try:
        return STAMP.fullmatch(text) is not None and EPOCH <= unstamp(text) < LAST_CLOCK
    except ValueError:
        return False
