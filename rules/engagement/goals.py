"""Streaks that the book declares (docs/rules.md, rule 14): a pure function of days, cover and a date.

A streak is a row of periods: days, weeks or months. Each period has one letter, its outcome. Letters of past
periods are stored, so nobody reads ten years of days again.

In this order: the rule and the outcome of a period; the streak after some periods; the stored part, and all
periods that it and the later days lead to; why a period counts; from when the streaks and achievements of a
new version of the book count.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum

from rules.book.book import Book, Books, Version
from rules.book.daily import DailyRules, weekday_names
from rules.book.goal_rules import AchievementRule, Need, NeedKind, StreakPeriod, StreakRule
from rules.days import DAY, stamp, start_on
from rules.engagement.account_state import Profile
from rules.engagement.events import day_key
from rules.engagement.packed_dates import (
    Changes,
    Spans,
    pack_changes,
    pack_spans,
    unpack_changes,
    unpack_spans,
)
from rules.engagement.periods import WEEKLY, first_period_from
from rules.engagement.rest_days import Choice, choice_of_text, choice_text, first_date_to_come
from rules.engagement.streak import Cover, StreakStatus

MeasuredDays = Mapping[date, Mapping[str, int]]
PERIOD_MAX = timedelta(days=31)  # no period is longer
# One day more than rules.engagement.account.PAST_AFTER: the clocks of two writers may be on two dates.
DAYS_SETTLED_AFTER = timedelta(days=8)
# The edition of the rules of periods and achievements. Results stored by another edition are computed anew.
EDITION = 3


class PeriodOutcome(StrEnum):
    """What became of a period. A missed one says what may cover it."""

    REACHED = "R"
    UNASKED = "-"  # the book asked nothing of it
    MISSED = "m"  # nothing may cover it
    FREEZABLE = "f"  # missed; a freeze may cover it
    PAUSABLE = "p"  # missed; a pause may cover it
    COVERABLE = "b"  # missed; either may cover it
    # The same four, where a rest date is no miss
    RESTABLE = "n"
    FREEZABLE_OR_REST = "g"
    PAUSABLE_OR_REST = "q"
    COVERABLE_OR_REST = "c"


# By whether freezes, whether pauses, and whether rest days count for the streak
MISSED = {
    (False, False, False): PeriodOutcome.MISSED,
    (True, False, False): PeriodOutcome.FREEZABLE,
    (False, True, False): PeriodOutcome.PAUSABLE,
    (True, True, False): PeriodOutcome.COVERABLE,
    (False, False, True): PeriodOutcome.RESTABLE,
    (True, False, True): PeriodOutcome.FREEZABLE_OR_REST,
    (False, True, True): PeriodOutcome.PAUSABLE_OR_REST,
    (True, True, True): PeriodOutcome.COVERABLE_OR_REST,
}
BY_FREEZES = frozenset(letter for (freezes, _, _), letter in MISSED.items() if freezes)
BY_PAUSES = frozenset(letter for (_, pauses, _), letter in MISSED.items() if pauses)
BY_REST_DAYS = frozenset(letter for (_, _, rest_days), letter in MISSED.items() if rest_days)


@dataclass(frozen=True, slots=True)
class GoalStreak:
    """A streak after some periods."""

    length: int = 0  # 0 after a miss
    longest: int = 0
    reached: int = 0  # how many periods were reached in all
    last: date | None = None  # the first date of the newest period that was reached
    spent: tuple[date, ...] = ()  # first dates of the periods that a freeze covered


def midnight(day: date) -> datetime:
    """Return the instant at which a date begins in UTC: a book comes into force everywhere at once."""
    return datetime.combine(day, time(), UTC)


def judging_version(books: Books, name: str, first: date) -> tuple[Version, StreakRule | None]:
    """Return the version that judges a streak's period, and its rule; None if the book asks nothing of it.

    That is the version in force when the period begins. If it has no such streak, the first version of the
    period that has one judges it, as an opening rule: a period that begins without the rule is never missed.
    """
    begun = books.at(midnight(first))
    if (rule := begun.book.streaks.get(name)) is not None:
        return begun, rule
    for version in books.beginning(midnight(first), midnight(first) + PERIOD_MAX):
        if (rule := version.book.streaks.get(name)) is not None:
            if version.effective_at < midnight(rule.per.after(first)):
                return version, replace(rule, is_opening=True)
            break
    return begun, None


def rule_of_period(books: Books, name: str, first: date) -> StreakRule | None:
    """Return the rule of a streak's period; None if the book asks nothing of it."""
    _, rule = judging_version(books, name, first)
    return rule


