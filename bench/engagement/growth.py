"""What an operation costs a user who has been active on 10, 100, 1,000 and 10,000 dates, or behind a backlog.

And what an event costs one whose streak 20, 200 and 2,000 freezes have covered.

Items that DynamoDB reads, write units and CPU of the process are counted on the emulator. Printed is how
each grows from 1,000 to 10,000, as an exponent: 0 if the past is not felt, 1 if it is paid for again. The
sizes below show what is read until the bound is reached: of a late event three months, of a question about
the past a year. Such questions are about dates up to 900 days ago.
"""

import math
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

from adapters import settings
from adapters.book import BookStore
from adapters.engagement.account_items import day_attributes
from adapters.engagement.account_store import AccountStore
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.event_store import EventStore
from adapters.engagement.ledger_store import LedgerStore
from adapters.engagement.points import Settler
from adapters.platform import aws
from adapters.platform.items import encode_item
from adapters.platform.tables import put_all
from adapters.settings.event_intake import EventsStreamSettings
from bench.engagement.reads import ReadCount
from bench.engagement.units import WriteUnits
from bench.figure import Figure
from ingest.engagement.profiles import Profiles
from processors.engagement import EngagementProcessor, EngagementSettings
from rules.days import parse_moment, stamp
from rules.engagement.account_state import Day, Profile
from rules.engagement.events import Event, event_id, to_item
from rules.engagement.ledger import Draft, EntryKind, append_drafts
from rules.engagement.streak import DAY, Cover, fold
from tests.support.dynamodb_engine import running

