"""The plan says which hours and days are curated.

These are the ones that new raw objects touch, those of a range of dates, and small past days to compact.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, date, datetime, timedelta

from adapters.platform.objects import NoObject, Objects, StoredObject
from analytics.curation.curate import Task
from analytics.lake import layout
from rules.lake.entities import ENTITIES

# An object may show up in listings after one that was finished later.
OVERLAP = timedelta(hours=1)
COMPACTED_AFTER = timedelta(days=3)  # events arrive up to 72 h late
COMPACTED_BYTES_MAX = 64 * 1024 * 1024
NEW_BYTES_MAX = 8 * 1024 * 1024  # of raw objects, zipped: about a tenth of what they hold
BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
# For one call of the curating function. A backfill of years is thousands of hours with a row or two.
BATCH_BYTES_MAX = 64 * 1024 * 1024
BATCH_TASKS_MAX = 200


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run has to do. watermark: what the next plan may start from, once all is done.

    sizes: bytes of raw objects that a task will read, where they are new.
    """

    tasks: list[Task]
    watermark: datetime
    sizes: Mapping[Task, int] = field(default_factory=dict)

    def batches(self) -> Iterator[list[Task]]:
        """Yield the tasks in their order, small ones together."""
        batch: list[Task] = []
        size = 0
        for task in self.tasks:
            more = self.sizes.get(task, 0)
            if batch and (len(batch) == BATCH_TASKS_MAX or size + more > BATCH_BYTES_MAX):
                yield batch
                batch, size = [], 0
            batch.append(task)
            size += more
        if batch:
            yield batch


def plan(
    objects: Objects,
    today: date,
    *,
    since_dt: str | None = None,
    until_dt: str | None = None,
    entities: Collection[str] = (),
) -> Plan:
    """Return the tasks for everything that came since the watermark, or for what is named.

    since_dt, until_dt (YYYY-MM-DD, both included), entities: these are curated and loaded whatever has
    changed, and the watermark stays. Without any of these, small past days are compacted too. today: UTC.
    Raises ValueError for a name that no entity has.
    """
    if unknown := set(entities) - set(ENTITIES):
        raise ValueError(f"entities: there is no {min(unknown)}, but {', '.join(sorted(ENTITIES))}")
    mark = watermark(objects)
    files = _curated_files(objects)
    last = (today - COMPACTED_AFTER).isoformat()
    if since_dt or until_dt or entities:
        since, until, names = since_dt or "0000", until_dt or "9999", entities or ENTITIES
        sizes, _ = _raw_sizes(objects, BEGINNING)
        places = [each for each in {*sizes, *files} if since <= each.dt <= until and each.entity in names]
        return _plan(places, files, sizes, last, mark)
    sizes, newest = _raw_sizes(objects, mark - OVERLAP)
    return _plan({*sizes, *_compactions(files, last)}, files, sizes, last, max(mark, newest))


def _plan(
    places: Iterable[Task],
    files: Mapping[Task, StoredObject],
    sizes: Mapping[Task, int],
    last: str,
    mark: datetime,
) -> Plan:
    listed = set(places)
    new = {place: size for place, size in sizes.items() if place in listed}
    tasks = _tasks({*listed, *_new_days(new, files, last)}, files)
    wanted = set(tasks)
    by_task: Counter[Task] = Counter()
    for place, size in sizes.items():
        day = replace(place, hour=None)
        by_task[day if day in wanted else place] += size
    return Plan(tasks, mark, by_task)


def watermark(objects: Objects) -> datetime:
    """Return up to when raw objects are curated."""
    try:
        return datetime.fromisoformat(json.loads(objects.get(layout.WATERMARK))["watermark"])
    except NoObject:
        return BEGINNING + OVERLAP


def move_watermark(objects: Objects, to: datetime) -> None:
    """Note that everything up to then is curated; it never moves back."""
    if to > watermark(objects):
        objects.put(layout.WATERMARK, json.dumps({"watermark": to.isoformat()}).encode())


