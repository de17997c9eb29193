"""Achievements that the book declares (docs/rules.md, rule 15): a pure function of a user's ordered history;
what is kept of them, so that nobody reads a whole ledger twice; and from when those of a published
version count.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from functools import cached_property

from rules.book.book import Book, Books, Version
from rules.book.goal_rules import AchievementRule, Condition, ConditionKind, NeedKind, StreakRule
from rules.engagement.events import amounts, day_key
from rules.engagement.goals import (
    EDITION,
    PastPeriods,
    fold_periods,
    is_rewritten,
    midnight,
    rule_of,
    settled_until,
)
from rules.engagement.ledger import EARNING, Entry, EntryKind
from rules.engagement.streak import Cover, cover_until

# A user's history in order, as achievements read it (docs/rules.md, rule 15).


Position = tuple[date, str]  # the date that an event counts for, and its id, which its instant begins
Step = tuple[Position, Mapping[str, int]]
POINTS = ""  # the key of points earned among totals


@dataclass(frozen=True)
class UserHistory:
    """A user's history: totals of dates before one, and all entries of later dates, in order.

    totals: by keys as a day's measures have; points earned under POINTS. head: the newest entry of the ledger
    that was read; head_of_the_past: the newest that counts for a date which totals tell.
    """

    entries: Sequence[Entry]
    totals: Mapping[str, int] = field(default_factory=dict)
    since: date = date.min
    head: str = ""
    head_of_the_past: str = ""

    @cached_property
    def counted(self) -> Sequence[Step]:
        """What the entries add that totals do not tell. Others are there for weeks that began before."""
        return [
            (position(each), added_totals(each)) for each in self.entries if position(each)[0] >= self.since
        ]

    def sums(self, until: date = date.max) -> dict[str, int]:
        """Return the totals of dates before one; of all."""
        sums = dict(self.totals)
        for at, added in self.counted:
            for key, amount in added.items() if at[0] < until else ():
                sums[key] = sums.get(key, 0) + amount
        return sums


def position(entry: Entry) -> Position:
    """Return an entry's place in the history."""
    return date.fromisoformat(entry.draft.activity_date or ""), entry.draft.event_id or ""


def ordered_history(entries: Iterable[Entry]) -> list[Entry]:
    """Return the entries that are a history, in its order; a date's first with what was corrected of it."""
    earning = [each for each in entries if each.draft.kind in EARNING and each.draft.activity_date]
    gone = {each.draft.event_id for each in earning if each.draft.kind is EntryKind.CLAWBACK}
    history, corrected = list[Entry](), Counter[str]()
    for each in earning:
        draft = each.draft
        if draft.kind is EntryKind.EARN and draft.event_id and draft.event_id not in gone:
            history.append(each)
        else:
            corrected[draft.activity_date or ""] += draft.points
    return [_corrected_entry(each, corrected) for each in sorted(history, key=position)]


def _corrected_entry(entry: Entry, points: Counter[str]) -> Entry:
    """Return an entry with what there is to correct of its date; the next one of this date stays as it is."""
    change = points.pop(entry.draft.activity_date or "", 0)
    return replace(entry, draft=replace(entry.draft, points=entry.draft.points + change)) if change else entry


def added_totals(entry: Entry) -> dict[str, int]:
    """Return what an entry adds to totals. An event is counted also where no book had it measured."""
    draft, kind = entry.draft, entry.draft.event_type or ""
    measured = amounts(kind, draft.measures) if draft.measures else {day_key(kind): 1}
    return {POINTS: draft.points, **measured}


BEFORE: Position = (date.min, "")  # in what totals tell alone


@dataclass(frozen=True, slots=True)
class DeclaredAchievement:
    """An achievement, and the first date on which it may be earned: date.min if it is of history, too."""

    rule: AchievementRule
    since: date


def declared_achievements(books: Books, now: datetime) -> dict[str, DeclaredAchievement]:
    """Return the achievements of the book in force, by name."""
    found = {}
    for name, rule in books.at(now).book.achievements.items():
        first = min(each.effective_at for each in books.versions if name in each.book.achievements)
        found[name] = DeclaredAchievement(rule, date.min if rule.of_history else first.astimezone(UTC).date())
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


def condition_position(condition: Condition, history: UserHistory, streaks: StreakHistory) -> Position | None:
    """Return the entry from which on a condition is true; BEFORE if totals alone tell it; None: it is not."""
    if condition.kind is ConditionKind.STREAK:
        return _streak_position(condition, history, streaks)
    key = key_of(condition)
    have = history.totals.get(key, 0)
    if have >= condition.at_least:
        return BEFORE
    for at, added in history.counted:
        have += added.get(key, 0)
        if have >= condition.at_least:
            return at
    return None


def _streak_position(condition: Condition, history: UserHistory, streaks: StreakHistory) -> Position | None:
    """Return the entry by which the first period was reached that made a streak so long."""
    past = streaks.periods.get(condition.streak or "")
    first = first_of_length(past, streaks.cover, condition.at_least) if past else None
    if past is None or first is None:
        return None
    rule = rule_of(streaks.books, condition.streak or "")(first)
    if past.per.last(first) < history.since or rule is None:
        return BEFORE
    return period_position(rule, first, history.entries)


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


