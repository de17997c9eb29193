"""The GroupEvents table: which events a root has besides its own, so that a page of them is one query.

A row names a root, and an event of a leaf that was absorbed by it. An event gets its rows before it is
announced (processors/leads/lead_events.py); events of before that, when their leaf comes to the root
(adapters/leads/groups/person_events.py). So what is counted of an absorbed leaf always has rows, except for
leaves that are still `pending` at the root.

Rows are never changed or deleted: where a leaf is, its item in the table Feature says, and a reader asks
there. So rows may be written again, late, or for a root that the leaf has left.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from adapters.platform.items import item, plain
from adapters.platform.tables import put_all, query_all
from rules.leads.lead_events import SORT_KEY, LeadEvent

ROOT, LEAF = "root_id", "lead_organization_id"
# The event's sort key behind a `#`; and once more behind its type, for pages of one type.
PLACE = "event_type#occurred_at#id"
EventKey = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class EventPage:
    """Which events are asked for: since <= `occurred_at#id` < until. event_type: "" for all types."""

    event_type: str
    since: str
    until: str
    limit: int


class GroupEvents:
    """Rows of all roots."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def note(self, events: Iterable[tuple[str, LeadEvent]]) -> None:
        """Note events, each with its leaf's root; again changes nothing. Raises Unprocessed.

        What a leaf that is its own root did needs no row, and gets none.
        """
        rows = {
            (root, place): {ROOT: root, PLACE: place, LEAF: each.lead_organization_id}
            for root, each in events
            if root != each.lead_organization_id
            for place in (f"#{each.place}", f"{each.event_type}#{each.place}")
        }
        put_all(self._dynamodb, self._table, [item(each) for each in rows.values()])

    def newest(self, root: str, page: EventPage) -> Iterator[EventKey]:
        """Yield keys in the table Event, newest first, strongly consistent, a page's limit in a request."""
        first, last = f"{page.event_type}#{page.since}", f"{page.event_type}#{page.until}"
        found = query_all(
            self._dynamodb,
            TableName=self._table,
            KeyConditionExpression="root_id = :root AND #place BETWEEN :first AND :last",
            ExpressionAttributeNames={"#place": PLACE},
            ExpressionAttributeValues=item({":root": root, ":first": first, ":last": last}),
            ScanIndexForward=False,
            ConsistentRead=True,
            Limit=page.limit,
        )
        for each in map(plain, found):
            if each[PLACE] != last:
                yield {LEAF: each[LEAF], SORT_KEY: each[PLACE].partition("#")[2]}
