"""What the steps of a nightly run note for each other and for its report, under runs/{run_id} and state/."""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from adapters.platform.objects import NoObject, Objects
from analytics.lake.layout import FAILED_TASKS, UNLOADED, Place, run_key
from rules.lake.entities import LOADED

REASON_MAX = 2000  # characters
_FAILED_TASKS = "failed/"
_ODD_OBJECTS = "odd_objects/"
_REBUILDS = "without_raw/"
_DELETED = "raw_deleted.json"


def note_failed_task(objects: Objects, run_id: str, task: Place, error: Mapping[str, str]) -> None:
    """Note that a run has given up a task. error: Error and Cause, as Step Functions gives them."""
    reason = f"{error.get('Error', '')}: {error.get('Cause', '')}"[:REASON_MAX]
    note_failed_place(objects, run_key(run_id, _FAILED_TASKS), task, reason)


def failed_tasks_of_run(objects: Objects, run_id: str) -> list[dict[str, Any]]:
    """Return the tasks that a run has given up: entity, dt, hour (None: a whole day), reason."""
    return failed_places_of_run(objects, run_key(run_id, _FAILED_TASKS))


def note_failed_place(objects: Objects, folder: str, place: Place, reason: str) -> None:
    """Note a partition, with the reason, below a prefix of keys; safe to repeat."""
    key = f"{folder}{place.entity}-{place.dt}-{place.hour or 'day'}.json"
    objects.put(key, json.dumps({**asdict(place), "reason": reason}).encode())


def failed_places_of_run(objects: Objects, folder: str) -> list[dict[str, Any]]:
    """Return what is noted below a prefix: entity, dt, hour (None: a whole day), reason."""
    return [json.loads(objects.get(each.key)) for each in objects.list(folder)]


def failed_tasks(objects: Objects, run_id: str) -> set[Place]:
    """Return the tasks that a run has given up."""
    return {Place(task["entity"], task["dt"], task["hour"]) for task in failed_tasks_of_run(objects, run_id)}


def remembered_tasks(objects: Objects) -> set[Place]:
    """Return the tasks that are still to be done."""
    try:
        return {Place(**load) for load in json.loads(objects.get(FAILED_TASKS))}
    except NoObject:
        return set()


def among_tasks(planned: Iterable[Place], failed: Collection[Place]) -> frozenset[Place]:
    """Return the planned tasks that take the place of failed ones: a day's file takes all its hours."""
    again = {*failed, *(replace(task, hour=None) for task in failed)}
    return frozenset(task for task in planned if task in again)


def remember_tasks(objects: Objects, planned: Collection[Place], failed: Collection[Place]) -> None:
    """Forget the tasks that a run has done, and remember those that failed.

    Raises ObjectChanged if another run does the same at this moment.
    """
    etag, before = objects.etag(FAILED_TASKS), remembered_tasks(objects)
    done = set(planned)
    left = {task for task in before if task not in done and replace(task, hour=None) not in done}
    after = left | set(failed)
    if after != before:
        listed = sorted(
            (asdict(task) for task in after), key=lambda task: [str(each) for each in task.values()]
        )
        objects.put_if(FAILED_TASKS, json.dumps(listed).encode(), etag)


# Objects that an operator must look at: a run notes them for its report.


def note_odd_object(objects: Objects, run_id: str, key: str, reason: str) -> None:
    """Note an object, with the reason; safe to repeat."""
    name = hashlib.sha256(key.encode()).hexdigest()[:32]
    objects.put(
        run_key(run_id, f"{_ODD_OBJECTS}{name}.json"), json.dumps({"object": key, "reason": reason}).encode()
    )


def odd_objects(objects: Objects, run_id: str) -> list[dict[str, str]]:
    """Return what is noted, by the objects' keys: object, reason."""
    found = [json.loads(objects.get(each.key)) for each in objects.list(run_key(run_id, _ODD_OBJECTS))]
    return sorted(found, key=lambda each: str(each["object"]))


# What a run could not make anew from raw objects, for its report.


def note_rebuild(objects: Objects, run_id: str, task: Place, reason: str) -> None:
    """Note a partition that was made from its own rows, because raw objects of it are gone."""
    note_failed_place(objects, run_key(run_id, _REBUILDS), task, reason)


def note_deleted_file(objects: Objects, run_id: str, before: str) -> None:
    """Note that a run was asked for dates before one (YYYY-MM-DD) before which raw objects are deleted."""
    objects.put(run_key(run_id, _DELETED), json.dumps({"before": before}).encode())


def read_rebuilds(objects: Objects, run_id: str) -> dict[str, Any]:
    """Return {"raw_deleted_before": date or None, "without_raw": [{entity, dt, hour, reason}]}."""
    try:
        before = json.loads(objects.get(run_key(run_id, _DELETED)))["before"]
    except NoObject:
        before = None
    return {
        "raw_deleted_before": before,
        "without_raw": failed_places_of_run(objects, run_key(run_id, _REBUILDS)),
    }


# Which partitions the warehouse still lacks: a note for each nightly run, state/unloaded/{run_id}.json.
#
# A run notes its partitions once they are curated: when its work in the warehouse begins, or if that never
# does, before the lake's watermark moves past them. A load strikes out what it has loaded. So a warehouse
# that is away for some nights misses nothing. A note is no longer than the run's tasks, and ends with the
# load.


Notes = dict[str, list[Place]]


def note_unloaded(objects: Objects, run_id: str, places: Iterable[Place]) -> None:
    """Note the partitions that a run has curated; nothing is noted of none.

    An entity that the warehouse does not have is left out.
    """
    _put(
        objects,
        f"{UNLOADED}{run_id}.json",
        sorted({(place.entity, place.dt, place.hour or "") for place in places if place.entity in LOADED}),
    )


def read_unloaded(objects: Objects) -> Notes:
    """Return the partitions of each note, by its key."""
    found = {}
    for each in list(objects.list(UNLOADED)):
        try:
            rows = json.loads(objects.get(each.key))
        except NoObject:  # another load has struck out the rest of it
            continue
        found[each.key] = [Place(entity, dt, hour or None) for entity, dt, hour in rows]
    return found


def strike_out_unloaded(objects: Objects, notes: Notes, loaded: Collection[Place]) -> None:
    """Take loaded partitions out of the notes; a note of which nothing is left is removed."""
    for key, places in notes.items():
        left = [place for place in places if place not in loaded]
        if len(left) < len(places):
            _put(objects, key, [(each.entity, each.dt, each.hour or "") for each in left])
            if not left:
                objects.delete([key])
            notes[key] = left


def _put(objects: Objects, key: str, rows: Sequence[tuple[str, str, str]]) -> None:
    if rows:
        objects.put(key, json.dumps(rows).encode())
