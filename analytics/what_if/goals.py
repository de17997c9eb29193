"""Counts who has the streaks and achievements that a candidate changes, and who would have them.

The live rules compute them twice. First over the history as it is, by the versions of the book that exist.
Then over the history as it would be, by the versions that there would be (Timeline.predicted).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime

from analytics.what_if.figures import Figures, GoalChange, GoalSums
from analytics.what_if.timeline import Timeline
from analytics.what_if.user_history import LedgerRow, MeasuresMemo
from analytics.what_if.user_replay import UserReplay
from rules.book.book import Book, Books
from rules.book.goal_rules import AchievementRule, ConditionKind, StreakPeriod
from rules.engagement.achievements import (
    StreakHistory,
    UserHistory,
    achievement_positions,
    measured_days,
    ordered_history,
)
from rules.engagement.goals import KnownPeriods, declared_achievements, unsettled_goals
from rules.engagement.ledger import EARNING, Draft, Entry, EntryKind
from rules.engagement.streak import Cover


@dataclass(frozen=True, slots=True)
class GoalWorld:
    """The history as it is, or as it would be; and the goals that are computed from it."""

    is_after: bool  # whether it is the history as it would be
    books: Books
    # The changes whose streak or achievement the book in force has
    streaks: Sequence[GoalChange]
    achievements: Sequence[GoalChange]
    period_of: Mapping[str, StreakPeriod]  # by name, of all streaks that the changes are about or need
    event_types: frozenset[str] | None  # the types of events that count for the changes; None: all types

    def sums(self, change: GoalChange) -> GoalSums:
        """Return the sums of a streak or an achievement in this world."""
        return change.after if self.is_after else change.before

    @property
    def has_changes(self) -> bool:
        """Whether there is anything to compute."""
        return bool(self.streaks or self.achievements)

    def concerns(self, user: UserReplay) -> bool:
        """Whether a user may have any of these streaks and achievements."""
        if not self.has_changes or self.event_types is None:
            return self.has_changes
        return not self.event_types.isdisjoint([row.event_type for row in user.rows])


class Goals:
    """Computes the goals that a candidate changes, user by user, and counts them into figures."""

    def __init__(self, timeline: Timeline, now: datetime, figures: Figures, measures: MeasuresMemo) -> None:
        """Set the changes of streaks and achievements in `figures`, into which `count` will count.

        now: says which book is in force.
        """
        self.timeline, self.now = timeline, now
        figures.streaks, figures.achievements = _goal_changes(timeline, now)
        changes = [*figures.streaks, *figures.achievements]
        self._before = _world(timeline.real, now, changes, is_after=False)
        self._after = _world(timeline.predicted, now, changes, is_after=True)
        self._measures = measures

    def count(self, user: UserReplay, covers: tuple[Cover, Cover], today: date) -> None:
        """Count a user who was replayed. covers: what protects the user's streak, before and after."""
        if self._before.concerns(user):
            self._count_world(self._before, user, _drafts_before(user.rows), covers[0], today)
        if self._after.concerns(user):
            self._count_world(self._after, user, self._drafts_after(user), covers[1], today)

    def _drafts_after(self, user: UserReplay) -> Iterator[Draft]:
        for row, terms, day, points in user.outcomes:
            if points is not None:
                yield _event(row, day, points, self._measures(row, terms))
        yield from user.corrected

    def _count_world(
        self, world: GoalWorld, user: UserReplay, drafts: Iterable[Draft], cover: Cover, today: date
    ) -> None:
        """Count a user's goals in one world. drafts: the entries that earn there."""
        entries = ordered_history(Entry(user.user_id, "", 0, 0, draft) for draft in drafts)
        known = KnownPeriods(unsettled_goals(world.books), world.books, measured_days(entries))
        for change in world.streaks:
            streak, _ = known.standing(change.name, world.period_of[change.name], today, cover)
            if streak.reached:
                sums = world.sums(change)
                sums.reached += 1
                sums.current += streak.length > 0
                sums.longest = max(sums.longest, streak.longest)
        if not world.achievements:
            return
        achievements = {change.name: change for change in world.achievements}
        declared = declared_achievements(world.books, self.now)
        periods = {name: known.until(name, per, today) for name, per in world.period_of.items()}
        streaks = StreakHistory(periods, cover, world.books)
        rules = {name: declared[name] for name in achievements}
        for name in achievement_positions(rules, UserHistory(entries), streaks):
            world.sums(achievements[name]).reached += 1


