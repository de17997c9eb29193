"""The result of a pass over the table UserStats: who has stats, and under which hashes.

A person's hash changes with the key of hashes. Then the stats move to the new hash, and the item under the
older hash only says where they are.
"""

from dataclasses import dataclass, field

from adapters.platform.items import Item, decode_item
from rules.lake.question_entities import pseudonym

# All attributes of an item that only says where a person's stats are. An item with others is stats.
MOVED_ATTRIBUTES = {"fingerprint_hash", "moved_to", "version", "updated_at"}


@dataclass(slots=True)
class StatsScan:
    """The result of a pass over the stats. A hash is a person's fingerprint hash."""

    people: int = 0  # the number of people with stats
    chosen: set[str] = field(default_factory=set)  # hashes whose stats are to be examined
    known_pseudonyms: set[str] = field(default_factory=set)  # of all hashes that any item names
    moves: dict[str, set[str]] = field(default_factory=dict)  # hash -> older hashes whose stats moved there
    listed: dict[str, set[str]] = field(default_factory=dict)  # hash -> older hashes that its stats list

    def add_item(self, item: Item, is_chosen: bool) -> None:
        """Add an item. is_chosen: whether its stats are to be examined, if it has some."""
        fingerprint_hash = item["fingerprint_hash"]["S"]
        hashes = hashes_of(fingerprint_hash, item)
        self.known_pseudonyms.update(map(pseudonym, hashes))
        if is_moved(item):
            self.moves.setdefault(str(decode_item(item)["moved_to"]), set()).add(fingerprint_hash)
            return
        self.people += 1
        if len(hashes) > 1:
            self.listed[fingerprint_hash] = set(hashes[1:])
        if is_chosen:
            self.chosen.add(fingerprint_hash)

    def merge(self, other: "StatsScan") -> None:
        """Add the result of another part of the table."""
        self.people += other.people
        self.chosen |= other.chosen
        self.known_pseudonyms |= other.known_pseudonyms
        self.listed |= other.listed
        for new, older in other.moves.items():
            self.moves.setdefault(new, set()).update(older)

    def choose_unlisted(self) -> None:
        """Choose also stats that do not list a hash whose stats have moved to them: one of both is wrong."""
        for home in self._homes():
            if self.moved_from(home) - self.listed.get(home, set()):
                self.chosen.add(home)

    def hash_in_circle(self) -> set[str]:
        """Return the first of the hashes whose stats have moved in a circle; an empty set if there is none.

        One hash is enough: once it has its stats back, the moves of the others lead to it.
        """
        # A move that leads to no home is one of a circle.
        in_circles = self._moved_hashes().difference(*map(self.moved_from, self._homes()))
        return set(sorted(in_circles)[:1])

    def moved_from(self, fingerprint_hash: str) -> set[str]:
        """Return the older hashes whose stats have moved to a hash, in one step or several."""
        all_older: set[str] = set()
        waiting = [fingerprint_hash]
        while waiting:
            older = self.moves.get(waiting.pop(), set()) - all_older
            all_older |= older
            waiting += older
        return all_older

    def _homes(self) -> set[str]:
        """Return the hashes to which stats have moved, and from which they have not moved on."""
        return self.moves.keys() - self._moved_hashes()

    def _moved_hashes(self) -> set[str]:
        """Return the hashes whose stats have moved to another."""
        return set().union(*self.moves.values())


def is_moved(item: Item) -> bool:
    """Whether an item only says under which hash a person's stats are."""
    return "moved_to" in item and item.keys() <= MOVED_ATTRIBUTES


def hashes_of(fingerprint_hash: str, item: Item | None) -> list[str]:
    """Return all hashes under which a person has answered, the given one first. item: the stats, if any."""
    older = decode_item(item).get("older_hashes", []) if item else []
    if not isinstance(older, list):
        older = []
    return [fingerprint_hash, *(older_hash for older_hash in older if isinstance(older_hash, str))]
