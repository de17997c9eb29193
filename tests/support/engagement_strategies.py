"""What the property tests draw from: dates from 1990 to 2035, clustered so that runs, gaps and freezes meet."""

from datetime import UTC, date, datetime, timedelta
from uuid import NAMESPACE_OID, uuid5

from hypothesis import strategies as st

from rules.book.daily import NO_REST, DailyRules, Weekday
from rules.days import key_of_stamp, stamp
from rules.engagement.events import Event
from rules.engagement.rest_days import RestDays
from rules.engagement.streak import Cover, net_freezes
from tests.support.books import TYPES as BOOK_TYPES
from tests.support.books import judged

FIRST, LAST = date(1990, 1, 1), date(2035, 12, 31)
ZONES = (
    "UTC",
    "America/New_York",
    "America/Los_Angeles",
    "America/St_Johns",
    "America/Sao_Paulo",
    "America/Havana",
    "Asia/Kathmandu",
    "Asia/Tokyo",
    "Australia/Lord_Howe",
    "Europe/Berlin",
    "Europe/Dublin",
    "Pacific/Apia",
    "Pacific/Kiritimati",
    "-07:00",
    "+05:45",
    "+14:00",
)
NOW = datetime(2036, 2, 1, 12, tzinfo=UTC)
TYPES = ("CHECK_IN", "CONTRIBUTION", "WORKOUT_COMPLETED")

dates = st.dates(FIRST, LAST)
zones = st.sampled_from(ZONES)
instants = st.datetimes(datetime(1990, 1, 1), datetime(2035, 12, 31), timezones=st.just(UTC))  # noqa: DTZ001
bases = st.dates(FIRST, LAST - timedelta(days=80))


def near(base: date, days_max: int = 40) -> st.SearchStrategy[date]:
    return st.integers(0, days_max).map(lambda days: base + timedelta(days=days))


@st.composite
def covers(draw: st.DrawFn, base: date, revocations: bool = True) -> Cover:
    """Grants, reversed grants (each not before some grant), pauses and skipped dates around a base."""
    grants = draw(st.lists(near(base), max_size=4))
    freezes = [(day, 1) for day in grants]
    if revocations:
        for day in grants:
            if draw(st.integers(0, 3)) == 0:
                freezes.append((day + timedelta(days=draw(st.integers(0, 20))), -1))
    pauses = draw(st.lists(st.tuples(near(base), st.integers(0, 6)), max_size=2))
    return Cover(
        freezes=net_freezes(freezes),
        pauses=tuple(sorted((first, first + timedelta(days=length)) for first, length in pauses)),
        skipped=frozenset(draw(st.lists(near(base), max_size=2))),
        rest=draw(rest_days(base)),
    )


@st.composite
def rest_days(draw: st.DrawFn, base: date) -> RestDays:
    """What some versions of a book say of rest days around a base, mostly nothing, and a user's choices."""
    if draw(st.integers(0, 2)):
        return RestDays()
    weekdays = st.sets(st.sampled_from(Weekday), max_size=6)
    rules = st.one_of(
        weekdays.map(lambda some: DailyRules(frozenset(some))),
        st.integers(1, 3).map(lambda most: DailyRules(chosen_max=most)),
        st.just(NO_REST),
    )
    terms = draw(st.dictionaries(near(base), rules, max_size=3))
    chosen = draw(st.dictionaries(near(base), weekdays.map(lambda some: tuple(sorted(some))), max_size=2))
    return RestDays(((date.min, draw(rules)), *sorted(terms.items())), tuple(sorted(chosen.items())))


@st.composite
def histories(draw: st.DrawFn, days_min: int = 0) -> tuple[list[date], Cover]:
    """Active dates, unordered and repeated, with their cover."""
    base = draw(bases)
    return draw(st.lists(near(base), min_size=days_min, max_size=25)), draw(covers(base))


def event(
    key: str,
    day: date,
    event_type: str = "CONTRIBUTION",
    zone: str = "UTC",
    created_at: datetime = NOW,
    points: int | None = None,
    at: datetime | None = None,
) -> Event:
    """An accepted event that occurred at noon UTC of a date."""
    moment = at or datetime(day.year, day.month, day.day, 12, tzinfo=UTC)
    return Event(
        user_id="u",
        event_id=f"{key_of_stamp(stamp(moment))}#{uuid5(NAMESPACE_OID, key)}",
        idempotency_key=key,
        event_type=event_type,
        occurred_at=moment.isoformat(),
        activity_date=day,
        zone=zone,
        points_awarded=BOOK_TYPES[event_type].points if points is None else points,
        source="test",
        created_at=stamp(created_at),
        **judged(event_type),
        timezone=zone,
    )


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
