"""Replays users one after the other, and adds up their figures. One process does this for its parts.

Of each user there are two *worlds*: the points and streak as they are, and as they would be.
`CountedUsers.add` counts both. Functions at the end put into words why a user's figures change.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any

import pyarrow as pa

from analytics.what_if.figures import (
    LARGEST_CHANGES,
    USERS,
    Figures,
    RunLengths,
    WhatIfAnswer,
    WhatIfQuestion,
    rank,
)
from analytics.what_if.goals import Goals
from analytics.what_if.levels import CountedLevels
from analytics.what_if.timeline import TermsMemo, Timeline
from analytics.what_if.user_history import LedgerRow, MeasuresMemo, UserSettings, World, actual_world
from analytics.what_if.user_replay import JudgedEvent, UserReplay
from rules.book.goal_rules import UNIT
from rules.book.point_rules import AmountRule, Cap
from rules.days import EPOCH, local_date
from rules.engagement.events import instant_of
from rules.engagement.ledger import CORRECTIONS, EntryKind
from rules.engagement.streak import Streak, advance, opening_streak, shown_streak

FIRST_DATE = EPOCH.date()  # a date is a whole number in USERS: the days since this one
NO_DAY = -(1 << 23)  # the last active day of a user who has none: before all dates
NO_SETTINGS = UserSettings()


@dataclass(frozen=True)
class ReplayInputs:
    """The values that all processes of one question share."""

    question: WhatIfQuestion
    timeline: Timeline
    settings: dict[str, UserSettings]  # by user; others have none
    other_dates: dict[str, date]  # today, by user; of users for whom it is another date than in UTC

    @property
    def in_utc(self) -> date:
        """Today's date in UTC."""
        return local_date(self.question.now, "UTC", self.timeline.real.day_starts)


