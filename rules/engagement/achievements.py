"""Achievements that the book declares (docs/rules.md, rule 15): a pure function of a user's ordered history.

In this order: a user's history, as achievements read it; the entry at which an achievement became true; the
snapshot of a user's achievements that is stored.
"""

import hashlib
import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from functools import cached_property
from typing import NamedTuple

from rules.book.book import Books
from rules.book.goal_rules import AchievementRule, Condition, ConditionKind, NeedKind, StreakRule
from rules.engagement.bonuses import DueBonus, PaidBonuses, with_bonuses
from rules.engagement.events import amounts, day_key, stamp_of, with_measures
from rules.engagement.goals import (
    EDITION,
    DeclaredAchievement,
    PastPeriods,
    fold_periods,
    is_rewritten,
    rule_of_period,
    settled_until,
)
from rules.engagement.ledger import EARNING, Entry, EntryKind
from rules.engagement.streak import Cover, cover_until

POINTS = ""  # the key of the points earned, in totals
DIGEST_LENGTH = 8
# An entry is later than its event, and the event's instant lies within a day of the date that it counts for.
# So the entries for a date are at most so long before the date.
ENTRIES_BEFORE_DATE_MAX = timedelta(days=2)
WEEK = timedelta(days=7)
RENEWED_AFTER = WEEK  # totals are stored anew once they can go up to a date so much later


class Position(NamedTuple):
    """The position of an event in a user's history. Positions sort as achievements read the history."""

    day: date  # the date that the event counts for
    event_id: str  # begins with the event's instant

    @property
    def instant(self) -> str:
        """When the event occurred, as a stamp."""
        return stamp_of(self.event_id)


# Stands for an unknown position: the totals alone make the achievement true, and their entries were not read.
WITHIN_TOTALS = Position(date.min, "")


class TotalsStep(NamedTuple):
    """What an entry adds to the totals."""

    at: Position
    added: Mapping[str, int]  # by the totals' keys


@dataclass(frozen=True)
class UserHistory:
    """A user's history: totals of all dates before `since`, and the entries of later dates, in order.

    Entries of the last days before `since` are among them, too, because a week may have begun there.
    """

    entries: Sequence[Entry]
    # By POINTS, and by rules.engagement.events.day_key
    totals: Mapping[str, int] = field(default_factory=dict)
    since: date = date.min
    head: str = ""  # the newest entry of the ledger that was read
    head_of_the_past: str = ""  # the newest entry that counts for a date before `since`
    bonuses: PaidBonuses = field(default_factory=dict)  # by all entries up to `head`

    @cached_property
    def steps(self) -> Sequence[TotalsStep]:
        """What each entry from `since` on adds to the totals, in order."""
        steps = (TotalsStep(_position(entry), _added_totals(entry)) for entry in self.entries)
        return [step for step in steps if step.at.day >= self.since]

    def sums(self, until: date = date.max) -> dict[str, int]:
        """Return the totals of all dates before one; by default of all dates."""
        sums = dict(self.totals)
        for step in self.steps:
            if step.at.day < until:
                for key, amount in step.added.items():
                    sums[key] = sums.get(key, 0) + amount
        return sums


def _position(entry: Entry) -> Position:
    return Position(entry.draft.day, entry.draft.event_id or "")


def _added_totals(entry: Entry) -> dict[str, int]:
    """Return the amounts that an entry adds to totals. Its event counts even if no book measured it."""
    draft, event_type = entry.draft, entry.draft.event_type or ""
    measured = amounts(event_type, draft.measures) if draft.measures else {day_key(event_type): 1}
    return {POINTS: draft.points, **measured}


def ordered_history(entries: Iterable[Entry]) -> list[Entry]:
    """Return the EARN entries of events that are not reversed, in the history's order.

    The points of all other entries of a date are added to its first EARN entry.
    """
    earning = [entry for entry in entries if entry.draft.kind in EARNING and entry.draft.activity_date]
    reversed_ids = {entry.draft.event_id for entry in earning if entry.draft.kind is EntryKind.CLAWBACK}
    history: list[Entry] = []
    corrections: Counter[str] = Counter()  # by activity date
    for entry in earning:
        draft = entry.draft
        if draft.kind is EntryKind.EARN and draft.event_id and draft.event_id not in reversed_ids:
            history.append(entry)
        else:
            corrections[draft.activity_date or ""] += draft.points
    corrected = []
    for entry in sorted(history, key=_position):
        if change := corrections.pop(entry.draft.activity_date or "", 0):
            draft = replace(entry.draft, points=entry.draft.points + change)
            corrected.append(replace(entry, draft=draft))
        else:
            corrected.append(entry)
    return corrected


