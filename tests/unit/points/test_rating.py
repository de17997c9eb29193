"""Reversed events and versions that take effect in the past: what ledgers lack (rule 12)."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import permutations

import pytest

from rules.book.book import Book, Books, EventType, Version
from rules.book.point_rules import AmountRule, Cap, Period
from rules.days import parse_moment, stamp
from rules.engagement.account_state import Profile
from rules.engagement.events import Event, event_id
from rules.engagement.ledger import Draft, EntryKind, InsufficientBalance, append_drafts
from rules.engagement.points import balancing_entries, clawback, reversed_events, shortfalls, weeks_by_book
from rules.engagement.reconciliation import days_of, ledger_faults, profile_of
from tests.support.account_world import World
from tests.support.effort import effort
from tests.support.point_story import PointStory, WholeWorld

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
EARLY = datetime(2026, 1, 1, tzinfo=UTC)


def books(*points_and_caps: tuple[int, int]) -> Books:
    """A first version, and later ones that took effect when it did."""
    made = []
    for number, (points, cap) in enumerate(points_and_caps, 1):
        book = Book({"READ": EventType(points=points, cap_points=cap)})
        made.append(Version(number, EARLY, lambda book=book: book, EARLY if number == 1 else NOON))  # type: ignore[misc]
    return Books(made)


def read(number: int, at: datetime = NOON, points: int = 10, cap: int = 15) -> Event:
    moment = parse_moment((at + timedelta(minutes=number)).isoformat())
    key = f"k{number}"
    return Event(
        *("u", event_id("u", key, moment), key, "READ", moment.utc.isoformat(), moment.utc.date(), "UTC"),
        points_awarded=points,
        source="test",
        created_at=stamp(NOON),
        cap=Cap(cap),
    )


def test_amounts_are_rated_from_what_the_entries_stored() -> None:
    """A point for each 5 minutes becomes two for each 3, at most 15: 29 and 4 minutes earned 5 and 0 of them."""
    made = []
    for number, (each, earns) in enumerate(((5000, 1), (3000, 2)), 1):
        book = Book({"READ": EventType(0, cap_points=15, by_amount=AmountRule("minutes", each, earns))})
        made.append(Version(number, EARLY, lambda book=book: book, EARLY if number == 1 else NOON))  # type: ignore[misc]
    sent = [
        replace(read(number, points=points), measures=f"n,minutes={amount}")
        for number, (amount, points) in enumerate(((29_000, 5), (4000, 0)))
    ]
    world, known = lived(*sent), Books(made)
    assert shortfalls([each.draft for each in world.entries], Books(made[:1])) == {}
    lacking = shortfalls([each.draft for each in world.entries], known)
    assert sum(lacking.values()) == 15 - 5
    world.apply(commands=balancing_entries(lacking, 2, "rated anew"))
    reverse(world, 0, known)
    assert sum(each.draft.points for each in world.entries) == 2, "of 4 minutes one whole 3 earns"


def reverse(world: World, place: int, known: Books) -> list[Draft]:
    """Reverse the event of that place among those that count."""
    drafts = [each.draft for each in world.entries]
    gone = reversed_events(drafts)
    left = [e for e in world.entries if e.draft.kind is EntryKind.EARN and e.draft.event_id not in gone]
    made = clawback(left[place].draft, left[place].created_at, drafts, known, "refunded")
    world.apply(commands=made)
    return made


def lived(*events: Event) -> WholeWorld:
    world = WholeWorld(Profile("u"), now=NOON + timedelta(days=1))
    for each in events:
        world.apply([each])
    return world


def test_a_clawback_is_the_sum_with_the_event_less_the_sum_without() -> None:
    world = lived(read(1), read(2), read(3))
    assert world.profile.total_points == 15
    assert [sum(each.points for each in reverse(world, 0, books((10, 15)))) for _ in range(3)] == [0, -5, -10]
    assert (world.profile.total_points, world.profile.streak) == (0, None)
    world.check()


def test_a_late_event_finds_the_same_sum_before_and_after() -> None:
    answers = set()
    for order in permutations(("first", "late", "clawback")):
        if order.index("first") > order.index("clawback"):
            continue
        world = lived()
        for each in order:
            if each == "clawback":
                reverse(world, 0, books((10, 15)))
            else:
                world.apply([read(1)] if each == "first" else [read(2), read(3)])
        if world.entries[1].draft.event_id == read(1).event_id:
            answers.add((world.profile.total_points, world.profile.balance))
    assert answers == {(15, 15)}


def test_what_takes_the_place_may_be_of_another_date_and_cap() -> None:
    """The week's cap leaves what Monday's event had to Wednesday's."""
    weekly = Cap(10, Period.WEEK)
    monday, wednesday = (
        Draft(EntryKind.EARN, points, f"2026-03-{day}T10:00:00.000000Z#id", "READ", f"2026-03-{day}",
              cap=weekly, rules_version=1)
        for day, points in (("02", 10), ("04", 0))
    )  # fmt: skip
    book = Book({"READ": EventType(points=10, cap_points=10, per=weekly.per)})
    known = Books([Version(1, EARLY, lambda: book, EARLY)])
    made = clawback(monday, "place", [monday, wednesday], known, "refunded")
    assert [(each.kind.value, each.activity_date, each.points) for each in made] == [
        ("RERATE", "2026-03-04", 10),
        ("CLAWBACK", "2026-03-02", -10),
    ]
    told = {"kind": EntryKind.CLAWBACK, "points": -10, "reverses": "place", "reason": "refunded"}
    assert made[1] == replace(monday, **told)  # type: ignore[arg-type]
    assert shortfalls([monday, wednesday, *made], known) == {}


