"""Streaks and achievements that a candidate adds, changes or drops: who has them, and who would have them.

Only these are worked out, by the rules that answer live: over the history as it is, by the versions that
there are; and over the history as it would be, by those that there would be (Timeline.told).
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

from analytics.what_if.figures import Figures, GoalChange
from analytics.what_if.timeline import Terms, Timeline
from analytics.what_if.user_fold import Row, UserFold
from rules.book.book import Book, Books
from rules.book.goal_rules import AchievementRule, ConditionKind, StreakPeriod
from rules.book.point_rules import COUNTED
from rules.engagement.achievements import (
    StreakHistory,
    UserHistory,
    achievement_positions,
    declared_achievements,
    measured_days,
    ordered_history,
)
from rules.engagement.events import measures_of
from rules.engagement.goals import KnownPeriods, unsettled_goals
from rules.engagement.ledger import EARNING, Draft, Entry, EntryKind
from rules.engagement.streak import Cover

BEFORE, AFTER = "before", "after"
Kept = dict[tuple[str, str, str], tuple[int, int, int]]


@dataclass(frozen=True, slots=True)
class GoalWorld:
    """What is asked of one world. pers: the periods of its streaks that are needed.

    event_types: what any of it is about; None for all, because points count.
    """

    name: str
    books: Books
    changes: tuple[GoalChange, ...]
    pers: Mapping[str, StreakPeriod]
    event_types: frozenset[str] | None

    def concerns(self, user: UserFold) -> bool:
        """Whether a user may have any of it."""
        if not self.changes or self.event_types is None:
            return bool(self.changes)
        return not self.event_types.isdisjoint([row.event_type for row in user.rows])


class Goals:
    """The question of one candidate. now: which book is in force.

    kept: where the figures of each user go, by world, name and user: (current, longest, reached); None:
    nowhere.
    """

    def __init__(self, timeline: Timeline, now: datetime, figures: Figures, kept: Kept | None) -> None:
        self.timeline, self.now, self._kept = timeline, now, kept
        old, new = timeline.real_at(now), timeline.candidate
        figures.streaks = list(_streak_changes(old, new)) if new else []
        figures.achievements = list(_achievement_changes(old, new, figures.streaks)) if new else []
        changes = [*figures.streaks, *figures.achievements]
        self._before = _world(BEFORE, timeline.real, now, changes)
        self._after = _world(AFTER, timeline.told, now, changes)
        self._measured: dict[tuple[Any, ...], str | None] = {}

    @property
    def summed(self) -> set[str]:
        """The event types of which the versions that there would be sum a property."""
        books = [version.book for version in self.timeline.told.versions] if self._after.changes else []
        return {kind for book in books for kind in book.event_types if book.measured(kind)}

    def count(self, user: UserFold, covers: tuple[Cover, Cover], today: date) -> None:
        """Count a user in who was replayed. covers: before and after."""
        if self._before.concerns(user):
            self._count(self._before, user, _drafts_before(user.rows), covers[0], today)
        if self._after.concerns(user):
            self._count(self._after, user, self._drafts_after(user), covers[1], today)

    def _drafts_after(self, user: UserFold) -> Iterator[Draft]:
        for row, terms, day, points in user.outcomes:
            if points is not None:
                yield _event(row, day, points, self._measures(row, terms))
        yield from user.corrected

    def _count(
        self, world: GoalWorld, user: UserFold, drafts: Iterable[Draft], cover: Cover, today: date
    ) -> None:
        entries = ordered_history(Entry(user.user_id, "", 0, 0, draft) for draft in drafts)
        known = KnownPeriods(unsettled_goals(world.books), world.books, measured_days(entries))
        for change in world.changes:
            if change.per is not None:
                found, _ = known.standing(change.name, world.pers[change.name], today, cover)
                if found.reached:
                    figures = found.length, found.longest, found.reached
                    self._note(world, change, user.user_id, figures)
        achievements = {change.name: change for change in world.changes if change.per is None}
        if achievements:
            declared = declared_achievements(world.books, self.now)
            periods = {name: known.until(name, per, today) for name, per in world.pers.items()}
            streaks = StreakHistory(periods, cover, world.books)
            asked = {name: declared[name] for name in achievements}
            for name in achievement_positions(asked, UserHistory(entries), streaks):
                self._note(world, achievements[name], user.user_id, (1, 1, 1))

    def _note(self, world: GoalWorld, each: GoalChange, user: str, figures: tuple[int, int, int]) -> None:
        current, longest, _ = figures
        sums = each.before if world.name == BEFORE else each.after
        sums.reached += 1
        if each.per is not None:
            sums.current += current > 0
            sums.longest = max(sums.longest, longest)
        if self._kept is not None:
            self._kept[world.name, each.name, user] = figures

    def _measures(self, row: Row, terms: Terms) -> str | None:
        """Return what an event adds by its ruling. Without its properties, what was measured tells."""
        if not terms.ruling.is_new:
            return row.measures
        key = (terms.ruling.version, row.event_type, row.measures, row.properties)
        if key not in self._measured:
            self._measured[key] = self._measure(*key)
        return self._measured[key]

    def _measure(self, version: int | None, kind: str, was: str | None, sent: str | None) -> str | None:
        candidate, real = self.timeline.candidate, self.timeline.real
        book = candidate if version is None else real.numbered(version).book
        measured = book.measured(kind) if book else None
        if not measured or sent is not None:
            return measures_of(_read_object(sent), measured)
        said = [
            each for each in (was or COUNTED).split(",") if each.partition("=")[0] in (COUNTED, *measured)
        ]
        return ",".join(said)


def _drafts_before(rows: Sequence[Row]) -> Iterator[Draft]:
    for row in rows:
        if row.kind in EARNING:
            yield _event(row, row.day, row.points, row.measures, EntryKind(row.kind))


def _event(row: Row, day: date, points: int, measures: str | None, kind: EntryKind = EntryKind.EARN) -> Draft:
    return Draft(kind, points, row.event_id, row.event_type, day.isoformat(), measures=measures)


def _world(name: str, books: Books, now: datetime, changes: Sequence[GoalChange]) -> GoalWorld:
    """Return what a world is asked for. What a book lacks nobody has under it."""
    book = books.at(now).book
    some = tuple(
        change
        for change in changes
        if change.name in (book.achievements if change.per is None else book.streaks)
    )
    asked = {each.name for each in some if each.per is not None}
    conditions = [one for each in some if each.per is None for one in book.achievements[each.name].conditions]
    asked |= {one.streak for one in conditions if one.streak}
    rules = [(each, rule) for version in books.versions for each, rule in version.book.streaks.items()]
    pers = {each: rule.per for each, rule in book.streaks.items() if each in asked}
    types = {kind for each, rule in rules if each in asked for kind in rule.event_types}
    types |= {one.event_type for one in conditions if one.event_type}
    is_of_all = any(one.kind is ConditionKind.POINTS for one in conditions)
    return GoalWorld(name, books, some, pers, None if is_of_all else frozenset(types))


def _streak_changes(old: Book, new: Book) -> Iterator[GoalChange]:
    for name in sorted(old.streaks.keys() | new.streaks.keys()):
        was, is_now = old.streaks.get(name), new.streaks.get(name)
        if was != is_now:
            per = (new.streaks.get(name) or old.streaks[name]).per
            yield GoalChange(name, _change(was, is_now), per.value)


def _achievement_changes(old: Book, new: Book, streaks: Sequence[GoalChange]) -> Iterator[GoalChange]:
    """Yield what differs by itself, or by a streak that a condition is of. The lake has no titles."""
    moved = {streak.name for streak in streaks}
    for name in sorted(old.achievements.keys() | new.achievements.keys()):
        was, is_now = (_without_title(book.achievements.get(name)) for book in (old, new))
        conditions = [one for each in (was, is_now) if each for one in each.conditions]
        if was != is_now or any(one.streak in moved for one in conditions):
            titled = new.achievements.get(name) or old.achievements[name]
            yield GoalChange(name, _change(was, is_now), title=titled.title)


def _without_title(rule: AchievementRule | None) -> AchievementRule | None:
    return rule and replace(rule, title="")


def _change(was: object, is_now: object) -> str:
    return "new" if was is None else "removed" if is_now is None else "changed"


def _read_object(text: str | None) -> Any:
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
