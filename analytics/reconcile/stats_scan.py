"""What a pass over all stats of people who answer found, and how an item of UserStats names a person."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from adapters.platform.items import Item, plain
from rules.lake.question_entities import pseudonym
from rules.questions.repair.answer_doubts import LakeAnswers


@dataclass(slots=True)
class StatsScan:
    """What a pass over the stats found.

    people: how many have stats. chosen: whom to look at closely. claimed: pseudonyms of all hashes that any
    item names. moves: hash -> the older ones whose stats have moved to it.
    """

    people: int = 0
    chosen: set[str] = field(default_factory=set)
    claimed: set[str] = field(default_factory=set)
    moves: dict[str, set[str]] = field(default_factory=dict)

    def look(self, stored: Item, is_chosen: bool) -> None:
        """Add an item. is_chosen: whether to look at it closely, if it has stats."""
        person = stored["fingerprint_hash"]["S"]
        self.claimed.update(map(pseudonym, hashes_of(person, stored)))
        if is_moved(stored):
            self.moves.setdefault(str(plain(stored)["moved_to"]), set()).add(person)
            return
        self.people += 1
        if is_chosen:
            self.chosen.add(person)

    def add(self, other: "StatsScan") -> None:
        """Add what another part of the table showed."""
        self.people += other.people
        self.chosen |= other.chosen
        self.claimed |= other.claimed
        for new, older in other.moves.items():
            self.moves.setdefault(new, set()).update(older)

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
    return "moved_to" in stored


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
