"""Curation tasks that failed: what a run notes of them, and what later runs remember.

A run that has loaded all others is committed, and the watermark passes what a failed task should have read.
So the task is remembered, and each run plans it again until it is done.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, replace
from typing import Any

from adapters.platform.objects import NoObject, Objects
from analytics.lake.layout import FAILED_TASKS, Place, run_key

REASON_MAX = 2000  # characters
_FOLDER = "failed/"


def note(objects: Objects, run_id: str, task: Place, error: Mapping[str, str]) -> None:
    """Note that a run has given up a task. error: Error and Cause, as Step Functions tells them."""
    reason = f"{error.get('Error', '')}: {error.get('Cause', '')}"[:REASON_MAX]
    note_place(objects, run_key(run_id, _FOLDER), task, reason)


def noted(objects: Objects, run_id: str) -> list[dict[str, Any]]:
    """Return the tasks that a run has given up: entity, dt, hour (None: a whole day), reason."""
    return noted_places(objects, run_key(run_id, _FOLDER))


def note_place(objects: Objects, folder: str, place: Place, reason: str) -> None:
    """Note a partition, with the reason, below a prefix of keys; safe to repeat."""
    key = f"{folder}{place.entity}-{place.dt}-{place.hour or 'day'}.json"
    objects.put(key, json.dumps({**asdict(place), "reason": reason}).encode())


def noted_places(objects: Objects, folder: str) -> list[dict[str, Any]]:
    """Return what is noted below a prefix: entity, dt, hour (None: a whole day), reason."""
    return [json.loads(objects.get(each.key)) for each in objects.list(folder)]


def failed_tasks(objects: Objects, run_id: str) -> set[Place]:
    """Return the tasks that a run has given up."""
    return {Place(each["entity"], each["dt"], each["hour"]) for each in noted(objects, run_id)}


def remembered(objects: Objects) -> set[Place]:
    """Return the tasks that are still to be done."""
    try:
        return {Place(**each) for each in json.loads(objects.get(FAILED_TASKS))}
    except NoObject:
        return set()


def among(planned: Iterable[Place], failed: Collection[Place]) -> frozenset[Place]:
    """Return the planned tasks that take the place of failed ones: a day's file takes all its hours."""
    again = {*failed, *(replace(task, hour=None) for task in failed)}
    return frozenset(task for task in planned if task in again)


def remember(objects: Objects, planned: Collection[Place], failed: Collection[Place]) -> None:
    """Forget the tasks that a run has done, and remember those that failed.

    Raises ObjectChanged if another run does the same at this moment.
    """
    etag, before = objects.etag(FAILED_TASKS), remembered(objects)
    done = set(planned)
    left = {task for task in before if task not in done and replace(task, hour=None) not in done}
    after = left | set(failed)
    if after != before:
        listed = sorted(
            (asdict(task) for task in after), key=lambda task: [str(each) for each in task.values()]
        )
        objects.put_if(FAILED_TASKS, json.dumps(listed).encode(), etag)
