"""What is kept of a user's achievements, so that nobody reads a whole ledger twice.

It tells the history up to a date by totals, and what was earned in it. Whoever has read the ledger keeps it.
Who has many entries has it up to a later date; and the whole answer, until anything changes that it follows
from, so that asking again costs no more than asking about a short history.
It is of no use any more if an entry has come that counts for a date of before, if freezes or pauses of before
have changed, if a version of the book took effect in the past, or for an achievement that it does not know in
this form. Then the whole ledger is read once more. What was shown of achievements that are never withdrawn is
in it alone.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from rules.engagement.goals.achievements import (
    BEFORE,
    Declared,
    StreakHistory,
    achieved,
    first_since,
    instant,
)
from rules.engagement.goals.settled_goals import EDITION, is_rewritten, settled_until
from rules.engagement.goals.told_history import Position, ToldHistory, ordered
from rules.engagement.ledger import EARNING, Entry
from rules.engagement.streak.settled_streak import cover_until
from rules.engagement.streaks import Cover

DIGEST_LENGTH = 8
# An entry's place is later than its event, whose instant lies within a day of its date.
PLACES_BEFORE = timedelta(days=2)
WEEK = timedelta(days=7)
# Of how many entries read the totals go up to the date that is settled, in place of its month's first.
MANY_ENTRIES = 1_000
# From how many on the answer is kept: 20 read units or so, which a write of the answer is worth.
ANSWERED_ENTRIES = 200


@dataclass(frozen=True, slots=True)
class KeptAchievements:
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
        told = (self.until.isoformat(), self.head, self.totals, earned, self.known, self.cover, self.shown)
        answer = (self.answer_of, self.found, self.sums)
        parts = (*told, self.version, *answer, self.refused)
        return json.dumps([dict(each) if isinstance(each, Mapping) else each for each in parts])

    @classmethod
    def of(cls, text: str) -> "KeptAchievements":
        """Read a text; raises ValueError for one that is none of these."""
        until, head, totals, earned, *others = json.loads(text)
        positions = {name: (date.fromisoformat(day), event_id) for name, (day, event_id) in earned.items()}
        return cls(date.fromisoformat(until), head, totals, positions, *others)

    def places_from(self) -> str:
        """Return the place in the ledger after which all entries are needed to go on."""
        since = self.until - WEEK - PLACES_BEFORE if self.until > date.min else date.min
        return since.isoformat()

    def told(self, entries: Iterable[Entry]) -> ToldHistory:
        """Return the history: what is kept, and these entries. They are all from places_from on."""
        entries = list(entries)
        of_the_past = (
            each.created_at
            for each in entries
            if each.draft.kind in EARNING and (each.draft.activity_date or "9") < self.until.isoformat()
        )
        newest = max((each.created_at for each in entries), default=self.head)
        return ToldHistory(ordered(entries), self.totals, self.until, newest, max(of_the_past, default=""))

    def is_usable(self, known: Mapping[str, Declared], streaks: StreakHistory, told: ToldHistory) -> bool:
        """Whether what is kept still is what the whole ledger would tell."""
        if self.until == date.min:
            return True
        return (
            all(self.known.get(name) == digest(each) for name, each in known.items())
            and self.cover == digest(cover_until(streaks.cover, self.until))
            and told.head_of_the_past <= self.head
            and not is_rewritten(streaks.books, self.version, self.until)
        )


def answer_of(head: str, known: Mapping[str, Declared], streaks: StreakHistory) -> str:
    """Return a digest of all that an answer follows from. head: the newest entry of the ledger."""
    declared = sorted((name, digest(each)) for name, each in known.items())
    periods = sorted(streaks.periods.items())
    return digest((head, declared, periods, digest(streaks.cover), streaks.books.newest.number))


def digest(thing: object) -> str:
    """Return what tells definitions and covers apart."""
    if isinstance(thing, Cover):
        thing = thing.freezes, thing.pauses, sorted(thing.skipped)
    return hashlib.sha256(f"{EDITION} {thing!r}".encode()).hexdigest()[:DIGEST_LENGTH]


def positions(
    kept: KeptAchievements, known: Mapping[str, Declared], told: ToldHistory, streaks: StreakHistory
) -> dict[str, Position]:
    """Return the entry that each achievement is dated at. kept: is usable for what is told."""
    found = {}
    for name, at in achieved(known, told, streaks).items():
        dated = kept.earned.get(name) or first_since(told, known[name].since) if at == BEFORE else at
        if dated is not None:
            found[name] = dated
    return found


def shown(
    kept: KeptAchievements, known: Mapping[str, Declared], found: Mapping[str, Position]
) -> dict[str, str]:
    """Return the instant of each achievement that the user has: of those that are true, or stay."""
    stay = {name: at for name, at in kept.shown.items() if name in known and known[name].rule.stays}
    dated = {name: instant(at) for name, at in found.items()}
    return stay | {name: min(at, stay.get(name, at)) for name, at in dated.items()}


def keeps_until(entries: int, now: datetime) -> date:
    """Return the date up to which totals tell the history of whom so many entries were read."""
    settled = settled_until(now)
    return settled if entries > MANY_ENTRIES else settled.replace(day=1)


def next_kept(
    kept: KeptAchievements,
    known: Mapping[str, Declared],
    told: ToldHistory,
    streaks: StreakHistory,
    now: datetime,
) -> KeptAchievements:
    """Return what is to be kept: the history up to a date that is settled, what was shown, and an answer."""
    found = positions(kept, known, told, streaks)
    answer = shown(kept, known, found)
    stays = {name: at for name, at in answer.items() if known[name].rule.stays}
    head = max(told.head, kept.head)
    kept_answer: tuple[str, Mapping[str, str], Mapping[str, int]] = ("", {}, {})
    if len(told.entries) > ANSWERED_ENTRIES:
        kept_answer = (answer_of(head, known, streaks), answer, told.sums())
    others = {name: at for name, at in kept.shown.items() if name not in known}
    until = max(kept.until, keeps_until(len(told.entries), now))
    return KeptAchievements(
        until,
        head,
        told.sums(until),
        {name: at for name, at in found.items() if at[0] < until},
        {name: digest(each) for name, each in known.items()},
        digest(cover_until(streaks.cover, until)),
        others | stays,
        streaks.books.newest.number,
        *kept_answer,
    )