def contribution_of(need: Need, event_types: Iterable[str], days: Iterable[Mapping[str, int]]) -> int:
    """Return how much days contribute to a need: a number of dates or of events, or a sum in thousandths."""
    keys = [day_key(event_type, need.property) for event_type in event_types]
    amounts = [sum(day.get(key, 0) for key in keys) for day in days]
    return sum(map(bool, amounts)) if need.kind is NeedKind.ACTIVE_DAYS else sum(amounts)


def dates_of(per: StreakPeriod, first: date) -> list[date]:
    """Return a period's dates."""
    return [first + number * DAY for number in range((per.after(first) - first).days)]


def progress(rule: StreakRule, first: date, days: MeasuredDays) -> int:
    """Return how much all days of a period contribute to its need."""
    period_days = [days[day] for day in dates_of(rule.per, first) if day in days]
    return contribution_of(rule.need, rule.event_types, period_days)


def outcome(rule: StreakRule | None, per: StreakPeriod, first: date, days: MeasuredDays) -> PeriodOutcome:
    """Return the outcome of a period that is over.

    The period is not asked for if its rule is for periods of another length. Nor is one that an opening rule
    judges, unless it was reached.
    """
    if rule is None or rule.per is not per:
        return PeriodOutcome.UNASKED
    if progress(rule, first, days) >= rule.need.at_least:
        return PeriodOutcome.REACHED
    return PeriodOutcome.UNASKED if rule.is_opening else MISSED[rule.freezes, rule.pauses, rule.rest_days]


def is_neutral(
    per: StreakPeriod, first: date, cover: Cover, *, by_pauses: bool = False, by_rest_days: bool = False
) -> bool:
    """Whether a period without success is no miss: most of its dates were neutral.

    Those that the zone skipped or a new start of the day cut short are. by_pauses, by_rest_days: whether
    paused dates, and whether rest dates are for the streak.
    """
    dates = dates_of(per, first)
    neutral = sum(
        day in cover.skipped
        or cover.rest.is_short(day)
        or (by_pauses and cover.is_paused(day))
        or (by_rest_days and cover.rest.includes(day))
        for day in dates
    )
    return 2 * neutral > len(dates)


@dataclass(frozen=True, slots=True)
class PastPeriods:
    """Consecutive periods, with one letter each (PeriodOutcome)."""

    per: StreakPeriod
    first: date  # the first date of the oldest period
    letters: str = ""  # oldest first

    @property
    def end(self) -> date:
        """The first date of the period after them."""
        return self.per.later(self.first, len(self.letters))

    def then(self, letters: str) -> "PastPeriods":
        """Return these periods with those that follow."""
        return replace(self, letters=self.letters + letters)


def fold_periods(past: PastPeriods, cover: Cover) -> GoalStreak:
    """Return the streak after some periods.

    Each streak uses a freeze for itself: the same freeze may cover a date of the daily streak, too.
    """
    per = past.per
    length, longest, newest_index, spent = 0, 0, -1, list[date]()
    for index, letter in enumerate(past.letters):
        if letter == PeriodOutcome.REACHED:
            length, newest_index = length + 1, index
            longest = max(longest, length)
        elif length and letter != PeriodOutcome.UNASKED:  # a miss after a miss costs nothing
            first = per.later(past.first, index)
            if is_neutral(
                per, first, cover, by_pauses=letter in BY_PAUSES, by_rest_days=letter in BY_REST_DAYS
            ):
                continue
            if letter in BY_FREEZES and cover.granted(per.last(first)) > len(spent):
                spent.append(first)
            else:
                length = 0
    last = per.later(past.first, newest_index) if newest_index >= 0 else None
    return GoalStreak(length, longest, past.letters.count(PeriodOutcome.REACHED), last, tuple(spent))


