"""The persons whom the lake is to forget, by the names that they have in it.

A person *waits* while the erasure is under way. After that, a tombstone refuses rows of the person that still
come, for example from a device that was offline.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from adapters.privacy.tombstones import Tombstones
from rules.lake.entities import ENTITIES
from rules.lake.residue import PERSONS as PERSON_COLUMNS
from rules.lake.residue import ErasureNames, chains_of
from rules.privacy.erasures import LEADS, PERSONS, PHONES, SEALS, USERS, Erasure
from rules.privacy.tombstones import Tombstone, lead_subject, user_subject

# The kind of name in each column that names a person.
KINDS = {
    "user_id": USERS,
    "account_id": USERS,
    "lead_organization_id": LEADS,
    "person": PERSONS,
    "phone": PHONES,
}
# The function that makes a name the subject of a tombstone, by kind of name.
SUBJECTS: Mapping[str, Callable[[str], str]] = {USERS: user_subject, LEADS: lead_subject}
# The column that says when a row was made, by entity, if that is not the entity's time. A lifted tombstone
# refuses the rows that were made before it was lifted. A day's date does not say when the day's row was made.
MOMENTS = {"daily_activity": "created_at"}


@dataclass(frozen=True, slots=True)
class Erasee:
    """One person who waits to leave the lake."""

    erasure_id: str
    names: ErasureNames  # the random names that residues get


@dataclass(frozen=True, slots=True)
class AllErasees:
    """All persons who wait, and the tombstones of persons whose erasures are finished."""

    by_kind: Mapping[str, Mapping[str, Erasee]]  # kind of name -> name -> the person who waits
    due: frozenset[str]  # the ids of the erasures for which a pass over everything is due
    unfinished: frozenset[str] = frozenset()  # the ids of all erasures that are not finished
    tombstones: Tombstones | None = None

    @classmethod
    def of(
        cls, unfinished: Iterable[Erasure], now: datetime, tombstones: Tombstones | None = None
    ) -> "AllErasees":
        """Return the persons who wait. unfinished: all erasures under way. now: when the pass begins."""
        erasures = list(unfinished)
        in_lake = [erasure for erasure in erasures if erasure.is_in_lake]
        by_kind: dict[str, dict[str, Erasee]] = {kind: {} for kind in (USERS, LEADS, PERSONS, PHONES)}
        for erasure in in_lake:
            names = ErasureNames(erasure.salt, chains_of(erasure.known.get(SEALS, ())))
            erasee = Erasee(erasure.erasure_id, names)
            for kind, erasees in by_kind.items():
                erasees.update(dict.fromkeys(erasure.known.get(kind, ()), erasee))
        due = {erasure.erasure_id for erasure in in_lake if not erasure.is_done and erasure.is_due(now)}
        ids = {erasure.erasure_id for erasure in erasures}
        return cls(by_kind, frozenset(due), frozenset(ids), tombstones)

    def in_entity(self, entity: str) -> Mapping[str, Erasee]:
        """Return the persons who wait, by the names that they have in an entity's rows."""
        return self.by_kind[KINDS[PERSON_COLUMNS[entity]]]

    def with_mark(self, marks: Iterable[str]) -> frozenset[str]:
        """Return the ids of the erasures that have left these marks on a file."""
        tags = set(marks)
        erasees = {erasee for by_name in self.by_kind.values() for erasee in by_name.values()}
        return frozenset(erasee.erasure_id for erasee in erasees if erasee.names.tag() in tags)

    def tombstone_of(self, entity: str, name: str) -> Tombstone | None:
        """Return the tombstone of a person whose erasure is finished. name: as the entity's rows have it."""
        subject_of = SUBJECTS.get(KINDS[PERSON_COLUMNS[entity]])
        if self.tombstones is None or subject_of is None:
            return None
        tombstone = self.tombstones.of(subject_of(name))
        return tombstone if tombstone and tombstone.erasure_id not in self.unfinished else None


def moment_of(entity: str) -> str:
    """Return the column that says when a row of an entity was made."""
    return MOMENTS.get(entity, ENTITIES[entity].occurred)
