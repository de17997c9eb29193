"""Notes of lead events that are counted in features, in the table IdempotencyKeys."""

from collections.abc import Collection
from typing import Any

from adapters.platform.items import encode_item
from adapters.platform.tables import get_all, put_all
from rules.leads.series import Mark

COUNTED_KEY = "counted"


class CountedEvents:
    """Notes of events that are counted in features for good, one for each, in the table IdempotencyKeys.

    A lead's state has the marks of its newest events. When a mark leaves the state, a note is written. So for
    an older event its note is looked up, and its lead's events need not be read (ARCHITECTURE.md). A mark has
    the microsecond and 48 bits of the event's id, so no two events share one.

    A note is written only once the state that has its event is stored. Every later state of that lead, or of
    the lead that absorbs it, is made from that state or from all stored events. So a note is true for ever.
    """

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def known(self, marks: Collection[Mark]) -> set[Mark]:
        """Return the marks that have a note, strongly consistent. Raises Unprocessed."""
        by_name = {_name(mark): mark for mark in marks}
        notes = get_all(self._dynamodb, self._table, [_key(name) for name in by_name], only="user_id")
        return {by_name[note["user_id"]["S"]] for note in notes}

    def note(self, marks: Collection[Mark]) -> None:
        """Note events as counted; again changes nothing. Raises Unprocessed."""
        put_all(
            self._dynamodb, self._table, [encode_item(_key(_name(mark))) for mark in dict.fromkeys(marks)]
        )


def _name(mark: Mark) -> str:
    return f"lead-counted#{mark.microseconds:x}.{mark.id_start}"


def _key(name: str) -> dict[str, str]:
    return {"user_id": name, "idempotency_key": COUNTED_KEY}
