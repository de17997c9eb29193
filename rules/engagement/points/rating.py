"""What events that count earn, and what a ledger lacks of that (docs/rules.md, rules 5 and 12).

An event counts until it is reversed. What the events of a type earn in a period is a sum under their caps. A
ledger has that sum in its entries, by *slot*: the date, the cap and the expiry that points are under. Where
the two differ (an event is reversed, or a version that takes effect in the past judges events anew), the
difference is appended, slot by slot. So what must be there follows from the events and the book alone, and
whoever asks twice writes once.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import date

from rules.book.book import Books
from rules.book.point_rules import Cap, Period, lot_of, points_left
from rules.days import DAY
from rules.engagement.ledger import EARNING, Draft, EntryKind
from rules.engagement.placing import instant_of


@dataclass(frozen=True, slots=True)
class Slot:
    """Points of one type that are under the same cap, are of one date, and expire on one date."""

    event_type: str
    activity_date: date
    cap: Cap | None
    expires_on: str | None

    @property
    def group(self) -> tuple[str, Period | None, date]:
        """What has one sum: a type's points under caps of one period, or of a date where there is no cap."""
        if self.cap is None:
            return self.event_type, None, self.activity_date
        is_week = self.cap.per is Period.WEEK
        first = monday_of(self.activity_date) if is_week else self.activity_date
        return self.event_type, self.cap.per, first

    @property
    def order(self) -> tuple[str, str, int, str]:
        """Who comes first where a cap leaves something for several."""
        return (
            self.event_type,
            self.activity_date.isoformat(),
            self.cap.points if self.cap else 0,
            self.expires_on or "",
        )


@dataclass(frozen=True, slots=True)
class Judged:
    """What an event is worth before its cap, and where its points go."""

    points: int
    cap: Cap | None
    expires_on: str | None


def is_earning(entry: Draft) -> bool:
    """Whether an entry's points were earned, or are taken back from what was."""
    if entry.kind is EntryKind.EARN and not entry.event_id:
        return False
    return entry.kind in EARNING and bool(entry.event_type and entry.activity_date)


def monday_of(day: date) -> date:
    """Return the first date of a date's week (ISO 8601)."""
    return day - day.weekday() * DAY


def of_weeks(entries: Iterable[Draft], first: date, last: date) -> list[Draft]:
    """Return the entries that earn for dates of some weeks. first, last: the Mondays of two of them."""
    return [
        each
        for each in entries
        if is_earning(each) and first <= monday_of(date.fromisoformat(each.activity_date or "")) <= last
    ]


def judged(entry: Draft, books: Books) -> Judged:
    """Return what an EARN's event is worth by the book.

    That is by the version that judged it, or by a later one that took effect in the past. What a version has
    judged that is not known here counts as the ledger has it.
    """
    kind, event_id, day = entry.event_type or "", entry.event_id or "", entry.activity_date
    occurred = instant_of(event_id)
    version = books.rejudging(entry.rules_version, kind, occurred)
    if version is None or day is None:
        return Judged(entry.points, entry.cap, entry.expires_on)
    book, cap = version.book, version.book.cap(kind, occurred)
    expires = lot_of(book.expiry, date.fromisoformat(day), cap).isoformat() if book.expiry else None
    return Judged(book.points(kind, occurred), cap, expires)


def reversed_events(entries: Iterable[Draft]) -> set[str]:
    """Return the ids of the events that entries reverse."""
    return {each.event_id for each in entries if each.kind is EntryKind.CLAWBACK and each.event_id}


def lacking(entries: Collection[Draft], books: Books, undone: Collection[str] = ()) -> dict[Slot, int]:
    """Return what a ledger's entries lack (above 0), or have too much (below 0), by slot, in their order.

    entries: all of whole weeks; others are left out. undone: ids of events that are to be reversed besides
    those that entries reverse.
    """
    gone = {*reversed_events(entries), *undone}
    have: Counter[Slot] = Counter()
    worth: Counter[Slot] = Counter()
    for each in entries:
        if not is_earning(each):
            continue
        kind, day = each.event_type or "", date.fromisoformat(each.activity_date or "")
        have[Slot(kind, day, each.cap, each.expires_on)] += each.points
        if each.kind is EntryKind.EARN and each.event_id not in gone:
            told = judged(each, books)
            worth[Slot(kind, day, told.cap, told.expires_on)] += told.points
    must = _earned(have, worth)
    changes = {slot: must[slot] - have[slot] for slot in sorted({*have, *must}, key=lambda each: each.order)}
    return {slot: points for slot, points in changes.items() if points}


def _earned(have: Mapping[Slot, int], worth: Mapping[Slot, int]) -> Counter[Slot]:
    """Return the points that each slot must have: as they lie, as far as that can be.

    have: points that caps have left. worth: points before caps. What a slot has beyond its worth goes; what
    caps leave then is for whoever comes first. The sum is that of any order (rules.book.point_rules).
    """
    must = Counter({slot: max(0, min(have.get(slot, 0), points)) for slot, points in worth.items()})
    groups: dict[tuple[str, Period | None, date], list[Slot]] = defaultdict(list)
    for slot in worth:
        groups[slot.group].append(slot)
    for slots in groups.values():
        by_cap: Counter[int] = Counter()
        for slot in slots:
            if slot.cap:
                by_cap[slot.cap.points] += must[slot]
        for slot in sorted(slots, key=lambda each: each.order):
            left = points_left(worth[slot] - must[slot], slot.cap.points if slot.cap else None, by_cap)
            must[slot] += left
            if slot.cap:
                by_cap[slot.cap.points] += left
    return must


def balancing(changes: Mapping[Slot, int], version: int, reason: str) -> list[Draft]:
    """Return the entries that give a ledger what it lacks. What comes back comes first: so debts are few."""
    drafts = [
        Draft(
            EntryKind.RERATE,
            points,
            event_type=slot.event_type,
            activity_date=slot.activity_date.isoformat(),
            rules_version=version,
            cap=slot.cap,
            expires_on=slot.expires_on,
            reason=reason,
        )
        for slot, points in changes.items()
    ]
    return sorted(drafts, key=lambda each: -each.points)


def clawback(earned: Draft, place: str, entries: Collection[Draft], books: Books, reason: str) -> list[Draft]:
    """Return the entries that reverse an event; the last of them is the CLAWBACK, which names it.

    earned: its EARN, at a place in the ledger. entries: at least all of the week that it counts in. What
    other events earn in its place, because their cap leaves it now, are entries of their own.
    """
    day = date.fromisoformat(earned.activity_date or "")
    first, kind = monday_of(day), earned.event_type
    own = [each for each in of_weeks(entries, first, first) if each.event_type == kind]
    changes = lacking(own, books, [earned.event_id or ""])
    slot = Slot(earned.event_type or "", day, earned.cap, earned.expires_on)
    points = changes.pop(slot) if changes.get(slot, 0) < 0 else 0
    return [
        *balancing(changes, books.newest.number, reason),
        Draft(
            EntryKind.CLAWBACK,
            points,
            earned.event_id,
            earned.event_type,
            earned.activity_date,
            reverses=place,
            rules_version=earned.rules_version,
            cap=earned.cap,
            is_passive=earned.is_passive,
            expires_on=earned.expires_on,
            reason=reason,
            measures=earned.measures,
        ),
    ]
