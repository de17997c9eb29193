"""From when the streaks and achievements that a version of the book declares count (rules 14 and 15)."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime

from rules.book.book import Book, Books, Version
from rules.book.goal_rules import NeedKind, StreakRule
from rules.engagement.achievements import declared_achievements
from rules.engagement.goals import midnight


@dataclass(frozen=True, slots=True)
class StreakBeginning:
    """The first period of a new streak, by its first and last date."""

    first: date
    last: date
    counted_from: datetime  # what occurs at this instant or later adds to it


def streak_beginning(before: Books, version: Version, rule: StreakRule) -> StreakBeginning:
    """Return from when a streak counts that a version declares. before: the other versions.

    What an event adds to streaks is fixed when it is accepted. So earlier events of the first period count as
    far back as the versions in force then measured all that the streak needs.
    """
    begun = max(version.effective_at, version.published_at)
    opening = midnight(rule.per.first(version.effective_at.date()))
    counted_from = begun
    for each in reversed(before.between(opening, begun)):
        since, until = before.in_force(each)
        if since in (until, begun):
            continue  # the version was never in force, or another one has replaced all of it
        if not _is_measured(each.book, rule):
            break
        counted_from = since
    counted_from = max(opening, counted_from)
    first = rule.per.first(max(version.effective_at, counted_from).date())
    return StreakBeginning(first, rule.per.last(first), counted_from)


def _is_measured(book: Book, rule: StreakRule) -> bool:
    """Whether all that a streak needs of events is noted of those that a book judges."""
    for kind in rule.event_types & book.event_types.keys():
        summed = book.measured(kind)
        if summed is None or (rule.need.kind is NeedKind.SUM and rule.need.property not in summed):
            return False
    return True


def beginnings(books: Books, version: Version) -> Iterator[str]:
    """Yield a line for each streak and achievement that a version adds or changes: from when it counts.

    books: all versions, this one among them.
    """
    before = Books(each for each in books.versions if each.number != version.number)
    old, new = before.at(version.effective_at).book, version.book
    for name, rule in new.streaks.items():
        if name not in old.streaks:
            begin = streak_beginning(before, version, rule)
            first_period = f"first period {begin.first} to {begin.last}"
            yield f"{name}: {first_period}, counted from {_instant(begin.counted_from)}"
        elif rule != old.streaks[name]:
            first = rule.per.first(version.effective_at.date())
            if midnight(first) != version.effective_at:
                first = rule.per.after(first)  # the period that has begun is judged by the earlier rule
            yield f"{name}: changed for periods from {first} on"
    declared = declared_achievements(books, version.effective_at)
    for name, achievement in new.achievements.items():
        if achievement == old.achievements.get(name):
            continue
        prefix = "changed; " if name in old.achievements else ""
        if achievement.of_history:
            meaning = "all of history counts, and may date it"
        else:
            meaning = f"dated at {declared[name].since} or later; what happened before counts towards it"
        yield f"{name}: {prefix}{meaning}"


def _instant(at: datetime) -> str:
    return f"{at:%Y-%m-%d}" if at == midnight(at.date()) else f"{at:%Y-%m-%d %H:%M} UTC"
