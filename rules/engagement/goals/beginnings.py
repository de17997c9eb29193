"""From when the streaks and achievements of a published version count (docs/rules.md, rules 14 and 15)."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime

from rules.book.book import Book, Books, Version
from rules.book.goal_rules import NeedKind, StreakRule
from rules.engagement.goals.achievements import declared
from rules.engagement.goals.goal_streaks import midnight


@dataclass(frozen=True, slots=True)
class StreakBeginning:
    """The first period of a new streak, by its first and last date.

    counted_from: what occurs at this instant or later adds to it.
    """

    first: date
    last: date
    counted_from: datetime


def streak_beginning(before: Books, version: Version, rule: StreakRule) -> StreakBeginning:
    """Return from when a streak counts that a version declares. before: the versions without that one.

    What occurred before counts, too, as far back within the period as these measured all that the streak
    needs: what an event adds is fixed when it is accepted.
    """
    begun = max(version.effective_at, version.published_at)
    opening = midnight(rule.per.first(version.effective_at.date()))
    counted_from = begun
    for each in reversed(before.between(opening, begun)):
        since, until = before.in_force(each)
        if since in (until, begun):
            continue  # it was never in force, or is not any more
        if not _measures(each.book, rule):
            break
        counted_from = since
    counted_from = max(opening, counted_from)
    first = rule.per.first(max(version.effective_at, counted_from).date())
    return StreakBeginning(first, rule.per.last(first), counted_from)


def _measures(book: Book, rule: StreakRule) -> bool:
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
            found = streak_beginning(before, version, rule)
            begins = f"first period {found.first} to {found.last}"
            yield f"{name}: {begins}, counted from {_instant(found.counted_from)}"
        elif rule != old.streaks[name]:
            first = rule.per.first(version.effective_at.date())
            first = first if midnight(first) == version.effective_at else rule.per.after(first)
            yield f"{name}: changed for periods from {first} on"
    known = declared(books, version.effective_at)
    for name, achievement in new.achievements.items():
        if achievement == old.achievements.get(name):
            continue
        what = "" if name not in old.achievements else "changed; "
        since = known[name].since
        told = "all of history counts, and may date it"
        if not achievement.of_history:
            told = f"dated at {since} or later; what happened before counts towards it"
        yield f"{name}: {what}{told}"


def _instant(at: datetime) -> str:
    return f"{at:%Y-%m-%d}" if at == midnight(at.date()) else f"{at:%Y-%m-%d %H:%M} UTC"
