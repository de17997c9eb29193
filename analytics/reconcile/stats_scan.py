"""A pass over the table UserStats, which shows who has stats, and under which hashes.

A person's hash changes with the key of hashes. Then the stats move to the new hash, and the older item only
says where they are.
"""

from dataclasses import dataclass, field

from adapters.platform.items import Item, decode_item
from rules.lake.question_entities import pseudonym

# All attributes of an item that only says where a person's stats are. An item with others is stats.
MOVED_ATTRIBUTES = {"fingerprint_hash", "moved_to", "version", "updated_at"}


@dataclass(slots=True)
class StatsScan:
    """What a pass over the stats showed. A hash is a person's fingerprint hash."""

    people: int = 0  # how many have stats
    chosen: set[str] = field(default_factory=set)  # hashes whose stats are to be looked at closely
    claimed: set[str] = field(default_factory=set)  # pseudonyms of all hashes that any item names
    moves: dict[str, set[str]] = field(default_factory=dict)  # hash -> older hashes whose stats moved there
    listed: dict[str, set[str]] = field(default_factory=dict)  # hash -> older hashes that its stats list
    circling: set[str] = field(default_factory=set)  # one hash of those whose stats have moved in a circle

    def look(self, item: Item, is_chosen: bool) -> None:
        """Add an item. is_chosen: whether to look at it closely, if it has stats."""
        fingerprint_hash = item["fingerprint_hash"]["S"]
        hashes = hashes_of(fingerprint_hash, item)
        self.claimed.update(map(pseudonym, hashes))
        if is_moved(item):
            self.moves.setdefault(str(decode_item(item)["moved_to"]), set()).add(fingerprint_hash)
            return
        self.people += 1
        if len(hashes) > 1:
            self.listed[fingerprint_hash] = set(hashes[1:])
        if is_chosen:
            self.chosen.add(fingerprint_hash)

    def add(self, other: "StatsScan") -> None:
        """Add what another part of the table showed."""
        self.people += other.people
        self.chosen |= other.chosen
        self.claimed |= other.claimed
        self.listed |= other.listed
        for new, older in other.moves.items():
            self.moves.setdefault(new, set()).update(older)

    def choose_unlisted(self) -> None:
        """Choose also stats that do not list a hash whose stats have moved to them: one of both is wrong."""
        moved: set[str] = set().union(*self.moves.values())
        homes = self.moves.keys() - moved
        self.chosen |= {home for home in homes if self.moved_to(home) - self.listed.get(home, set())}
        # Moves that lead to no home lead in a circle. Once one hash of the circle has its stats back, the
        # others have a home.
        homeless = moved.difference(*map(self.moved_to, homes))
        self.circling = set(sorted(homeless)[:1])

    def moved_to(self, fingerprint_hash: str) -> set[str]:
        """Return the older hashes whose stats have moved to a hash, in one step or several."""
        all_older: set[str] = set()
        waiting = [fingerprint_hash]
        while waiting:
            older = self.moves.get(waiting.pop(), set()) - all_older
            all_older |= older
            waiting += older
        return all_older


def is_moved(item: Item) -> bool:
    """Whether an item only says under which hash a person's stats are."""
    return "moved_to" in item and item.keys() <= MOVED_ATTRIBUTES


def hashes_of(fingerprint_hash: str, item: Item | None) -> list[str]:
    """Return all hashes under which a person has answered, the given one first. item: the stats, if any."""
    older = decode_item(item).get("older_hashes", []) if item else []
    if not isinstance(older, list):
        older = []
    return [fingerprint_hash, *(older_hash for older_hash in older if isinstance(older_hash, str))]
