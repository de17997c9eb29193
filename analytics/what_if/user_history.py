"""The streaks and achievements that a candidate adds, changes or drops."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from analytics.what_if.figures import GoalChange
from rules.book.book import Book
from rules.book.goal_rules import AchievementRule


def streak_changes(old: Book, new: Book) -> Iterator[GoalChange]:
    """Yield the streaks that differ between two books, sorted by name."""
    for name in sorted(old.streaks.keys() | new.streaks.keys()):
        old_rule, new_rule = old.streaks.get(name), new.streaks.get(name)
        if old_rule != new_rule:
            per = (new_rule or old.streaks[name]).per
            yield GoalChange(name, _change(old_rule, new_rule), per.value)


def achievement_changes(old: Book, new: Book, streaks: Sequence[GoalChange]) -> Iterator[GoalChange]:
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