def shown_goal_streak(
    rule: StreakRule | None, past: PastPeriods, amount: int, cover: Cover
) -> tuple[GoalStreak, StreakStatus]:
    """Return a streak as it shows in the period after `past`, which is no miss before it is over.

    rule: of that period, None if the book asks nothing of it. amount: the period's progress so far.
    """
    is_reached = rule is not None and amount >= rule.need.at_least
    state = fold_periods(past.then(PeriodOutcome.REACHED if is_reached else PeriodOutcome.UNASKED), cover)
    if is_reached:
        status = StreakStatus.ACTIVE
    elif not state.length:
        status = StreakStatus.BROKEN if state.reached else StreakStatus.NONE
    elif (
        rule is None
        or rule.is_opening
        or is_neutral(past.per, past.end, cover, by_pauses=rule.pauses, by_rest_days=rule.rest_days)
    ):
        status = StreakStatus.ACTIVE
    else:
        status = StreakStatus.AT_RISK
    return state, status


@dataclass(frozen=True, slots=True)
class SettledGoals:
    """The stored part of a user's streaks: the letters of all periods that ended before a date.

    It also has the freezes, pauses and choices of rest days that began before the date, because a profile may
    lack the older ones (rules.engagement.brought_forward). A reader who has read the days of these periods
    stores it. It follows from the ledger, so it may be deleted at any time. It is no longer used (is_usable)
    once an entry has changed one of these days or freezes, which the profile then says (Profile.past_entry),
    or once a version of the book took effect in the past.
    """

    until: date  # the periods ended before it
    head: str = ""  # the profile's newest entry at that time
    past: Mapping[str, PastPeriods] = field(default_factory=dict)  # by the name of the streak
    version: int = 0  # the newest version of the book at that time
    freezes: Changes = ()
    pauses: Spans = ()
    rest_days: tuple[Choice, ...] = ()  # the user's choices that count from earlier dates on

    @property
    def text(self) -> str:
        """As a text: date, head, version, edition, chosen rest days; freezes; pauses; a line for each
        streak.
        """
        lines = (
            f"{name} {past.per} {past.first.isoformat()} {past.letters}"
            for name, past in sorted(self.past.items())
        )
        choices = (choice_text(*choice).replace(" ", ",") for choice in self.rest_days)
        first_line = " ".join((self.until.isoformat(), self.head, str(self.version), str(EDITION), *choices))
        return "\n".join((first_line, pack_changes(self.freezes), pack_spans(self.pauses), *lines))

    @classmethod
    def of(cls, text: str) -> "SettledGoals":
        """Read a text; raises ValueError for any other text, and for one of another edition."""
        first_line, freezes, pauses, *lines = text.split("\n")
        until, head, version, edition, *choices = first_line.split(" ")
        if int(edition) != EDITION:
            raise ValueError(f"edition {edition} was kept by other rules")
        past = {}
        for line in lines:
            name, per, first, letters = line.split(" ")
            for letter in set(letters):
                PeriodOutcome(letter)  # raises ValueError for a letter that is none
            past[name] = PastPeriods(StreakPeriod(per), date.fromisoformat(first), letters)
        protection = unpack_changes(freezes), unpack_spans(pauses)
        rest_days = tuple(choice_of_text(choice.replace(",", " ")) for choice in choices)
        return cls(date.fromisoformat(until), head, past, int(version), *protection, rest_days)

    def whole_cover(self, cover: Cover) -> Cover | None:
        """Return a profile's cover with the freezes and pauses that the profile lacks.

        None if some of them are in the ledger alone: nothing is stored, or the profile begins later than this
        ends.
        """
        if cover.brought_forward is None:
            return cover
        if not self.head or cover.brought_forward.start.last >= self.until:
            return None
        later = (change for change in cover.freezes if change[0] >= self.until)
        pauses = tuple(sorted({*self.pauses, *cover.pauses}))
        rest = replace(cover.rest, chosen=tuple(sorted({*self.rest_days, *cover.rest.chosen})))
        return replace(cover, freezes=(*self.freezes, *later), pauses=pauses, brought_forward=None, rest=rest)


