"""Points of events (docs/rules.md, rules 5, 11 and 12): what events that count earn, what a ledger lacks of
that, what they earned in each week, and what was true of a balance at an instant.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time

from rules.book.book import Books
from rules.book.point_rules import Cap, Period, instant_of_expiry, lot_of, points_left, total_points
from rules.days import DAY, stamp
from rules.engagement.earnings import instant_of
from rules.engagement.ledger import EARNING, Draft, Entry, EntryKind

AS_OF_MAX = 400 * DAY  # how long ago the instant may lie that somebody asks about
APART_MAX = 2 * DAY  # of an event's instant and the date that it counts for


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
class Judgement:
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


def place_before(day: date) -> str:
    """Return a place after which all entries of events stand that count for a date or a later one."""
    return stamp(datetime.combine(day, time(), UTC) - APART_MAX)


def entries_of_weeks(entries: Iterable[Draft], first: date, last: date) -> list[Draft]:
    """Return the entries that earn for dates of some weeks. first, last: the Mondays of two of them."""
    return [
        each
        for each in entries
        if is_earning(each) and first <= monday_of(date.fromisoformat(each.activity_date or "")) <= last
    ]


def judgement_of(entry: Draft, books: Books) -> Judgement:
    """Return what an EARN's event is worth by the book.

    That is by the version that judged it, or by a later one that took effect in the past. What a version has
    judged that is not known here counts as the ledger has it.
    """
    kind, event_id, day = entry.event_type or "", entry.event_id or "", entry.activity_date
    occurred = instant_of(event_id)
    version = books.rejudging(entry.rules_version, kind, occurred)
    if version is None or day is None:
        return Judgement(entry.points, entry.cap, entry.expires_on)
    book, cap = version.book, version.book.cap(kind, occurred)
    expires = lot_of(book.expiry, date.fromisoformat(day), cap).isoformat() if book.expiry else None
    return Judgement(book.points(kind, occurred), cap, expires)


def reversed_events(entries: Iterable[Draft]) -> set[str]:
    """Return the ids of the events that entries reverse."""
    return {each.event_id for each in entries if each.kind is EntryKind.CLAWBACK and each.event_id}


def shortfalls(entries: Collection[Draft], books: Books, undone: Collection[str] = ()) -> dict[Slot, int]:
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
            judgement = judgement_of(each, books)
            worth[Slot(kind, day, judgement.cap, judgement.expires_on)] += judgement.points
    must = _slot_points(have, worth)
    changes = {slot: must[slot] - have[slot] for slot in sorted({*have, *must}, key=lambda each: each.order)}
    return {slot: points for slot, points in changes.items() if points}


def _slot_points(have: Mapping[Slot, int], worth: Mapping[Slot, int]) -> Counter[Slot]:
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


def balancing_entries(changes: Mapping[Slot, int], version: int, reason: str) -> list[Draft]:
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
    own = [each for each in entries_of_weeks(entries, first, first) if each.event_type == kind]
    changes = shortfalls(own, books, [earned.event_id or ""])
    slot = Slot(earned.event_type or "", day, earned.cap, earned.expires_on)
    points = changes.pop(slot) if changes.get(slot, 0) < 0 else 0
    return [
        *balancing_entries(changes, books.newest.number, reason),
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


@dataclass(slots=True)
class EarnedWeek:
    """What a week has earned."""

    earned: int = 0  # by the entries of a week
    by_book: int = 0  # by the book, what those of its events earn that count


def weeks_by_book(entries: Iterable[Draft], books: Books) -> dict[date, EarnedWeek]:
    """Return what a user's events earn, recomputed from the book, by the Monday of their dates.

    entries: of a whole ledger, or at least of whole weeks. One whose version is not known here counts as it
    is.
    """
    weeks: dict[date, EarnedWeek] = defaultdict(EarnedWeek)
    capped: dict[tuple[date, str, Period, date], dict[int, int]] = defaultdict(lambda: defaultdict(int))
    entries = [each for each in entries if is_earning(each)]
    gone = reversed_events(entries)
    for each in entries:
        day, kind = date.fromisoformat(each.activity_date or ""), each.event_type or ""
        monday = monday_of(day)
        weeks[monday].earned += each.points
        if each.kind is not EntryKind.EARN or each.event_id in gone:
            continue
        judgement = judgement_of(each, books)
        if judgement.cap is None:
            weeks[monday].by_book += judgement.points
        else:
            first = monday if judgement.cap.per is Period.WEEK else day
            capped[monday, kind, judgement.cap.per, first][judgement.cap.points] += judgement.points
    for (monday, *_), by_cap in capped.items():
        weeks[monday].by_book += total_points(by_cap)
    return dict(weeks)


Group = tuple[str, date]  # an event type, the Monday of a week


def first_place(instant: datetime) -> str:
    """Return the place after which all entries stand that `points_added_later` asks for."""
    return place_before(monday_of((instant.astimezone(UTC) - APART_MAX).date()))


def points_added_later(entries: Iterable[Entry], instant: datetime, books: Books) -> int:
    """Return by how much what was true at an instant differs from what the ledger said then.

    entries: those after `first_place`. True is what had been earned and had expired by then. A redemption
    that was reversed is as if it had never been.
    """
    place, entries = stamp(instant), list(entries)
    later = [each.draft for each in entries if each.created_at > place]
    shared = {_group(each) for each in later if _is_near(each, instant)}
    added = sum(
        each.points for each in later if _group(each) not in shared and _was_true(each, instant, place)
    )
    return added + sum(_added_by_book(entries, group, instant, books) for group in shared)


def _group(draft: Draft) -> Group | None:
    if not is_earning(draft):
        return None
    return draft.event_type or "", monday_of(date.fromisoformat(draft.activity_date or ""))


def _is_near(draft: Draft, instant: datetime) -> bool:
    """Whether some events of an entry's week may have occurred by an instant, and others not."""
    if (group := _group(draft)) is None:
        return False
    near = (instant.astimezone(UTC) + apart for apart in (-APART_MAX, APART_MAX))
    return group[1] in {monday_of(each.date()) for each in near}