def measured_days(history: Iterable[Entry]) -> dict[date, Mapping[str, int]]:
    """Return the measures of each date, for streaks of the book. history: see ordered_history."""
    days: dict[date, Mapping[str, int]] = {}
    for draft in (entry.draft for entry in history):
        if draft.measures:
            day = draft.day
            days[day] = with_measures(days.get(day, {}), draft.event_type or "", draft.measures)
    return days


def days_without(
    days: Mapping[date, Mapping[str, int]], entries: Iterable[Entry]
) -> dict[date, Mapping[str, int]]:
    """Return the measures of days without those of some entries; of other dates nothing is known."""
    left = dict(days)
    for draft in (entry.draft for entry in entries):
        if draft.day in left:
            left[draft.day] = with_measures(left[draft.day], draft.event_type or "", draft.measures, -1)
    return left


@dataclass(frozen=True, slots=True)
class StreakHistory:
    """A user's streaks by name, up to the newest period that is over or has been reached; and their cover."""

    periods: Mapping[str, PastPeriods]
    cover: Cover
    books: Books


def achievement_positions(
    declared: Mapping[str, DeclaredAchievement], history: UserHistory, streaks: StreakHistory
) -> dict[str, Position]:
    """Return by name the position at which each earned achievement became true, or WITHIN_TOTALS.

    One that became true before it may be earned (`since`) is earned by the first event that counts from then.
    """
    positions = {}
    for name, achievement in declared.items():
        rule = achievement.rule
        conditions = [_condition_position(condition, history, streaks) for condition in rule.conditions]
        reached = [at for at in conditions if at is not None]
        if not reached or (rule.needs_all and len(reached) < len(conditions)):
            continue
        at = max(reached) if rule.needs_all else min(reached)
        if at == WITHIN_TOTALS or at.day >= achievement.since:
            positions[name] = at
        elif later := _first_position_since(history, achievement.since):
            positions[name] = later
    return positions


def _first_position_since(history: UserHistory, since: date) -> Position | None:
    """Return the first position on a date or later, after the totals; None if there is none."""
    return next((step.at for step in history.steps if step.at.day >= since), None)


def _condition_position(
    condition: Condition, history: UserHistory, streaks: StreakHistory
) -> Position | None:
    """Return the position at which a condition became true.

    WITHIN_TOTALS if the totals alone make it true; None if it is not true yet.
    """
    if condition.kind is ConditionKind.STREAK:
        return _streak_position(condition, history, streaks)
    key = key_of(condition)
    total = history.totals.get(key, 0)
    if total >= condition.at_least:
        return WITHIN_TOTALS
    for step in history.steps:
        total += step.added.get(key, 0)
        if total >= condition.at_least:
            return step.at
    return None


def key_of(condition: Condition) -> str:
    """Return the key of the total that a condition is about."""
    if condition.kind is ConditionKind.POINTS:
        return POINTS
    return day_key(condition.event_type or "", condition.property)


def _streak_position(condition: Condition, history: UserHistory, streaks: StreakHistory) -> Position | None:
    """Return the position at which the period was reached that made a streak as long as a condition needs."""
    past = streaks.periods.get(condition.streak or "")
    if past is None:
        return None
    first = _first_of_length(past, streaks.cover, condition.at_least)
    if first is None:
        return None
    rule = rule_of_period(streaks.books, condition.streak or "", first)
    if past.per.last(first) < history.since or rule is None:
        return WITHIN_TOTALS
    return _period_position(rule, first, history.entries)


def _first_of_length(past: PastPeriods, cover: Cover, length: int) -> date | None:
    """Return the first period that made a streak as long as `length`; None if none did."""

    def longest(count: int) -> int:
        """Return the greatest length after so many periods. It never falls while periods are added."""
        return fold_periods(replace(past, letters=past.letters[:count]), cover).longest

    counts = range(len(past.letters) + 1)
    count = bisect_left(counts, length, key=longest)
    return past.per.later(past.first, count - 1) if count in counts else None


