"""The events of a person: those of a root and of all its leaves.

GroupEvents lists the keys of the leaves' events under their root, so one query serves all leaves. A leaf that
has just joined is *pending* at the root: its older events are not listed yet, so they are queried.
"""

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from operator import itemgetter
from typing import Any, Protocol

from adapters.leads.feature_store import FeatureStore
from adapters.leads.groups import LEAF, EventKey, GroupEvents
from adapters.leads.lead_event_store import EventPage, LeadEventStore
from adapters.platform.tables import READ_MAX, chunks
from rules.leads.feature_items import FeatureItem
from rules.leads.lead_events import SORT_KEY, LeadEvent

ALL_EVENTS = EventPage("", "0", "~", READ_MAX)  # "0" sorts before every stamp, and "~" after


class PersonTables(Protocol):
    """Settings that name the tables."""

    @property
    def event_table(self) -> str: ...  # noqa: D102
    @property
    def group_events_table(self) -> str: ...  # noqa: D102
    @property
    def feature_table(self) -> str: ...  # noqa: D102


class PersonEvents:
    """Reads the events of a root and of all its leaves."""

    def __init__(self, events: LeadEventStore, group_events: GroupEvents, features: FeatureStore) -> None:
        self.events, self.group_events, self.features = events, group_events, features

    @classmethod
    def of(cls, dynamodb: Any, config: PersonTables, features: FeatureStore | None = None) -> "PersonEvents":
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
