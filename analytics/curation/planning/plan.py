"""The plan says which hours and days are curated.

These are the ones that new raw objects touch, those of a range of dates, small past days to compact, and
those that failed before.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import date, datetime
from typing import Any

from adapters.platform.objects import Objects, StoredObject
from analytics.curation.curate import Task
from analytics.curation.planning.batches import Plan
from analytics.curation.planning.planned_files import (
    COMPACTED_AFTER,
    RawSizes,
    curated_files_between,
    curated_files_of,
    day_of,
    files_due,
    grown_old,
    holds,
    order_of,
)
from analytics.curation.planning.watermark import BEGINNING, move_watermark, state_of, watermark
from analytics.lake import failed_tasks, layout
from rules.lake.entities import ENTITIES
from rules.privacy.tombstones import TellsNobody

COMPACTED_BYTES_MAX = 64 * 1024 * 1024
NEW_BYTES_MAX = 8 * 1024 * 1024  # of raw objects, zipped: about a tenth of what they hold
BATCHES = "batches.json"  # of a run
FIRST, LAST = "0000", "9999"  # sort before and after all dates


class NoEntity(TellsNobody, ValueError):
    """A name that no entity of the lake has; the text says which, and what there is."""


def plan(
    objects: Objects,
    today: date,
    *,
    since_dt: str | None = None,
    until_dt: str | None = None,
    entities: Collection[str] = (),
) -> Plan:
    """Return the tasks for everything that came since the watermark and is in no file, or for what is named.

    since_dt, until_dt (YYYY-MM-DD, both included), entities: these are curated and loaded whatever has
    changed, and the watermark stays. Without any of these, small past days are compacted too. today: UTC.
    Raises NoEntity.
    """
    if unknown := set(entities) - set(ENTITIES):
        raise NoEntity(f"entities: there is no {min(unknown)}, but {', '.join(sorted(ENTITIES))}")
    last, failed = (today - COMPACTED_AFTER).isoformat(), failed_tasks.remembered(objects)
    if since_dt or until_dt or entities:
        made = _plan_of_dates(objects, since_dt or FIRST, until_dt or LAST, entities or ENTITIES, last)
        return replace(made, failed=failed_tasks.among(made.tasks, failed))
    mark, past_days = state_of(objects)
    raw = RawSizes.arrived(objects, mark)
    files = curated_files_of(objects, {*raw.days(), *past_days, *grown_old(mark, last), *map(day_of, failed)})
    raw.leave_out(lambda place: holds(objects, files.get(day_of(place)) or files.get(place), raw.seen[place]))
    made = _plan({*raw.sizes, *_compactions(files, last), *failed}, files, raw, last)
    again = failed_tasks.among(made.tasks, failed)
    checks = _checks(files_due(objects, today), set(made.tasks))
    return replace(made, watermark=max(mark, raw.newest), failed=again, checks=checks)


def _checks(files: Mapping[Task, StoredObject], tasks: set[Task]) -> dict[Task, int]:
    """Return the files that no task reads on, with their sizes."""
    return {place: each.size for place, each in files.items() if not {place, day_of(place)} & tasks}


def _plan_of_dates(objects: Objects, since: str, until: str, entities: Collection[str], last: str) -> Plan:
    raw = RawSizes.of_dates(objects, since, until, entities)
    files = {
        place: each
        for entity in entities
        for each in curated_files_between(objects, entity, since, until)
        if (place := layout.curated_place(each.key)) and since <= place.dt <= until
    }
    mark, past_days = state_of(objects)
    made = _plan({*raw.sizes, *files}, files, raw, last)
    return replace(made, watermark=mark, past_days=[*past_days, *made.past_days])


def _plan(places: Iterable[Task], files: Mapping[Task, StoredObject], raw: RawSizes, last: str) -> Plan:
    tasks = _tasks({*places, *_new_days(raw.sizes, files, last)}, files)
    wanted = set(tasks)
    by_task: Counter[Task] = Counter()
    for place, size in raw.sizes.items():
        day = day_of(place)
        by_task[day if day in wanted else place] += size
    for place, stored in files.items():
        day = day_of(place)
        by_task[day if day in wanted else place] += stored.size
    past_days = sorted({day_of(each) for each in tasks if each.hour and each.dt < last}, key=order_of)
    total = sum(raw.sizes.values())
    return Plan(tasks, BEGINNING, by_task, sorted(raw.arrivals), past_days, raw_bytes=total)


def _tasks(places: Iterable[Task], files: Mapping[Task, StoredObject]) -> list[Task]:
    """Return one task per file to write, in a fixed order: a day's file takes all its hours."""
    wanted = {day if (day := day_of(place)) in files else place for place in places}
    whole = {place for place in wanted if place.hour is None}
    tasks = {place for place in wanted if place in whole or day_of(place) not in whole}
    return sorted(tasks, key=order_of)


