"""The memory of leads that may be one: written under the root, whatever merges or parts meanwhile.

Memory items have no lock in common, so the order of steps keeps them right:

- A writer joins first and asks afterwards where the leaf belongs (`FeatureStore.home`, strongly consistent).
- A change sets the topology first; then memory is read, then the events, then what differs is written,
  each entry on condition of the version that was read; then the topology is asked for again.

If the writer still sees its leaf at the root that it wrote for, any change to come will read memory after
that write, and make it what the events give. If the leaf has moved, it undoes what it may have done to the
former root by rebuilding it, and goes to the new one. If the rebuild had read that entry before the
writer's join, its condition fails and it starts again. So of a change and a join in flight at least one
sees the other. Two rebuilds cannot cross either: the one for the older topology sees, after writing, that
leaves have come or gone, and does it again.

Each piece of evidence knows its leaf, so a reader can leave out what a departed leaf's event has just
put there (`contacts`); a campaign's reactions are kept one of each leaf, so leaving out loses nothing.
"""

from collections.abc import Iterable
from datetime import datetime
from functools import partial

from adapters.leads.feature_store import FeatureStore, Unsettled
from adapters.leads.groups.person_events import PersonEvents
from adapters.leads.memory_store import MemoryStore
from adapters.platform.aws import pauses
from rules.leads.feature_items import FeatureItem
from rules.leads.features import Contact
from rules.leads.memory import (
    CAMPAIGN_CONTACT,
    MemoryEntry,
    campaign_contact,
    remembered_entries,
    supported_by,
)

ATTEMPTS_MAX = 10


class GroupMemory:
    """Memory by group of leaves."""

    def __init__(self, memories: MemoryStore, features: FeatureStore, events: PersonEvents) -> None:
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
            self._memories.rebuild(root, partial(self._events.of_person, item), now)
            if self._item(root).regrouped == item.regrouped:
                return
        raise Unsettled(f"{root} changed in every attempt")

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
        supported = (supported_by(each, here) for each in found)
        return [campaign_contact(each) for each in supported if each is not None]

    def _item(self, root: str) -> FeatureItem:
        return self._features.get(root) or FeatureItem(root)
