"""Users replayed one after the other, and their figures added up: what one process does."""

from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

import pyarrow as pa

from analytics.what_if.figures import USERS, Figures, RunLengths
from analytics.what_if.goals import GoalFigures, Goals
from analytics.what_if.reasons import other_reasons, reasons
from analytics.what_if.timeline import TermsMemo, Timeline
from analytics.what_if.user_fold import Row, UserFold, UserSettings, World, as_it_was
from analytics.what_if.user_settings import Todays
from rules.days import EPOCH
from rules.engagement.ledger import INTO_DEBT, EntryKind
from rules.engagement.streak import Streak, advance, opening_streak, shown_streak

TOP = 20
FIRST = EPOCH.date()
NO_DAY = -(1 << 23)  # stands for the last active day of a user who has none
NO_SETTINGS = UserSettings()


@dataclass(frozen=True)
class Replay:
    """What every replay of a question needs."""

    timeline: Timeline
    settings: dict[str, UserSettings]  # by user; others have none
    todays: Todays
    now: datetime
    keep_days: bool = False  # see WhatIfQuestion


@dataclass(slots=True)
class PartAnswer:
    """The answer for some users (see WhatIfAnswer)."""

    users: pa.Table
    figures: Figures
    largest_changes: list[dict[str, Any]]
    days: dict[tuple[str, date], int] = field(default_factory=dict)
    goals: GoalFigures = field(default_factory=dict)

    def add(self, other: "PartAnswer") -> None:
        """Count other users in."""
        self.users = pa.concat_tables([self.users, other.users])
        self.figures.add(other.figures)
        self.largest_changes = sorted([*self.largest_changes, *other.largest_changes], key=_rank)[:TOP]
        self.days |= other.days
        self.goals |= other.goals


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
        last = (streak.last - FIRST).days
        return self.shown, streak.length, streak.longest, streak.active_days, last

    def count(self, lengths: RunLengths) -> None:
        """Count the runs in."""
        lengths.ended.update(self.ended)
        if self.streak:
            (lengths.alive if self.shown else lengths.ended)[self.streak.length] += 1


def folded_streak(world: World, today: date) -> FoldedStreak:
    """Return a user's streak."""
    cover, ended = world.cover, list[int]()
    state = opening_streak(cover)
    for day in sorted(world.active):
        before, state = state, advance(state, day, cover)
        if before and state.length == 1:
            ended.append(before.length)
    shown = shown_streak(state, cover, max(today, state.last)).current if state else 0
    return FoldedStreak(state, shown, ended)


class CountedUsers:
    """Users, added up as they come."""

    def __init__(self, replay: Replay) -> None:
        self._replay, self._figures = replay, Figures()
        self._terms = TermsMemo(replay.timeline)
        self._goal_figures: GoalFigures = {}
        goal_figures = self._goal_figures if replay.keep_days else None
        self._goals = Goals(replay.timeline, replay.now, self._figures, goal_figures)
        self._rows: list[tuple[Any, ...]] = []
        self._largest_changes: list[dict[str, Any]] = []
        self._months: dict[date, list[int]] = {}  # by day: points before and after
        self._days: dict[tuple[str, date], int] = {}

    def add(self, rows: list[Row]) -> None:
        """Replay a user, and count in what comes of it. rows: of one user, in the ledger's order."""
        replay, figures, user_id = self._replay, self._figures, rows[0].user_id
        settings = replay.settings.get(user_id, NO_SETTINGS)
        was = as_it_was(rows, settings, replay.now)
        user = UserFold(rows, replay.timeline, self._terms, settings).replay()
        then, today = user.world(replay.now), replay.todays.of(user_id)
        before = folded_streak(was, today)
        is_same = (was.active, was.cover) == (then.active, then.cover)
        after = before if is_same else folded_streak(then, today)
        before.count(figures.runs_before)
        after.count(figures.runs_after)
        self._count_events(user)
        self._count_others(user)
        self._goals.count(user, (was.cover, then.cover), today)
        row = (user_id, was.earned, was.balance, *before.measures, then.earned, then.balance, *after.measures)
        self._rows.append(row)
        changes = (
            then.earned - was.earned,
            then.balance - was.balance,
            after.measures[2] - before.measures[2],
        )
        if score := max(map(abs, changes)):
            self._list(score, row, user, (was, then))

    def _count_events(self, user: UserFold) -> None:
        months, keep_days = self._months, self._replay.keep_days
        for row, terms, day, points in user.outcomes:
            sums = terms.sums
            month = months.get(row.day) or months.setdefault(row.day, [0, 0])
            sums[0] += 1
            sums[1] += row.points
            month[0] += row.points
            if points is None:
                sums[3] += 1
                continue
            sums[2] += points
            month[1] += points
            if keep_days:
                self._add_day(user.user_id, day, points)

    def _count_others(self, user: UserFold) -> None:
        figures, months = self._figures, self._months
        figures.entries += len(user.rows)
        figures.impossible += user.impossible
        for row in user.rows:
            if row.kind == EntryKind.REDEEM:
                figures.redemptions += row.points < 0
            elif row.kind in INTO_DEBT:
                figures.of_type(row.event_type).before += row.points
                months.setdefault(row.day, [0, 0])[0] += row.points
        for draft in user.corrected:
            day = date.fromisoformat(draft.activity_date or "")
            figures.of_type(draft.event_type or "").after += draft.points
            months.setdefault(day, [0, 0])[1] += draft.points
            if self._replay.keep_days:
                self._add_day(user.user_id, day, draft.points)

    def _add_day(self, user: str, day: date, points: int) -> None:
        self._days[user, day] = self._days.get((user, day), 0) + points

    def _list(self, score: int, row: tuple[Any, ...], user: UserFold, worlds: tuple[World, World]) -> None:
        """List the user among those who change most, with the reasons, unless others change more."""
        if len(self._largest_changes) == TOP and (-score, user.user_id) > _rank(self._largest_changes[-1]):
            return
        corrected_before = sum(entry.points for entry in user.rows if entry.kind in INTO_DEBT)
        corrected_after = sum(draft.points for draft in user.corrected)
        other_texts = other_reasons(*worlds, (corrected_before, corrected_after))
        change = dict(zip(USERS.names, row, strict=True)) | {
            "score": score,
            "why": [*(reason.text for reason in reasons(user, self._replay.timeline)), *other_texts],
            "impossible": [f"{each.what} of {each.points} at {each.at}" for each in user.impossible],
        }
        self._largest_changes = sorted([*self._largest_changes, change], key=_rank)[:TOP]

    def answer(self) -> PartAnswer:
        """Return the answer for all users that were added."""
        figures = self._figures
        for terms in self._terms.all():
            entries, before, after, refused = terms.sums
            sums = figures.of_type(terms.event_type)
            sums.entries += entries
            sums.before += before
            sums.after += after
            sums.refused += refused
            sums.broken += refused if terms.is_broken else 0
        for day, (before, after) in self._months.items():
            if before or after:
                month = figures.of_month(f"{day:%Y-%m}")
                month[0] += before
                month[1] += after
        columns = zip(*self._rows, strict=True) if self._rows else [()] * len(USERS)
        arrays = [pa.array(values, kind) for values, kind in zip(columns, USERS.types, strict=True)]
        users = pa.table(arrays, USERS)
        return PartAnswer(users, figures, self._largest_changes, self._days, self._goal_figures)


def _rank(change: dict[str, Any]) -> tuple[int, str]:
    """Return what changes are sorted by: the largest first."""
    return -change["score"], change["user_id"]
