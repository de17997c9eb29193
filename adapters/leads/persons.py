"""The events and the memory of a person: those of a root and of all its leaves, without a query for each
leaf, whatever merges or parts meanwhile.
"""

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import islice
from operator import itemgetter
from typing import Any, Protocol

from adapters.leads.feature_store import FeatureStore, GroupUnsettled
from adapters.leads.groups import LEAF, EventKey, EventPage, GroupEvents
from adapters.leads.lead_event_store import LeadEventStore
from adapters.leads.memory_store import MemoryStore
from adapters.platform.aws import pauses
from adapters.platform.tables import READ_MAX, chunks
from rules.leads.feature_items import FeatureItem
from rules.leads.features import Contact
from rules.leads.lead_events import SORT_KEY, LeadEvent
from rules.leads.memory import (
    CAMPAIGN_CONTACT,
    MemoryEntry,
    campaign_contact,
    entry_of_leaves,
    remembered_entries,
)

ALL = EventPage("", "0", "~", READ_MAX)


class PersonTables(Protocol):
    """Settings that name the tables."""

    @property
    def event_table(self) -> str: ...  # noqa: D102
    @property
    def group_events_table(self) -> str: ...  # noqa: D102
    @property
    def feature_table(self) -> str: ...  # noqa: D102


class PersonEvents:
    """Reads of a root its own events and those of its pending leaves, and of all others what rows name."""

    def __init__(self, events: LeadEventStore, rows: GroupEvents, features: FeatureStore) -> None:
        self.events, self.rows, self.features = events, rows, features

    @classmethod
    def of(cls, dynamodb: Any, config: PersonTables, features: FeatureStore | None = None) -> "PersonEvents":
        """Return the reader over a function's tables. features: its own store of these, if it has one."""
        events = LeadEventStore(dynamodb, config.event_table)
        rows = GroupEvents(dynamodb, config.group_events_table)
        return cls(events, rows, features or FeatureStore(dynamodb, config.feature_table))

    def joining(self, item: FeatureItem) -> list[LeadEvent]:
        """Return the events of a root's pending leaves, each noted: they need not be pending any more."""
        root = item.lead_organization_id
        found = list(self.events.of_leaves(item.pending))
        self.rows.note((root, each) for each in found)
        return found

    def of_person(self, item: FeatureItem) -> Iterator[LeadEvent]:
        """Yield all events of a root as of its item, strongly consistent, in no order; notes what is joining.

        A leaf that moves meanwhile changes the root's item, so what is made of the events cannot be written.
        """
        yield from self.events.of_leaves([item.lead_organization_id])
        yield from self.joining(item)
        if not item.regrouped:  # no leaf ever came: there are no rows
            return
        for some in chunks(self._noted(item, ALL, item.pending), READ_MAX):
            yield from self.events.of_keys(some)

    def newest(self, item: FeatureItem, lead: str, page: EventPage) -> list[dict[str, Any]]:
        """Return a page of a root's events, newest first, as table attributes.

        lead: a leaf whose own events count in any case. It reads a few times the page's limit, whatever the
        number of leaves; and as much again of each leaf that is pending.
        """
        near = list(dict.fromkeys((item.lead_organization_id, *item.pending, lead)))
        asked = (page.since, page.until, page.limit)
        if page.event_type:
            found = self.events.newest_of_type(near, page.event_type, *asked)
        else:
            found = self.events.newest(near, *asked)
        if not item.regrouped:
            return found
        if len(found) == page.limit:
            page = replace(page, since=found[-1][SORT_KEY])
        found += self.events.rows_of_keys(list(islice(self._noted(item, page, near), page.limit)))
        return heapq.nlargest(page.limit, found, key=itemgetter(SORT_KEY))

    def _noted(self, item: FeatureItem, page: EventPage, near: Iterable[str]) -> Iterator[EventKey]:
        """Yield the keys that rows name, newest first, of leaves that are there now. near: left out."""
        root, here = item.lead_organization_id, dict.fromkeys(near, False)
        for some in chunks(self.rows.newest(root, page), page.limit):
            unknown = {each[LEAF] for each in some} - here.keys()
            members = self.features.members(root, unknown)
            here |= {each: each in members for each in unknown}
            yield from (each for each in some if here[each[LEAF]])


