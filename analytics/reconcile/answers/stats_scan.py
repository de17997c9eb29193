"""What a pass over all stats of people who answer found, and how an item of UserStats names a person."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from adapters.platform.items import Item, plain
from rules.lake.question_entities import pseudonym
from rules.questions.answer_doubts import LakeAnswers
from rules.questions.responses import Response

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
            self.moves.setdefault(str(plain(stored)["moved_to"]), set()).add(person)
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


def proven(person: str, hashes: Iterable[str], responses: Sequence[Response]) -> list[str]:
    """Return those of some hashes that the person's answers show to be the person's, the person's own first.

    Each answer names the other hashes of whoever gave it. responses: all that were given under these hashes.
    """
    names: dict[str, set[str]] = {}
    for each in responses:
        for other in each.other_hashes:
            names.setdefault(each.fingerprint_hash, set()).add(other)
            names.setdefault(other, set()).add(each.fingerprint_hash)
    known, waiting = {person}, [person]
    while waiting:
        more = names.get(waiting.pop(), set()) - known
        known |= more
        waiting += more
    return [person, *sorted(known.intersection(hashes) - {person})]


def hashes_of(person: str, stored: Item | None) -> list[str]:
    """Return all hashes under which a person has answered, the one of the item first."""
    older = plain(stored).get("older_hashes", []) if stored else []
    known = [each for each in older if isinstance(each, str)] if isinstance(older, list) else []
    return [person, *known]


def sum_of(lake: Mapping[str, LakeAnswers], hashes: Iterable[str]) -> LakeAnswers:
    """Return what the lake's answers under these hashes come to."""
    whole = LakeAnswers()
    for each in hashes:
        whole = whole.plus(lake.get(pseudonym(each), LakeAnswers()))
    return whole
