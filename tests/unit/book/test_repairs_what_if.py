"""What another book would have led to where users have repaired what they missed."""

from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

from analytics.what_if.timeline import TermsMemo, Timeline
from analytics.what_if.user_history import LedgerRow, MeasuresMemo, UserSettings, World, actual_world
from analytics.what_if.user_replay import UserReplay
from rules.book.book import Book, Books, EventType, Version
from rules.book.daily import NO_REPAIRS, RepairRules
from rules.days import EPOCH, MICROSECOND
from rules.engagement.streak import fold

NOW = datetime(2026, 3, 20, tzinfo=UTC)
TERMS = RepairRules(price_points=20, within_days=3, dates_max=2, a_year=4)
REAL = Book({"A": EventType(50), "B": EventType(50)}, repairs=TERMS)
BOOKS = Books([Version(1, EPOCH, lambda: REAL)])


def march(day: int) -> date:
    return date(2026, 3, day)


def earned(day: int, kind: str = "A", arrived: int | None = None) -> dict[str, Any]:
    at = datetime(2026, 3, arrived or day, 12, tzinfo=UTC)
    event_id = f"2026-03-{day:02}T10:00:00.000000Z#{kind}{day}"
    return {
        "at": at,
        "kind": "EARN",
        "event_type": kind,
        "event_id": event_id,
        "day": march(day),
        "points": 50,
    }


def repaired(day: int, at: int, place: int = 0) -> dict[str, Any]:
    return {
        "at": datetime(2026, 3, at, 15, tzinfo=UTC) + place * MICROSECOND,
        "kind": "REDEEM",
        "points": -20,
        "reward_id": "streak_repair",
        "freeze": "freeze_granted",
        "freeze_date": march(day),
    }


def given_back(day: int, at: int, bought: dict[str, Any]) -> dict[str, Any]:
    place = f"{bought['at']:%Y-%m-%dT%H:%M:%S.%fZ}"
    back = {"kind": "REVERSE", "points": 20, "reverses": place, "freeze": "freeze_revoked"}
    return bought | back | {"at": datetime(2026, 3, at, 12, 1, tzinfo=UTC), "freeze_date": march(day)}


def rows_of(*entries: dict[str, Any]) -> list[LedgerRow]:
    blank: dict[str, Any] = dict.fromkeys(LedgerRow._fields)
    none = blank | {
        "user_id": "u",
        "segment": 0,
        "is_passive": False,
        "breaks_contract": False,
        "event_id": "",
    }
    return [
        LedgerRow(
            **none
            | {"version": 1, "seq": number, "created_at": (each["at"] - EPOCH) // MICROSECOND}
            | {name: value for name, value in each.items() if name != "at"}
        )
        for number, each in enumerate(entries, 1)
    ]


def told(rows: list[LedgerRow], candidate: Book) -> tuple[World, UserReplay]:
    timeline = Timeline(BOOKS, candidate)
    replay = UserReplay(rows, timeline, TermsMemo(timeline), MeasuresMemo(timeline), UserSettings()).replay()
    return replay.world(NOW), replay


def longest(world: World) -> int:
    streak = fold(world.active, world.cover)
    return streak.longest if streak else 0


STORY = (earned(1), earned(2), repaired(3, 4), earned(4, arrived=5))


def test_the_same_terms_change_nothing_and_another_price_changes_the_balance() -> None:
    rows = rows_of(*STORY)
    was = actual_world(rows, UserSettings(), NOW)
    same, _ = told(rows, REAL)
    assert (same.balance, longest(same)) == (was.balance, longest(was)) == (130, 3)
    dearer, replay = told(rows, replace(REAL, repairs=replace(TERMS, price_points=30)))
    assert (dearer.balance, longest(dearer), replay.impossible) == (120, 3, [])


def test_a_candidate_that_sells_none_or_less_ends_the_run() -> None:
    rows = rows_of(earned(1), earned(2), repaired(3, 5), repaired(4, 5, 1), earned(5))
    for terms in (
        NO_REPAIRS,
        replace(TERMS, dates_max=1),
        replace(TERMS, within_days=1),
        replace(TERMS, a_year=1),
    ):
        world, replay = told(rows, replace(REAL, repairs=terms))
        assert {each.what for each in replay.impossible} == {"repair"}, terms
        assert (world.balance, longest(world)) == (150, 2), terms
    world, replay = told(rows, replace(REAL, repairs=replace(TERMS, price_points=101)))
    assert [each.missing for each in replay.impossible] == [1, 1]


def test_what_an_event_has_given_back_stays_bought_where_the_event_keeps_no_streak() -> None:
    bought = repaired(3, 4)
    rows = rows_of(
        earned(1),
        earned(2),
        bought,
        earned(3, "B", arrived=5),
        given_back(3, 5, bought),
        earned(4, arrived=6),
    )
    was = actual_world(rows, UserSettings(), NOW)
    same, _ = told(rows, REAL)
    assert (same.balance, longest(same)) == (was.balance, longest(was)) == (200, 4)
    passive = replace(REAL, event_types={**REAL.event_types, "B": EventType(50, keeps_streak=False)})
    world, _ = told(rows, passive)
    assert (world.balance, longest(world)) == (180, 3)
    assert world.cover.freezes == ((march(3), 1),)


def test_a_date_that_the_candidate_makes_active_needs_no_repair() -> None:
    real = replace(REAL, event_types={**REAL.event_types, "B": EventType(50, keeps_streak=False)})
    books = Books([Version(1, EPOCH, lambda: real)])
    passive = earned(3, "B") | {"is_passive": True}
    rows = rows_of(earned(1), earned(2), passive, repaired(3, 4), earned(4, arrived=5))
    timeline = Timeline(books, REAL)
    replay = UserReplay(rows, timeline, TermsMemo(timeline), MeasuresMemo(timeline), UserSettings()).replay()
    world = replay.world(NOW)
    assert [each.what for each in replay.impossible] == ["repair"]
    assert (world.balance, longest(world)) == (200, 4)