def summed_types(timeline: Timeline, now: datetime) -> set[str]:
    """Return the event types of which a version of the predicted books sums a property.

    If the candidate changes no streak and no achievement that there would be, they are only those that earn
    points by an amount.
    """
    streaks, achievements = _goal_changes(timeline, now)
    has_changes = _world(timeline.predicted, now, [*streaks, *achievements], is_after=True).has_changes
    return {
        kind
        for version in timeline.predicted.versions
        for kind, rule in version.book.event_types.items()
        if (version.book.measured(kind) if has_changes else timeline.candidate and rule.by_amount)
    }


def _drafts_before(rows: Sequence[LedgerRow]) -> Iterator[Draft]:
    for row in rows:
        if row.kind in EARNING:
            yield _event(row, row.day, row.points, row.measures, EntryKind(row.kind))


def _event(
    row: LedgerRow, day: date, points: int, measures: str | None, kind: EntryKind = EntryKind.EARN
) -> Draft:
    return Draft(kind, points, row.event_id, row.event_type, day.isoformat(), measures=measures)


def _goal_changes(timeline: Timeline, now: datetime) -> tuple[list[GoalChange], list[GoalChange]]:
    """Return the streaks and the achievements in which the candidate differs from the book in force."""
    old, new = timeline.real_at(now), timeline.candidate
    if new is None:
        return [], []
    streaks = list(_streak_changes(old, new))
    return streaks, list(_achievement_changes(old, new, streaks))


def _streak_changes(old: Book, new: Book) -> Iterator[GoalChange]:
    for name in sorted(old.streaks.keys() | new.streaks.keys()):
        old_rule, new_rule = old.streaks.get(name), new.streaks.get(name)
        if old_rule != new_rule:
            per = (new_rule or old.streaks[name]).per
            yield GoalChange(name, _change(old_rule, new_rule), per.value)


def _achievement_changes(old: Book, new: Book, streaks: Sequence[GoalChange]) -> Iterator[GoalChange]:
    """Yield the achievements that differ, or have a condition of a streak that differs, sorted by name.

    streaks: those that differ. Titles are not compared: the figures come from the lake, which has none.
    """
    differing_streaks = {streak.name for streak in streaks}
    for name in sorted(old.achievements.keys() | new.achievements.keys()):
        old_rule = _without_title(old.achievements.get(name))
        new_rule = _without_title(new.achievements.get(name))
        conditions = [*(old_rule.conditions if old_rule else ()), *(new_rule.conditions if new_rule else ())]
        if old_rule != new_rule or any(condition.streak in differing_streaks for condition in conditions):
            titled = new.achievements.get(name) or old.achievements[name]
            yield GoalChange(name, _change(old_rule, new_rule), title=titled.title)


def _without_title(rule: AchievementRule | None) -> AchievementRule | None:
    return rule and replace(rule, title="")


def _change(old_rule: object | None, new_rule: object | None) -> str:
    """Return how two rules that differ do so. None: a book lacks the rule."""
    if old_rule is None:
        return "new"
    return "removed" if new_rule is None else "changed"


def _world(books: Books, now: datetime, changes: Sequence[GoalChange], *, is_after: bool) -> GoalWorld:
    """Return a world with the changes whose goal is in its book in force. Nobody has the others there."""
    book = books.at(now).book
    streaks = [change for change in changes if change.per is not None and change.name in book.streaks]
    achievements = [change for change in changes if change.per is None and change.name in book.achievements]
    conditions = [rule for change in achievements for rule in book.achievements[change.name].conditions]
    needed = {change.name for change in streaks} | {rule.streak for rule in conditions if rule.streak}
    period_of = {streak: rule.per for streak, rule in book.streaks.items() if streak in needed}
    types = {rule.event_type for rule in conditions if rule.event_type}
    for version in books.versions:
        for streak, rule in version.book.streaks.items():
            if streak in needed:
                types.update(rule.event_types)
    counts_points = any(rule.kind is ConditionKind.POINTS for rule in conditions)
    event_types = None if counts_points else frozenset(types)
    return GoalWorld(is_after, books, streaks, achievements, period_of, event_types)
