"""Achievements that the book declares (docs/rules.md, rule 15): a pure function of a user's ordered history.

In this order:

- a user's history, as achievements read it;
- the entry at which an achievement became true;
- the snapshot of a user's achievements that is stored, so that nobody reads a whole ledger twice.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from functools import cached_property

from rules.book.book import Books
from rules.book.goal_rules import AchievementRule, Condition, ConditionKind, NeedKind, StreakRule
from rules.engagement.events import amounts, day_key, with_measures
from rules.engagement.goals import (
    EDITION,
    PastPeriods,
    fold_periods,
    is_rewritten,
    rule_of,
    settled_until,
)
from rules.engagement.ledger import EARNING, Entry, EntryKind
from rules.engagement.streak import Cover, cover_until

Position = tuple[date, str]  # the date that an event counts for, and the event's id, which its instant begins
Step = tuple[Position, Mapping[str, int]]  # an entry, and what it adds to totals
POINTS = ""  # the key of points earned among totals
# In place of a position: it is already true by the totals, whose entries are not there.
WITHIN_TOTALS: Position = (date.min, "")

DIGEST_LENGTH = 8
# An entry's place is later than its event, whose instant lies within a day of its date.
PLACES_BEFORE = timedelta(days=2)
WEEK = timedelta(days=7)
# If more entries than this were read, totals go up to the newest settled date, not only to its month's first.
MANY_ENTRIES = 1_000
# If more entries than this were read, the answer is kept: it spares about 20 read units, what writing it
# costs.
ANSWERED_ENTRIES = 200


@dataclass(frozen=True)
class UserHistory:
    """A user's history: totals of all dates before `since`, and the entries of later dates, in order.

    Entries of some days before `since` are among them, too: for weeks that began there.
    """

    entries: Sequence[Entry]
    totals: Mapping[str, int] = field(default_factory=dict)  # by keys as a day's measures have, and POINTS
    since: date = date.min
    head: str = ""  # the newest entry of the ledger that was read
    head_of_the_past: str = ""  # the newest entry that counts for a date before `since`

    @cached_property
    def counted(self) -> Sequence[Step]:
        """What the entries add to the totals: those from `since` on."""
        return [
            (position(entry), added_totals(entry))
            for entry in self.entries
            if position(entry)[0] >= self.since
        ]

    def sums(self, until: date = date.max) -> dict[str, int]:
        """Return the totals of all dates before one; by default of all dates."""
        sums = dict(self.totals)
        for at, added in self.counted:
            for key, amount in added.items() if at[0] < until else ():
                sums[key] = sums.get(key, 0) + amount
        return sums


def position(entry: Entry) -> Position:
    """Return an entry's position in the history."""
    return date.fromisoformat(entry.draft.activity_date or ""), entry.draft.event_id or ""


def instant(at: Position) -> str:
    """Return when the event of a position occurred, as a stamp."""
    return at[1].partition("#")[0]


def ordered_history(entries: Iterable[Entry]) -> list[Entry]:
    """Return the entries that earned, without those that were taken back, in the history's order.

    A date's corrections are added to its first entry's points.
    """
    earning = [entry for entry in entries if entry.draft.kind in EARNING and entry.draft.activity_date]
    gone = {each.draft.event_id for each in earning if each.draft.kind is EntryKind.CLAWBACK}
    history, corrections = list[Entry](), Counter[str]()
    for each in earning:
        draft = each.draft
        if draft.kind is EntryKind.EARN and draft.event_id and draft.event_id not in gone:
            history.append(each)
        else:
            corrections[draft.activity_date or ""] += draft.points
    return [_corrected_entry(each, corrections) for each in sorted(history, key=position)]


def measured_days(history: Iterable[Entry]) -> dict[date, Mapping[str, int]]:
    """Return what streaks of the book count of each date. history: see ordered_history."""
    days: dict[date, Mapping[str, int]] = {}
    for draft in (entry.draft for entry in history):
        if draft.measures:
            day = date.fromisoformat(draft.activity_date or "")
            days[day] = with_measures(days.get(day, {}), draft.event_type or "", draft.measures)
    return days


def _corrected_entry(entry: Entry, corrections: Counter[str]) -> Entry:
    """Return an entry with the corrections of its date, which are taken out: later ones stay as they are."""
    change = corrections.pop(entry.draft.activity_date or "", 0)
    return replace(entry, draft=replace(entry.draft, points=entry.draft.points + change)) if change else entry


def added_totals(entry: Entry) -> dict[str, int]:
    """Return what an entry adds to totals. An event is counted also where no book had it measured."""
    draft, kind = entry.draft, entry.draft.event_type or ""
    measured = amounts(kind, draft.measures) if draft.measures else {day_key(kind): 1}
    return {POINTS: draft.points, **measured}


@dataclass(frozen=True, slots=True)
class DeclaredAchievement:
    """An achievement of the book."""

    rule: AchievementRule
    since: date  # the first date on which it may be earned; date.min: it is of history, too


