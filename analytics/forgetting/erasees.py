"""Who waits to be forgotten by the lake, under which names the lake has them, and who is refused for good."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from adapters.privacy.tombstones import Tombstones
from rules.lake.entities import ENTITIES
from rules.lake.residue import PERSONS as PERSON_COLUMNS
from rules.lake.residue import ErasureNames, seals_of
from rules.privacy.erasures import LEADS, PERSONS, PHONES, SEALS, USERS, Erasure
from rules.privacy.tombstones import Tombstone, lead_subject, user_subject

# What a column's values name, and what is hashed of it for a tombstone.
KINDS = {
    "user_id": USERS,
    "account_id": USERS,
    "lead_organization_id": LEADS,
    "person": PERSONS,
    "phone": PHONES,
}
SUBJECTS: Mapping[str, Callable[[str], str]] = {USERS: user_subject, LEADS: lead_subject}
# When a row came to be, by which a lifted tombstone distinguishes old from new: a day begins before it is
# lifted.
MOMENTS = {"daily_activity": "created_at"}


@dataclass(frozen=True, slots=True)
class Erasee:
    """One person who waits."""

    erasure_id: str
    names: ErasureNames  # the random ones


@dataclass(frozen=True, slots=True)
class AllErasees:
    """All who wait, by the kind of name and the name; and the tombstones of those who wait no more."""

    by_kind: Mapping[str, Mapping[str, Erasee]]
    due: frozenset[str]  # the ids of erasures that a pass over everything is due for
    opened: frozenset[str] = frozenset()
    tombstones: Tombstones | None = None
    _refused: dict[str, Tombstone | None] = field(default_factory=dict)

    @classmethod
    def of(cls, opened: Iterable[Erasure], now: Any, tombstones: Tombstones | None = None) -> "AllErasees":
        """Return who waits among the erasures that are not finished. now: of the pass."""
        listed = list(opened)
        in_lake = [each for each in listed if each.is_in_lake]
        by_kind: dict[str, dict[str, Erasee]] = {kind: {} for kind in (USERS, LEADS, PERSONS, PHONES)}
        for erasure in in_lake:
            names = ErasureNames(erasure.salt, seals_of(erasure.known.get(SEALS, ())))
            waiting = Erasee(erasure.erasure_id, names)
            for kind, known in by_kind.items():
                known.update(dict.fromkeys(erasure.known.get(kind, ()), waiting))
        due = frozenset(each.erasure_id for each in in_lake if not each.is_done and each.is_due(now))
        return cls(by_kind, due, frozenset(each.erasure_id for each in listed), tombstones)

    def in_entity(self, entity: str) -> Mapping[str, Erasee]:
        """Return who waits, by the name that rows of an entity have for them."""
        return self.by_kind[KINDS[PERSON_COLUMNS[entity]]]

    def with_mark(self, marks: Iterable[str]) -> frozenset[str]:
        """Return the ids of the erasures that have left these marks on a file."""
        wanted = set(marks)
        found = {each for names in self.by_kind.values() for each in names.values()}
        return frozenset(each.erasure_id for each in found if each.names.tag() in wanted)

    def refused(self, entity: str, value: str) -> Tombstone | None:
        """Return the tombstone of somebody whose erasure is finished, and of whom rows came nevertheless."""
        subject_of = SUBJECTS.get(KINDS[PERSON_COLUMNS[entity]])
        if self.tombstones is None or subject_of is None:
            return None
        if value not in self._refused:
            found = self.tombstones.of(subject_of(value))
            self._refused[value] = None if found is None or found.erasure_id in self.opened else found
        return self._refused[value]


def moment_of(entity: str) -> str:
    """Return the column that says when a row came to be."""
    return MOMENTS.get(entity, ENTITIES[entity].occurred)
