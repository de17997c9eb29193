"""Achievements that the book declares (docs/rules.md, rule 15): a pure function of a user's ordered history.

A history is the user's EARN entries that nobody has reversed, ordered by the date that they count for, and
within it by when they occurred. Each condition is true from one entry on; so an achievement is dated at the
instant of one of them. What was corrected of a date's points (rule 12) counts with its first event.
What is older may be told by totals alone (ToldHistory): what became true in it is not dated here.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

from rules.book.book import Books
from rules.book.goal_rules import AchievementRule, Condition, ConditionKind, NeedKind, StreakRule
from rules.engagement.goals.goal_streaks import PastPeriods, fold_periods, rule_of
from rules.engagement.goals.measures import amounts, day_key
from rules.engagement.goals.told_history import POINTS, Position, ToldHistory, position
from rules.engagement.ledger import Entry
from rules.engagement.streaks import Cover

BEFORE: Position = (date.min, "")  # in what totals tell alone


@dataclass(frozen=True, slots=True)
class Declared:
    """An achievement, and the first date on which it may be earned: date.min if it is of history, too."""

    rule: AchievementRule
    since: date


def declared(books: Books, now: datetime) -> dict[str, Declared]:
    """Return the achievements of the book in force, by name."""
    found = {}
    for name, rule in books.at(now).book.achievements.items():
        first = min(each.effective_at for each in books.versions if name in each.book.achievements)
        found[name] = Declared(rule, date.min if rule.of_history else first.astimezone(UTC).date())
    return found


@dataclass(frozen=True, slots=True)
class StreakHistory:
    """A user's streaks by name, up to the newest period that is over or has been reached; and their cover."""

    periods: Mapping[str, PastPeriods]
    cover: Cover
    books: Books


def key_of(condition: Condition) -> str:
    """Return which total a condition is about."""
    if condition.kind is ConditionKind.POINTS:
        return POINTS
    return day_key(condition.event_type or "", condition.property)


def became_true(condition: Condition, told: ToldHistory, streaks: StreakHistory) -> Position | None:
    """Return the entry from which on a condition is true; BEFORE if totals alone tell it; None: it is not."""
    if condition.kind is ConditionKind.STREAK:
        return _streak_true(condition, told, streaks)
    key = key_of(condition)
    have = told.totals.get(key, 0)
    if have >= condition.at_least:
        return BEFORE
    for at, added in told.counted:
        have += added.get(key, 0)
        if have >= condition.at_least:
            return at
    return None


def _streak_true(condition: Condition, told: ToldHistory, streaks: StreakHistory) -> Position | None:
    """Return the entry by which the first period was reached that made a streak so long."""
    past = streaks.periods.get(condition.streak or "")
    first = first_of_length(past, streaks.cover, condition.at_least) if past else None
    if past is None or first is None:
        return None
    rule = rule_of(streaks.books, condition.streak or "")(first)
    if past.per.last(first) < told.since or rule is None:
        return BEFORE
    return reached_by(rule, first, told.entries)


def first_of_length(past: PastPeriods, cover: Cover, length: int) -> date | None:
    """Return the first period that made a streak so long; None if none did."""
    # Once a streak has been so long it has been so for good: its first time is found by halves.
    low, high = 0, len(past.letters)
    if fold_periods(past, cover).longest < length:
        return None
    while low < high:
        middle = (low + high) // 2
        if fold_periods(PastPeriods(past.per, past.first, past.letters[:middle]), cover).longest >= length:
            high = middle
        else:
            low = middle + 1
    return PastPeriods(past.per, past.first, past.letters[: low - 1]).end


def reached_by(rule: StreakRule, first: date, entries: Iterable[Entry]) -> Position | None:
    """Return the entry by which a period has what it needs; None if these entries do not reach it."""
    last, have, dates = rule.per.last(first), 0, set()
    for entry in entries:
        day, kind = position(entry)[0], entry.draft.event_type or ""
        if not first <= day <= last or kind not in rule.event_types or not entry.draft.measures:
            continue
        dates.add(day)
        have += amounts(kind, entry.draft.measures).get(day_key(kind, rule.need.property), 0)
        if (len(dates) if rule.need.kind is NeedKind.ACTIVE_DAYS else have) >= rule.need.at_least:
            return position(entry)
    return None


def earned(each: Declared, found: Sequence[Position | None], told: ToldHistory) -> Position | None:
    """Return the entry that an achievement is dated at; BEFORE if it lies in what totals tell; None for none.

    found: from where on each of its conditions is true.
    """
    known = [at for at in found if at is not None]
    if not known or (each.rule.needs_all and len(known) < len(found)):
        return None
    at = max(known) if each.rule.needs_all else min(known)
    return at if at == BEFORE or at[0] >= each.since else first_since(told, each.since)


def first_since(told: ToldHistory, since: date) -> Position | None:
    """Return the first entry of a date or later, of those that totals do not tell."""
    return next((at for at, _ in told.counted if at[0] >= since), None)


def instant(at: Position) -> str:
    """Return when an event of a history occurred, as a stamp."""
    return at[1].partition("#")[0]


def achieved(known: Mapping[str, Declared], told: ToldHistory, streaks: StreakHistory) -> dict[str, Position]:
    """Return the entry that each achievement is dated at, of those that are earned."""
    found = {}
    for name, each in known.items():
        at = earned(each, [became_true(c, told, streaks) for c in each.rule.conditions], told)
        if at is not None:
            found[name] = at
    return found