SIZES = (10, 100, 1000, 10_000)
LAST = date(2026, 6, 1)
NOW = datetime(2026, 6, 2, 13, tzinfo=UTC)
FREEZES = (20, 200, 2000)
MISSED = 3  # days before the last active one; the date of the late event
STREAM = "2026-03-01T00:00:00.000"
REPEATS = 3
EXPONENT_MAX = 0.1
# So much is noise where the costs are next to nothing: an item, a unit, a millisecond.
FLOORS = {"items": 1.0, "units": 1.0, "cpu_ms": 1.0}


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one operation: items read, write units, milliseconds of CPU (the client's work included)."""

    items: float
    units: float
    cpu_ms: float


def run() -> Iterator[Figure]:
    """Yield the exponent of each operation and measure."""
    with running() as engine:
        os.environ.update(engine.environment())
        bench = Pasts()
        yield from _figures("active dates", "new date", bench.new_date)
        yield from _figures("active dates", "late event", bench.late_event)
        yield from _figures("active dates", "profile as of a date", bench.as_of)
        yield from _figures("active dates", "why a date counts", bench.explained)
        yield from _figures("active dates", "a page of days", bench.page)
        yield from _figures("backlog", "event behind a backlog", bench.behind, SIZES[:-1])
        yield from _figures("freezes used", "new date", bench.protected, FREEZES)


def _figures(
    of: str, name: str, measure: Callable[[int], Cost], sizes: tuple[int, ...] = SIZES
) -> Iterator[Figure]:
    costs = {size: measure(size) for size in sizes}
    before, after = costs[sizes[-2]], costs[sizes[-1]]
    for what, floor in FLOORS.items():
        one, other = (max(getattr(each, what), floor) for each in (before, after))
        exponent = math.log(other / one) / math.log(sizes[-1] / sizes[-2])
        detail = " ".join(f"{size}: {getattr(cost, what):.1f}" for size, cost in costs.items())
        yield Figure(f"{name}, {what} by {of}", exponent, "<=", EXPONENT_MAX, detail)


class Pasts:
    """Users of the wished past, and the operations."""

    def __init__(self) -> None:
        config, dynamodb = settings.read_settings(EngagementSettings), aws.client("dynamodb")
        self.dynamodb, self.days = dynamodb, config.daily_activity_table
        self.reads, self.writes = ReadCount(), WriteUnits()
        self.reads.watch(dynamodb)
        self.writes.watch(dynamodb)
        ledger = LedgerStore(dynamodb, config.rewards_ledger_table)
        self.accounts = AccountStore(dynamodb, config.user_streaks_table, self.days, ledger, 4)
        cache = EngagementCache("")
        self.processor = EngagementProcessor(self.accounts, cache)
        events = EventStore(dynamodb, settings.read_settings(EventsStreamSettings).bp_events_table)
        self.profiles = Profiles(
            self.accounts, events, cache, Settler(self.accounts, BookStore(self.dynamodb, "RuleBooks"))
        )
        self.users = 0
        self.readers: dict[int, str] = {}

    def user(self, active_days: int) -> str:
        """Store a user who was active on so many dates, without one; returns the user id."""
        self.users += 1
        user = f"growth-{self.users}"
        dates = [LAST - DAY * number for number in range(active_days) if number != MISSED]
        rows = (Day(user, each, f"{each}T12:00:00.000000Z#e", 1, 10, {}, "", f"{each}") for each in dates)
        put_all(self.dynamodb, self.days, [encode_item(day_attributes(each)) for each in rows])
        entries = append_drafts(user, None, [Draft(EntryKind.ADJUST, 10 * len(dates))], NOW - DAY)
        self.accounts.ledger.append(None, entries)
        profile = Profile(
            user,
            version=1,
            head=entries[-1].head,
            total_points=10 * len(dates),
            streak=fold(dates, Cover()),
            updated_at=NOW.isoformat(),
            applied_through=f"{STREAM}/1",
        )
        self.accounts.put_profile(profile)
        return user

    def reader(self, active_days: int) -> str:
        """Return a user who is only read."""
        if active_days not in self.readers:
            self.readers[active_days] = self.user(active_days)
        return self.readers[active_days]

    def measured(self, prepare: Callable[[], Any], operation: Callable[[Any], object]) -> Cost:
        """Return the least that an operation costs, each time on what was prepared anew.

        Counts are the same each time; CPU is only ever more than it needs.
        """
        costs = []
        for _ in range(REPEATS):
            given = prepare()
            self.reads.take()
            self.writes.take()
            started = time.process_time()
            operation(given)
            cpu_ms = 1000 * (time.process_time() - started)
            costs.append(Cost(self.reads.take()[0], self.writes.take(), cpu_ms))
        return Cost(*(min(getattr(each, what) for each in costs) for what in FLOORS))

    def new_date(self, size: int) -> Cost:
        """The first event of a date, in order."""
        return self._applied(size, LAST + DAY)

    def late_event(self, size: int) -> Cost:
        """An event of the date that was missed three days before."""
        return self._applied(size, LAST - DAY * MISSED)

    def _applied(self, size: int, day: date) -> Cost:
        # One user for all rounds would have the date already in the second.
        return self.measured(lambda: _record(self.user(size), day, 0), lambda each: self._apply([each]))

    def _apply(self, records: list[Any]) -> None:
        outcome = self.processor.apply(records, NOW)
        assert outcome.counts["applied"] == len(records), outcome

    def as_of(self, size: int) -> Cost:
        """The profile as of a date, the mean over dates."""
        return self._about(size, lambda user, day: self.profiles.view(user, day, NOW))

    def explained(self, size: int) -> Cost:
        """Why a date counts."""
        return self._about(size, lambda user, day: self.profiles.explain(user, day, NOW))

    def _about(self, size: int, ask: Callable[[str, date], object]) -> Cost:
        user = self.reader(size)
        asked = [LAST - DAY * (min(size, 900) * place // 20) for place in range(1, 20)]

        def ask_all(_: object) -> None:
            for day in asked:
                ask(user, day)

        cost = self.measured(lambda: None, ask_all)
        return Cost(cost.items / len(asked), cost.units, cost.cpu_ms / len(asked))

    def protected(self, freezes: int) -> Cost:
        """The first event of a date, of a user whose streak so many freezes have covered."""
        return self.measured(
            lambda: _record(self.covered(freezes), LAST + DAY, 0), lambda each: self._apply([each])
        )

    def covered(self, freezes: int) -> str:
        """Store a user who was active every other date, with a freeze for each between; returns the id."""
        user = self.user(1)
        profile = self.accounts.profile(user)
        dates = [LAST - DAY * 2 * number for number in range(freezes + 1)]
        rows = (Day(user, each, f"{each}T12:00:00.000000Z#e", 1, 10, {}, "", f"{each}") for each in dates)
        put_all(self.dynamodb, self.days, [encode_item(day_attributes(each)) for each in rows])
        cover = Cover(tuple((each, 1) for each in sorted(dates)))
        streak = fold(dates, cover)
        self.accounts.put_profile(replace(profile, streak=streak, cover=cover, version=profile.version + 1))
        return user

    def page(self, size: int) -> Cost:
        """The newest ten days."""
        user = self.reader(size)
        return self.measured(lambda: None, lambda _: self.accounts.newest_days(user, date.min, date.max, 10))

    def behind(self, size: int) -> Cost:
        """An event of a backlog of so many of one user, delivered in batches of 100."""

        def prepare() -> list[Any]:
            user = self.user(30)
            return [_record(user, LAST + DAY, number) for number in range(size)]

        def apply(records: list[Any]) -> None:
            for first in range(0, len(records), 100):
                self._apply(records[first : first + 100])

        cost = self.measured(prepare, apply)
        return Cost(cost.items / size, cost.units / size, cost.cpu_ms / size)


def _record(user: str, day: date, number: int) -> Any:
    """Return the stream's record of an event at noon of a date and some milliseconds."""
    at = datetime(day.year, day.month, day.day, 12, tzinfo=UTC) + timedelta(milliseconds=number)
    moment = parse_moment(at.isoformat())
    event = Event(
        user_id=user,
        event_id=event_id(user, f"k{day}{number}", moment),
        idempotency_key=f"k{day}{number}",
        event_type="LESSON_COMPLETED",
        occurred_at=moment.utc.isoformat(),
        activity_date=day,
        zone="UTC",
        points_awarded=10,
        source="bench",
        created_at=stamp(NOW - timedelta(hours=1)),
    )
    return {
        "eventName": "INSERT",
        "eventSourceARN": f"arn:aws:dynamodb:us-east-1:1:table/BPEvents/stream/{STREAM}",
        "dynamodb": {"SequenceNumber": f"{10**20 + number}", "NewImage": encode_item(to_item(event))},
    }
