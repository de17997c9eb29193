"""The memory of a group of leads, while leads join and leave it."""

from collections.abc import Collection, Iterable
from datetime import datetime
from functools import partial

from adapters.leads.feature_store import FeatureStore, GroupUnsettled
from adapters.leads.memory_store import MemoryStore
from adapters.leads.person_events import PersonEvents
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

    Two things change a root's memory. A *writer* merges the entries of an event into it (`remember`). A
    *move* of leaves rebuilds it (`rebuild`), or merges the entries of the leaves that came (`absorb`). Memory
    items have no lock in common, so the order of steps keeps them right:

    - A writer writes first. Afterwards it reads to which root its leaf belongs (`FeatureStore.home`, strongly
      consistent).
    - A move first writes the new root to the items of its leaves. Then it reads memory, then the events. It
      writes what differs, each entry on condition of the version that was read. Then it reads the leaves'
      items again.

    So if a writer and a move run at the same time, at least one sees the other:

    - The writer still sees its leaf at the root that it wrote for. Then any later move reads memory after
      that write, and makes it what the events give.
    - The leaf has moved. Then the writer rebuilds the former root, which undoes its write there, and writes
      at the new one.
    - A rebuild has read an entry before a writer changes it. Then the rebuild's condition fails, and it
      starts again.
    - Two rebuilds run at the same time. Then the one for the older group sees after writing that leaves have
      come or gone, and starts again.

    Each piece of evidence names its leaf. So `contacts` leaves out what an event of a leaf that has left has
    just put there. A campaign's reactions are kept for each leaf, so leaving out loses nothing.
    """

    def __init__(self, memories: MemoryStore, features: FeatureStore, people: PersonEvents) -> None:
        self._memories, self._features, self._people = memories, features, people

    def remember(self, leaf: str, hint: str, entries: Collection[MemoryEntry], now: datetime) -> str:
        """Merge a leaf's entries into its root's memory; returns the root.

        hint: the root that the leaf probably has. Raises GroupUnsettled or LeadContended; safe to repeat.
        """
        root = hint
        for _ in pauses(GROUP_ATTEMPTS_MAX):
            self._memories.join(root, entries)
            current_root = self._features.home(leaf, root).lead_organization_id
            if current_root == root:
                return root
            self.rebuild(root, now)
            root = current_root
        raise GroupUnsettled(f"{leaf} moved in every attempt")

    def rebuild(self, root: str, now: datetime) -> None:
        """Make a root's memory what its leaves' events give. For a leaf that is no root it changes nothing.

        Raises GroupUnsettled or LeadContended; it is safe to repeat.
        """
        for _ in pauses(GROUP_ATTEMPTS_MAX):
            item = self._item(root)
            if item.merged_into is not None:
                return
            self._memories.rebuild(root, partial(self._people.of_person, item), now)
            if self._item(root).group_changes == item.group_changes:  # no leaf has come or gone meanwhile
                return
        raise GroupUnsettled(f"{root} changed in every attempt")

    def absorb(self, root: str, leaves: Iterable[str], now: datetime) -> None:
        """Merge what leaves' events give into the memory of the root that they came to.

        It reads the events of these leaves alone, and a rebuild those of the whole group. Leaves that have
        moved on are left out. If one moves on meanwhile, memory is rebuilt.
        """
        members = self._features.members(root, leaves) - {root}
        entries = remembered_entries(self._people.events.of_leaves(sorted(members)))
        self._memories.join(root, list(entries.values()))
        if entries and self._features.members(root, members) != members:
            self.rebuild(root, now)

    def contacts(self, item: FeatureItem) -> list[Contact]:
        """Return the campaigns that a root's leaves were contacted by, strongly consistent."""
        entries = self._memories.of_type(item.lead_organization_id, CAMPAIGN_CONTACT.name)
        leaves = {piece.leaf for entry in entries for piece in entry.evidence}
        members = self._features.members(item.lead_organization_id, leaves)
        present_entries = (entry_of_leaves(entry, members) for entry in entries)
        return [campaign_contact(entry) for entry in present_entries if entry is not None]

    def _item(self, root: str) -> FeatureItem:
        return self._features.get(root) or FeatureItem(root)
