"""Books as the table RuleBooks holds them, without a table: the items that a publication puts."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from adapters.book_store import DOCUMENTS, VERSIONS, BookStore, Publication
from adapters.platform.items import decode_item

AT = datetime(2026, 3, 2, 5, 30, tzinfo=UTC)
Attributes = dict[str, Any]


class Table:
    """Takes what is put, and answers with the versions and documents that it has."""

    exceptions = None

    def __init__(self) -> None:
        self.items: list[Any] = []

    def query(self, ExpressionAttributeValues: dict[str, Any], **_: Any) -> dict[str, Any]:  # noqa: N803
        known = decode_item(ExpressionAttributeValues)[":known"]
        of_versions = [each for each in self.items if decode_item(each)["book"] == VERSIONS]
        return {"Items": [each for each in of_versions if decode_item(each)["version"] > known]}

    def get_item(self, Key: dict[str, Any], **_: Any) -> dict[str, Any]:  # noqa: N803
        return {"Item": next(each for each in self.items if Key.items() <= each.items())}

    def transact_write_items(self, TransactItems: list[Any]) -> None:  # noqa: N803
        self.items += [each["Put"]["Item"] for each in TransactItems]


def published(*books: Attributes) -> list[Any]:
    """Publish documents, one a day, each in force at once; returns all items put."""
    table = Table()
    for place, document in enumerate(books):
        at = AT + timedelta(days=place)
        publish(table, document, at, at)
    return table.items


def publish(table: Table, document: Attributes, effective: datetime, at: datetime) -> None:
    """Publish a document, as the next version of a table's book."""
    store = BookStore(table, "RuleBooks")
    store.look()
    store.publish(Publication(document, effective, at, "ann", 'a, "better"\nbook'))


def documents(items: Iterable[Any]) -> list[Attributes]:
    """Return, as plain attributes, the items whose changes are handed to the publisher."""
    return [found for each in items if (found := decode_item(each))["book"] == DOCUMENTS]


def a_document() -> Attributes:
    """A book that has everything that one can have."""
    return {
        "format": 1,
        "event_types": {
            "READ": {
                "points": {"base": 5, "of": "pages", "each": 2.5, "earns": 3},
                "cap": {"points": 20, "per": "week"},
                "properties": {
                    "type": "object",
                    "properties": {"pages": {"type": "integer", "minimum": 0, "maximum": 900}},
                },
                "description": "a chapter",
            },
            "WALK": {"points": 3, "cap": {"events": 2, "per": "day"}, "keeps_streak": False},
            "A_B": {"points": 0, "declared_by": "server"},
        },
        "boosts": [
            {"since": "2026-03-28T00:00:00+01:00", "until": "2026-03-30T00:00:00+02:00", "factor": 2},
            {
                "since": "2026-04-01T00:00:00Z",
                "until": "2026-04-02T00:00:00Z",
                "factor": 3,
                "event_types": ["WALK", "A_B"],
            },
        ],
        "freezes": {"held_max": 5, "free_a_month": 2, "price_points": 100},
        "repairs": {"price_points": 200, "within_days": 3, "dates_max": 2, "a_year": 4},
        "pauses": {"dates_max": 91, "dates_a_year": 92},
        "streaks": {
            "pages": {
                "per": "month",
                "needs": {"sum": {"property": "pages", "at_least": 30.5}},
                "event_types": ["READ"],
            },
            "walks": {"per": "week", "needs": {"active_days": 3}, "freezes": True, "pauses": True},
        },
        "achievements": {
            "reader": {
                "all": [
                    {"sum": {"event_type": "READ", "property": "pages"}, "at_least": 70.5},
                    {"streak": "pages", "at_least": 2},
                ],
                "history": True,
            },
            "starter": {"any": [{"points_earned": 1}], "withdrawn": "when_untrue"},
        },
        "levels": [{"name": "zealot", "from": 0}, {"name": "apostle", "from": 10, "title": 'An "apostle"'}],
    }
