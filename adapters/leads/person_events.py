"""The events of a person: those of a root and of all its leaves.

GroupEvents lists the keys of the leaves' events under their root, so one query serves all leaves. A leaf that
has just joined is *pending* at the root: its older events are not listed yet, so they are queried.
"""

import heapq
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from operator import itemgetter
from typing import Any

from adapters.leads.feature_store import FeatureStore
from adapters.leads.lead_event_store import EventPage, LeadEventStore
from adapters.platform.items import decode_item, encode_item
from adapters.platform.tables import READ_MAX, chunks, put_all, query_all
from rules.leads.feature_items import FeatureItem
from rules.leads.lead_events import SORT_KEY, LeadEvent

EventKey = Mapping[str, str]  # of the table Event
ROOT, LEAF = "root_id", "lead_organization_id"
# Of two rows for each event: the event's sort key behind a `#`, and behind its type for pages of one type.
ROW_KEY = "event_type#occurred_at#id"
ALL_EVENTS = EventPage("", "0", "~", READ_MAX)  # "0" sorts before every stamp, and "~" after


class GroupEvents:
    """The table GroupEvents: which events a root has besides its own, so that a page of them is one query.

    A row names a root, and an event of a leaf that it has absorbed. An event gets its rows before it is
    announced (processors/leads/lead_events.py), an older one when its leaf comes to the root.
    So what is counted of an absorbed leaf has rows, except for leaves that are still `pending` at the root.

    Rows are never changed or deleted. The item of a leaf in the table Feature says where the leaf is. So rows
    may be written again, late, or for a root that the leaf has left.
    """

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def note(self, events: Iterable[tuple[str, LeadEvent]]) -> None:
        """Note events, each with its leaf's root. Noting again changes nothing. Raises Unprocessed.

        An event of the root itself gets no row.
        """
        rows = {}
        for root, event in events:
            if root == event.lead_organization_id:
                continue
            for sort_key in (f"#{event.sort_key}", f"{event.event_type}#{event.sort_key}"):
                row = {ROOT: root, ROW_KEY: sort_key, LEAF: event.lead_organization_id}
                rows[root, sort_key] = row
        put_all(self._dynamodb, self._table, [encode_item(row) for row in rows.values()])

    def newest(self, root: str, page: EventPage) -> Iterator[EventKey]:
        """Yield the keys of a root's events in the table Event, newest first, strongly consistent.

        Each request reads as many as the page's limit.
        """
        first, last = f"{page.event_type}#{page.since}", f"{page.event_type}#{page.until}"
        rows = query_all(
            self._dynamodb,
            TableName=self._table,
            KeyConditionExpression="root_id = :root AND #key BETWEEN :first AND :last",
            ExpressionAttributeNames={"#key": ROW_KEY},
            ExpressionAttributeValues=encode_item({":root": root, ":first": first, ":last": last}),
            ScanIndexForward=False,
            ConsistentRead=True,
            Limit=page.limit,
        )
        for row in map(decode_item, rows):
            if row[ROW_KEY] != last:  # until is not among them, and BETWEEN has both ends
                yield {LEAF: row[LEAF], SORT_KEY: row[ROW_KEY].partition("#")[2]}


class PersonEvents:
    """Reads the events of a root and of all its leaves."""

    def __init__(self, events: LeadEventStore, group_events: GroupEvents, features: FeatureStore) -> None:
        self.events, self.group_events, self.features = events, group_events, features

    @classmethod
    def of(cls, dynamodb: Any, config: Any, features: FeatureStore | None = None) -> "PersonEvents":
        """Return the reader over a function's tables. features: its own store of these, if it has one."""
        events = LeadEventStore(dynamodb, config.event_table)
        group_events = GroupEvents(dynamodb, config.group_events_table)
        return cls(events, group_events, features or FeatureStore(dynamodb, config.feature_table))

    def list_pending(self, item: FeatureItem) -> list[LeadEvent]:
        """Write the events of a root's pending leaves to GroupEvents, and return them.

        Afterwards the caller may take these leaves off the item's `pending`.
        """
        root = item.lead_organization_id
        events = list(self.events.of_leaves(item.pending))
        self.group_events.note((root, event) for event in events)
        return events

    def of_person(self, item: FeatureItem) -> Iterator[LeadEvent]:
        """Yield all events of a root and its leaves, strongly consistent, in no order; lists pending leaves'.

        A leaf that moves meanwhile changes the root's item. So a conditional write of what the caller
        computes from these events fails.
        """
        yield from self.events.of_leaves([item.lead_organization_id])
        yield from self.list_pending(item)
        if not item.group_changes:  # no leaf ever came, so GroupEvents has nothing of this root
            return
        for keys in chunks(self._keys_from_group(item, ALL_EVENTS, item.pending), READ_MAX):
            yield from self.events.of_keys(keys)

    def newest(self, item: FeatureItem, lead: str, page: EventPage) -> list[dict[str, Any]]:
        """Return a page of a root's events, newest first, as table attributes.

        lead: the leaf that was asked for. Its events are always among them: a caller who has just stored one
        finds it, although GroupEvents lists it a moment later. The method reads a few times the page's limit,
        whatever the number of leaves, and as much again for each leaf that is pending.
        """
        queried = list(dict.fromkeys((item.lead_organization_id, *item.pending, lead)))
        stored_events = self.events.newest(queried, page)
        if not item.group_changes:
            return stored_events
        if len(stored_events) == page.limit:  # older events of other leaves cannot be on this page
            page = replace(page, since=stored_events[-1][SORT_KEY])
        keys = islice(self._keys_from_group(item, page, queried), page.limit)
        stored_events += self.events.rows_of_keys(list(keys))
        return heapq.nlargest(page.limit, stored_events, key=itemgetter(SORT_KEY))

    def _keys_from_group(
        self, item: FeatureItem, page: EventPage, queried: Iterable[str]
    ) -> Iterator[EventKey]:
        """Yield the keys that GroupEvents lists, newest first, of leaves that the root has now.

        queried: leaves that are left out, because the caller has their events by query.
        """
        root = item.lead_organization_id
        is_yielded = dict.fromkeys(queried, False)  # by leaf
        for keys in chunks(self.group_events.newest(root, page), page.limit):
            new_leaves = {key[LEAF] for key in keys} - is_yielded.keys()
            members = self.features.members(root, new_leaves)
            is_yielded |= {leaf: leaf in members for leaf in new_leaves}
            yield from (key for key in keys if is_yielded[key[LEAF]])
