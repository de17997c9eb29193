"""What a pass over the table UserStats shows: who has stats, and under which hashes of theirs.

A person's hash changes with the key of hashes. Then the stats move, and the older item only says where to.
"""

from dataclasses import dataclass, field

from adapters.platform.items import Item, decode_item
from rules.lake.question_entities import pseudonym

# All attributes of an item that says under which hash a person's stats are. With others it is stats.
OF_MOVED = {"fingerprint_hash", "moved_to", "version", "updated_at"}


@dataclass(slots=True)
class StatsScan:
    """What a pass over the stats found.

    people: how many have stats. chosen: whom to look at closely. claimed: pseudonyms of all hashes that any
    item names. moves: hash -> the older ones whose stats have moved to it. listed: hash -> the older ones
    that its stats list. circling: one of those whose stats have moved in a circle.
    """

    people: int = 0
    chosen: set[str] = field(default_factory=set)
    claimed: set[str] = field(default_factory=set)
    moves: dict[str, set[str]] = field(default_factory=dict)
    listed: dict[str, set[str]] = field(default_factory=dict)
    circling: set[str] = field(default_factory=set)

    def look(self, stored: Item, is_chosen: bool) -> None:
        """Add an item. is_chosen: whether to look at it closely, if it has stats."""
        person = stored["fingerprint_hash"]["S"]
        hashes = hashes_of(person, stored)
        self.claimed.update(map(pseudonym, hashes))
        if is_moved(stored):
            self.moves.setdefault(str(decode_item(stored)["moved_to"]), set()).add(person)
            return
        self.people += 1
        if len(hashes) > 1:
            self.listed[person] = set(hashes[1:])
        if is_chosen:
            self.chosen.add(person)

    def add(self, other: "StatsScan") -> None:
        """Add what another part of the table showed."""
        self.people += other.people
        self.chosen |= other.chosen
        self.claimed |= other.claimed
        self.listed |= other.listed
        for new, older in other.moves.items():
            self.moves.setdefault(new, set()).update(older)

    def choose_unlisted(self) -> None:
        """Choose also whoever others have moved to without being listed there: one of the two is wrong."""
        moved = set().union(*self.moves.values())
        homes = self.moves.keys() - moved
        for home in homes:
            if self.moved_to(home) - self.listed.get(home, set()):
                self.chosen.add(home)
        # What leads to no home leads in a circle. Once one of it has its stats back, the others have a home.
        self.circling = set(sorted(moved - set().union(*map(self.moved_to, homes)))[:1])

    def moved_to(self, person: str) -> set[str]:
        """Return the older hashes whose stats have moved to a person, in one step or several."""
        found: set[str] = set()
        waiting = [person]
        while waiting:
            older = self.moves.get(waiting.pop(), set()) - found
            found |= older
            waiting += older
        return found


def is_moved(stored: Item) -> bool:
    """Whether an item only says under which hash a person's stats are."""
    return "moved_to" in stored and stored.keys() <= OF_MOVED


def hashes_of(person: str, stored: Item | None) -> list[str]:
    """Return all hashes under which a person has answered, the one of the item first."""
    older = decode_item(stored).get("older_hashes", []) if stored else []
    known = [each for each in older if isinstance(each, str)] if isinstance(older, list) else []
    return [person, *known]