def _period_position(rule: StreakRule, first: date, entries: Iterable[Entry]) -> Position | None:
    """Return the position at which a period's need is met; None if these entries do not meet it."""
    last, total, dates = rule.per.last(first), 0, set()
    for entry in entries:
        day, event_type = entry.draft.day, entry.draft.event_type or ""
        if not first <= day <= last or event_type not in rule.event_types or not entry.draft.measures:
            continue
        dates.add(day)
        measured = amounts(event_type, entry.draft.measures)
        total += measured.get(day_key(event_type, rule.need.property), 0)
        progress = len(dates) if rule.need.kind is NeedKind.ACTIVE_DAYS else total
        if progress >= rule.need.at_least:
            return _position(entry)
    return None


@dataclass(frozen=True, slots=True)
class AchievementSnapshot:
    """The stored part of a user's achievements, so that nobody reads a whole ledger twice.

    A reader who has read the ledger stores the history up to a date as totals, and the achievements that were
    earned in it. A snapshot is stale (not is_usable), and the whole ledger is read once more, if

    (a) a new entry counts for a date before `until`,
    (b) freezes, pauses or choices of rest days before `until` have changed,
    (c) a version of the book took effect in the past, or
    (d) an achievement is read whose definition the snapshot does not have.

    Achievements that are never withdrawn are stored here alone (`shown`). So `shown` is taken over from a
    stale snapshot.
    """

    # The history up to a date, and the achievements that were earned in it.
    until: date = date.min  # totals are of the dates before it; date.min: no history is stored
    head: str = ""  # the newest entry at that time
    totals: Mapping[str, int] = field(default_factory=dict)  # see UserHistory
    earned: Mapping[str, Position] = field(default_factory=dict)  # by name, those earned before `until`
    # What `earned` follows from, as digests: the definitions of the achievements that were read; and the
    # freezes, pauses and choices of rest days before `until`. Exports show it, so it names no secret.
    definitions: frozenset[str] = frozenset()
    cover: str = ""
    # By name, instants of achievements that were shown, and are never withdrawn.
    shown: Mapping[str, str] = field(default_factory=dict)
    version: int = 0  # the newest version of the book at that time
    # The bonuses of all entries up to a place: the newest entry when `until` was set.
    bonuses: PaidBonuses = field(default_factory=dict)
    bonuses_through: str = ""

    @property
    def text(self) -> str:
        """The snapshot as JSON: a list of the fields, in their order."""
        earned = {name: [at.day.isoformat(), at.event_id] for name, at in self.earned.items()}
        history = [self.until.isoformat(), self.head, dict(self.totals), earned]
        bonuses = [dict(self.bonuses), self.bonuses_through]
        return json.dumps(
            [*history, sorted(self.definitions), self.cover, dict(self.shown), self.version, *bonuses]
        )

    @classmethod
    def of(cls, text: str) -> "AchievementSnapshot":
        """Read a text; raises ValueError for any other text."""
        try:
            until, head, totals, stored, definitions, cover, shown, version, *bonuses = json.loads(text)
            earned = {
                name: Position(date.fromisoformat(day), event_id) for name, (day, event_id) in stored.items()
            }
            if not bonuses:  # of before there were bonuses
                return cls(shown=shown)
            return cls(
                *(date.fromisoformat(until), head, totals, earned, frozenset(definitions), cover, shown),
                version,
                *bonuses,
            )
        except (AttributeError, RecursionError, TypeError) as error:
            raise ValueError(f"no snapshot: {error}") from error

    def next_until(self, now: datetime) -> date:
        """Return the date that the totals of the next snapshot go up to."""
        settled = settled_until(now)
        return settled if settled - self.until >= RENEWED_AFTER else self.until

    def place_before_later(self) -> str:
        """Return a place in the ledger before all entries that `history_with` needs."""
        if self.until == date.min:
            return self.until.isoformat()
        return (self.until - WEEK - ENTRIES_BEFORE_DATE_MAX).isoformat()

    def history_with(self, entries: Iterable[Entry]) -> UserHistory:
        """Return the history of the snapshot's totals and later entries: all after place_before_later."""
        entries = list(entries)
        of_the_past = (
            entry.created_at
            for entry in entries
            if entry.draft.kind in EARNING
            and entry.draft.activity_date
            and entry.draft.activity_date < self.until.isoformat()
        )
        newest = max((entry.created_at for entry in entries), default=self.head)
        later = (entry for entry in entries if entry.created_at > self.bonuses_through)
        return UserHistory(
            entries=ordered_history(entries),
            totals=self.totals,
            since=self.until,
            head=newest,
            head_of_the_past=max(of_the_past, default=""),
            bonuses=with_bonuses(self.bonuses, later),
        )

    def is_usable(
        self, declared: Mapping[str, DeclaredAchievement], streaks: StreakHistory, history: UserHistory
    ) -> bool:
        """Whether the snapshot is not stale. history: by history_with."""
        if self.until == date.min:
            return True
        return (
            history.head_of_the_past <= self.head
            and self.cover == _cover_digest(streaks.cover, self.until)
            and not is_rewritten(streaks.books, self.version, self.until)
            and self.definitions >= _definition_digests(declared)
        )


