"""Notes of events that are counted in features for good, in the table IdempotencyKeys, one for each.

A lead's state knows some of its events by their marks. When a mark leaves the state, a note stays behind. So
an event as old as that is looked up, instead of all events being read (docs/decisions/0038).

A note is written only once the state that has its event is stored. Every later state of that lead, or of the
lead that absorbs it, is made from that state or from all stored events. So a note is true for ever.
"""

from collections.abc import Collection
from typing import Any

from adapters.platform.items import item
from adapters.platform.tables import get_all, put_all
from rules.leads.series import Mark

KEY = "counted"


class CountedEvents:
    """Notes by mark. A mark holds the microsecond and 48 bits of the event's id, so it is one event's."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def known(self, marks: Collection[Mark]) -> set[Mark]:
        """Return those of some marks that have a note, strongly consistent. Raises Unprocessed."""
        named = {_name(each): each for each in marks}
        found = get_all(self._dynamodb, self._table, [_key(each) for each in named], only="user_id")
        return {named[each["user_id"]["S"]] for each in found}

    def note(self, marks: Collection[Mark]) -> None:
        """Note events as counted; again changes nothing. Raises Unprocessed."""
        put_all(self._dynamodb, self._table, [item(_key(_name(each))) for each in dict.fromkeys(marks)])


def _name(mark: Mark) -> str:
    return f"lead-counted#{mark[0]:x}.{mark[1]}"


def _key(name: str) -> dict[str, str]:
    return {"user_id": name, "idempotency_key": KEY}