class CountedUsers:
    """Replays users, and adds up their figures."""

    def __init__(self, inputs: ReplayInputs) -> None:
        self._inputs, self._figures = inputs, Figures()
        self._terms = TermsMemo(inputs.timeline)
        self._measures = MeasuresMemo(inputs.timeline)
        self._goals = Goals(inputs.timeline, inputs.question.now, self._figures, self._measures)
        self._levels = CountedLevels(inputs.timeline, inputs.question.now, self._figures)
        self._rows: list[tuple[Any, ...]] = []
        self._largest_changes: list[dict[str, Any]] = []

    def add(self, rows: list[LedgerRow]) -> None:
        """Replay a user, and add the user's figures. rows: of one user, in the ledger's order."""
        inputs, figures, user_id = self._inputs, self._figures, rows[0].user_id
        settings = inputs.settings.get(user_id, NO_SETTINGS)
        today = inputs.other_dates.get(user_id, inputs.in_utc)
        before = actual_world(rows, settings, inputs.question.now, inputs.timeline.real.daily_terms)
        user = UserReplay(rows, inputs.timeline, self._terms, self._measures, settings).replay()
        after = user.world(inputs.question.now)
        streak_before = folded_streak(before, today)
        is_same = (before.active, before.cover) == (after.active, after.cover)
        is_same = is_same and before.cover.rest.is_same(after.cover.rest)
        streak_after = streak_before if is_same else folded_streak(after, today)
        streak_before.count(figures.runs_before)
        streak_after.count(figures.runs_after)
        self._count_events(user)
        self._count_other_entries(user)
        self._goals.count(user, (before.cover, after.cover), today)
        self._levels.count(before.earned, after.earned)
        row = (
            user_id,
            *(before.earned, before.balance, *streak_before.measures),
            *(after.earned, after.balance, *streak_after.measures),
        )
        self._rows.append(row)
        changes = (
            after.earned - before.earned,
            after.balance - before.balance,
            streak_after.longest - streak_before.longest,
        )
        if score := max(map(abs, changes)):
            self._list_change(score, row, user, (before, after))

    def _count_events(self, user: UserReplay) -> None:
        figures = self._figures
        for row, terms, _, points in user.outcomes:
            sums, month = figures.of_type(row.event_type), figures.of_month(row.day)
            sums.entries += 1
            sums.before += row.points
            month.before += row.points
            if points is None:
                sums.refused += 1
                sums.broken += terms.breaks_contract
            else:
                sums.after += points
                month.after += points

    def _count_other_entries(self, user: UserReplay) -> None:
        figures = self._figures
        figures.entries += len(user.rows)
        figures.impossible += user.impossible
        for row in user.rows:
            if row.kind == EntryKind.REDEEM:
                figures.redemptions += row.points < 0
            elif row.kind == EntryKind.BONUS:
                figures.bonuses += 1
            elif row.kind in CORRECTIONS:
                figures.of_type(row.event_type).before += row.points
                figures.of_month(row.day).before += row.points
        for draft in user.corrected:
            figures.of_type(draft.event_type or "").after += draft.points
            figures.of_month(date.fromisoformat(draft.activity_date or "")).after += draft.points

    def _list_change(
        self, score: int, row: tuple[Any, ...], user: UserReplay, worlds: tuple[World, World]
    ) -> None:
        """List the user among those who change most, with the reasons, unless so many others change more.

        score: how much the user changes. row: of USERS. worlds: before and after.
        """
        if len(self._largest_changes) == LARGEST_CHANGES and (-score, user.user_id) > rank(
            self._largest_changes[-1]
        ):
            return
        corrected_before = sum(entry.points for entry in user.rows if entry.kind in CORRECTIONS)
        corrected_after = sum(draft.points for draft in user.corrected)
        other_texts = other_reasons(*worlds, corrected_before, corrected_after)
        change = dict(zip(USERS.names, row, strict=True)) | {
            "score": score,
            "why": [*(reason.text for reason in reasons(user, self._inputs.timeline)), *other_texts],
            "impossible": [f"{item.what} of {item.points} at {item.at}" for item in user.impossible],
        }
        self._largest_changes = sorted([*self._largest_changes, change], key=rank)[:LARGEST_CHANGES]

    def answer(self) -> WhatIfAnswer:
        """Return the answer for all users that were added."""
        columns = zip(*self._rows, strict=True) if self._rows else [()] * len(USERS)
        arrays = [pa.array(values, kind) for values, kind in zip(columns, USERS.types, strict=True)]
        users = pa.table(arrays, USERS)
        return WhatIfAnswer(self._inputs.question, users, self._figures, self._largest_changes)


@dataclass(slots=True)
class FoldedStreak:
    """A user's streak, with the runs before it."""

    streak: Streak | None  # None: no date is active
    shown: int  # the days that show today
    ended: list[int]  # the lengths of earlier runs

    @property
    def measures(self) -> tuple[int, int, int, int, int]:
        """The columns of USERS about the streak: shown, length, longest, active_days, last."""
        streak = self.streak
        if streak is None:
            return 0, 0, 0, 0, NO_DAY
        last = (streak.last - FIRST_DATE).days
        return self.shown, streak.length, streak.longest, streak.active_days, last

    @property
    def longest(self) -> int:
        """The days of the longest run."""
        return self.streak.longest if self.streak else 0

    def count(self, lengths: RunLengths) -> None:
        """Count the runs into the lengths of all users' runs."""
        lengths.ended.update(self.ended)
        if self.streak:
            (lengths.alive if self.shown else lengths.ended)[self.streak.length] += 1


def folded_streak(world: World, today: date) -> FoldedStreak:
    """Return the streak of a user whose date is today."""
    cover, ended = world.cover, list[int]()
    streak = opening_streak(cover)
    for day in sorted(world.active):
        previous, streak = streak, advance(streak, day, cover)
        if previous and streak.length == 1:
            ended.append(previous.length)
    shown = shown_streak(streak, cover, max(today, streak.last)).current if streak else 0
    return FoldedStreak(streak, shown, ended)


