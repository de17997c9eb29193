"""Rest days in a book: what a document may say, and what processes know that read no document."""

from datetime import UTC, datetime
from typing import Any

import pytest

from adapters.book_store import BookStore, shipped_document, shipped_version
from adapters.engagement.daily_terms_store import SHIPPED, DailyTermsStore
from rules.book.daily import NO_REST, Weekday, daily_rules
from rules.book.document import faults_of, read_book
from rules.engagement.goals import beginnings
from rules.lake.entities import RULES
from rules.lake.rule_entities import book_of, rule_rows
from tests.support.published_books import AT, Table, a_document, documents, publish, published

WEEKEND = {"rest_days": ["saturday", "sunday"]}
CHOSEN = {"rest_days_chosen": 2}
BOARDS = {
    "classes": {"per": "month", "group": "class"},
    "summer": {"from": "2027-06-01", "until": "2027-08-31"},
    "weekly": {"per": "week"},
}


def document(**sections: Any) -> dict[str, Any]:
    return {**shipped_document(), **sections}


@pytest.mark.parametrize("daily", [WEEKEND, CHOSEN])
def test_a_book_has_weekdays_or_lets_users_choose(daily: dict[str, Any]) -> None:
    assert faults_of(document(daily=daily)) == []
    assert read_book(document(daily=daily)).daily == daily_rules(daily)


@pytest.mark.parametrize("daily", [{}, {**WEEKEND, **CHOSEN}])
def test_it_has_one_of_both(daily: dict[str, Any]) -> None:
    (fault,) = faults_of(document(daily=daily))
    assert fault.path == ("daily",)


def test_a_streak_of_weeks_has_no_rest_days() -> None:
    weeks = {"per": "week", "needs": {"active_days": 3}, "rest_days": True}
    streaks = {**shipped_document()["streaks"], "weeks": weeks}
    (fault,) = faults_of(document(streaks=streaks))
    assert fault.path == ("streaks", "weeks", "rest_days")


def test_the_shipped_book_has_none_for_all_processes() -> None:
    assert shipped_version().daily == SHIPPED == NO_REST


@pytest.mark.parametrize("boards", [BOARDS, None])
@pytest.mark.parametrize("daily", [WEEKEND, CHOSEN, None])
def test_who_reads_no_document_knows_the_same(
    daily: dict[str, Any] | None, boards: dict[str, Any] | None
) -> None:
    sections = ({"daily": daily} if daily else {}) | ({"boards": boards} if boards else {})
    table = Table()
    publish(table, {**a_document(), **sections}, AT, AT)
    books = BookStore(table, "RuleBooks").look()
    assert DailyTermsStore(table, "RuleBooks").recent() == books.daily_terms
    assert bool(books.daily_terms) is bool(sections)
    assert all(version.daily == version.book.daily for version in books.versions)


@pytest.mark.parametrize("daily", [WEEKEND, CHOSEN, None])
def test_the_lake_has_them(daily: dict[str, Any] | None) -> None:
    _, item = documents(published({**a_document(), **({"daily": daily} if daily else {}), "boards": BOARDS}))
    names = [field.name for field in RULES.fields]
    rows = [{**dict.fromkeys(names), **row} for row in rule_rows(item, datetime(2027, 1, 1, tzinfo=UTC))]
    assert book_of(rows).daily == daily_rules(daily, BOARDS)


def test_publishing_says_from_when() -> None:
    table = Table()
    publish(table, {**a_document(), "daily": WEEKEND}, AT, AT)
    books = BookStore(table, "RuleBooks").look()
    line = next(line for line in beginnings(books, books.newest) if line.startswith("rest days"))
    first = books.daily_terms[-1][0]
    assert line == (
        f"rest days: from {first} on, no user misses a saturday or a sunday. No earlier date changes"
    )
    assert books.daily_terms[-1][1].rest_days == {Weekday.SATURDAY, Weekday.SUNDAY}
