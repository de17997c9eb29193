"""With rest days and moved starts of the day, any order of events and choices gives one account (rules 1 to 3)."""

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta

import pytest

from rules.book.book import Book, Books, Version
from rules.book.daily import NO_REST, DailyRules, Weekday
from rules.days import EPOCH, local_date
from rules.engagement.account_state import Profile
from rules.engagement.reconciliation import profile_of
from rules.engagement.rest_days import ChoiceTooSoon, RestDays, chosen_anew, first_date_to_come
from rules.engagement.streak import Cover, shown_streak
from tests.oracle.calendar_dates import date_in
from tests.oracle.streak_reading import Protection, told
from tests.support.account_world import World
from tests.support.effort import effort
from tests.support.engagement_strategies import event

DAY = timedelta(days=1)
# Clocks go forward or back in these weeks, or a date is left out.
JOURNEYS = (
    ("Europe/Berlin", date(2026, 3, 20)),
    ("America/New_York", date(2026, 10, 25)),
    ("Australia/Lord_Howe", date(2026, 3, 28)),
    ("America/Havana", date(2026, 3, 1)),
    ("Africa/Casablanca", date(2026, 2, 1)),
    ("Pacific/Apia", date(2011, 12, 10)),
)
DATES = 45


def books_of(chance: random.Random, first: date) -> Books:
    """Make up versions that come into force at any time of the journey, or say so afterwards."""
    rules = [
        DailyRules(frozenset({Weekday.SATURDAY, Weekday.SUNDAY})),
        DailyRules(chosen_max=2),
        DailyRules(chosen_max=1),
        NO_REST,
    ]
    rules = [replace(each, day_starts_at=time(chance.choice((0, 0, 3, 6)))) for each in rules]
    versions = [version(1, EPOCH, EPOCH, chance.choice(rules))]
    for number in range(2, 2 + chance.randrange(4)):
        at = datetime.combine(first, time(chance.randrange(24)), UTC) + chance.randrange(-3, DATES) * DAY
        published = at + chance.choice((0, 0, 0, -5, 9)) * DAY
        versions.append(version(number, at, published, chance.choice(rules)))
    return Books(versions)


def version(number: int, at: datetime, published: datetime, rules: DailyRules) -> Version:
    return Version(number, at, lambda: Book({}, daily=rules), published)


def plainly(books: Books, day: date) -> DailyRules:
    """What the books say of a date, read once more: of what was published by its midnight, the latest in force."""
    begins = datetime.combine(day, time(), UTC)
    known = [each for each in books.versions if max(each.published_at, each.effective_at) <= begins]
    return max(known, key=lambda each: (each.effective_at, each.number)).book.daily if known else NO_REST


def plain_date(books: Books, zone: str, at: datetime) -> date:
    """The date of an instant, read once more: a date lasts until the time that its own rules name."""
    midnight = date_in(zone, at)
    end_of_yesterday = plainly(books, midnight - DAY).day_starts_at
    return date_in(zone, at, ((date.min, end_of_yesterday),))


class PlainRest(Protection):
    """The oracle's protection, with what the books say of each date."""

    books: Books

    def rests(self, day: date) -> bool:
        rules, before = plainly(self.books, day), plainly(self.books, day - DAY)
        if rules.day_starts_at < before.day_starts_at:
            return True  # it was cut short
        own = [weekdays for since, weekdays in self.choices if since <= day]
        chosen = sorted(own[-1])[: rules.chosen_max] if own and rules.chosen_max else []
        return day.weekday() in (chosen if rules.chosen_max else rules.rest_days)


def protection(books: Books, cover: Cover, choices: Sequence[tuple[date, frozenset[int]]]) -> Protection:
    made = PlainRest(cover.freezes, cover.pauses, cover.skipped, choices=tuple(choices))
    object.__setattr__(made, "books", books)
    return made


@pytest.mark.parametrize("seed", range(effort(40, soak=1000)))
def test_any_order_is_what_a_walk_over_every_date_finds(seed: int) -> None:
    chance = random.Random(seed)
    zone, first = chance.choice(JOURNEYS)
    books = books_of(chance, first)
    blank = Profile("u", cover=Cover(rest=RestDays(books.daily_terms)))
    moments = [
        datetime.combine(first, time(chance.randrange(24)), UTC) + chance.randrange(DATES) * DAY
        for _ in range(chance.randrange(1, 40))
    ]
    events = [
        event(f"k{number}", local_date(at, zone, books.day_starts), zone=zone, at=at, created_at=at)
        for number, at in enumerate(moments)
    ]
    assert [each.activity_date for each in events] == [plain_date(books, zone, at) for at in moments]
    answers = []
    for _ in range(2):
        choices = random.Random(f"choices {seed}")
        made: list[tuple[date, frozenset[int]]] = []
        world = World(profile=blank)
        arrived = [*events, *chance.sample(events, min(3, len(events)))]
        chance.shuffle(arrived)
        at = datetime.combine(first, time(), UTC) - 40 * DAY
        for _ in range(chance.randrange(1, 4)):
            at += choices.randrange(10, 40) * DAY
            _choose(world, at, choices.sample(list(Weekday), choices.randrange(3)), made)
        while arrived:
            size = chance.randrange(1, 6)
            world.apply(arrived[:size])
            arrived = arrived[size:]
        world.apply(events)
        answers.append((world, made))
    for world, made in answers:
        _check(books, world, made)


def _choose(
    world: World, at: datetime, weekdays: list[Weekday], made: list[tuple[date, frozenset[int]]]
) -> None:
    """Let the user choose rest days, and note it as the rule says that it counts."""
    cover = world.profile.cover
    try:
        rest = chosen_anew(cover.rest, weekdays, at)
    except ChoiceTooSoon:
        return
    if rest is not cover.rest:
        made.append((first_date_to_come(at), frozenset(weekdays)))
        world.set(replace(world.profile, cover=replace(cover, rest=rest)), at)


def _check(books: Books, world: World, made: Sequence[tuple[date, frozenset[int]]]) -> None:
    profile = world.profile
    rebuilt = profile_of(profile, world.entries)
    assert rebuilt.streak == profile.streak
    assert rebuilt.cover == profile.cover
    active = [day for day, each in world.days.items() if each.is_active]
    plain = protection(books, profile.cover, made)
    assert profile.streak
    for later in range(12):
        asked = profile.streak.last + later * DAY
        shown, expected = shown_streak(profile.streak, profile.cover, asked), told(active, plain, asked)
        assert (shown.current, shown.longest) == (expected.current, expected.longest), asked
        assert set(shown.spent) == expected.spent