def declared_achievements(books: Books, now: datetime) -> dict[str, DeclaredAchievement]:
    """Return the achievements of the book in force, by name."""
    found = {}
    for name, rule in books.at(now).book.achievements.items():
        first = min(version.effective_at for version in books.versions if name in version.book.achievements)
        found[name] = DeclaredAchievement(rule, date.min if rule.of_history else first.astimezone(UTC).date())
    return found


@dataclass(frozen=True, slots=True)
class StreakHistory:
    """A user's streaks by name, up to the newest period that is over or has been reached; and their cover."""

    periods: Mapping[str, PastPeriods]
    cover: Cover
    books: Books


def achievement_positions(
    declared: Mapping[str, DeclaredAchievement], history: UserHistory, streaks: StreakHistory
) -> dict[str, Position]:
    """Return the position at which each achievement that is earned became true; WITHIN_TOTALS included."""
    found = {}
    for name, each in declared.items():
        at = achievement_position(
            each, [condition_position(c, history, streaks) for c in each.rule.conditions], history
        )
        if at is not None:
            found[name] = at
    return found


def achievement_position(
    each: DeclaredAchievement, conditions: Sequence[Position | None], history: UserHistory
) -> Position | None:
    """Return the position at which an achievement became true.

    WITHIN_TOTALS if it was already true in the totals; None if it is not true yet. conditions: the same of
    each of its conditions.
    """
    reached = [at for at in conditions if at is not None]
    if not reached or (each.rule.needs_all and len(reached) < len(conditions)):
        return None
    at = max(reached) if each.rule.needs_all else min(reached)
    return at if at == WITHIN_TOTALS or at[0] >= each.since else first_position_since(history, each.since)


def first_position_since(history: UserHistory, since: date) -> Position | None:
    """Return the first position of a date or later, after the totals."""
    return next((at for at, _ in history.counted if at[0] >= since), None)


def condition_position(condition: Condition, history: UserHistory, streaks: StreakHistory) -> Position | None:
    """Return the position at which a condition became true.

    WITHIN_TOTALS if it was already true in the totals; None if it is not true yet.
    """
    if condition.kind is ConditionKind.STREAK:
        return _streak_position(condition, history, streaks)
    key = key_of(condition)
    have = history.totals.get(key, 0)
    if have >= condition.at_least:
        return WITHIN_TOTALS
    for at, added in history.counted:
        have += added.get(key, 0)
        if have >= condition.at_least:
            return at
    return None


def key_of(condition: Condition) -> str:
    """Return which total a condition is about."""
    if condition.kind is ConditionKind.POINTS:
        return POINTS
    return day_key(condition.event_type or "", condition.property)


def _streak_position(condition: Condition, history: UserHistory, streaks: StreakHistory) -> Position | None:
    """Return where the first period was reached that made the streak as long as a condition wants."""
    past = streaks.periods.get(condition.streak or "")
    first = first_of_length(past, streaks.cover, condition.at_least) if past else None
    if past is None or first is None:
        return None
    rule = rule_of(streaks.books, condition.streak or "")(first)
    if past.per.last(first) < history.since or rule is None:
        return WITHIN_TOTALS
    return period_position(rule, first, history.entries)


def first_of_length(past: PastPeriods, cover: Cover, length: int) -> date | None:
    """Return the first period that made a streak as long as `length`; None if none did."""
    # Its greatest length never falls while periods are added, so the first one is found by halves.
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
    """Return the position at which a period has what it needs; None if these entries do not reach it."""
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