def _added_by_book(entries: Sequence[Entry], group: Group | None, instant: datetime, books: Books) -> int:
    """Return the same for what a week's events of one type have earned.

    They share caps, and a RERATE names no event. So what those earn that had occurred follows from the book,
    as far as versions of the past have been applied to them.
    """
    own = [each for each in entries if _group(each.draft) == group]
    then = _applied_versions(own, books)
    occurred = [
        each.draft
        for each in own
        if each.draft.kind is not EntryKind.EARN or instant_of(each.draft.event_id or "") <= instant
    ]
    earned = sum(week.by_book for week in weeks_by_book(occurred, then).values())
    return earned - sum(each.draft.points for each in own if each.created_at <= stamp(instant))


def _applied_versions(own: Sequence[Entry], books: Books) -> Books:
    """Return the versions that have judged a week's events of one type.

    A version of the past that was applied may have no entry, where a cap leaves as much as before. So these
    are the most, in the order of publishing, by which the ledger lacks nothing; while a rating is under way,
    those from before its last entry.
    """
    drafts = [each.draft for each in own]
    past = sorted(each.number for each in books.versions if each.is_retroactive)
    for count in range(len(past), -1, -1):
        then = Books(each for each in books.versions if each.number not in past[count:])
        if not shortfalls(drafts, then):
            return then
    rated = max((each.created_at for each in own if each.draft.kind is not EntryKind.EARN), default="")
    return Books(
        each for each in books.versions if not each.is_retroactive or stamp(each.published_at) <= rated
    )


def _was_true(draft: Draft, instant: datetime, place: str) -> bool:
    """Whether an entry that was written after an instant is about what was so by then."""
    if draft.kind in (EntryKind.EARN, EntryKind.CLAWBACK) and draft.event_id:
        return instant_of(draft.event_id) <= instant
    if draft.kind is EntryKind.RERATE and draft.activity_date:
        return date.fromisoformat(draft.activity_date) < instant.date()
    if draft.kind is EntryKind.EXPIRE and draft.expires_on:
        return instant_of_expiry(date.fromisoformat(draft.expires_on)) <= instant
    return draft.kind is EntryKind.REVERSE and bool(draft.reverses) and (draft.reverses or "") <= place
