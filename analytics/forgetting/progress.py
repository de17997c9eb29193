"""The progress of a night that forgets persons: runs/{run_id}/forget.json.

It names erasures by their ids, and no person.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from adapters.platform.objects import NoObject, Objects
from analytics.lake.layout import Place, run_key

NAME = "forget.json"


@dataclass(slots=True)
class Progress:
    """What a night has done so far in the lake and in the warehouse."""

    run_id: str
    began: str  # when the pass over the lake began (a stamp)
    due: list[str]  # ids of the erasures for which the night searches everything
    entities: list[str] = field(default_factory=list)  # those whose curated files and lines are done
    # The last file that is done, of the entity under way. Files are taken from the last key to the first.
    after: str = ""
    # How many rows or lines were found, by erasure and store
    found: dict[str, dict[str, int]] = field(default_factory=dict)
    # How often objects that stay for a later night name the person, by erasure
    left: dict[str, int] = field(default_factory=dict)
    noted: str = ""  # key and version of the object that is counted, and perhaps not changed yet
    # Partitions whose files have changed: entity, dt, hour ("": a whole day)
    places: list[list[str]] = field(default_factory=list)
    is_done: bool = False  # the lake's files name no erased person any more
    are_phones_done: bool = False  # the rows of phones that are gone are deleted
    is_warehouse_done: bool = False  # no table of the warehouse names an erased person any more

    @classmethod
    def read(cls, objects: Objects, run_id: str) -> "Progress | None":
        """Return the progress that an earlier call of the run has stored; None if this is the first call."""
        try:
            return cls(**json.loads(objects.get(run_key(run_id, NAME))))
        except NoObject:
            return None

    def save(self, objects: Objects) -> None:
        """Store the progress."""
        objects.put(run_key(self.run_id, NAME), json.dumps(asdict(self)).encode())

    def note(self, objects: Objects, what: str, store: str, counts: Mapping[str, int]) -> None:
        """Add how many rows or lines of each erasure an object has, before it is changed; and store the sums.

        what: the object's key and version. If the call dies before the change, the next call does not count
        the object again.
        """
        if self.noted == what or not counts:
            return
        self.noted = what
        for erasure_id, number in counts.items():
            of_store = self.found.setdefault(erasure_id, {})
            of_store[store] = of_store.get(store, 0) + number
        self.save(objects)

    def note_change(self, place: Place) -> None:
        """Remember a partition that the warehouse must load anew."""
        key = [place.entity, place.dt, place.hour or ""]
        if key not in self.places:
            self.places.append(key)


def changed_places(objects: Objects, run_id: str) -> list[Place]:
    """Return the partitions that a run's pass has changed; nothing if there was no pass."""
    progress = Progress.read(objects, run_id)
    return [Place(entity, dt, hour or None) for entity, dt, hour in progress.places] if progress else []
