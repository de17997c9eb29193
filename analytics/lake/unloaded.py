"""Which partitions the warehouse still lacks: a note for each nightly run, state/unloaded/{run_id}.json.

A run notes its partitions once they are curated: when its work in the warehouse begins, or if that never
does, before the lake's watermark moves past them. A load strikes out what it has loaded. So a warehouse that
is away for some nights misses nothing. A note is no longer than the run's tasks, and ends with the load.
"""

import json
from collections.abc import Collection, Iterable, Sequence

from adapters.platform.objects import NoObject, Objects
from analytics.lake.layout import UNLOADED, Place
from rules.lake.entities import LOADED

Notes = dict[str, list[Place]]


def note(objects: Objects, run_id: str, places: Iterable[Place]) -> None:
    """Note the partitions that a run has curated; nothing is noted of none.

    An entity that the warehouse does not have is left out.
    """
    _put(
        objects,
        f"{UNLOADED}{run_id}.json",
        sorted({(each.entity, each.dt, each.hour or "") for each in places if each.entity in LOADED}),
    )


def read_notes(objects: Objects) -> Notes:
    """Return the partitions of each note, by its key."""
    found = {}
    for each in list(objects.list(UNLOADED)):
        try:
            rows = json.loads(objects.get(each.key))
        except NoObject:  # another load has struck out the rest of it
            continue
        found[each.key] = [Place(entity, dt, hour or None) for entity, dt, hour in rows]
    return found


def strike_out(objects: Objects, notes: Notes, loaded: Collection[Place]) -> None:
    """Take loaded partitions out of the notes; a note of which nothing is left is removed."""
    for key, places in notes.items():
        left = [each for each in places if each not in loaded]
        if len(left) < len(places):
            _put(objects, key, [(each.entity, each.dt, each.hour or "") for each in left])
            if not left:
                objects.delete([key])
            notes[key] = left


def _put(objects: Objects, key: str, rows: Sequence[tuple[str, str, str]]) -> None:
    if rows:
        objects.put(key, json.dumps(rows).encode())