def _new_days(sizes: Mapping[Task, int], files: Mapping[Task, StoredObject], last: str) -> Iterator[Task]:
    """Yield past days of which nothing is curated and little has come: they need no hours first."""
    held = {day_of(place) for place in files}
    days: Counter[Task] = Counter()
    for place, size in sizes.items():
        days[day_of(place)] += size
    yield from (
        day for day, size in days.items() if day.dt < last and day not in held and size < NEW_BYTES_MAX
    )


def _compactions(files: Mapping[Task, StoredObject], last: str) -> Iterator[Task]:
    """Yield past days with several hour files that are small together, or left from an unfinished one."""
    hours: dict[Task, list[int]] = {}
    for place, stored in files.items():
        if place.hour is not None:
            hours.setdefault(day_of(place), []).append(stored.size)
    for day, sizes in hours.items():
        is_small = day.dt < last and len(sizes) > 1 and sum(sizes) < COMPACTED_BYTES_MAX
        if day in files or is_small:
            yield day


def write_plan(objects: Objects, run_id: str, made: Plan, rebuild: bool = False) -> tuple[str, str]:
    """Store a run's plan; returns the keys of its tasks (a JSON array of entity, dt, hour) and batches.

    A batch is {"run_id", "tasks", "arrived", "rebuild", "large"}: what one call of a curating function does;
    large says of which. arrived: the dates of arrival under which its raw objects lie; None: any. rebuild: it
    makes the files anew, so that today's declarations read all lines again.
    """
    key, batches_key = (layout.run_key(run_id, name) for name in ("tasks.json", BATCHES))
    state = {
        "watermark": made.watermark.isoformat(),
        "past_days": [asdict(each) for each in made.past_days],
    }
    objects.put(layout.run_key(run_id, "plan.json"), json.dumps(state).encode())
    objects.put(key, json.dumps([asdict(task) for task in made.tasks]).encode())
    checks = Plan(sorted(made.checks, key=order_of), made.watermark, made.checks)
    batches = [
        # What a task that failed should have read has arrived some nights ago.
        *(
            _batch(run_id, each, made, None if made.failed.intersection(each) else made.arrived, rebuild)
            for each in made.batches()
        ),
        *(_batch(run_id, each, checks, ()) for each in checks.batches()),  # nothing new is read
    ]
    objects.put(batches_key, json.dumps(batches).encode())
    return key, batches_key


def _batch(
    run_id: str, tasks: Sequence[Task], made: Plan, arrived: Sequence[str] | None, rebuild: bool = False
) -> dict[str, Any]:
    return {
        "run_id": run_id,
        "tasks": [asdict(task) for task in tasks],
        "arrived": None if arrived is None else list(arrived),
        "rebuild": rebuild,
        "large": made.is_large(tasks[0]),
    }


def read_tasks(objects: Objects, key: str) -> list[Task]:
    """Return the tasks of a plan; raises NoObject."""
    return [Task(**each) for each in json.loads(objects.get(key))]


def read_batches(objects: Objects, run_id: str) -> list[dict[str, Any]]:
    """Return a run's batches, as write_plan has made them; raises NoObject."""
    found: list[dict[str, Any]] = json.loads(objects.get(layout.run_key(run_id, BATCHES)))
    return found


def curated_tasks(objects: Objects, run_id: str, key: str) -> list[Task]:
    """Return the tasks of a plan without those that a run has given up; raises NoObject."""
    failed = failed_tasks.failed_tasks(objects, run_id)
    return [task for task in read_tasks(objects, key) if task not in failed]


def commit(objects: Objects, run_id: str) -> datetime:
    """Move the watermark to where a run's plan says, and return it; raises NoObject without a plan.

    What the run has given up is remembered before, because the watermark passes it.
    """
    made = json.loads(objects.get(layout.run_key(run_id, "plan.json")))
    planned = read_tasks(objects, layout.run_key(run_id, "tasks.json"))
    failed_tasks.remember(objects, planned, failed_tasks.failed_tasks(objects, run_id))
    move_watermark(objects, datetime.fromisoformat(made["watermark"]), made["past_days"])
    return watermark(objects)
