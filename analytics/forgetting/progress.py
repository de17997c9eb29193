"""How far a night's pass is: runs/{run_id}/forget.json. It names erasures by their ids, and nobody."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from adapters.platform.objects import NoObject, Objects
from analytics.lake.layout import Place, run_key

NAME = "forget.json"


@dataclass(slots=True)
class Progress:
    """How far a pass over the lake is."""

    run_id: str
    began: str  # when the pass began (a stamp)
    due: list[str]  # ids of the erasures for which it is a pass over everything
    entities: list[str] = field(default_factory=list)  # whose curated files and lines are done
    # The last file that is done, of the entity under way. Files are taken from the last key to the first.
    after: str = ""
    # By erasure and store, how many rows or lines were found
    found: dict[str, dict[str, int]] = field(default_factory=dict)
    # By erasure, how often objects that stay for a later night name the person
    left: dict[str, int] = field(default_factory=dict)
    noted: str = ""  # key and version of the object that is counted, and perhaps not changed yet
    places: list[list[str]] = field(default_factory=list)  # partitions whose files have changed
    is_done: bool = False  # the pass over the lake for persons
    phones: bool = False  # the pass for phones that are gone
    warehouse: bool = False  # the pass over the warehouse

    @classmethod
    def read(cls, objects: Objects, run_id: str) -> "Progress | None":
        """Return the progress that an earlier call of the run has stored; None if this is the first call."""
        try:
            return cls(**json.loads(objects.get(run_key(run_id, NAME))))
        except NoObject:
            return None

    def save(self, objects: Objects) -> None:
        """Store it."""
        objects.put(run_key(self.run_id, NAME), json.dumps(asdict(self)).encode())

    def note(self, objects: Objects, what: str, store: str, counts: Mapping[str, int]) -> None:
        """Store how many rows or lines of each erasure an object has that is changed next.

        what: its key and version. If the call dies before the change, the next call does not count it again.
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
    progress = Progress.read(objects, run_id)
    return [Place(entity, dt, hour or None) for entity, dt, hour in progress.places] if progress else []
