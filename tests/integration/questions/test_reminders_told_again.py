"""Reminders (rule 2) against the oracle, which walks over every date: a week of people, the job every half hour.

They live in zones whose clocks move, rest, pause, hold freezes, and come late; their phones are elsewhere, and
have hours and quiet hours of their own.
"""

import random
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import pytest

from adapters.book_store import shipped_version
from adapters.engagement.account_items import profile_attributes
from adapters.engagement.account_store import AccountStore
from adapters.engagement.ledger_store import LedgerStore
from adapters.platform.items import encode_item
from adapters.questions.message_claims import ClaimResult, ReminderStore
from processors.questions import reminders
from processors.questions.messages import Sender
from processors.questions.reminders import Reminder
from rules.book.daily import Weekday
from rules.days import stamp
from rules.engagement.account_state import Profile
from rules.engagement.rest_days import RestDays
from rules.engagement.streak import Cover, fold
from rules.questions.notifications import QuietHours, ReminderClock, message_of_streak
from tests.oracle.calendar_dates import Starts, date_in, zone_of
from tests.oracle.streak_reading import Protection, told
from tests.support.books import KnownBooks, resting
from tests.support.effort import effort
from tests.support.engine import Engine
from tests.support.questions.subscribers import World, subscriber, world

DAY, HALF_HOUR = timedelta(days=1), timedelta(minutes=30)
PEOPLE, DAYS = 8, 6
# In these weeks clocks go forward or back somewhere, or nowhere.
WEEKS = (
    datetime(2026, 3, 26, tzinfo=UTC),
    datetime(2026, 10, 22, tzinfo=UTC),
    datetime(2026, 6, 1, tzinfo=UTC),
)
ZONES = ("Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Pacific/Kiritimati", "Pacific/Pago_Pago")
BOOKS: tuple[dict[str, Any], ...] = ({}, {"rest_days": ["saturday", "sunday"]}, {"rest_days_chosen": 2})
STARTS = ("00:00", "00:00", "03:00", "06:00")


@dataclass
class Person:
    """A person with a phone, and what they do. protection: as the oracle has it."""

    name: str
    zone: str
    phone_zone: str
    at: time | None  # None: the book's
    quiet: tuple[time, time] | None
    cover: Cover
    protection: Protection
    active: set[date] = field(default_factory=set)
    got: dict[date, datetime] = field(default_factory=dict)

    def is_quiet(self, now: datetime) -> bool:
        local = now.astimezone(zone_of(self.phone_zone)).time()
        if self.quiet is None:
            return False
        since, until = self.quiet
        return since <= local < until if since < until else local >= since or local < until

    def is_at_risk(self, day: date) -> int:
        """The length of a streak that ends with a date; 0: it does not."""
        shown = told(self.active, self.protection, day)
        return shown.current if shown.status == "at_risk" and shown.reasons[day] == "open" else 0


def people(chance: random.Random, first: date, daily: dict[str, Any], books: KnownBooks) -> list[Person]:
    found = []
    for number in range(PEOPLE):
        freezes = tuple((first + chance.randrange(DAYS) * DAY, 1) for _ in range(chance.choice((0, 0, 1))))
        pause = first + chance.randrange(DAYS) * DAY
        pauses = ((pause, pause + chance.randrange(3) * DAY),) if chance.random() < 0.3 else ()
        weekdays = frozenset(chance.sample(range(7), 2))
        rest = RestDays(books.daily_terms())
        choices: tuple[tuple[date, frozenset[int]], ...] = ()
        if "rest_days_chosen" in daily and chance.random() < 0.7:
            since = first + chance.randrange(-2, 4) * DAY
            rest, choices = rest.with_choice(since, map(Weekday, weekdays)), ((since, weekdays),)
        book_rests = frozenset(Weekday.of(each) for each in daily.get("rest_days", ()))
        rests_by = ((date.min, book_rests, daily.get("rest_days_chosen", 0)),)
        found.append(
            Person(
                f"p{number}-{uuid.uuid4().hex[:6]}",
                *(chance.choice(ZONES), chance.choice(ZONES)),
                chance.choice((None, None, time(9), time(20, 30), time(23, 30), time(1, 15), time(2, 30))),
                chance.choice((None, (time(22), time(7)), (time(19), time(21)), (time(0, 30), time(5)))),
                Cover(freezes=freezes, pauses=pauses, rest=rest),
                Protection(freezes, pauses, rests_by=rests_by, choices=choices),
                active={first - DAY, *(first - chance.randrange(2, 5) * DAY for _ in range(2))},
            )
        )
    return found


