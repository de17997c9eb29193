"""What was true of a balance at an instant, against a plain sum of what had occurred by then (rule 11)."""

from collections import Counter
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from rules.book.book import Book, Books, EventType, Version
from rules.book.point_rules import Cap
from rules.days import EPOCH, stamp
from rules.engagement.ledger import Draft, Entry, EntryKind
from rules.engagement.points import first_place, points_added_later

BEGIN = datetime(2027, 2, 26, tzinfo=UTC)
POINTS, MOST = 10, 15
HOURS = 60
BOOKS = Books([Version(1, EPOCH, lambda: Book({"READ": EventType(POINTS, MOST)}))])
late = st.tuples(st.integers(0, HOURS), st.integers(0, 80))


def at(hours: float) -> datetime:
    return BEGIN + timedelta(hours=hours)


def ledger(events: list[tuple[int, int]]) -> list[Entry]:
    """Entries of events (hour, hours late) in order of arrival, each with what the cap of its date leaves."""
    earned, entries = Counter[str](), list[Entry]()
    for number, (hour, hours_late) in enumerate(sorted(events, key=sum)):
        day = f"{at(hour):%Y-%m-%d}"
        points = min(POINTS, MOST - earned[day])
        earned[day] += points
        event = f"{stamp(at(hour))}#{number}"
        draft = Draft(EntryKind.EARN, points, event, "READ", day, rules_version=1, cap=Cap(MOST))
        written = stamp(at(hour + hours_late) + timedelta(seconds=1 + number))
        entries.append(Entry("ann", written, number, 0, draft))
    return entries


@given(st.lists(late, max_size=12), st.integers(0, HOURS))
def test_it_is_what_had_occurred_under_the_caps_in_any_order_of_arrival(
    events: list[tuple[int, int]], asked: int
) -> None:
    instant = at(asked + 0.5)
    entries = ledger(events)
    known = sum(each.draft.points for each in entries if each.created_at <= stamp(instant))
    seen = [each for each in entries if each.created_at > first_place(instant)]
    by_date = Counter(at(hour).date() for hour, _ in events if at(hour) <= instant)
    true = sum(min(MOST, POINTS * times) for times in by_date.values())
    assert known + points_added_later(seen, instant, BOOKS) == true


@given(st.integers(0, 100))
def test_a_redemption_that_was_given_back_is_as_if_it_had_never_been(asked: int) -> None:
    spent = Entry("ann", stamp(at(10)), 1, 0, Draft(EntryKind.REDEEM, -5))
    back = Entry("ann", stamp(at(50)), 2, 0, Draft(EntryKind.REVERSE, 5, reverses=spent.created_at))
    instant = at(asked + 0.5)
    known = sum(each.draft.points for each in (spent, back) if each.created_at <= stamp(instant))
    assert known + points_added_later([spent, back], instant, BOOKS) == 0


def test_versions_of_the_past_judge_what_had_occurred_once_they_have_been_applied() -> None:
    """The second one changes no sum, so it has no entry. The third one has not been applied yet."""

    def version(number: int, points: int) -> Version:
        book = Book({"READ": EventType(points, MOST)})
        return Version(number, BEGIN, lambda: book, published_at=at(50 + number))

    entries, instant = ledger([(1, 0), (20, 0)]), at(10.5)
    told = [
        POINTS + points_added_later(entries, instant, Books([*BOOKS.versions, *later]))
        for later in ((), (version(2, MOST),), (version(2, MOST), version(3, 4)), (version(3, 4),))
    ]
    assert told == [POINTS, MOST, MOST, POINTS]
