"""What was true of a balance at an instant, told from what was written until now (docs/rules.md, rule 11)."""

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, time

from rules.book.book import Books
from rules.book.point_rules import instant_of_expiry
from rules.days import DAY, stamp
from rules.engagement.ledger import Draft, Entry, EntryKind
from rules.engagement.placing import instant_of
from rules.engagement.points.earned_weeks import weeks_by_book
from rules.engagement.points.rating import is_earning, lacking, monday_of

AS_OF_MAX = 400 * DAY  # so long ago an instant may lie that somebody asks about
APART_MAX = 2 * DAY  # of an event's instant and the date that it counts for
Group = tuple[str, date]  # an event type, the Monday of a week


def first_place(instant: datetime) -> str:
    """Return the place after which all entries stand that `added_later` asks for."""
    monday = monday_of((instant.astimezone(UTC) - APART_MAX).date())
    return stamp(datetime.combine(monday, time(), UTC) - APART_MAX)


def added_later(entries: Iterable[Entry], instant: datetime, books: Books) -> int:
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
    return added + sum(_told_by_book(entries, group, instant, books) for group in shared)


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


def _told_by_book(entries: Sequence[Entry], group: Group | None, instant: datetime, books: Books) -> int:
    """Return the same for what a week's events of one type have earned.

    They share caps, and a RERATE names no event. So what those earn that had occurred is told by the book, as
    far as versions of the past have been applied to them.
    """
    own = [each for each in entries if _group(each.draft) == group]
    then = _applied(own, books)
    occurred = [
        each.draft
        for each in own
        if each.draft.kind is not EntryKind.EARN or instant_of(each.draft.event_id or "") <= instant
    ]
    earned = sum(week.by_book for week in weeks_by_book(occurred, then).values())
    return earned - sum(each.draft.points for each in own if each.created_at <= stamp(instant))


def _applied(own: Sequence[Entry], books: Books) -> Books:
    """Return the versions that have judged a week's events of one type.

    A version of the past that was applied may have no entry, where a cap leaves as much as before. So these
    are the most, in the order of publishing, by which the ledger lacks nothing; while a rating is under way,
    those from before its last entry.
    """
    drafts = [each.draft for each in own]
    past = sorted(each.number for each in books.versions if each.is_retroactive)
    for known in range(len(past), -1, -1):
        then = Books(each for each in books.versions if each.number not in past[known:])
        if not lacking(drafts, then):
            return then
    rated = max((each.created_at for each in own if each.draft.kind is not EntryKind.EARN), default="")
    return Books(
        each for each in books.versions if not each.is_retroactive or stamp(each.published_at) <= rated
    )


def _was_true(draft: Draft, instant: datetime, place: str) -> bool:
    """Whether an entry that was written after an instant tells of what was so by then."""
    if draft.kind in (EntryKind.EARN, EntryKind.CLAWBACK) and draft.event_id:
        return instant_of(draft.event_id) <= instant
    if draft.kind is EntryKind.RERATE and draft.activity_date:
        return date.fromisoformat(draft.activity_date) < instant.date()
    if draft.kind is EntryKind.EXPIRE and draft.expires_on:
        return instant_of_expiry(date.fromisoformat(draft.expires_on)) <= instant
    return draft.kind is EntryKind.REVERSE and bool(draft.reverses) and (draft.reverses or "") <= place