class Journey:
    """A week of some people. wrong: what no rule allows."""

    def __init__(self, town: World, seed: int) -> None:
        self.town, self.chance = town, random.Random(f"reminders {seed}")
        self.now = self.chance.choice(WEEKS)
        daily = dict(self.chance.choice(BOOKS)), self.chance.choice(STARTS)
        version = resting(shipped_version(), {**daily[0], "day_starts_at": daily[1]})
        self.books = KnownBooks([version])
        self.starts: Starts = ((date.min, time.fromisoformat(daily[1])),)
        self.people = people(self.chance, self.now.date(), daily[0], self.books)
        self.tokens = {each.name: each for each in self.people}
        self.due: dict[
            tuple[str, date], int
        ] = {}  # at the first look of a date that is due, the length at risk
        self.wrong: list[str] = []

    def live(self) -> list[str]:
        for each in self.people:
            self._store(each)
            quiet = QuietHours(*each.quiet) if each.quiet else None
            registered = self.now - DAY
            self.town.store().register(
                subscriber(
                    0,
                    subscription_id=str(uuid.uuid4()),
                    owner=each.name,
                    fcm_token=each.name,
                    timezone=each.phone_zone,
                    quiet_hours=quiet,
                    reminders_at=each.at,
                    streak_reminders=True,
                    created_at=stamp(registered),
                    updated_at=stamp(registered),
                ),
                registered,
            )
        self.town.now = self.now
        self._job().remind()  # it finds out the hours
        last = self.now + DAYS * DAY
        while self.now < last:
            self.now += HALF_HOUR
            self.town.now = self.now
            self._act()
            self._look()
            with ThreadPoolExecutor(2) as both:
                list(both.map(lambda _: self._job().remind(), range(self.chance.choice((1, 1, 1, 2)))))
            self._judge()
        for (name, day), length in self.due.items():
            if length and day not in self.tokens[name].got:
                self.wrong.append(f"{name} was not reminded on {day} of {length} days")
        return self.wrong

    def _job(self) -> Reminder:
        client = self.town.dynamodb
        waiting = ReminderStore(self.town.store(client))
        accounts = AccountStore(
            *(client, "UserStreaks", "", LedgerStore(client, ""), 1), daily_terms=self.books.daily_terms
        )
        return Reminder(
            accounts, self.books, waiting, Sender(waiting.claims, self.town.phones, reminders.logger)
        )

    def _act(self) -> None:
        """Some are active now, some come a date late."""
        for each in self.people:
            if self.chance.random() < 0.02:
                day = self._date(each) - self.chance.choice((0, 0, 0, 1)) * DAY
                each.active.add(day)
                self._store(each)

    def _date(self, each: Person) -> date:
        return date_in(each.zone, self.now, self.starts)

    def _store(self, each: Person) -> None:
        streak = fold(sorted(each.active), each.cover)
        profile = Profile(
            each.name,
            version=1,
            streak=streak,
            cover=each.cover,
            chosen_zone=each.zone,
            updated_at=stamp(self.now),
        )
        item = encode_item(profile_attributes(profile, 1))
        self.town.dynamodb.put_item(TableName="UserStreaks", Item=item)

    def _look(self) -> None:
        """Note who must be reminded now."""
        for each in self.people:
            start = self.starts[0][1]
            local = self.now.astimezone(zone_of(each.zone)).time()
            wanted = each.at or time(20)
            # Where a date begins at three, one o'clock is its 23rd hour.
            is_time = (local < start, local) >= (wanted < start, wanted)
            key = each.name, self._date(each)
            if is_time and not each.is_quiet(self.now) and key not in self.due:
                self.due[key] = each.is_at_risk(key[1])

    def _judge(self) -> None:
        messages, self.town.phones.messages = self.town.phones.messages, []
        for name, message in messages:
            each = self.tokens[name]
            day, what = self._date(each), f"{name} at {self.now}"
            length = each.is_at_risk(day)
            if not length or message.data["length"] != str(length):
                self.wrong.append(f"{what} was told of {message.data}, and {length} days end")
            if day in each.got:
                self.wrong.append(f"{what} was reminded at {each.got[day]} already")
            if each.is_quiet(self.now):
                self.wrong.append(f"{what} wants quiet")
            last = self.now + timedelta(seconds=message.ttl_seconds - 1)
            if date_in(each.zone, last, self.starts) != day or message.ttl_seconds > 3 * 3600:
                self.wrong.append(f"{what} may be told until {last}")
            each.got[day] = self.now


@pytest.fixture
def town(engine: Engine) -> Iterator[World]:
    with world(engine) as made:
        yield made


@pytest.mark.parametrize("seed", range(effort(6, soak=500)))
def test_who_is_reminded_is_who_would_lose_a_streak(town: World, seed: int) -> None:
    assert Journey(town, seed).live() == []


def whoever_has_a_streak(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reminders, "streak_at_risk", lambda streak, *_: streak.length if streak else 0)


def on_rest_days_too(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RestDays, "includes", lambda *_: False)


def without_a_claim(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("adapters.questions.message_claims.MessageClaims.open", lambda *_: ClaimResult.CLAIMED)


def after_midnight(patch: pytest.MonkeyPatch) -> None:
    real = message_of_streak
    patch.setattr(reminders, "message_of_streak", lambda *given: replace(real(*given), ttl_seconds=3 * 3600))


def dates_begin_at_midnight(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Profile, "day_starts", ())


def by_the_phones_zone(patch: pytest.MonkeyPatch) -> None:
    clock = ReminderClock
    patch.setattr(
        reminders, "ReminderClock", lambda at, _, quiet, zone, starts: clock(at, zone, quiet, zone, starts)
    )


FAULTS = (whoever_has_a_streak, on_rest_days_too, without_a_claim, after_midnight, by_the_phones_zone)


@pytest.mark.parametrize("plant", (*FAULTS, dates_begin_at_midnight), ids=lambda plant: plant.__name__)
def test_a_fault_is_found(
    town: World, plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    assert any(Journey(town, seed).live() for seed in range(12))


def test_the_people_are_reminded_at_all(town: World) -> None:
    counts = Counter[int]()
    for seed in range(3):
        journey = Journey(town, seed)
        journey.live()
        counts += Counter(len(each.got) for each in journey.people)
    assert counts.total() == 3 * PEOPLE
    assert len(counts) > 3
