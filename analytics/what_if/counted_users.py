"""Users replayed one after the other, and their figures added up: what one process does."""

from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

import pyarrow as pa

from analytics.what_if.figures import USERS, Figures, RunLengths
from analytics.what_if.goals import Goals, Kept
from analytics.what_if.reasons import other_reasons, reasons
from analytics.what_if.timeline import TermsMemo, Timeline
from analytics.what_if.user_fold import Row, UserFold, UserSettings, World, as_it_was
from analytics.what_if.user_settings import Todays
from rules.days import EPOCH
from rules.engagement.ledger import INTO_DEBT, EntryKind
from rules.engagement.streak import Streak, advance, opening_streak, shown_streak

TOP = 20
FIRST = EPOCH.date()
NO_DAY = -(1 << 23)  # in the place of the last active day, of whom there is none
NOBODYS = UserSettings()


@dataclass(frozen=True)
class Replay:
    """What every replay of a question needs. todays: which date is today for whom."""

    timeline: Timeline
    settings: dict[str, UserSettings]
    todays: Todays
    now: datetime
    keep_days: bool = False


@dataclass(slots=True)
class PartAnswer:
    """The answer for some users (see WhatIfAnswer)."""

    users: pa.Table
    figures: Figures
    top: list[dict[str, Any]]
    days: dict[tuple[str, date], int] = field(default_factory=dict)
    goals: Kept = field(default_factory=dict)

    def add(self, other: "PartAnswer") -> None:
        """Count other users in."""
        self.users = pa.concat_tables([self.users, other.users])
        self.figures.add(other.figures)
        self.top = sorted([*self.top, *other.top], key=_rank)[:TOP]
        self.days |= other.days
        self.goals |= other.goals


@dataclass(slots=True)
class FoldedStreak:
    """streak: None for no active date. shown: what shows today. ended: the lengths of earlier runs."""

    streak: Streak | None
    shown: int
    ended: list[int]

    @property
    def measures(self) -> tuple[int, int, int, int, int]:
        """What USERS has of it: shown, length, longest, active_days, last."""
        at = self.streak
        return (
            (self.shown, at.length, at.longest, at.active_days, (at.last - FIRST).days)
            if at
            else (0, 0, 0, 0, NO_DAY)
        )

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
        self._of, self._figures = replay, Figures()
        self._terms = TermsMemo(replay.timeline)
        self._goals_kept: Kept = {}
        kept = self._goals_kept if replay.keep_days else None
        self._goals = Goals(replay.timeline, replay.now, self._figures, kept)
        self._rows: list[tuple[Any, ...]] = []
        self._top: list[dict[str, Any]] = []
        self._months: dict[date, list[int]] = {}
        self._days: dict[tuple[str, date], int] = {}

    def add(self, rows: list[Row]) -> None:
        """Replay a user, and count in what comes of it. rows: of one user, in the ledger's order."""
        of, figures, name = self._of, self._figures, rows[0].user_id
        known = of.settings.get(name, NOBODYS)
        was = as_it_was(rows, known, of.now)
        user = UserFold(rows, of.timeline, self._terms, known).replay()
        then, today = user.world(of.now), of.todays.of(name)
        before = folded_streak(was, today)
        is_same = (was.active, was.cover) == (then.active, then.cover)
        after = before if is_same else folded_streak(then, today)
        before.count(figures.runs_before)
        after.count(figures.runs_after)
        self._count_events(user)
        self._count_others(user)
        self._goals.count(user, (was.cover, then.cover), today)
        row = (name, was.earned, was.balance, *before.measures, then.earned, then.balance, *after.measures)
        self._rows.append(row)
        changes = (
            then.earned - was.earned,
            then.balance - was.balance,
            after.measures[2] - before.measures[2],
        )
        if score := max(map(abs, changes)):
            self._list(score, row, user, (was, then))

    def _count_events(self, user: UserFold) -> None:
        months, keep_days = self._months, self._of.keep_days
        for row, terms, day, points in user.outcomes:
            sums, had = terms.sums, row.points
            month = months.get(row.day) or months.setdefault(row.day, [0, 0])
            sums[0] += 1
            sums[1] += had
            month[0] += had
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
            if self._of.keep_days:
                self._add_day(user.user_id, day, draft.points)

    def _add_day(self, user: str, day: date, points: int) -> None:
        self._days[user, day] = self._days.get((user, day), 0) + points

    def _list(self, score: int, row: tuple[Any, ...], user: UserFold, worlds: tuple[World, World]) -> None:
        """List the user among those who change most, with the reasons, unless others change more."""
        if len(self._top) == TOP and (-score, user.user_id) > _rank(self._top[-1]):
            return
        had = sum(each.points for each in user.rows if each.kind in INTO_DEBT)
        others = other_reasons(*worlds, (had, sum(each.points for each in user.corrected)))
        listed = dict(zip(USERS.names, row, strict=True)) | {
            "score": score,
            "why": [*(reason.text for reason in reasons(user, self._of.timeline)), *others],
            "impossible": [f"{each.what} of {each.points} at {each.at}" for each in user.impossible],
        }
        self._top = sorted([*self._top, listed], key=_rank)[:TOP]

    def answer(self) -> PartAnswer:
        """Return what all of them come to."""
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
        users = pa.table([pa.array(*each) for each in zip(columns, USERS.types, strict=True)], USERS)
        return PartAnswer(users, figures, self._top, self._days, self._goals_kept)


def _rank(listed: dict[str, Any]) -> tuple[int, str]:
    return -listed["score"], listed["user_id"]
