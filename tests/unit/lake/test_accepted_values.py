"""What the models' tests accept is what the code writes: a kind that they lack would fail each night."""

from typing import Any

import yaml

from local.paths import ROOT
from rules.book.document import read_book
from rules.engagement.ledger import EntryKind
from rules.lake.rule_entities import BOOK, book_items

STAGING = ROOT / "sql" / "models" / "staging"
# A book with something of each kind
FULL_BOOK: dict[str, Any] = {
    "format": 1,
    "event_types": {"READ": {"points": 1}},
    "boosts": [{"factor": 2, "since": "2026-06-01T00:00:00Z", "until": "2026-06-02T00:00:00Z"}],
    "streaks": {"reading": {"per": "week", "needs": {"active_days": 2}}},
    "achievements": {"first": {"title": "First", "all": [{"points_earned": True, "at_least": 1}]}},
    "levels": [{"name": "silver", "from": 10}],
    "daily": {"rest_days": ["sunday"]},
    "boards": {"weekly": {"per": "week"}},
}


def accepted(model: str, column: str) -> set[str]:
    tests = yaml.safe_load((STAGING / f"{model}.yml").read_text())["tests"]
    return set(tests["accepted_values"][column])


def test_each_kind_of_a_books_rows_is_accepted() -> None:
    kinds = {row["kind"] for row in book_items(read_book(FULL_BOOK))} | {BOOK}
    assert len(kinds) == 8, "a book with something of each kind, and the row of all the rest"
    assert accepted("rules", "kind") == kinds


def test_each_kind_of_an_entry_is_accepted() -> None:
    assert accepted("ledger", "kind") == set(EntryKind)
