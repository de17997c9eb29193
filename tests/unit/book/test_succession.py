"""What a new version of the book may not change, given the versions before and after it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from adapters.book_store import BookStore, shipped_document
from ingest.book_document import book_of_document
from ingest.rules_api import Proposal, publish
from rules.book.book import Book, Books, EventType, Version
from rules.book.document import BookRefused
from rules.book.point_rules import AmountRule
from rules.book.succession import check_succession
from tests.support.published_books import Table

NOW = datetime(2027, 3, 1, 12, tzinfo=UTC)


def march(day: int) -> datetime:
    return datetime(2026, 3, day, tzinfo=UTC)


def check(before: dict[str, Any], after: dict[str, Any]) -> None:
    """Check a document that is to follow another one."""
    books = Books([Version(1, march(1), lambda: book_of_document(before))])
    check_succession(book_of_document(after), books, march(5), march(5))


def with_contract(contract: dict[str, Any], kind: str = "READ") -> dict[str, Any]:
    return {"event_types": {"CHECK_IN": {"points": 1}, kind: {"points": 1, "properties": contract}}}


def test_a_contract_may_not_get_narrower_but_a_new_type_may_have_any() -> None:
    before = with_contract({"properties": {"pages": {"type": "integer"}}})
    check(before, with_contract({"properties": {"pages": {"type": "number"}}}))
    check(before, with_contract({"required": ["pages"]}, "NEW"))
    with pytest.raises(BookRefused, match=r"event_types.READ.properties.required now has pages"):
        check(before, with_contract({"required": ["pages"]}))


def test_contracts_that_get_narrower_are_told_in_the_order_of_the_book() -> None:
    named = [f"KIND_{number * 7 % 23}" for number in range(23)]
    types = {name: EventType(points=1) for name in named}
    narrow = {name: replace(rule, properties={"required": ["pages"]}) for name, rule in types.items()}
    books = Books([Version(1, march(1), lambda: Book(types))])
    with pytest.raises(BookRefused) as refused:
        check_succession(Book(narrow), books, march(5), march(5))
    assert [fault.path[1] for fault in refused.value.faults] == named


def test_a_name_keeps_its_period() -> None:
    weekly, monthly = (
        {
            "event_types": {"READ": {"points": 1}},
            "streaks": {"a": {"per": per, "needs": {"events": 3}}},
        }
        for per in ("week", "month")
    )
    with pytest.raises(BookRefused, match=r"streaks.a.per was week before"):
        check(weekly, monthly)
    check(weekly, {"event_types": {"READ": {"points": 1}}})
    check(weekly, weekly)


@pytest.mark.parametrize(
    ("book", "faults"),
    [
        ({"READ": EventType(9), "WALK": EventType(9)}, 0),
        ({"READ": EventType(9)}, 1),
        ({"READ": EventType(9, keeps_streak=False), "WALK": EventType(9)}, 1),
        ({}, 2),
    ],
)
def test_a_version_of_the_past_may_change_points_alone(book: dict[str, EventType], faults: int) -> None:
    """WALK came with version 2, which was in force for a part of the time."""
    types = ({"READ": EventType(1)}, {"READ": EventType(1), "WALK": EventType(1)}, {"LATER": EventType(1)})
    days = (1, 9, 30)
    known = Books(
        Version(number, march(day), lambda types=types[number - 1]: Book(types), march(1))  # type: ignore[misc]
        for number, day in enumerate(days, 1)
    )
    try:
        check_succession(Book(book), known, march(5), march(20))
    except BookRefused as refused:
        assert len(refused.faults) == faults
    else:
        assert faults == 0


def test_a_version_of_the_past_pays_by_an_amount_only_where_all_versions_stored_it() -> None:
    """Version 2 did not sum minutes, so its events' entries do not have them."""

    def listen(of: str | None) -> Book:
        return Book({"LISTEN": EventType(1, by_amount=AmountRule(of, 5000, 1) if of else None)})

    known = Books(
        Version(number, march(day), lambda of=of: listen(of), march(1))  # type: ignore[misc]
        for number, day, of in ((1, 1, "minutes"), (2, 9, None), (3, 12, "minutes"))
    )
    check_succession(listen("minutes"), known, march(12), march(20))
    check_succession(listen("minutes"), known, march(21), march(20))
    for of, since, version in (("minutes", 9, 2), ("minutes", 5, 2), ("pages", 12, 3)):
        with pytest.raises(BookRefused, match=rf"LISTEN.points.of is {of}, which version {version} did not"):
            check_succession(listen(of), known, march(since), march(20))


def test_a_stock_is_raised_and_never_lowered_over_all_versions() -> None:
    table = Table()
    store = BookStore(table, "RuleBooks")

    def published(stock: int | None, effective: datetime | None = None) -> int | None:
        mug = {"price_points": 5, "brand": "acme"} | ({} if stock is None else {"stock": stock})
        document = {**shipped_document(), "rewards": {"mug": mug}}
        return publish(store, Proposal(document, effective, "ann"), NOW).book.rewards["mug"].stock

    published(20)
    assert published(30) == 30
    publish(store, Proposal(shipped_document(), None, "ann"), NOW)
    items = len(table.items)
    for stock in (0, 29):
        with pytest.raises(BookRefused, match=r"rewards.mug.stock was 30: a stock is never lowered"):
            published(stock)
    assert len(table.items) == items
    assert published(40, NOW + timedelta(days=2)) == 40
    with pytest.raises(BookRefused, match=r"rewards.mug.stock is 40 in a version that is planned"):
        published(41)
    assert published(None) is None
    assert published(35) == 35
