"""Points that a ledger should have by the book (docs/rules.md, rules 5, 11 and 12).

In this order: the points that a ledger lacks, and the entries that add them; the entries that reverse an
event; the points of each week, recomputed from the book; the balance at an instant in the past.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from typing import NamedTuple

from rules.book.book import Books
from rules.book.point_rules import Cap, Period, instant_of_expiry, lot_date, points_left, total_points
from rules.days import DAY, stamp
from rules.engagement.earnings import monday_of
from rules.engagement.events import instant_of
from rules.engagement.ledger import EARNING, Draft, Entry, EntryKind

AS_OF_MAX = 400 * DAY  # the balance at an instant longer ago is not computed
APART_MAX = 2 * DAY  # between an event's instant and the date that it counts for


class CapPeriod(NamedTuple):
    """A period in which one cap limits the points of an event type."""

    event_type: str
    per: Period | None  # None: there is no cap, and the period is a date
    first: date  # its first date


@dataclass(frozen=True, slots=True)
class Slot:
    """The points of one event type on one date that have the same cap and expire on the same date."""

    event_type: str
    activity_date: date
    cap: Cap | None
    expires_on: str | None

    @property
    def cap_period(self) -> CapPeriod:
        """The period whose points one cap limits together."""
        if self.cap is None:
            return CapPeriod(self.event_type, None, self.activity_date)
        return CapPeriod(self.event_type, self.cap.per, self.cap.first(self.activity_date))

    @property
    def order(self) -> tuple[str, str, int, str]:
        """The order in which slots get the points that a cap allows."""
        return (
            self.event_type,
            self.activity_date.isoformat(),
            self.cap.points if self.cap else 0,
            self.expires_on or "",
        )


def is_earning(draft: Draft) -> bool:
    """Whether an entry adds points that were earned, or takes earned points back."""
    if draft.kind is EntryKind.EARN and not draft.event_id:
        return False
    return draft.kind in EARNING and bool(draft.event_type and draft.activity_date)


def place_before(day: date) -> str:
    """Return a ledger place before all entries of events that count for a date or a later one."""
    return stamp(datetime.combine(day, time(), UTC) - APART_MAX)


def entries_of_weeks(drafts: Iterable[Draft], first: date, last: date) -> list[Draft]:
    """Return the entries that earn for dates of some weeks. first, last: the Mondays of two of them."""
    return [draft for draft in drafts if is_earning(draft) and first <= monday_of(draft.day) <= last]


def _slot_of(draft: Draft) -> Slot:
    """Return the slot that has the points of an entry that earns."""
    return Slot(draft.event_type or "", draft.day, draft.cap, draft.expires_on)


class Worth(NamedTuple):
    """What an event is worth by the book."""

    slot: Slot  # where its points belong
    points: int  # before the cap


def _worth_of(draft: Draft, books: Books) -> Worth:
    """Return what the event of an EARN is worth.

    The version that judged it decides, or a later version that took effect in the past. If this process does
    not know the version yet, the event is worth what the ledger says.
    """
    slot, occurred = _slot_of(draft), instant_of(draft.event_id or "")
    version = books.rejudging(draft.rules_version, slot.event_type, occurred)
    if version is None:
        return Worth(slot, draft.points)
    book, cap = version.book, version.book.cap(slot.event_type, occurred)
    expires = lot_date(book.expiry, slot.activity_date, cap).isoformat() if book.expiry else None
    slot_by_book = Slot(slot.event_type, slot.activity_date, cap, expires)
    return Worth(slot_by_book, book.points(slot.event_type, occurred, draft.measures))


def reversed_events(drafts: Iterable[Draft]) -> set[str]:
    """Return the ids of the events that entries reverse."""
    return {draft.event_id for draft in drafts if draft.kind is EntryKind.CLAWBACK and draft.event_id}


def shortfalls(drafts: Collection[Draft], books: Books, undone: Collection[str] = ()) -> dict[Slot, int]:
    """Return the points that entries lack (above 0) or have too many (below 0), by slot, in the slots' order.

    drafts: all entries of whole weeks. Entries that earn nothing are ignored. undone: ids of events that
    count as reversed, in addition to the events that entries reverse.
    """
    reversed_ids = {*reversed_events(drafts), *undone}
    ledger_points: Counter[Slot] = Counter()
    uncapped_points: Counter[Slot] = Counter()
    for draft in filter(is_earning, drafts):
        ledger_points[_slot_of(draft)] += draft.points
        if draft.kind is EntryKind.EARN and draft.event_id not in reversed_ids:
            worth = _worth_of(draft, books)
            uncapped_points[worth.slot] += worth.points
    target_points = _slot_points(ledger_points, uncapped_points)
    slots = sorted({*ledger_points, *target_points}, key=lambda slot: slot.order)
    lacking = {slot: target_points[slot] - ledger_points[slot] for slot in slots}
    return {slot: points for slot, points in lacking.items() if points}


def _slot_points(ledger_points: Mapping[Slot, int], uncapped_points: Mapping[Slot, int]) -> Counter[Slot]:
    """Return the points that each slot must have. As many as possible stay in the slots that have them.

    ledger_points: what slots have, after caps. uncapped_points: what their events are worth, before caps.
    First, a slot keeps what it has, but no more than its worth. Then the first slots in order get what their
    caps still allow. Another order would give the same sum (rules.book.point_rules).

    Example: on a date, a type's cap was raised from 5 to 8. So its date has two slots, each worth 6. The
    ledger has 5 points in that of cap 5 and none in the other. The first keeps its 5, the second gets 3.
    """
    target_points = Counter(
        {slot: max(0, min(ledger_points.get(slot, 0), points)) for slot, points in uncapped_points.items()}
    )
    slots_by_period: dict[CapPeriod, list[Slot]] = defaultdict(list)
    for slot in uncapped_points:
        slots_by_period[slot.cap_period].append(slot)
    for slots in slots_by_period.values():
        earned_by_limit: Counter[int] = Counter()
        for slot in slots:
            if slot.cap:
                earned_by_limit[slot.cap.points] += target_points[slot]
        for slot in sorted(slots, key=lambda each: each.order):
            limit = slot.cap.points if slot.cap else None
            added = points_left(uncapped_points[slot] - target_points[slot], limit, earned_by_limit)
            target_points[slot] += added
            if limit is not None:
                earned_by_limit[limit] += added
    return target_points


def balancing_entries(changes: Mapping[Slot, int], version: int, reason: str) -> list[Draft]:
    """Return the entries that give a ledger what it lacks, gains first: so few accounts have a debt.

    changes: what `shortfalls` returns. version: of the book that the entries name.
    """
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
    return sorted(drafts, key=lambda draft: -draft.points)


def clawback(earned: Draft, place: str, drafts: Collection[Draft], books: Books, reason: str) -> list[Draft]:
    """Return the entries that reverse an event. The last one is the CLAWBACK, which names it.

    earned: the event's EARN. place: of the EARN in the ledger. drafts: at least all of its week. Under a cap
    other events may now earn more; the entries before the CLAWBACK are theirs.
    """
    slot = _slot_of(earned)
    monday = monday_of(slot.activity_date)
    of_week = entries_of_weeks(drafts, monday, monday)
    of_type = [draft for draft in of_week if draft.event_type == earned.event_type]
    changes = shortfalls(of_type, books, [earned.event_id or ""])
    points = changes.pop(slot) if changes.get(slot, 0) < 0 else 0
    reversal = replace(earned, kind=EntryKind.CLAWBACK, points=points, reverses=place, reason=reason)
    return [*balancing_entries(changes, books.newest.number, reason), reversal]


@dataclass(slots=True)
class EarnedWeek:
    """The points of a week."""

    earned: int = 0  # by the ledger's entries
    by_book: int = 0  # by the book, of the events that are not reversed


def weeks_by_book(drafts: Iterable[Draft], books: Books) -> dict[date, EarnedWeek]:
    """Return the points of each week, by its Monday: as the ledger has them, and recomputed from the book.

    drafts: of a whole ledger, or at least of whole weeks.
    """
    weeks: dict[date, EarnedWeek] = defaultdict(EarnedWeek)
    capped: dict[CapPeriod, Counter[int]] = defaultdict(Counter)  # points before caps, by the caps' limits
    drafts = list(filter(is_earning, drafts))
    reversed_ids = reversed_events(drafts)
    for draft in drafts:
        week = weeks[monday_of(draft.day)]
        week.earned += draft.points
        if draft.kind is not EntryKind.EARN or draft.event_id in reversed_ids:
            continue
        worth = _worth_of(draft, books)
        if worth.slot.cap is None:
            week.by_book += worth.points
        else:
            capped[worth.slot.cap_period][worth.slot.cap.points] += worth.points
    for period, points_by_limit in capped.items():
        weeks[monday_of(period.first)].by_book += total_points(points_by_limit)
    return dict(weeks)


class TypeWeek(NamedTuple):
    """The events of one type in one week, which may share a cap."""

    event_type: str
    monday: date


def first_place(instant: datetime) -> str:
    """Return a place in the ledger that is before all entries that `points_added_later` needs."""
    return place_before(monday_of((instant.astimezone(UTC) - APART_MAX).date()))


def points_added_later(entries: Iterable[Entry], instant: datetime, books: Books) -> int:
    """Return how many points later entries add to the balance that the ledger had at an instant.

    A later entry counts if it is about what had happened by then: an event that had occurred, points that had
    expired, or the reversal of a redemption that was made by then. In the weeks around the instant, events
    before and after it share caps. There the book says what the earlier ones earn. entries: all after
    `first_place`.
    """
    place, entries, added = stamp(instant), list(entries), 0
    mondays = {monday_of((instant.astimezone(UTC) + apart).date()) for apart in (-APART_MAX, APART_MAX)}
    weeks_around = set[TypeWeek]()
    for draft in (entry.draft for entry in entries if entry.created_at > place):
        week = _week_of(draft)
        if week and week.monday in mondays:
            weeks_around.add(week)
        elif _had_happened(draft, instant):
            added += draft.points
    for week in weeks_around:
        added += _added_by_book([entry for entry in entries if _week_of(entry.draft) == week], instant, books)
    return added


def _had_happened(draft: Draft, instant: datetime) -> bool:
    """Whether an entry that was written after an instant is about something that had happened by then."""
    if draft.kind in (EntryKind.EARN, EntryKind.CLAWBACK) and draft.event_id:
        return instant_of(draft.event_id) <= instant
    if draft.kind in (EntryKind.RERATE, EntryKind.BONUS) and draft.activity_date:
        return draft.day < instant.date()
    if draft.kind is EntryKind.EXPIRE and draft.expires_on:
        return instant_of_expiry(date.fromisoformat(draft.expires_on)) <= instant
    return draft.kind is EntryKind.REVERSE and "" < (draft.reverses or "") <= stamp(instant)


def _week_of(draft: Draft) -> TypeWeek | None:
    """Return the week that an entry earns in; None for an entry that earns nothing."""
    return TypeWeek(draft.event_type or "", monday_of(draft.day)) if is_earning(draft) else None


def _added_by_book(of_week: Sequence[Entry], instant: datetime, books: Books) -> int:
    """Return how many points later entries of one TypeWeek add to the balance at an instant.

    A RERATE names no event. So the points of the events that had occurred are computed by the book, with the
    versions that have judged the week so far.
    """
    occurred = [
        entry.draft
        for entry in of_week
        if entry.draft.kind is not EntryKind.EARN or instant_of(entry.draft.event_id or "") <= instant
    ]
    weeks = weeks_by_book(occurred, _applied_versions(of_week, books))
    earned = sum(week.by_book for week in weeks.values())
    return earned - sum(entry.draft.points for entry in of_week if entry.created_at <= stamp(instant))


def _applied_versions(of_week: Sequence[Entry], books: Books) -> Books:
    """Return the versions that have judged the events of one TypeWeek.

    They are all that do not take effect in the past, and the first of those that do: as many as possible with
    which the ledger lacks no points.

    Example: version 2 judges past events anew, and nothing changes, because a cap allows as much as before.
    Version 3 adds 5 points to each event, and no entry has added them yet. So versions 1 and 2 have judged.

    While a rating is under way, the ledger lacks points with any number of versions. Then those count that
    were published before its last entry.
    """
    drafts = [entry.draft for entry in of_week]
    retroactive = [version for version in books.versions if version.is_retroactive]
    for count in range(len(retroactive), -1, -1):
        applied = Books(version for version in books.versions if version not in retroactive[count:])
        is_ledger_explained = not shortfalls(drafts, applied)
        if is_ledger_explained:
            return applied
    rated_at = max(
        (entry.created_at for entry in of_week if entry.draft.kind is not EntryKind.EARN), default=""
    )
    return Books(
        version
        for version in books.versions
        if not version.is_retroactive or stamp(version.published_at) <= rated_at
    )
