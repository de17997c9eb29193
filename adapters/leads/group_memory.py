"""The memory of leads that may be one: written under the root, whatever merges or parts meanwhile.

Memory items have no lock in common, so the order of steps keeps them right:

- A writer joins first and asks afterwards where the leaf belongs (`FeatureStore.home`, strongly consistent).
- A change sets the topology first; then memory is read, then the events, then what differs is written,
  each entry on condition of the version that was read; then the topology is asked for again.

If the writer still sees the topology that it wrote for, any change to come will read memory after that
write, and make it what the events give. If it sees another one, it undoes what it may have done to the
former root by rebuilding it, and goes to the new one. If the rebuild had read that entry before the
writer's join, its condition fails and it starts again. So of a change and a join in flight at least one
sees the other. Two rebuilds cannot cross either: the one for the older topology sees, after writing, that
it is the older, and does it again.

Each piece of evidence knows its leaf, so a reader can leave out what a departed leaf's event has just
put there (`contacts`); a campaign's reactions are kept one of each leaf, so leaving out loses nothing.
"""

from collections.abc import Iterable
from datetime import datetime
from functools import partial

from adapters.leads.feature_store import FeatureStore, Unsettled
from adapters.leads.lead_event_store import LeadEventStore
from adapters.leads.memory_store import MemoryStore
from adapters.platform.aws import pauses
from rules.leads.evidence import MemoryEntry, supported_by
from rules.leads.feature_items import FeatureItem
from rules.leads.features import Contact
from rules.leads.memory import campaign_contact, remembered_entries
from rules.leads.memory_types import CAMPAIGN_CONTACT

ATTEMPTS_MAX = 10


class GroupMemory:
    """Memory by group of leaves."""

    def __init__(self, memories: MemoryStore, features: FeatureStore, events: LeadEventStore) -> None:
        self._memories, self._features, self._events = memories, features, events

    def remember(self, leaf: str, hint: str, entries: Iterable[MemoryEntry], now: datetime) -> str:
        """Join a leaf's entries into its root's memory; returns the root. hint: the root supposed.

        Raises Unsettled or LeadContended; it is safe to repeat.
        """
        listed, target = list(entries), hint
        for _ in pauses(ATTEMPTS_MAX):
            self._memories.join(target, listed)
            root = self._features.home(leaf, target).lead_organization_id
            if root == target:
                return root
            self.rebuild(target, now)
            target = root
        raise Unsettled(f"{leaf} moved in every attempt")

    def rebuild(self, root: str, now: datetime) -> None:
        """Make a root's memory what its leaves' events give; of an absorbed leaf nothing is touched."""
        for _ in pauses(ATTEMPTS_MAX):
            item = self._item(root)
            if item.merged_into is not None:
                return
            leaves = item.group
            self._memories.rebuild(root, partial(self._events.of_leaves, leaves), now)
            if self._item(root).topology == item.topology:
                return
        raise Unsettled(f"{root} changed in every attempt")

    def absorb(self, root: str, leaves: Iterable[str], topology: int, now: datetime) -> None:
        """Join what leaves' events give into the memory of the root that they came to by a change.

        If another change has been set, the memory is rebuilt.
        """
        entries = remembered_entries(self._events.of_leaves(leaves))
        self._memories.join(root, list(entries.values()))
        if self._item(root).topology != topology:
            self.rebuild(root, now)

    def regroup(self, root: str, topology: int, now: datetime) -> None:
        """Make a root's memory what its leaves' events give, after a change that has been set."""
        item = self._item(root)
        if item.topology == topology and item.added:
            self.absorb(root, item.added, topology, now)
        else:
            self.rebuild(root, now)

    def contacts(self, item: FeatureItem) -> list[Contact]:
        """Return the campaigns that a root's leaves were contacted by, strongly consistent."""
        found = self._memories.of_type(item.lead_organization_id, CAMPAIGN_CONTACT.name)
        supported = (supported_by(each, item.group) for each in found)
        return [campaign_contact(each) for each in supported if each is not None]

    def _item(self, root: str) -> FeatureItem:
        return self._features.get(root) or FeatureItem(root)