def is_about(rule: AchievementRule, event_types: Container[str], streaks: Mapping[str, StreakRule]) -> bool:
    """Return whether an event of one of these types may make an achievement true. streaks: of the book."""
    counted = (
        streaks[name].event_types if (name := condition.streak or "") in streaks else {condition.event_type}
        for condition in rule.conditions
    )
    has_points = any(condition.kind is ConditionKind.POINTS for condition in rule.conditions)
    return has_points or any(each in event_types for types in counted for each in types)


def definition_digest(name: str, achievement: DeclaredAchievement) -> str:
    """Return a digest by which two definitions of achievements differ, or their names."""
    return _digest((name, achievement))


def _definition_digests(declared: Mapping[str, DeclaredAchievement]) -> frozenset[str]:
    return frozenset(definition_digest(name, achievement) for name, achievement in declared.items())


def _cover_digest(cover: Cover, until: date) -> str:
    """Return a digest by which two covers differ before a date."""
    before = cover_until(cover, until)
    return _digest((before.freezes, before.pauses, sorted(before.skipped), before.rest.chosen))


def _digest(content: object) -> str:
    return hashlib.sha256(f"{EDITION} {content!r}".encode()).hexdigest()[:DIGEST_LENGTH]


def dated_positions(
    snapshot: AchievementSnapshot,
    declared: Mapping[str, DeclaredAchievement],
    history: UserHistory,
    streaks: StreakHistory,
) -> dict[str, Position]:
    """Return by name the position that each earned achievement is dated at.

    snapshot: a usable one. It has the positions of achievements that its totals make true.
    """
    positions = {}
    for name, at in achievement_positions(declared, history, streaks).items():
        dated: Position | None = at
        if at == WITHIN_TOTALS:
            dated = snapshot.earned.get(name) or _first_position_since(history, declared[name].since)
        if dated is not None:
            positions[name] = dated
    return positions


def shown_achievements(
    snapshot: AchievementSnapshot,
    declared: Mapping[str, DeclaredAchievement],
    dated: Mapping[str, Position],
) -> dict[str, str]:
    """Return by name the instants of the user's achievements: those that are true, and those that stay."""
    stay = {name: at for name, at in snapshot.shown.items() if name in declared and declared[name].rule.stays}
    earned = {name: min(at.instant, stay.get(name, at.instant)) for name, at in dated.items()}
    return stay | earned


def due_bonuses(
    declared: Mapping[str, DeclaredAchievement], dated: Mapping[str, Position]
) -> dict[str, DueBonus]:
    """Return by name the bonuses of achievements that are true. dated: see dated_positions."""
    return {
        name: DueBonus(at.day, declared[name].rule.points)
        for name, at in dated.items()
        if declared[name].rule.points
    }


def next_snapshot(
    snapshot: AchievementSnapshot,
    declared: Mapping[str, DeclaredAchievement],
    history: UserHistory,
    streaks: StreakHistory,
    now: datetime,
) -> AchievementSnapshot:
    """Return the snapshot to store next: of the history up to the newest settled date.

    snapshot: the one that history was made with. If the next one goes up to a later date, the history must
    have been read strongly.
    """
    dated = dated_positions(snapshot, declared, history, streaks)
    achieved = shown_achievements(snapshot, declared, dated)
    # Shown achievements that the book no longer declares stay: a later version may declare them again.
    undeclared = {name: at for name, at in snapshot.shown.items() if name not in declared}
    until, head = snapshot.next_until(now), max(history.head, snapshot.head)
    has_all_bonuses = until > snapshot.until
    return AchievementSnapshot(
        until=until,
        head=head,
        totals=history.sums(until),
        earned={name: at for name, at in dated.items() if at.day < until},
        definitions=_definition_digests(declared),
        cover=_cover_digest(streaks.cover, until),
        shown=undeclared | {name: at for name, at in achieved.items() if declared[name].rule.stays},
        version=streaks.books.newest.number,
        bonuses=history.bonuses if has_all_bonuses else snapshot.bonuses,
        bonuses_through=head if has_all_bonuses else snapshot.bonuses_through,
    )
