"""Dates that an outage touched count against nobody (rule 17): against a plain reading, date by date."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from itertools import permutations
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st

from rules.days import AT_MIDNIGHT, DAY
from rules.engagement.account import zone_at
from rules.engagement.account_state import Account, Amnesties, Amnesty, Decision, Profile, amnesty_of
from rules.engagement.events import Event
from rules.engagement.ledger import Draft, EntryKind
from rules.engagement.streak import shown_streak
from tests.support.account_world import World, grant, june
from tests.support.engagement_strategies import event
from tests.support.examples import examples

FIRST, LAST = june(1), june(24)


def outage(
    number: int, day: int, dates: int = 1, *, zones: Iterable[str] = (), listed: bool = False
) -> Amnesty:
    since = datetime(2026, 6, day, 9, tzinfo=UTC)
    return Amnesty(number, since, since + timedelta(days=dates - 1, hours=2), frozenset(zones), listed)


@dataclass
class Forgiving(World):
    """A user of whom amnesties are known."""

    amnesties: Amnesties = field(default_factory=Amnesties)

    def account(self, dates: Iterable[date]) -> Account:
        return replace(super().account(dates), amnesties=self.amnesties)

    def know(self, *declared: Amnesty) -> None:
        known = {each.number: each for each in (*self.amnesties.known, *declared)}
        self.amnesties = Amnesties(tuple(known.values()))

    def apply_amnesty(self, *numbers: int) -> Decision:
        """Apply some by name, as `streakline amnesty apply` does."""
        known, self.amnesties = self.amnesties, replace(self.amnesties, named=frozenset(numbers))
        try:
            return self.apply()
        finally:
            self.amnesties = known

    def revoke(self, number: int) -> None:
        (said,) = (each for each in self.amnesties.known if each.number == number)
        self.know(replace(said, revoked_at="2026-06-30T00:00:00.000000Z"))


def plain_streak(
    active: Sequence[date], granted: Sequence[date], neutral: frozenset[date], until: date
) -> tuple[int, int, list[date]]:
    """Current and longest streak on a date, and the dates that freezes cover: date by date, no code of ours."""
    current = longest = 0
    covered: list[date] = []
    day = min(active, default=until)
    while day <= until:
        if day in active:
            current += 1
        elif day not in neutral and day < until:
            if sum(each <= day for each in granted) > len(covered) and current:
                covered.append(day)
            else:
                current = 0
        longest = max(longest, current)
        day += DAY
    return current, longest, covered


def shown(world: World, until: date) -> tuple[int, int, list[date]]:
    told = shown_streak(world.profile.streak, world.profile.cover, until)
    return told.current, told.longest, list(told.spent)


@st.composite
def stories(draw: st.DrawFn) -> tuple[list[Event], list[date], list[Amnesty]]:
    active = draw(st.lists(st.integers(1, 20), min_size=1, max_size=14))
    events = [event(str(number), june(day)) for number, day in enumerate(active)]
    granted = [june(day) for day in draw(st.lists(st.integers(1, 20), max_size=3))]
    spans = draw(st.lists(st.tuples(st.integers(1, 20), st.integers(1, 3)), min_size=1, max_size=3))
    return events, granted, [outage(number, *span) for number, span in enumerate(spans, 1)]


@settings(max_examples=examples(60))
@given(stories(), st.data())
def test_the_answer_is_the_fold_with_these_dates_neutral(
    story: tuple[list[Event], list[date], list[Amnesty]], data: st.DataObject
) -> None:
    """Events, freezes, declarations and revocations in any order; every amnesty is applied once it is known."""
    events, granted, outages = story
    world = Forgiving()
    steps: list[Event | Draft | Amnesty] = [*events, *(grant(day) for day in granted), *outages]
    revoked: set[int] = set()
    for step in data.draw(st.permutations(steps)):
        if isinstance(step, Event):
            world.apply([step], writes=data.draw(st.sampled_from([1, 2, 10**6])))
        elif isinstance(step, Draft):
            world.apply(commands=[step])
        else:
            world.know(step)
            world.apply_amnesty(step.number)
        if isinstance(step, Amnesty) and data.draw(st.integers(0, 3)) == 0:
            world.revoke(step.number)
            world.apply_amnesty(step.number)
            revoked.add(step.number)
    standing = [each for each in outages if each.number not in revoked]
    world.apply_amnesty(*(each.number for each in standing))
    world.check()
    neutral = frozenset(day for each in standing for day in each.dates_in("UTC", AT_MIDNIGHT))
    active = sorted({each.activity_date for each in events})
    until = data.draw(st.dates(max(active), LAST))
    assert shown(world, until) == plain_streak(active, granted, neutral, until)
    assert not world.apply_amnesty(*(each.number for each in standing)).is_change


@given(st.sets(st.integers(1, 20), min_size=2, max_size=14), st.integers(1, 20), st.integers(1, 3))
def test_revoked_the_account_is_as_before(days: set[int], day: int, dates: int) -> None:
    world = Forgiving()
    world.apply([event(str(each), june(each)) for each in days], [grant(june(min(days)))])
    before = world.profile
    world.know(outage(1, day, dates))
    world.apply_amnesty(1)
    world.revoke(1)
    world.apply_amnesty(1)
    world.check()
    kept = replace(before, version=0, updated_at="", head=None)
    assert replace(world.profile, version=0, updated_at="", head=None) == kept
    assert world.profile.balance == before.balance


def test_revoked_the_dates_that_the_user_never_had_are_still_no_misses() -> None:
    """After the evening of the 1st in Los Angeles comes the morning of the 3rd in Sydney."""
    there, here, later = (
        event("la", june(1), zone="America/Los_Angeles", at=datetime(2026, 6, 2, 3, tzinfo=UTC)),
        event("sydney", june(3), zone="Australia/Sydney", at=datetime(2026, 6, 2, 23, tzinfo=UTC)),
        event("later", june(4), zone="Australia/Sydney", at=datetime(2026, 6, 3, 23, tzinfo=UTC)),
    )
    steps: dict[str, Callable[[Forgiving], object]] = {
        "declared": lambda world: world.know(outage(1, 2)),
        "there": lambda world: world.apply([there]),
        "here": lambda world: world.apply([here]),
    }
    for order in permutations(steps):
        world = Forgiving()
        for step in order:
            steps[step](world)
        world.revoke(1)
        world.apply([later])
        world.check()
        assert shown(world, june(4)) == (3, 3, []), order


def test_a_freeze_that_an_outage_cost_is_given_back() -> None:
    world = Forgiving()
    world.apply([event("a", june(1))], [grant(june(1))])
    world.apply([event("b", june(3))])
    assert shown(world, june(3)) == (2, 2, [june(2)])
    world.know(outage(1, 2))
    decision = world.apply_amnesty(1)
    assert [entry.draft.kind for entry in decision.entries] == [EntryKind.REVERSE, EntryKind.SETTING]
    assert shown(world, june(3)) == (2, 2, [])
    assert amnesty_of(world.profile, june(2)) == 1
    assert world.profile.cover.granted(june(3)) == 1


def test_nobody_gains_a_day_and_a_late_event_still_counts() -> None:
    world = Forgiving()
    world.know(outage(1, 2, 2))
    world.apply([event("a", june(1))])
    world.apply([event("d", june(4))])
    assert shown(world, june(4)) == (2, 2, [])
    world.apply([event("b", june(2))])
    assert shown(world, june(4)) == (3, 3, [])
    world.check()


def test_who_comes_back_needs_no_application_and_no_past() -> None:
    """The dates are added where they are folded anyway: after the newest date, or after a late one."""
    back = Forgiving()
    back.apply([event("a", june(1))])
    back.know(outage(1, 2))
    assert back.decide([event("c", june(3))]).profile.streak.length == 2  # type: ignore[union-attr]
    late = Forgiving()
    late.apply([event("c", june(3))])
    late.know(outage(1, 2))
    late.apply([event("a", june(1))])
    assert shown(late, june(3)) == (2, 2, [])
    within = Forgiving()
    within.apply([event("c", june(3))])
    within.know(outage(1, 2, 4))
    within.apply([event("f", june(6))])
    assert shown(within, june(6)) == (2, 2, []), "the rest of an outage in which the user was active"
    untouched = Forgiving()
    untouched.apply([event(str(day), june(day)) for day in (1, 3, 4)])
    untouched.know(outage(1, 2))
    assert untouched.apply([event("e", june(5))]).profile.amnesties == ()


def test_one_for_listed_users_concerns_nobody_by_itself() -> None:
    world = Forgiving()
    world.apply([event("a", june(1))])
    world.know(outage(1, 2, listed=True))
    world.apply([event("c", june(3))])
    assert shown(world, june(3)) == (1, 1, [])
    world.apply_amnesty(1)
    assert shown(world, june(3)) == (2, 2, [])


def test_one_for_zones_concerns_whose_zone_it_was_then() -> None:
    lisbon = Profile(
        "u", chosen_zone="Europe/Lisbon", tz_changes=(("2026-06-05T00:00:00+00:00", "Europe/Lisbon"),)
    )
    at = datetime(2026, 6, 4, tzinfo=UTC)
    assert zone_at(lisbon, at + DAY) == "Europe/Lisbon"
    moved = Profile(
        "u",
        observed_zone="Asia/Tokyo",
        zones_seen=(
            ("2026-01-01T00:00:00.000000Z", "Europe/Rome"),
            ("2026-06-10T00:00:00.000000Z", "Asia/Tokyo"),
        ),
    )
    assert [zone_at(moved, at + each * DAY) for each in (0, 7)] == ["Europe/Rome", "Asia/Tokyo"]
    assert outage(1, 2, zones=["Asia/Tokyo"]).dates_in("Europe/Rome", AT_MIDNIGHT) == frozenset()


ZONES = (
    *("Pacific/Niue", "Pacific/Honolulu", "America/Anchorage", "America/Los_Angeles", "America/Denver"),
    *("America/Chicago", "America/New_York", "America/Halifax", "America/Sao_Paulo", "America/Noronha"),
    *("Atlantic/Azores", "Europe/London", "Europe/Berlin", "Europe/Athens", "Europe/Moscow", "Asia/Dubai"),
    *("Asia/Karachi", "Asia/Kathmandu", "Asia/Dhaka", "Asia/Bangkok", "Asia/Tokyo", "Australia/Sydney"),
    *("Pacific/Auckland", "Pacific/Kiritimati"),
)


@given(
    st.sampled_from(ZONES),
    st.sampled_from([date(2026, 3, 28), date(2026, 10, 24), date(2026, 3, 7), date(2026, 10, 31), FIRST]),
    st.integers(0, 3 * 24 * 60),
    st.integers(1, 60 * 40),
)
def test_the_dates_are_those_that_the_outage_touched_in_the_zone(
    name: str, around: date, begin: int, minutes: int
) -> None:
    """Minute by minute, in 24 zones, over changes of clocks."""
    since = datetime(around.year, around.month, around.day, tzinfo=UTC) + timedelta(minutes=begin)
    until = since + timedelta(minutes=minutes)
    told = Amnesty(1, since, until).dates_in(name, AT_MIDNIGHT)
    each_minute = {(since + timedelta(minutes=n)).astimezone(ZoneInfo(name)).date() for n in range(minutes)}
    assert told == each_minute
