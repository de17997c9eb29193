"""A user's history in order, as achievements read it (docs/rules.md, rule 15)."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property

from rules.engagement.goals.measures import amounts, day_key
from rules.engagement.ledger import EARNING, Entry, EntryKind

Position = tuple[date, str]  # the date that an event counts for, and its id, which its instant begins
Step = tuple[Position, Mapping[str, int]]
POINTS = ""  # the key of points earned among totals


@dataclass(frozen=True)
class ToldHistory:
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
        return [(position(each), adds(each)) for each in self.entries if position(each)[0] >= self.since]

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


def ordered(entries: Iterable[Entry]) -> list[Entry]:
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
    return [_corrected(each, corrected) for each in sorted(history, key=position)]


def _corrected(entry: Entry, points: Counter[str]) -> Entry:
    """Return an entry with what there is to correct of its date; the next one of this date stays as it is."""
    change = points.pop(entry.draft.activity_date or "", 0)
    return replace(entry, draft=replace(entry.draft, points=entry.draft.points + change)) if change else entry


def adds(entry: Entry) -> dict[str, int]:
    """Return what an entry adds to totals. An event is counted also where no book had it measured."""
    draft, kind = entry.draft, entry.draft.event_type or ""
    measured = amounts(kind, draft.measures) if draft.measures else {day_key(kind): 1}
    return {POINTS: draft.points, **measured}