def test_a_version_in_the_past_is_appended_once() -> None:
    world, anew = lived(read(1), read(2), read(3)), books((10, 15), (4, 100))
    changes = shortfalls([each.draft for each in world.entries], anew)
    assert sum(changes.values()) == 12 - 15
    world.apply(commands=balancing_entries(changes, 2, "cheaper"))
    assert (world.profile.total_points, world.profile.balance) == (12, 12)
    drafts = [each.draft for each in world.entries]
    rated = {(each.rules_version, each.reason) for each in drafts if each.kind is EntryKind.RERATE}
    assert rated == {(2, "cheaper")}
    assert shortfalls(drafts, anew) == {}
    assert all(week.earned == week.by_book for week in weeks_by_book(drafts, anew).values())
    world.check()


def test_a_version_that_was_not_there_in_time_judges_nothing_by_itself() -> None:
    """A door that did not know the newest version yet: what it said stays."""
    late = Version(
        2, NOON - timedelta(hours=1), lambda: Book({"READ": EventType(points=99)}), NOON - timedelta(hours=1)
    )
    first = books((10, 15)).newest
    drafts = [each.draft for each in lived(read(1)).entries]
    assert shortfalls(drafts, Books([first, late])) == {}


def test_only_what_takes_back_leads_into_debt() -> None:
    back = Draft(EntryKind.CLAWBACK, -10)
    entries = append_drafts("u", None, [Draft(EntryKind.EARN, 10), Draft(EntryKind.REDEEM, -10), back], NOON)
    assert entries[-1].balance == -10
    for points in (-1, -10):
        with pytest.raises(InsufficientBalance):
            append_drafts("u", entries[-1].head, [Draft(EntryKind.REDEEM, points)], NOON)
    assert append_drafts("u", entries[-1].head, [Draft(EntryKind.REDEEM, 0)], NOON)[-1].balance == -10
    (paid,) = append_drafts("u", entries[-1].head, [Draft(EntryKind.EARN, 12)], NOON)
    assert paid.balance == 2


def test_a_balance_below_0_without_a_reason_is_a_fault() -> None:
    entries = append_drafts("u", None, [Draft(EntryKind.EARN, 5), Draft(EntryKind.EXPIRE, -9)], NOON)
    entries[-1] = replace(entries[-1], active=True)
    assert ledger_faults(entries) == ["balance -4 after seq 2: the points add up to -4"]


@pytest.mark.parametrize("seed", range(effort(3, soak=300)))
def test_days_profile_and_weeks_follow_whatever_is_reversed_and_rewritten(seed: int) -> None:
    story = PointStory(seed)
    story.live()
    for _ in range(2):
        story.rewrite(reversals=6, versions=2)
        for world in story.worlds.values():
            drafts = [each.draft for each in world.entries]
            assert shortfalls(drafts, story.books) == {}
            told = weeks_by_book(drafts, story.books)
            assert {monday: (week.earned, week.earned) for monday, week in told.items()} == {
                monday: (week.earned, week.by_book) for monday, week in told.items()
            }
            assert days_of(world.entries) == {day.isoformat(): each for day, each in world.days.items()}
            rebuilt = profile_of(world.profile, world.entries)
            assert (rebuilt.streak, rebuilt.total_points, rebuilt.head) == (
                world.profile.streak,
                world.profile.total_points,
                world.profile.head,
            )
            world.check()