# The memory of leads that may be one: written under the root, whatever merges or parts meanwhile.
#
# Memory items have no lock in common, so the order of steps keeps them right:
#
# - A writer joins first and asks afterwards where the leaf belongs (`FeatureStore.home`,
#   strongly consistent).
# - A change sets the topology first; then memory is read, then the events, then what differs is written,
#   each entry on condition of the version that was read; then the topology is asked for again.
#
# If the writer still sees its leaf at the root that it wrote for, any change to come will read memory after
# that write, and make it what the events give. If the leaf has moved, it undoes what it may have done to the
# former root by rebuilding it, and goes to the new one. If the rebuild had read that entry before the
# writer's join, its condition fails and it starts again. So of a change and a join in flight at least one
# sees the other. Two rebuilds cannot cross either: the one for the older topology sees, after writing, that
# leaves have come or gone, and does it again.
#
# Each piece of evidence knows its leaf, so a reader can leave out what a departed leaf's event has just put
# there (`contacts`); a campaign's reactions are kept one of each leaf, so leaving out loses nothing.


ATTEMPTS_MAX = 10


class GroupMemory:
    """Memory by group of leaves."""

    def __init__(self, memories: MemoryStore, features: FeatureStore, events: PersonEvents) -> None:
        self._memories, self._features, self._events = memories, features, events

    def remember(self, leaf: str, hint: str, entries: Iterable[MemoryEntry], now: datetime) -> str:
        """Join a leaf's entries into its root's memory; returns the root. hint: the root supposed.

        Raises GroupUnsettled or LeadContended; it is safe to repeat.
        """
        listed, target = list(entries), hint
        for _ in pauses(ATTEMPTS_MAX):
            self._memories.join(target, listed)
            root = self._features.home(leaf, target).lead_organization_id
            if root == target:
                return root
            self.rebuild(target, now)
            target = root
        raise GroupUnsettled(f"{leaf} moved in every attempt")

    def rebuild(self, root: str, now: datetime) -> None:
        """Make a root's memory what its leaves' events give; of an absorbed leaf nothing is touched."""
        for _ in pauses(ATTEMPTS_MAX):
            item = self._item(root)
            if item.merged_into is not None:
                return
            self._memories.rebuild(root, partial(self._events.of_person, item), now)
            if self._item(root).regrouped == item.regrouped:
                return
        raise GroupUnsettled(f"{root} changed in every attempt")

    def absorb(self, root: str, leaves: Iterable[str], now: datetime) -> None:
        """Join what leaves' events give into the memory of the root that they came to.

        Leaves that are elsewhere by now are left out. If one has left while it was joined, memory is rebuilt.
        """
        here = self._features.members(root, leaves) - {root}
        entries = remembered_entries(self._events.events.of_leaves(sorted(here)))
        self._memories.join(root, list(entries.values()))
        if entries and self._features.members(root, here) != here:
            self.rebuild(root, now)

    def contacts(self, item: FeatureItem) -> list[Contact]:
        """Return the campaigns that a root's leaves were contacted by, strongly consistent."""
        found = self._memories.of_type(item.lead_organization_id, CAMPAIGN_CONTACT.name)
        homes = {piece.home for each in found for piece in each.evidence}
        here = self._features.members(item.lead_organization_id, homes)
        supported = (entry_of_leaves(each, here) for each in found)
        return [campaign_contact(each) for each in supported if each is not None]

    def _item(self, root: str) -> FeatureItem:
        return self._features.get(root) or FeatureItem(root)