def period_position(rule: StreakRule, first: date, entries: Iterable[Entry]) -> Position | None:
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


def achievement_position(
    each: DeclaredAchievement, found: Sequence[Position | None], history: UserHistory
) -> Position | None:
    """Return the entry that an achievement is dated at; BEFORE if it lies in what totals tell; None for none.

    found: from where on each of its conditions is true.
    """
    reached = [at for at in found if at is not None]
    if not reached or (each.rule.needs_all and len(reached) < len(found)):
        return None
    at = max(reached) if each.rule.needs_all else min(reached)
    return at if at == BEFORE or at[0] >= each.since else first_position_since(history, each.since)


def first_position_since(history: UserHistory, since: date) -> Position | None:
    """Return the first entry of a date or later, of those that totals do not tell."""
    return next((at for at, _ in history.counted if at[0] >= since), None)


def instant(at: Position) -> str:
    """Return when an event of a history occurred, as a stamp."""
    return at[1].partition("#")[0]


def achievement_positions(
    declared: Mapping[str, DeclaredAchievement], history: UserHistory, streaks: StreakHistory
) -> dict[str, Position]:
    """Return the entry that each achievement is dated at, of those that are earned."""
    found = {}
    for name, each in declared.items():
        at = achievement_position(
            each, [condition_position(c, history, streaks) for c in each.rule.conditions], history
        )
        if at is not None:
            found[name] = at
    return found


# What is kept of a user's achievements, so that nobody reads a whole ledger twice.
#
# It tells the history up to a date by totals, and what was earned in it. Whoever has read the ledger keeps
# it. Who has many entries has it up to a later date; and the whole answer, until anything changes that it
# follows from, so that asking again costs no more than asking about a short history. It is of no use any more
# if an entry has come that counts for a date of before, if freezes or pauses of before have changed, if a
# version of the book took effect in the past, or for an achievement that it does not know in this form. Then
# the whole ledger is read once more. What was shown of achievements that are never withdrawn is in it alone.


DIGEST_LENGTH = 8
# An entry's place is later than its event, whose instant lies within a day of its date.
PLACES_BEFORE = timedelta(days=2)
WEEK = timedelta(days=7)
# Of how many entries read the totals go up to the date that is settled, in place of its month's first.
MANY_ENTRIES = 1_000
# From how many on the answer is kept: 20 read units or so, which a write of the answer is worth.
ANSWERED_ENTRIES = 200


@dataclass(frozen=True, slots=True)
class AchievementSnapshot:
    """until: what counts for dates before it is told by totals. head: the newest entry that was known then.

    earned: in that history, by name. known: digests of the achievements that it was asked for. cover: digest
    of what covered streaks in it. shown: instants of achievements that were shown, and stay. version: the
    newest of the book that was known then. answer_of: what the kept answer follows from, "" for none. found,
    sums: that answer: instants of the achievements that the user has, and the totals of all dates. refused:
    what a request followed from that had more entries to read than one may, as answer_of, of any head.
    """

    until: date = date.min
    head: str = ""
    totals: Mapping[str, int] = field(default_factory=dict)
    earned: Mapping[str, Position] = field(default_factory=dict)
    known: Mapping[str, str] = field(default_factory=dict)
    cover: str = ""
    shown: Mapping[str, str] = field(default_factory=dict)
    version: int = 0
    answer_of: str = ""
    found: Mapping[str, str] = field(default_factory=dict)
    sums: Mapping[str, int] = field(default_factory=dict)
    refused: str = ""

    @property
    def text(self) -> str:
        """As JSON."""
        earned = {name: [day.isoformat(), event_id] for name, (day, event_id) in self.earned.items()}
        fields = (self.until.isoformat(), self.head, self.totals, earned, self.known, self.cover, self.shown)
        answer = (self.answer_of, self.found, self.sums)
        parts = (*fields, self.version, *answer, self.refused)
        return json.dumps([dict(each) if isinstance(each, Mapping) else each for each in parts])

    @classmethod
    def of(cls, text: str) -> "AchievementSnapshot":
        """Read a text; raises ValueError for one that is none of these."""
        until, head, totals, earned, *others = json.loads(text)
        positions = {name: (date.fromisoformat(day), event_id) for name, (day, event_id) in earned.items()}
        return cls(date.fromisoformat(until), head, totals, positions, *others)

    def places_from(self) -> str:
        """Return the place in the ledger after which all entries are needed to go on."""
        since = self.until - WEEK - PLACES_BEFORE if self.until > date.min else date.min
        return since.isoformat()

    def history_with(self, entries: Iterable[Entry]) -> UserHistory:
        """Return the history: what is kept, and these entries. They are all from places_from on."""
        entries = list(entries)
        of_the_past = (
            each.created_at
            for each in entries
            if each.draft.kind in EARNING and (each.draft.activity_date or "9") < self.until.isoformat()
        )
        newest = max((each.created_at for each in entries), default=self.head)
        return UserHistory(
            ordered_history(entries), self.totals, self.until, newest, max(of_the_past, default="")
        )

    def is_usable(
        self, declared: Mapping[str, DeclaredAchievement], streaks: StreakHistory, history: UserHistory
    ) -> bool:
        """Whether what is kept still is what the whole ledger would tell."""
        if self.until == date.min:
            return True
        return (
            all(self.known.get(name) == definitions_digest(each) for name, each in declared.items())
            and self.cover == definitions_digest(cover_until(streaks.cover, self.until))
            and history.head_of_the_past <= self.head
            and not is_rewritten(streaks.books, self.version, self.until)
        )