@dataclass(slots=True)
class Reason:
    """One cause by which the points of some of a user's events change."""

    cause: str  # in words
    events: int  # the number of these events
    points: int  # the sum of their changes
    first: date  # the earliest date of these events
    last: date  # the latest one

    @property
    def text(self) -> str:
        """The reason as a line."""
        days = str(self.first) if self.first == self.last else f"{self.first} to {self.last}"
        events = "1 event" if self.events == 1 else f"{self.events} events"
        return f"{self.points:+,} points, {events}, {days}: {self.cause}"


def reasons(user: UserReplay, timeline: Timeline) -> list[Reason]:
    """Return the causes that change a user's points, the largest change first."""
    by_cause: dict[str, Reason] = {}
    for outcome in user.outcomes:
        day, change = outcome.day, (outcome.points or 0) - outcome.row.points
        if not change:
            continue
        cause = _cause(outcome, timeline)
        reason = by_cause.setdefault(cause, Reason(cause, 0, 0, day, day))
        reason.events += 1
        reason.points += change
        reason.first, reason.last = min(reason.first, day), max(reason.last, day)
    return sorted(by_cause.values(), key=lambda reason: (-abs(reason.points), reason.cause))


def other_reasons(
    actual: World, hypothetical: World, corrected_before: int, corrected_after: int
) -> Iterator[str]:
    """Yield what else changes a user's balance and streak, beside the points of events.

    corrected_before, corrected_after: the points of reversed events and corrections.
    """
    if hypothetical.expired != actual.expired:
        yield f"{hypothetical.expired:,} points would have expired by now, in place of {actual.expired:,}"
    if corrected_before != corrected_after:
        yield (
            f"{corrected_after:+,} points by reversed events and corrections, in place of "
            f"{corrected_before:+,}"
        )
    lost_days, won_days = actual.active - hypothetical.active, hypothetical.active - actual.active
    for days, word in ((lost_days, "no longer be"), (won_days, "be")):
        if days:
            span = str(min(days)) if len(days) == 1 else f"{min(days)} to {max(days)}"
            dates = "1 date" if len(days) == 1 else f"{len(days)} dates"
            yield f"{dates} would {word} active, {span}: which events keep a streak has changed"


def _cause(outcome: JudgedEvent, timeline: Timeline) -> str:
    """Return, in words, which version has judged an event, and in what the candidate differs from it."""
    row, ruling = outcome.row, outcome.terms.ruling
    kind, occurred, number = row.event_type, instant_of(row.event_id), row.version or None
    judged = f"{kind}, judged by version {number}"
    if outcome.points is None:
        why = "breaks the contract" if row.breaks_contract else "is not in this book"
        return f"{judged}: {why}: refused"
    before = next((version.book for version in timeline.real.versions if version.number == number), None)
    rule_before = before.event_types.get(kind) if before else None
    factor_before = before.factor(kind, occurred) if before and rule_before else 1
    factor_after = ruling.factor
    changes = []
    if rule_before and ruling.points is not None:
        price_before = _price(rule_before.points, rule_before.by_amount)
        price_after = _price(ruling.points // factor_after, ruling.by_amount)
        if price_before != price_after:
            changes.append(f"{price_before} -> {price_after} points each")
    if factor_before != factor_after:
        changes.append(f"boost x{factor_before} -> x{factor_after}")
    cap_before, cap_after = (cap.text if cap else "none" for cap in (Cap.of(row.cap), ruling.cap))
    if not ruling.is_as_entry_says and cap_before != cap_after:
        changes.append(f"cap {cap_before} -> {cap_after}")
    if outcome.day != row.day:
        changes.append("counts for another date")
    return f"{judged}: " + ("; ".join(changes) or "other events have used more or less of its cap")


def _price(points: int, by_amount: AmountRule | None) -> str:
    """Return what an event earns before boost and cap, in words."""
    if by_amount is None:
        return str(points)
    return f"{points} (and {by_amount.earns} for each {by_amount.each / UNIT:g} {by_amount.of})"