def unsettled_goals(books: Books) -> SettledGoals:
    """Return the settled part of a user without a stored one: it ends where the first streak begins."""
    declared = [version.effective_at.date() for version in books.versions if version.book.streaks]
    return SettledGoals(min(declared, default=date.max))


def is_usable(stored: SettledGoals, profile: Profile, books: Books) -> bool:
    """Whether a stored part is still right: no entry and no version has changed its periods since."""
    return profile.past_entry <= stored.head and not is_rewritten(books, stored.version, stored.until)


def is_rewritten(books: Books, number: int, until: date) -> bool:
    """Whether a version with a higher number took effect in the past, before a date."""
    return any(
        version.effective_at < version.published_at and version.effective_at.date() < until
        for version in books.versions
        if version.number > number
    )


def settled_until(now: datetime) -> date:
    """Return the date before which days are settled. Profile.past_entry says if one still changes."""
    return now.date() - DAYS_SETTLED_AFTER


def first_date_needed(goals: SettledGoals) -> date:
    """Return the first date whose day is needed to continue a settled part.

    It is the first date of the longest period that `goals.until` lies in, because that period is not settled.
    """
    return min(per.first(goals.until) for per in StreakPeriod)


@dataclass(frozen=True, slots=True)
class KnownPeriods:
    """A user's periods, from the settled part and the days that follow it."""

    goals: SettledGoals
    books: Books
    days: MeasuredDays  # from first_date_needed(goals) on

    def before(self, name: str, per: StreakPeriod, until: date) -> PastPeriods:
        """Return all of a streak's periods that end before a date, from the first one that was reached.

        The date may lie within the settled part.
        """
        unsettled = per.first(self.goals.until)  # the first date of the first period that is not settled
        settled = self.goals.past.get(name) or PastPeriods(per, unsettled)
        end = per.first(until)  # the first date of the first period that is not asked for
        if end <= settled.first:
            return PastPeriods(per, end)
        if end <= unsettled:
            return replace(settled, letters=settled.letters[: per.between(settled.first, end)])
        if settled.letters:
            return settled.then(self._letters(name, per, unsettled, end))
        # No period is reached before the first day that contributes anything.
        begin = per.first(min((day for day in self.days if unsettled <= day), default=end))
        letters = self._letters(name, per, begin, end)
        reached = letters.find(PeriodOutcome.REACHED)
        if reached < 0:
            return PastPeriods(per, end)
        return PastPeriods(per, per.later(begin, reached), letters[reached:])

    def settled(self, until: date, head: str, cover: Cover) -> SettledGoals:
        """Return the settled part up to a date. head: the profile's newest entry, whose days have been read.
        cover: the whole one.

        It has streaks that the newest book does not declare, too: a later version may declare them again, and
        then they go on.
        """
        period_of = {name: past.per for name, past in self.goals.past.items()}
        since = self.books.at(midnight(first_date_needed(self.goals))).effective_at
        for version in self.books.versions:
            if since <= version.effective_at:
                period_of |= {name: rule.per for name, rule in version.book.streaks.items()}
        past = {name: self.before(name, per, until) for name, per in period_of.items()}
        reached = {name: periods for name, periods in past.items() if periods.letters}
        freezes = tuple((day, change) for day, change in sorted(cover.freezes) if day < until)
        pauses = tuple(sorted(span for span in cover.pauses if span[0] < until))
        choices = tuple(choice for choice in cover.rest.chosen if choice[0] < until)
        return SettledGoals(until, head, reached, self.books.newest.number, freezes, pauses, choices)

    def standing(
        self, name: str, per: StreakPeriod, when: date, cover: Cover
    ) -> tuple[GoalStreak, StreakStatus]:
        """Return a streak as it shows on a date."""
        first = per.first(when)
        rule = rule_of_period(self.books, name, first)
        amount = progress(rule, first, self.days) if rule else 0
        return shown_goal_streak(rule, self.before(name, per, first), amount, cover)

    def until(self, name: str, per: StreakPeriod, when: date) -> PastPeriods:
        """Return a streak's periods that are over on a date, and the current one if it is reached already."""
        first = per.first(when)
        letter = outcome(rule_of_period(self.books, name, first), per, first, self.days)
        past = self.before(name, per, first)
        return past.then(letter) if letter is PeriodOutcome.REACHED else past

    def _letters(self, name: str, per: StreakPeriod, begin: date, end: date) -> str:
        """Return the letters of the periods between two first dates, the second one not included."""
        letters = ""
        while begin < end:
            letters += outcome(rule_of_period(self.books, name, begin), per, begin, self.days)
            begin = per.after(begin)
        return letters


