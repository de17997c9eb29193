"""The memory of a group of leads, while leads join and leave it."""

from collections.abc import Collection, Iterable
from datetime import datetime
from functools import partial

from adapters.leads.feature_store import FeatureStore, GroupUnsettled
from adapters.leads.memory_store import MemoryStore
from adapters.leads.persons import PersonEvents
from adapters.platform.aws import pauses
from rules.leads.feature_items import FeatureItem
from rules.leads.features import Contact
from rules.leads.memory import (
    CAMPAIGN_CONTACT,
    MemoryEntry,
    campaign_contact,
    entry_of_leaves,
    remembered_entries,
)

GROUP_ATTEMPTS_MAX = 10


class GroupMemory:
    """The memory of a group of leads: it is kept under their root, also while leaves move between roots.

    Memory items have no lock in common, so the order of steps keeps them right:

    - A writer joins first. Afterwards it reads to which root the leaf belongs (`FeatureStore.home`, strongly
      consistent).
    - A move of leaves sets the topology first. Then it reads memory, then the events. It writes what differs,
      each entry on condition of the version that was read. Then it reads the topology again.

    If the writer still sees its leaf at the root that it wrote for, any later move will read memory after
    that write, and make it what the events give. If the leaf has moved, the writer rebuilds the former root,
    which undoes its write there, and joins at the new one. If the rebuild had read that entry before the
    writer's join, its condition fails and it starts again. So of a move and a join at the same time at least
    one sees the other. Of two rebuilds at the same time, the one for the older topology sees after writing
    that leaves have come or gone, and starts again.

    Each piece of evidence names its leaf. So a reader can leave out what an event of a leaf that has left has
    just put there (`contacts`). A campaign's reactions are kept for each leaf, so leaving out loses nothing.
    """

    def __init__(self, memories: MemoryStore, features: FeatureStore, events: PersonEvents) -> None:
        self._memories, self._features, self._events = memories, features, events

    def remember(self, leaf: str, hint: str, entries: Collection[MemoryEntry], now: datetime) -> str:
        """Join a leaf's entries into its root's memory; returns the root.

        hint: the root that the leaf probably has. Raises GroupUnsettled or LeadContended; safe to repeat.
        """
        joined_root = hint
        for _ in pauses(GROUP_ATTEMPTS_MAX):
            self._memories.join(joined_root, entries)
            root = self._features.home(leaf, joined_root).lead_organization_id
            if root == joined_root:
                return root
            self.rebuild(joined_root, now)
            joined_root = root
        raise GroupUnsettled(f"{leaf} moved in every attempt")

    def rebuild(self, root: str, now: datetime) -> None:
        """Make a root's memory what its leaves' events give. For a leaf that is no root it changes nothing.

        Raises GroupUnsettled or LeadContended; it is safe to repeat.
        """
        for _ in pauses(GROUP_ATTEMPTS_MAX):
            item = self._item(root)
            if item.merged_into is not None:
                return
            self._memories.rebuild(root, partial(self._events.of_person, item), now)
            if self._item(root).group_changes == item.group_changes:  # no leaf has come or gone meanwhile
                return
        raise GroupUnsettled(f"{root} changed in every attempt")

    def absorb(self, root: str, leaves: Iterable[str], now: datetime) -> None:
        """Join what leaves' events give into the memory of the root that they came to.

        Leaves that have moved on are left out. If one leaves while it is joined, memory is rebuilt.
        """
        members = self._features.members(root, leaves) - {root}
        entries = remembered_entries(self._events.events.of_leaves(sorted(members)))
        self._memories.join(root, list(entries.values()))
        if entries and self._features.members(root, members) != members:
            self.rebuild(root, now)

    def contacts(self, item: FeatureItem) -> list[Contact]:
        """Return the campaigns that a root's leaves were contacted by, strongly consistent."""
        entries = self._memories.of_type(item.lead_organization_id, CAMPAIGN_CONTACT.name)
        homes = {piece.home for entry in entries for piece in entry.evidence}
        members = self._features.members(item.lead_organization_id, homes)
        supported = (entry_of_leaves(entry, members) for entry in entries)
        return [campaign_contact(entry) for entry in supported if entry is not None]

    def _item(self, root: str) -> FeatureItem:
        return self._features.get(root) or FeatureItem(root)
