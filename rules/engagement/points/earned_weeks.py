"""What a user's events earned in each week, by the ledger and by the book (docs/rules.md, rule 5)."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

from rules.book.book import Books
from rules.book.point_rules import Period, total_points
from rules.engagement.earning import week_of
from rules.engagement.ledger import Draft, EntryKind
from rules.engagement.points.rating import is_earning, judged, reversed_events


@dataclass(slots=True)
class EarnedWeek:
    """earned: by the entries of a week. by_book: by the book, what those of its events earn that count."""

    earned: int = 0
    by_book: int = 0


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
        monday = week_of(day)[0]
        weeks[monday].earned += each.points
        if each.kind is not EntryKind.EARN or each.event_id in gone:
            continue
        told = judged(each, books)
        if told.cap is None:
            weeks[monday].by_book += told.points
        else:
            first = monday if told.cap.per is Period.WEEK else day
            capped[monday, kind, told.cap.per, first][told.cap.points] += told.points
    for (monday, *_), by_cap in capped.items():
        weeks[monday].by_book += total_points(by_cap)
    return dict(weeks)
