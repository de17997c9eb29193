"""Who waits to be forgotten by the lake, under which names the lake has them, and who is refused for good."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from adapters.platform.objects import NoObject, Objects
from adapters.privacy.tombstones import Tombstones
from analytics.lake.layout import Place, run_key
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
NAME = "forget.json"


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


# How far a night's pass is: runs/{run_id}/forget.json. It names erasures by their ids, and nobody.


@dataclass(slots=True)
class Progress:
    """How far a pass over the lake is."""

    run_id: str
    began: str  # the pass (a stamp)
    due: list[str]  # erasures that it counts for
    entities: list[str] = field(default_factory=list)  # those that are done
    # Of the entity under way, the last file that is done; files go from the last key to the first
    after: str = ""
    found: dict[str, dict[str, int]] = field(default_factory=dict)  # by erasure and store, how much was found
    left: dict[str, int] = field(default_factory=dict)  # by erasure, how much stays for a later night
    noted: str = ""  # what is counted, and perhaps not yet changed
    places: list[list[str]] = field(default_factory=list)  # partitions whose files have changed
    is_done: bool = False  # all persons of the lake
    phones: bool = False  # those that are gone
    warehouse: bool = False  # all of that

    @classmethod
    def read(cls, objects: Objects, run_id: str) -> "Progress | None":
        """Return what an earlier call has left; None if there was none."""
        try:
            return cls(**json.loads(objects.get(run_key(run_id, NAME))))
        except NoObject:
            return None

    def save(self, objects: Objects) -> None:
        """Store it."""
        objects.put(run_key(self.run_id, NAME), json.dumps(asdict(self)).encode())

    def note(self, objects: Objects, what: str, store: str, counts: Mapping[str, int]) -> None:
        """Store how much of each erasure is in something that is changed next; once, if that dies.

        what: its key and version.
        """
        if self.noted == what or not counts:
            return
        self.noted = what
        for erasure_id, number in counts.items():
            of_store = self.found.setdefault(erasure_id, {})
            of_store[store] = of_store.get(store, 0) + number
        self.save(objects)

    def changed(self, place: Place) -> None:
        """Remember a partition that the warehouse must load anew."""
        key = [place.entity, place.dt, place.hour or ""]
        if key not in self.places:
            self.places.append(key)


def changed_places(objects: Objects, run_id: str) -> list[Place]:
    """Return the partitions that a run's pass has changed; nothing if there was no pass."""
    found = Progress.read(objects, run_id)
    return [Place(entity, dt, hour or None) for entity, dt, hour in found.places] if found else []
