"""Notes that the steps of a nightly run leave for each other and for its report (runs/{run_id}/, state/).

state/unloaded/{run_id}.json has the partitions that a run has curated and the warehouse still lacks. A run
writes it when its work in the warehouse begins, or else before the lake's watermark moves past them. A load
strikes out what it has loaded. So a warehouse that is away for some nights misses nothing.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from adapters.platform.objects import NoObject, Objects
from analytics.lake.layout import FAILED_TASKS, UNLOADED, Partition, run_key
from rules.lake.entities import LOADED

REASON_MAX = 2000  # characters
Notes = dict[str, list[Partition]]  # the partitions that the warehouse lacks, by the note's key
# Below runs/{run_id}/
_FAILED_TASKS = "failed/"
_ODD_OBJECTS = "odd_objects/"
_REBUILDS = "without_raw/"
_DELETED = "raw_deleted.json"


def note_failed_task(objects: Objects, run_id: str, task: Partition, error: Mapping[str, str]) -> None:
    """Note that a run has given up a task. error: Error and Cause, as Step Functions gives them."""
    reason = f"{error.get('Error', '')}: {error.get('Cause', '')}"[:REASON_MAX]
    _note_partition(objects, run_key(run_id, _FAILED_TASKS), task, reason)


def failed_tasks_of_run(objects: Objects, run_id: str) -> list[dict[str, Any]]:
    """Return the tasks that a run has given up: entity, dt, hour (None: a whole day), reason."""
    return _noted_partitions(objects, run_key(run_id, _FAILED_TASKS))


def failed_tasks(objects: Objects, run_id: str) -> set[Partition]:
    """Return the partitions of the tasks that a run has given up."""
    return {
        Partition(task["entity"], task["dt"], task["hour"]) for task in failed_tasks_of_run(objects, run_id)
    }


def remembered_tasks(objects: Objects) -> set[Partition]:
    """Return the tasks that failed in some earlier run, and have not been done since."""
    try:
        return {Partition(**task) for task in json.loads(objects.get(FAILED_TASKS))}
    except NoObject:
        return set()


def among_tasks(planned: Iterable[Partition], failed: Collection[Partition]) -> frozenset[Partition]:
    """Return the planned tasks that take the place of failed ones: a day's file takes all its hours.

    So does a month's file with its days.
    """
    failed_or_wider = {partition for task in failed for partition in (task, *task.wider)}
    return frozenset(task for task in planned if task in failed_or_wider)


def remember_tasks(objects: Objects, planned: Collection[Partition], failed: Collection[Partition]) -> None:
    """Forget the tasks that a run has done, and remember those that failed.

    Raises ObjectChanged if another run does the same at this moment.
    """
    etag, before = objects.etag(FAILED_TASKS), remembered_tasks(objects)
    done = set(planned)
    waiting = {task for task in before if done.isdisjoint((task, *task.wider))}
    after = waiting | set(failed)
    if after != before:
        listed = sorted(map(asdict, after), key=lambda task: [str(value) for value in task.values()])
        objects.put_if(FAILED_TASKS, json.dumps(listed).encode(), etag)


def note_odd_object(objects: Objects, run_id: str, key: str, reason: str) -> None:
    """Note an object that an operator must look at, with the reason; safe to repeat."""
    name = hashlib.sha256(key.encode()).hexdigest()[:32]
    objects.put(
        run_key(run_id, f"{_ODD_OBJECTS}{name}.json"), json.dumps({"object": key, "reason": reason}).encode()
    )


def odd_objects(objects: Objects, run_id: str) -> list[dict[str, str]]:
    """Return the noted objects, sorted by their keys: object, reason."""
    notes = [json.loads(objects.get(stored.key)) for stored in objects.list(run_key(run_id, _ODD_OBJECTS))]
    return sorted(notes, key=lambda note: str(note["object"]))


def note_rebuild(objects: Objects, run_id: str, task: Partition, reason: str) -> None:
    """Note a partition that was made from its own rows, because raw objects of it are gone."""
    _note_partition(objects, run_key(run_id, _REBUILDS), task, reason)


def note_deleted_file(objects: Objects, run_id: str, before: str) -> None:
    """Note that raw objects from before a date (YYYY-MM-DD) are deleted, though a run was to read them."""
    objects.put(run_key(run_id, _DELETED), json.dumps({"before": before}).encode())


def read_rebuilds(objects: Objects, run_id: str) -> dict[str, Any]:
    """Return which partitions a run could not make anew from raw objects.

    Shape: {"raw_deleted_before": date or None, "without_raw": [{entity, dt, hour, reason}]}.
    """
    try:
        before = json.loads(objects.get(run_key(run_id, _DELETED)))["before"]
    except NoObject:
        before = None
    return {
        "raw_deleted_before": before,
        "without_raw": _noted_partitions(objects, run_key(run_id, _REBUILDS)),
    }


def note_unloaded(objects: Objects, run_id: str, partitions: Iterable[Partition]) -> None:
    """Note the partitions that a run has curated, of entities that the warehouse has. None: no note."""
    rows = {
        (partition.entity, partition.dt, partition.hour or "")
        for partition in partitions
        if partition.entity in LOADED
    }
    _put_unloaded(objects, f"{UNLOADED}{run_id}.json", sorted(rows))


def read_unloaded(objects: Objects) -> Notes:
    """Return the partitions of each note, by its key. Objects that are no notes are left out."""
    notes = {}
    for stored in list(objects.list(UNLOADED)):
        # NoObject: another load has struck out its last partitions.
        with suppress(NoObject, TypeError, ValueError):
            rows = json.loads(objects.get(stored.key))
            notes[stored.key] = [Partition(entity, dt, hour or None) for entity, dt, hour in rows]
    return notes


def strike_out_unloaded(objects: Objects, notes: Notes, loaded: Collection[Partition]) -> None:
    """Take loaded partitions out of the notes, also of the stored ones. An empty stored note is removed."""
    for key, partitions in notes.items():
        lacking = [partition for partition in partitions if partition not in loaded]
        if len(lacking) < len(partitions):
            _put_unloaded(
                objects,
                key,
                [(partition.entity, partition.dt, partition.hour or "") for partition in lacking],
            )
            if not lacking:
                objects.delete([key])
            notes[key] = lacking


def _put_unloaded(objects: Objects, key: str, rows: Sequence[tuple[str, str, str]]) -> None:
    """Store a note with these partitions: (entity, dt, hour; "" for a whole day). No rows: no note."""
    if rows:
        objects.put(key, json.dumps(rows).encode())


def _note_partition(objects: Objects, folder: str, partition: Partition, reason: str) -> None:
    """Note a partition, with the reason, below a prefix of keys; safe to repeat."""
    key = f"{folder}{partition.entity}-{partition.dt}-{partition.hour or 'day'}.json"
    objects.put(key, json.dumps({**asdict(partition), "reason": reason}).encode())


def _noted_partitions(objects: Objects, folder: str) -> list[dict[str, Any]]:
    """Return the partitions noted below a prefix: entity, dt, hour (None: a whole day), reason."""
    return [json.loads(objects.get(stored.key)) for stored in objects.list(folder)]
