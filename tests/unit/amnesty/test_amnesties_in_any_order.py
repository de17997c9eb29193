"""Amnesties and events in any order lead to one answer (rules 2, 14 and 17): daily, by week and by month."""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from adapters.engagement.amnesty_store import AmnestyApplier
from rules.book.goal_rules import Need, NeedKind, StreakPeriod, StreakRule
from rules.days import DAY
from rules.engagement.account_state import Amnesties, Amnesty, DateReason, Decision, covered_dates
from rules.engagement.events import Event
from rules.engagement.goals import PastPeriods, outcome, progress, shown_goal_streak
from tests.support.account_world import grant
from tests.support.effort import effort
from tests.support.engagement_strategies import event
from tests.unit.amnesty.test_amnesties import Forgiving, plain_streak, shown

MONDAY, DATES = date(2026, 3, 2), 91  # up to the end of May
EACH = [MONDAY + number * DAY for number in range(DATES)]
TYPE = "CONTRIBUTION"
RULES = [
    StreakRule(per, Need(NeedKind.ACTIVE_DAYS, at_least), frozenset({TYPE}), freezes)
    for per, at_least in ((StreakPeriod.WEEK, 3), (StreakPeriod.MONTH, 9))
    for freezes in (False, True)
]
Run = tuple[int, int]  # current and longest


@dataclass(frozen=True)
class Journey:
    """A user's dates, and the outages. A late one is known after some events, so it is applied by name."""

    active: Sequence[date]
    granted: Sequence[date]
    outages: Sequence[Amnesty]
    late: frozenset[int]  # numbers
    revoked: frozenset[int]
    until: date

    @property
    def neutral(self) -> frozenset[date]:
        spans = [
            (each.since.date(), each.until.date()) for each in self.outages if each.number not in self.revoked
        ]
        return frozenset(day for day in EACH if any(first <= day <= last for first, last in spans))