class PeriodReason(StrEnum):
    """Why a period counts or does not."""

    REACHED = "reached"
    FREEZE = "covered_by_freeze"
    PAUSE = "paused"
    REST = "rest_day"
    SKIPPED = "skipped_by_zone"
    SHORT = "short_date"
    MISSED = "missed"
    OPEN = "not_over_yet"
    UNASKED = "not_asked"
    BEFORE = "before_first_period"


def explain_period(
    past: PastPeriods, letter: PeriodOutcome, cover: Cover, *, is_over: bool, is_asked: bool = True
) -> tuple[PeriodReason, int]:
    """Return why the period that follows `past` counts or does not, and the length of the streak after it.

    letter: its outcome, or the outcome that it would have if it ended now. is_asked: whether the book asks
    anything of it.
    """
    before, after = fold_periods(past, cover), fold_periods(past.then(letter), cover)
    per, first = past.per, past.end
    if letter is PeriodOutcome.REACHED:
        reason = PeriodReason.REACHED
    elif letter is PeriodOutcome.UNASKED and (is_over or not is_asked):
        reason = PeriodReason.UNASKED
    elif neutral := _neutral_reason(per, first, cover, letter):
        reason = neutral
    elif not is_over:
        return PeriodReason.OPEN, before.length
    elif not before.reached:
        reason = PeriodReason.BEFORE
    else:
        reason = PeriodReason.FREEZE if first in after.spent else PeriodReason.MISSED
    return reason, after.length


def _neutral_reason(
    per: StreakPeriod, first: date, cover: Cover, letter: PeriodOutcome
) -> PeriodReason | None:
    """Return why a period is no miss, although no freeze covers it; None if it is one."""
    if is_neutral(per, first, cover):
        is_cut = per is StreakPeriod.DAY and cover.rest.is_short(first) and first not in cover.skipped
        return PeriodReason.SHORT if is_cut else PeriodReason.SKIPPED
    if letter in BY_PAUSES and is_neutral(per, first, cover, by_pauses=True):
        return PeriodReason.PAUSE
    by_rest_days, by_pauses = letter in BY_REST_DAYS, letter in BY_PAUSES
    if by_rest_days and is_neutral(per, first, cover, by_pauses=by_pauses, by_rest_days=True):
        return PeriodReason.REST
    return None


@dataclass(frozen=True, slots=True)
class DeclaredAchievement:
    """An achievement of the book."""

    rule: AchievementRule
    since: date  # the first date on which it may be earned; date.min: on any date


def declared_achievements(books: Books, now: datetime) -> dict[str, DeclaredAchievement]:
    """Return the achievements of the book in force, by name.

    One with points may be earned from the first date on that had begun nowhere when it was declared. So no
    event pays that was applied before.
    """
    declared = {}
    for name, rule in books.at(now).book.achievements.items():
        versions = [version for version in books.versions if name in version.book.achievements]
        if rule.of_history:
            since = date.min
        elif rule.points:
            since = min(first_date_to_come(max(each.effective_at, each.published_at)) for each in versions)
        else:
            since = min(version.effective_at for version in versions).astimezone(UTC).date()
        declared[name] = DeclaredAchievement(rule, since)
    return declared


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
    """Yield a line for each streak and achievement that a version adds or changes, and one for all levels.

    The line says from when it counts. Rest days and the day's start have a line, too. The first line says
    which version follows, if one does. books: all versions, this one among them.
    """
    _, until = books.in_force(version)
    if until is not None:
        yield f"in force until {stamp(until)}, when version {books.at(until).number} takes effect"
    before = Books(each for each in books.versions if each.number != version.number)
    old, new = before.at(version.effective_at).book, version.book
    yield from _daily_lines(before, books, version)
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
        pays = f"; pays {achievement.points:,} points once a user" if achievement.points else ""
        yield f"{name}: {prefix}{meaning}{pays}"
    yield from _board_lines(old, new, version)
    yield from _league_lines(old, new, version)
    if new.levels != old.levels:
        yield "levels: follow from all points ever earned, for everybody at once; nobody is notified"