def answer_digest(head: str, achievements: Mapping[str, DeclaredAchievement], streaks: StreakHistory) -> str:
    """Return a digest of all that an answer follows from. head: the newest entry of the ledger."""
    declared = sorted((name, definitions_digest(each)) for name, each in achievements.items())
    periods = sorted(streaks.periods.items())
    return definitions_digest(
        (head, declared, periods, definitions_digest(streaks.cover), streaks.books.newest.number)
    )


def definitions_digest(thing: object) -> str:
    """Return what tells definitions and covers apart."""
    if isinstance(thing, Cover):
        thing = thing.freezes, thing.pauses, sorted(thing.skipped)
    return hashlib.sha256(f"{EDITION} {thing!r}".encode()).hexdigest()[:DIGEST_LENGTH]


def positions(
    kept: AchievementSnapshot,
    declared: Mapping[str, DeclaredAchievement],
    history: UserHistory,
    streaks: StreakHistory,
) -> dict[str, Position]:
    """Return the entry that each achievement is dated at. kept: is usable for `history`."""
    found = {}
    for name, at in achievement_positions(declared, history, streaks).items():
        dated = (
            kept.earned.get(name) or first_position_since(history, declared[name].since)
            if at == BEFORE
            else at
        )
        if dated is not None:
            found[name] = dated
    return found


def shown_achievements(
    kept: AchievementSnapshot, declared: Mapping[str, DeclaredAchievement], found: Mapping[str, Position]
) -> dict[str, str]:
    """Return the instant of each achievement that the user has: of those that are true, or stay."""
    stay = {name: at for name, at in kept.shown.items() if name in declared and declared[name].rule.stays}
    dated = {name: instant(at) for name, at in found.items()}
    return stay | {name: min(at, stay.get(name, at)) for name, at in dated.items()}


def snapshot_until(entries: int, now: datetime) -> date:
    """Return the date up to which totals tell the history of whom so many entries were read."""
    settled = settled_until(now)
    return settled if entries > MANY_ENTRIES else settled.replace(day=1)


def next_snapshot(
    kept: AchievementSnapshot,
    declared: Mapping[str, DeclaredAchievement],
    history: UserHistory,
    streaks: StreakHistory,
    now: datetime,
) -> AchievementSnapshot:
    """Return what is to be kept: the history up to a date that is settled, what was shown, and an answer."""
    found = positions(kept, declared, history, streaks)
    answer = shown_achievements(kept, declared, found)
    stays = {name: at for name, at in answer.items() if declared[name].rule.stays}
    head = max(history.head, kept.head)
    kept_answer: tuple[str, Mapping[str, str], Mapping[str, int]] = ("", {}, {})
    if len(history.entries) > ANSWERED_ENTRIES:
        kept_answer = (answer_digest(head, declared, streaks), answer, history.sums())
    others = {name: at for name, at in kept.shown.items() if name not in declared}
    until = max(kept.until, snapshot_until(len(history.entries), now))
    return AchievementSnapshot(
        until,
        head,
        history.sums(until),
        {name: at for name, at in found.items() if at[0] < until},
        {name: definitions_digest(each) for name, each in declared.items()},
        definitions_digest(cover_until(streaks.cover, until)),
        others | stays,
        streaks.books.newest.number,
        *kept_answer,
    )


# From when the streaks and achievements of a published version count (docs/rules.md, rules 14 and 15).


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
            found = streak_beginning(before, version, rule)
            begins = f"first period {found.first} to {found.last}"
            yield f"{name}: {begins}, counted from {_instant(found.counted_from)}"
        elif rule != old.streaks[name]:
            first = rule.per.first(version.effective_at.date())
            first = first if midnight(first) == version.effective_at else rule.per.after(first)
            yield f"{name}: changed for periods from {first} on"
    declared = declared_achievements(books, version.effective_at)
    for name, achievement in new.achievements.items():
        if achievement == old.achievements.get(name):
            continue
        what = "" if name not in old.achievements else "changed; "
        since = declared[name].since
        meaning = "all of history counts, and may date it"
        if not achievement.of_history:
            meaning = f"dated at {since} or later; what happened before counts towards it"
        yield f"{name}: {what}{meaning}"


def _instant(at: datetime) -> str:
    return f"{at:%Y-%m-%d}" if at == midnight(at.date()) else f"{at:%Y-%m-%d %H:%M} UTC"