def journey(chance: random.Random) -> Journey:
    starts = [chance.choice(EACH[:-14]) for _ in range(chance.randrange(1, 5))]
    outages = []
    for number, first in enumerate(starts, 1):
        since = datetime(first.year, first.month, first.day, 9, tzinfo=UTC)
        length = timedelta(days=chance.choice((0, 2, 3, 6, 13, 13)), hours=2)
        outages.append(Amnesty(number, since, since + length, is_listed=chance.random() < 0.2))
    away = {day for each in outages for day in EACH if each.since.date() <= day <= each.until.date()}
    often = [chance.choice((0.2, 0.5, 0.8, 0.95)) for _ in range(DATES // 7)]
    active = [
        day for at, day in enumerate(EACH) if chance.random() < often[at // 7] * (0.15 if day in away else 1)
    ]
    active = active or [MONDAY]
    late = {each.number for each in outages if each.is_listed or chance.random() < 0.5}
    return Journey(
        active,
        [chance.choice(EACH) for _ in range(chance.choice((0, 0, 1, 3)))],
        outages,
        frozenset(late),
        frozenset(number for number in late if chance.random() < 0.2),
        max(active) + chance.choice((0, 1, 2, 9)) * DAY,
    )


def arrived(journey: Journey, chance: random.Random, days_late: int) -> Forgiving:
    """The user after all of it. Events and grants come in order, or up to some days late.

    An outage that is not late is known before each event on or after its first date.
    """
    world = Forgiving()
    events = [(day, event(f"{day} {twice}", day)) for day in journey.active for twice in (1, 2)]
    dated: list[tuple[date, Event | date]] = [*events, *((day, day) for day in journey.granted)]
    dated.sort(key=lambda each: each[0].toordinal() + chance.random() * (1 + days_late))
    steps: list[Event | date | Amnesty] = [step for _, step in dated]
    for outage in journey.outages:
        later = [
            at
            for at, step in enumerate(steps)
            if isinstance(step, Event) and step.activity_date >= outage.since.date()
        ]
        last = len(steps) if outage.number in journey.late else min(later, default=len(steps))
        steps.insert(chance.randint(0, last), outage)
    for step in batches(steps, chance):
        if isinstance(step, Amnesty):
            world.know(step)
            if step.number in journey.late and chance.random() < 0.5:
                apply_by_name(world, step.number)
        elif isinstance(step, date):
            world.apply(commands=[grant(step)])
        else:
            world.apply(step, writes=chance.choice((1, 2, 10**6)))
    for number in journey.revoked:
        world.revoke(number)
    world.apply()  # what a writer that died has left
    apply_by_name(world, *journey.late)
    world.check()
    return world


def apply_by_name(world: Forgiving, *numbers: int) -> None:
    """Apply amnesties as `streakline amnesty apply` does, which writes only what changes materially."""

    def decision_of(_account: object, _rule: object, amnesties: Amnesties) -> Decision:
        known, world.amnesties = world.amnesties, amnesties
        try:
            return world.decide(())
        finally:
            world.amnesties = known

    def commit(decision: Decision) -> None:
        world.entries += decision.entries
        world.days |= decision.days
        world.put(decision.profile)

    loaded, no_cache = SimpleNamespace(account=None), SimpleNamespace(write_through=lambda *_: None)
    accounts = SimpleNamespace(load=lambda _: loaded, decision_of=decision_of, commit=commit)
    applier = AmnestyApplier(cast("Any", accounts), cast("Any", no_cache))
    applier.apply("u", replace(world.amnesties, named=frozenset(numbers)), world.now)


def batches(
    steps: Sequence[Event | date | Amnesty], chance: random.Random
) -> Iterator[list[Event] | date | Amnesty]:
    """The steps, with events that follow each other together."""
    batch: list[Event] = []
    for step in steps:
        if isinstance(step, Event):
            batch.append(step)
        if batch and (not isinstance(step, Event) or chance.random() < 0.3):
            yield batch
            batch = []
        if not isinstance(step, Event):
            yield step
    if batch:
        yield batch


def goal(world: Forgiving, rule: StreakRule, until: date) -> Run:
    """The streak as the product shows it."""
    days = {when: {TYPE: day.events_count} for when, day in world.days.items() if day.is_active}
    first, letters = rule.per.first(MONDAY), ""
    past = PastPeriods(rule.per, first)
    while rule.per.last(first) < until:
        letters += outcome(rule, rule.per, first, days)
        first = rule.per.after(first)
    past = past.then(letters)
    state, _ = shown_goal_streak(rule, past, progress(rule, first, days), world.profile.cover)
    return state.length, state.longest


def plain_goal(journey: Journey, rule: StreakRule, neutral: frozenset[date], told: Counter[str]) -> Run:
    """The same, period by period, no code of ours."""
    is_week = rule.per is StreakPeriod.WEEK
    periods: dict[object, list[date]] = {}
    for day in (date(2026, 3, 1) + number * DAY for number in range(-6, 150)):
        key = day.isocalendar()[:2] if is_week else (day.year, day.month)
        periods.setdefault(key, []).append(day)
    current = longest = spent = 0
    for dates in periods.values():
        if dates[0] > journey.until or dates[-1] < MONDAY:
            continue
        if sum(day in journey.active for day in dates) >= (3 if is_week else 9):
            current += 1
        elif dates[-1] < journey.until and current:
            if sum(day in neutral for day in dates) > len(dates) / 2:
                told[rule.per.value] += 1
            elif rule.freezes and sum(day <= dates[-1] for day in journey.granted) > spent:
                spent += 1
            else:
                current = 0
        longest = max(longest, current)
    return current, longest


@pytest.mark.parametrize("seed", range(effort(2, soak=200)))
def test_amnesties_and_events_in_any_order_lead_to_one_answer(seed: int) -> None:
    chance, told = random.Random(f"orders {seed}"), Counter[str]()
    for _ in range(30):
        story = journey(chance)
        neutral = story.neutral
        daily = plain_streak(story.active, story.granted, neutral, story.until)
        told["daily"] += daily != plain_streak(story.active, story.granted, frozenset(), story.until)
        goals = [plain_goal(story, rule, neutral, told) for rule in RULES]
        first = min(story.active)
        covered = dict.fromkeys(daily[2], DateReason.FREEZE) | {
            day: DateReason.AMNESTY for day in neutral if first <= day <= story.until
        }
        for days_late in (0, 9, DATES):
            world = arrived(story, chance, days_late)
            assert shown(world, story.until) == daily, story
            assert [goal(world, rule, story.until) for rule in RULES] == goals, story
            span = first, story.until
            assert dict(covered_dates(world.profile, span, story.until)) == covered, story
    assert min(told[each] for each in ("daily", "week", "month")) > 0, "amnesties changed something"