@dataclass(frozen=True, slots=True)
class AchievementSnapshot:
    """What is kept of a user's achievements, so that nobody reads a whole ledger twice.

    Whoever has read the ledger keeps the history up to a date as totals, and what was earned in it. Of a long
    history the whole answer is kept, too, until anything changes that it follows from: so asking again costs
    no more than asking about a short history. It is stale, and the whole ledger is read once more, if

    (a) an entry has come that counts for a date before `until`,
    (b) freezes or pauses before `until` have changed,
    (c) a version of the book took effect in the past, or
    (d) an achievement is asked for that it does not have in this form.

    What was shown of achievements that are never withdrawn (`shown`) is nowhere else: it outlives a snapshot.
    """

    # The history up to a date, and what was earned in it.
    until: date = date.min  # totals are of the dates before it; date.min: nothing is kept
    head: str = ""  # the newest entry that was known then
    totals: Mapping[str, int] = field(default_factory=dict)
    earned: Mapping[str, Position] = field(default_factory=dict)  # by name, what was earned before `until`
    # What that follows from.
    forms: Mapping[str, str] = field(default_factory=dict)  # by name, digests of the achievements asked for
    cover: str = ""  # digest of what covered streaks before `until`
    # Instants of achievements that were shown, and are never withdrawn.
    shown: Mapping[str, str] = field(default_factory=dict)
    version: int = 0  # the newest version of the book that was known then
    # The answer of a long history.
    answer_of: str = ""  # digest of all that the answer follows from (answer_digest); "": no answer is kept
    answer: Mapping[str, str] = field(default_factory=dict)  # by name, instants of what the user has
    sums: Mapping[str, int] = field(default_factory=dict)  # the totals of all dates
    # Digest of the last request that would have read too many entries, so that it is refused without reading.
    refused: str = ""

    @property
    def text(self) -> str:
        """As JSON: a list of the fields, in their order."""
        earned = {name: [day.isoformat(), event_id] for name, (day, event_id) in self.earned.items()}
        history = (self.until.isoformat(), self.head, self.totals, earned, self.forms, self.cover)
        answer = (self.answer_of, self.answer, self.sums)
        parts = (*history, self.shown, self.version, *answer, self.refused)
        return json.dumps([dict(part) if isinstance(part, Mapping) else part for part in parts])

    @classmethod
    def of(cls, text: str) -> "AchievementSnapshot":
        """Read a text; raises ValueError for one that is none of these."""
        until, head, totals, stored, *others = json.loads(text)
        earned = {name: (date.fromisoformat(day), event_id) for name, (day, event_id) in stored.items()}
        return cls(date.fromisoformat(until), head, totals, earned, *others)

    def places_from(self) -> str:
        """Return the place in the ledger after which all entries are needed to go on."""
        since = self.until - WEEK - PLACES_BEFORE if self.until > date.min else date.min
        return since.isoformat()

    def history_with(self, entries: Iterable[Entry]) -> UserHistory:
        """Return the history that the snapshot and some entries make. entries: all from places_from on."""
        entries = list(entries)
        of_the_past = (
            entry.created_at
            for entry in entries
            if entry.draft.kind in EARNING and (entry.draft.activity_date or "9") < self.until.isoformat()
        )
        newest = max((entry.created_at for entry in entries), default=self.head)
        return UserHistory(
            entries=ordered_history(entries),
            totals=self.totals,
            since=self.until,
            head=newest,
            head_of_the_past=max(of_the_past, default=""),
        )

    def is_usable(
        self, declared: Mapping[str, DeclaredAchievement], streaks: StreakHistory, history: UserHistory
    ) -> bool:
        """Whether the snapshot is not stale. history: what history_with gives of it now."""
        if self.until == date.min:
            return True
        return (
            all(self.forms.get(name) == definitions_digest(each) for name, each in declared.items())
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
    """Return a digest by which two definitions, or two covers, differ."""
    if isinstance(thing, Cover):
        thing = thing.freezes, thing.pauses, sorted(thing.skipped)
    return hashlib.sha256(f"{EDITION} {thing!r}".encode()).hexdigest()[:DIGEST_LENGTH]


def dated_positions(
    snapshot: AchievementSnapshot,
    declared: Mapping[str, DeclaredAchievement],
    history: UserHistory,
    streaks: StreakHistory,
) -> dict[str, Position]:
    """Return the position that each achievement is dated at; a usable snapshot has those within totals."""
    found = {}
    for name, at in achievement_positions(declared, history, streaks).items():
        dated: Position | None = at
        if at == WITHIN_TOTALS:
            dated = snapshot.earned.get(name) or first_position_since(history, declared[name].since)
        if dated is not None:
            found[name] = dated
    return found


def shown_achievements(
    snapshot: AchievementSnapshot,
    declared: Mapping[str, DeclaredAchievement],
    dated: Mapping[str, Position],
) -> dict[str, str]:
    """Return the instant of each achievement that the user has: those that are true, or stay."""
    stay = {name: at for name, at in snapshot.shown.items() if name in declared and declared[name].rule.stays}
    instants = {name: instant(at) for name, at in dated.items()}
    return stay | {name: min(at, stay.get(name, at)) for name, at in instants.items()}


def snapshot_until(entries: int, now: datetime) -> date:
    """Return the date up to which totals are kept. entries: how many were read."""
    settled = settled_until(now)
    return settled if entries > MANY_ENTRIES else settled.replace(day=1)


def next_snapshot(
    snapshot: AchievementSnapshot,
    declared: Mapping[str, DeclaredAchievement],
    history: UserHistory,
    streaks: StreakHistory,
    now: datetime,
) -> AchievementSnapshot:
    """Return what is to be kept next: the history up to a date that is settled, what was shown, an answer."""
    dated = dated_positions(snapshot, declared, history, streaks)
    answer = shown_achievements(snapshot, declared, dated)
    # Those that the book does not declare any more stay as they were shown: a later version may have them.
    undeclared = {name: at for name, at in snapshot.shown.items() if name not in declared}
    until = max(snapshot.until, snapshot_until(len(history.entries), now))
    following = AchievementSnapshot(
        until=until,
        head=max(history.head, snapshot.head),
        totals=history.sums(until),
        earned={name: at for name, at in dated.items() if at[0] < until},
        forms={name: definitions_digest(each) for name, each in declared.items()},
        cover=definitions_digest(cover_until(streaks.cover, until)),
        shown=undeclared | {name: at for name, at in answer.items() if declared[name].rule.stays},
        version=streaks.books.newest.number,
    )
    if len(history.entries) <= ANSWERED_ENTRIES:
        return following
    answer_of = answer_digest(following.head, declared, streaks)
    return replace(following, answer_of=answer_of, answer=answer, sums=history.sums())
