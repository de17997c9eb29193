"""The events of a person: those of a root and of all its leaves. They take no query for each leaf."""

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
    """Reads a root's events: its own and pending leaves' by query, others' by the keys in GroupEvents."""

    def __init__(self, events: LeadEventStore, rows: GroupEvents, features: FeatureStore) -> None:
        self.events, self.rows, self.features = events, rows, features

    @classmethod
    def of(cls, dynamodb: Any, config: PersonTables, features: FeatureStore | None = None) -> "PersonEvents":
        """Return the reader over a function's tables. features: its own store of these, if it has one."""
        events = LeadEventStore(dynamodb, config.event_table)
        rows = GroupEvents(dynamodb, config.group_events_table)
        return cls(events, rows, features or FeatureStore(dynamodb, config.feature_table))

    def joining(self, item: FeatureItem) -> list[LeadEvent]:
        """Return the events of a root's pending leaves, and note them as the root's in GroupEvents.

        So the leaves need not be pending any more.
        """
        root = item.lead_organization_id
        events = list(self.events.of_leaves(item.pending))
        self.rows.note((root, event) for event in events)
        return events

    def of_person(self, item: FeatureItem) -> Iterator[LeadEvent]:
        """Yield all events of a root as of its item, strongly consistent, in no order; notes pending leaves'.

        A leaf that moves meanwhile changes the root's item, so what is made of the events cannot be written.
        """
        yield from self.events.of_leaves([item.lead_organization_id])
        yield from self.joining(item)
        if not item.group_changes:  # no leaf ever came, so there are no rows
            return
        for keys in chunks(self._keys_from_rows(item, ALL_EVENTS, item.pending), READ_MAX):
            yield from self.events.of_keys(keys)

    def newest(self, item: FeatureItem, lead: str, page: EventPage) -> list[dict[str, Any]]:
        """Return a page of a root's events, newest first, as table attributes.

        lead: a leaf whose events are always among them. It reads a few times the page's limit, whatever the
        number of leaves, and as much again of each leaf that is pending.
        """
        queried = list(dict.fromkeys((item.lead_organization_id, *item.pending, lead)))
        rows = self.events.newest(queried, page)
        if not item.group_changes:
            return rows
        if len(rows) == page.limit:
            page = replace(page, since=rows[-1][SORT_KEY])
        keys = islice(self._keys_from_rows(item, page, queried), page.limit)
        rows += self.events.rows_of_keys(list(keys))
        return heapq.nlargest(page.limit, rows, key=itemgetter(SORT_KEY))

    def _keys_from_rows(
        self, item: FeatureItem, page: EventPage, queried: Iterable[str]
    ) -> Iterator[EventKey]:
        """Yield the keys that rows name, newest first, of leaves that the root has now.

        queried: leaves that are left out, because the caller has their events by query.
        """
        root, is_wanted = item.lead_organization_id, dict.fromkeys(queried, False)
        for keys in chunks(self.rows.newest(root, page), page.limit):
            new_leaves = {key[LEAF] for key in keys} - is_wanted.keys()
            members = self.features.members(root, new_leaves)
            is_wanted |= {leaf: leaf in members for leaf in new_leaves}
            yield from (key for key in keys if is_wanted[key[LEAF]])