def _board_lines(old: Book, new: Book, version: Version) -> Iterator[str]:
    """Yield from which period on boards count that a version adds, changes or leaves out."""
    following = first_date_judged(version) + DAY
    names = {rule.name: rule for rule in (*old.daily.boards, *new.daily.boards)}
    for rule in names.values():
        if rule in old.daily.boards and rule in new.daily.boards:
            continue
        first = first_period_from(rule, following)
        if rule not in new.daily.boards:
            yield f"board {rule.name}: ends" + (f" before its period {first.name}" if first else "")
        elif first is None:
            yield f"board {rule.name}: begins too early for this version, so it never counts"
        else:
            yield f"board {rule.name}: first period {first.name}, {first.first} to {first.last}"


def _league_lines(old: Book, new: Book, version: Version) -> Iterator[str]:
    """Yield from which week on a version begins, changes or ends leagues."""
    if new.daily.leagues == old.daily.leagues:
        return
    week = first_period_from(WEEKLY, first_date_judged(version) + DAY)
    does = ("change" if old.daily.leagues else "begin") if new.daily.leagues else "end"
    yield f"leagues: {does} with the week {week.name if week else ''}; the one before closes as it began"


def _daily_lines(before: Books, books: Books, version: Version) -> Iterator[str]:
    """Yield what a version changes of rest days and of the start of dates. before: the other versions."""
    old, new = before.at(version.effective_at).book.daily, version.book.daily
    if new.rest != old.rest:
        yield rest_days_line(old, new, first_date_judged(version).isoformat())
    starts = books.day_starts
    for day in sorted({since for since, _ in (*before.day_starts, *starts)} - {date.min}):
        if start_on(day, starts) != start_on(day, before.day_starts):
            times = start_on(day - DAY, starts), start_on(day, starts)
            yield day_starts_line(*times, (day - DAY).isoformat(), day.isoformat())
            break


def rest_days_line(old: DailyRules, new: DailyRules, first: str) -> str:
    """Return in words what a version does to rest days. first: the first date that it judges, in words."""
    if new.rest_days:
        weekdays = " and ".join(weekday_names(new.rest_days))
        meaning = f"no user misses a {weekdays.replace(' and ', ' or a ')}"
    elif new.chosen_max:
        meaning = f"a user may choose {new.chosen_max} weekday{'s' * (new.chosen_max > 1)}"
    else:
        meaning = "a date without activity on any weekday is a miss"
    ends = "; choices that users have made no longer count" if old.chosen_max and not new.chosen_max else ""
    return f"rest days: from {first} on, {meaning}{ends}. No earlier date changes"


def day_starts_line(before: time, after: time, first: str, second: str) -> str:
    """Return in words what another start of dates does. first: the last date that begins as before."""
    if after > before:
        change = f"{first} still begins at {before:%H:%M} and lasts until then, so it is longer"
    else:
        change = f"{first} still begins at {before:%H:%M}, so it is shorter and no miss for anybody"
    return (
        f"day's start: from {second} on, a date begins at {after:%H:%M} by the clock on the wall, and "
        f"earlier times belong to the date before. {change}. No earlier date changes"
    )


def first_date_judged(version: Version) -> date:
    """Return the first date whose rest days and end a version judges: in UTC it begins under the version."""
    begun = max(version.effective_at, version.published_at).astimezone(UTC)
    return begun.date() if midnight(begun.date()) == begun else begun.date() + DAY


def _instant(at: datetime) -> str:
    return f"{at:%Y-%m-%d}" if at == midnight(at.date()) else f"{at:%Y-%m-%d %H:%M} UTC"