def _raw_sizes(objects: Objects, since: datetime) -> tuple[dict[Task, int], datetime]:
    """Return the bytes of raw objects that are new since then, by hour; and when the newest came."""
    sizes: Counter[Task] = Counter()
    newest = BEGINNING
    for entity in ENTITIES:
        for each in objects.list(layout.raw_prefix(entity)):
            place = layout.raw_place(each.key) or layout.nowhere(entity)
            if each.modified >= since:
                sizes[place] += each.size
                newest = max(newest, each.modified)
    return sizes, newest


def _curated_files(objects: Objects) -> dict[Task, StoredObject]:
    listed = (each for entity in ENTITIES for each in objects.list(layout.curated_prefix(entity)))
    return {place: each for each in listed if (place := layout.curated_place(each.key))}


def _tasks(places: Iterable[Task], files: Mapping[Task, StoredObject]) -> list[Task]:
    """Return one task per file to write, in a fixed order: a day's file takes all its hours."""
    wanted = {day if (day := replace(place, hour=None)) in files else place for place in places}
    whole = {place for place in wanted if place.hour is None}
    tasks = {place for place in wanted if place in whole or replace(place, hour=None) not in whole}
    return sorted(tasks, key=lambda task: (task.entity, task.dt, task.hour or ""))


def _new_days(sizes: Mapping[Task, int], files: Mapping[Task, StoredObject], last: str) -> Iterator[Task]:
    """Yield past days of which nothing is curated and little has come: they need no hours first."""
    held = {replace(place, hour=None) for place in files}
    days: Counter[Task] = Counter()
    for place, size in sizes.items():
        days[replace(place, hour=None)] += size
    yield from (
        day for day, size in days.items() if day.dt < last and day not in held and size < NEW_BYTES_MAX
    )


def _compactions(files: Mapping[Task, StoredObject], last: str) -> Iterator[Task]:
    """Yield past days with several hour files that are small together, or left from an unfinished one."""
    hours: dict[Task, list[int]] = {}
    for place, stored in files.items():
        if place.hour is not None:
            hours.setdefault(replace(place, hour=None), []).append(stored.size)
    for day, sizes in hours.items():
        is_small = day.dt < last and len(sizes) > 1 and sum(sizes) < COMPACTED_BYTES_MAX
        if day in files or is_small:
            yield day


def write_plan(objects: Objects, run_id: str, made: Plan, rebuild: bool = False) -> tuple[str, str]:
    """Store a run's plan; returns the keys of its tasks (a JSON array of entity, dt, hour) and batches.

    A batch is {"tasks": [...], "rebuild": ...}: what one call of the curating function does.
    rebuild: it makes the files anew, so that today's declarations read all lines again.
    """
    key = layout.run_key(run_id, "tasks.json")
    objects.put(
        layout.run_key(run_id, "plan.json"), json.dumps({"watermark": made.watermark.isoformat()}).encode()
    )
    objects.put(key, json.dumps([asdict(task) for task in made.tasks]).encode())
    batches = [{"tasks": [asdict(task) for task in batch], "rebuild": rebuild} for batch in made.batches()]
    batches_key = layout.run_key(run_id, "batches.json")
    objects.put(batches_key, json.dumps(batches).encode())
    return key, batches_key


def read_tasks(objects: Objects, key: str) -> list[Task]:
    """Return the tasks of a plan; raises NoObject."""
    return [Task(**each) for each in json.loads(objects.get(key))]


def commit(objects: Objects, run_id: str) -> datetime:
    """Move the watermark to where a run's plan says, and return it; raises NoObject without a plan."""
    made = json.loads(objects.get(layout.run_key(run_id, "plan.json")))
    move_watermark(objects, datetime.fromisoformat(made["watermark"]))
    return watermark(objects)
