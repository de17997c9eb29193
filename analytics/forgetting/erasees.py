"""The persons whom the lake is to forget, by the names that they have in it.

A person *waits* while the erasure is under way: each night's pass takes the rows out. After that, a
*tombstone* refuses rows of the person that still come, for example from a device that was offline.

A name has a *kind*: it is that of a user, a lead, a person who answers, or a phone. A column of the lake has
names of one kind, and each entity has one such column.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from adapters.privacy.tombstones import Tombstones
from rules.lake.residue import PERSONS as PERSON_COLUMNS
from rules.lake.residues import ErasureNames, chains_of
from rules.privacy.erasures import LEADS, PERSONS, PHONES, SEALS, USERS, Erasure
from rules.privacy.tombstones import Tombstone, lead_subject, user_subject

KIND_OF_COLUMN = {
    "user_id": USERS,
    "account_id": USERS,
    "lead_organization_id": LEADS,
    "person": PERSONS,
    "phone": PHONES,
}
# Tombstones have subjects instead of names. Names of the other kinds have no tombstones.
_SUBJECT_OF_NAME: Mapping[str, Callable[[str], str]] = {USERS: user_subject, LEADS: lead_subject}


@dataclass(frozen=True, slots=True)
class Erasee:
    """One person who waits to leave the lake."""

    erasure_id: str
    names: ErasureNames  # the random names that residues get


@dataclass(frozen=True, slots=True)
class AllErasees:
    """All persons who wait, and the tombstones of everybody who was ever erased."""

    by_kind: Mapping[str, Mapping[str, Erasee]]  # kind of name -> name -> the person who waits
    due: frozenset[str]  # the ids of the erasures for which a pass over everything is due
    unfinished: frozenset[str] = frozenset()  # the ids of all erasures that are not finished
    tombstones: Tombstones | None = None  # None: they are not needed

    @classmethod
    def of(
        cls, unfinished: Iterable[Erasure], now: datetime, tombstones: Tombstones | None = None
    ) -> "AllErasees":
        """Return the persons who wait. unfinished: all erasures under way. now: when the pass begins."""
        erasures = list(unfinished)
        # The others are not through with the online stores, which could still send rows to the lake.
        at_lake = [erasure for erasure in erasures if erasure.is_in_lake]
        by_kind: dict[str, dict[str, Erasee]] = {kind: {} for kind in (USERS, LEADS, PERSONS, PHONES)}
        for erasure in at_lake:
            names = ErasureNames(erasure.salt, chains_of(erasure.known.get(SEALS, ())))
            erasee = Erasee(erasure.erasure_id, names)
            for kind, erasee_of_name in by_kind.items():
                erasee_of_name.update(dict.fromkeys(erasure.known.get(kind, ()), erasee))
        due = {erasure.erasure_id for erasure in at_lake if not erasure.is_done and erasure.is_due(now)}
        ids = {erasure.erasure_id for erasure in erasures}
        return cls(by_kind, frozenset(due), frozenset(ids), tombstones)

    def in_entity(self, entity: str) -> Mapping[str, Erasee]:
        """Return the persons who wait, by the names that they have in an entity's rows."""
        return self.by_kind[_kind_in(entity)]

    def erasures_of_marks(self, marks: Collection[str]) -> set[str]:
        """Return the ids of the erasures that have left these marks on a file (see ErasureNames.tag)."""
        erasees = {erasee for by_name in self.by_kind.values() for erasee in by_name.values()}
        return {erasee.erasure_id for erasee in erasees if erasee.names.tag() in marks}

    def tombstone_of(self, entity: str, name: str) -> Tombstone | None:
        """Return the tombstone of a person whose erasure is finished. name: as the entity's rows have it."""
        subject_of = _SUBJECT_OF_NAME.get(_kind_in(entity))
        if self.tombstones is None or subject_of is None:
            return None
        tombstone = self.tombstones.of(subject_of(name))
        return tombstone if tombstone and tombstone.erasure_id not in self.unfinished else None


def _kind_in(entity: str) -> str:
    """Return the kind of the names that an entity's rows have."""
    return KIND_OF_COLUMN[PERSON_COLUMNS[entity]]
