"""The plan says which hours and days are curated.

These are the ones that new raw objects touch, those of a range of dates, small past days to compact, and
those that failed before. Up to when all is curated says the watermark, which moves when a run has done all
of its plan.
"""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

from pyarrow import ArrowInvalid

from adapters.platform.objects import NoObject, Objects, StoredObject
from analytics.curation.curate import Task
from analytics.lake import layout, run_notes
from analytics.lake.bookkeeping import bookkeeping_of
from analytics.lake.listing import raw_objects_of_dates, raw_objects_since
from rules.lake.entities import ENTITIES
from rules.privacy.tombstones import SafeToLog
from rules.turns import dates_due

# For one call of the curating function. A backfill of years is thousands of hours with a row or two. A task
# that is larger gets the large function.
BATCH_BYTES_MAX = 64 * 1024 * 1024
BATCH_TASKS_MAX = 200
BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
# An object may show up in listings after one that was finished later.
OVERLAP = timedelta(hours=1)
# An object lies under the date of its oldest row; Firehose retries a delivery for up to a day.
ARRIVAL_LAG = timedelta(days=2)
COMPACTED_AFTER = timedelta(days=3)  # few events arrive over 72 h late
LISTED_AT_ONCE = 16
COMPACTED_BYTES_MAX = 64 * 1024 * 1024
NEW_BYTES_MAX = 8 * 1024 * 1024  # of raw objects, zipped: about a tenth of what they hold
BATCHES = "batches.json"  # of a run
FIRST, LAST = "0000", "9999"  # sort before and after all dates


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run has to do."""

    tasks: list[Task]
    watermark: datetime  # what the next plan may start from, once all is done
    # bytes that a task will read: new raw objects, zipped, and curated files
    sizes: Mapping[Task, int] = field(default_factory=dict)
    arrived: Sequence[str] = ()  # the dates on which the raw objects arrived
    past_days: Sequence[Task] = ()  # past days of which hours are written; the next plan may compact them
    # Files of which only the seal is looked at, by their size
    checks: Mapping[Task, int] = field(default_factory=dict)
    failed: frozenset[Task] = frozenset()  # tasks that failed before
    raw_bytes: int = 0  # of all raw objects that are to be read, zipped

    def of_days(self, days: Mapping[str, Sequence[str]]) -> "Plan":
        """Return the plan with the tasks of some dates (YYYY-MM-DD) by entity alone."""
        return replace(self, tasks=[task for task in self.tasks if task.dt in days.get(task.entity, ())])

    def is_large(self, task: Task) -> bool:
        """Whether a task gets the large function at once."""
        return task in self.failed or self.sizes.get(task, 0) > BATCH_BYTES_MAX

    def batches(self) -> Iterator[list[Task]]:
        """Yield the tasks, small ones together, each large one by itself."""
        yield from ([task] for task in self.tasks if self.is_large(task))
        batch: list[Task] = []
        size = 0
        for task in self.tasks:
            if self.is_large(task):
                continue
            more = self.sizes.get(task, 0)
            if batch and (len(batch) == BATCH_TASKS_MAX or size + more > BATCH_BYTES_MAX):
                yield batch
                batch, size = [], 0
            batch.append(task)
            size += more
        if batch:
            yield batch


def read_watermark(objects: Objects) -> datetime:
    """Return up to when raw objects are curated."""
    return read_state(objects)[0]


def read_state(objects: Objects) -> tuple[datetime, list[Task]]:
    """Return the watermark, and the past days of which the last run has written hours."""
    try:
        state = json.loads(objects.get(layout.WATERMARK))
    except NoObject:
        return BEGINNING + OVERLAP, []
    past_days = [Task(**each) for each in state.get("past_days", ())]
    return datetime.fromisoformat(state["watermark"]), past_days


def move_watermark(objects: Objects, to: datetime, past_days: Sequence[Mapping[str, Any]] = ()) -> None:
    """Note that everything up to then is curated; it never moves back."""
    mark = max(to, read_watermark(objects))
    state = {"watermark": mark.isoformat(), "past_days": list(past_days)}
    objects.put(layout.WATERMARK, json.dumps(state).encode())


@dataclass(slots=True)
class RawSizes:
    """Raw objects: their bytes by hour, the dates on which they arrived, and when the newest was stored."""

    sizes: Counter[Task] = field(default_factory=Counter)
    arrivals: set[str] = field(default_factory=set)
    newest: datetime = BEGINNING
    # By hour the objects that an earlier run may have seen; of hours that have no others
    seen: dict[Task, list[StoredObject]] = field(default_factory=dict)

    @classmethod
    def arrived(cls, objects: Objects, mark: datetime) -> "RawSizes":
        """Read of all that was stored since a watermark, or shortly before, where it may lie."""
        found, since, new = cls(), mark - OVERLAP, set[Task]()
        first = (since - ARRIVAL_LAG).date().isoformat() if since >= BEGINNING + ARRIVAL_LAG else ""
        for entity in ENTITIES:
            for raw_object in raw_objects_since(objects, entity, first):
                if raw_object.modified >= since:
                    place = layout.raw_place(raw_object.key) or layout.nowhere(entity)
                    found._add(raw_object, place)
                    if raw_object.modified > mark:
                        new.add(place)
                    else:
                        found.seen.setdefault(place, []).append(raw_object)
        for place in new:
            found.seen.pop(place, None)
        return found

    @classmethod
    def of_dates(cls, objects: Objects, since: str, until: str, entities: Collection[str]) -> "RawSizes":
        """Read of all that lies under some dates of partitions, both included."""
        found = cls()
        for entity in entities:
            for raw_object in raw_objects_of_dates(objects, entity, since, until):
                place = layout.raw_place(raw_object.key) or layout.nowhere(entity)
                if since <= place.dt <= until:
                    found._add(raw_object, place)
        return found

    def _add(self, stored: StoredObject, place: Task) -> None:
        self.sizes[place] += stored.size
        self.newest = max(self.newest, stored.modified)
        if came := layout.arrival_date(stored.key):
            self.arrivals.add(came)

    def leave_out(self, held: Callable[[Task], bool]) -> None:
        """Leave out the hours of which all was seen before. held: whether their file has all of `seen`."""
        with ThreadPoolExecutor(LISTED_AT_ONCE) as pool:
            for place, is_held in zip(self.seen, pool.map(held, self.seen), strict=True):
                if is_held:
                    del self.sizes[place]

    def days(self) -> set[Task]:
        """Return the days of these hours."""
        return set(map(day_of, self.sizes))


def has_all_lines(objects: Objects, file: StoredObject | None, raw: Iterable[StoredObject]) -> bool:
    """Whether a curated file has the lines of all these raw objects, as they are now."""
    if file is None:
        return False
    try:
        sources = bookkeeping_of(objects, file.key).sources
    except (NoObject, KeyError, ArrowInvalid):  # whoever curates it says what is wrong
        return False
    return all(
        sources.get(layout.source_name(stored_object.key)) == stored_object.etag for stored_object in raw
    )


def newly_past_days(mark: datetime, last: str) -> Iterator[Task]:
    """Yield the days that have become past since the last run: their hours may be compacted."""
    if mark <= BEGINNING + OVERLAP:
        return  # nothing was curated before
    first = (mark.date() - COMPACTED_AFTER - timedelta(days=1)).isoformat()
    for dt in layout.dates_between(first, last):
        yield from (Task(entity, dt, None) for entity in ENTITIES)


def curated_files_of(objects: Objects, days: Iterable[Task]) -> dict[Task, StoredObject]:
    """Return the curated files of some days."""
    prefixes = [layout.curated_prefix(day.entity, day.dt) for day in sorted(days, key=sort_key)]
    with ThreadPoolExecutor(LISTED_AT_ONCE) as pool:
        listed = list(pool.map(lambda each: list(objects.list(each)), prefixes))
    return {place: each for some in listed for each in some if (place := layout.curated_place(each.key))}


def curated_files_between(objects: Objects, entity: str, since: str, until: str) -> Iterator[StoredObject]:
    """Yield the curated files of these dates, and perhaps of others that begin with the same characters."""
    return objects.list(layout.curated_prefix(entity) + layout.dates_prefix(since, until))


def files_due(objects: Objects, today: date) -> dict[Task, StoredObject]:
    """Return the curated files whose turn it is (rules.turns.dates_due)."""
    folders = [layout.curated_prefix(entity) for entity in ENTITIES]
    with ThreadPoolExecutor(LISTED_AT_ONCE) as pool:
        found = list(pool.map(lambda each: list(objects.below(each)), folders))
    due = (
        Task(entity, day.isoformat(), None)
        for entity, below in zip(ENTITIES, found, strict=True)
        for day in sorted(dates_due(_dates(below), today - timedelta(days=1), today))
    )
    return curated_files_of(objects, due)


def _dates(folders: Iterable[str]) -> set[date]:
    places = (layout.curated_place(f"{folder}day.parquet") for folder in folders)
    return {date.fromisoformat(place.dt) for place in places if place}


def sort_key(task: Task) -> tuple[str, str, str]:
    """Return what tasks are sorted by: entity, date, hour."""
    return task.entity, task.dt, task.hour or ""


def day_of(task: Task) -> Task:
    """Return the whole day of an hour."""
    return replace(task, hour=None)


class NoEntity(SafeToLog, ValueError):
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
    last, failed = (today - COMPACTED_AFTER).isoformat(), run_notes.remembered_tasks(objects)
    if since_dt or until_dt or entities:
        made = _plan_of_dates(objects, since_dt or FIRST, until_dt or LAST, entities or ENTITIES, last)
        return replace(made, failed=run_notes.among_tasks(made.tasks, failed))
    mark, past_days = read_state(objects)
    raw = RawSizes.arrived(objects, mark)
    files = curated_files_of(
        objects, {*raw.days(), *past_days, *newly_past_days(mark, last), *map(day_of, failed)}
    )
    raw.leave_out(
        lambda place: has_all_lines(objects, files.get(day_of(place)) or files.get(place), raw.seen[place])
    )
    made = _plan({*raw.sizes, *_compactions(files, last), *failed}, files, raw, last)
    again = run_notes.among_tasks(made.tasks, failed)
    checks = _checks(files_due(objects, today), set(made.tasks))
    return replace(made, watermark=max(mark, raw.newest), failed=again, checks=checks)


def _checks(files: Mapping[Task, StoredObject], tasks: set[Task]) -> dict[Task, int]:
    """Return the files that no task reads on, with their sizes."""
    return {place: each.size for place, each in files.items() if not {place, day_of(place)} & tasks}


def _plan_of_dates(objects: Objects, since: str, until: str, entities: Collection[str], last: str) -> Plan:
    raw = RawSizes.of_dates(objects, since, until, entities)
    files = {
        place: file
        for entity in entities
        for file in curated_files_between(objects, entity, since, until)
        if (place := layout.curated_place(file.key)) and since <= place.dt <= until
    }
    mark, past_days = read_state(objects)
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
    past_days = sorted({day_of(task) for task in tasks if task.hour and task.dt < last}, key=sort_key)
    total = sum(raw.sizes.values())
    return Plan(tasks, BEGINNING, by_task, sorted(raw.arrivals), past_days, raw_bytes=total)


def _tasks(places: Iterable[Task], files: Mapping[Task, StoredObject]) -> list[Task]:
    """Return one task per file to write, in a fixed order: a day's file takes all its hours."""
    wanted = {day if (day := day_of(place)) in files else place for place in places}
    whole = {place for place in wanted if place.hour is None}
    tasks = {place for place in wanted if place in whole or day_of(place) not in whole}
    return sorted(tasks, key=sort_key)


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
        "past_days": [asdict(day) for day in made.past_days],
    }
    objects.put(layout.run_key(run_id, "plan.json"), json.dumps(state).encode())
    objects.put(key, json.dumps([asdict(task) for task in made.tasks]).encode())
    checks = Plan(sorted(made.checks, key=sort_key), made.watermark, made.checks)
    batches = [
        # What a task that failed should have read has arrived some nights ago.
        *(
            _batch(run_id, batch, made, None if made.failed.intersection(batch) else made.arrived, rebuild)
            for batch in made.batches()
        ),
        *(_batch(run_id, batch, checks, ()) for batch in checks.batches()),  # nothing new is read
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
    return [Task(**load) for load in json.loads(objects.get(key))]


def read_batches(objects: Objects, run_id: str) -> list[dict[str, Any]]:
    """Return a run's batches, as write_plan has made them; raises NoObject."""
    found: list[dict[str, Any]] = json.loads(objects.get(layout.run_key(run_id, BATCHES)))
    return found


def curated_tasks(objects: Objects, run_id: str, key: str) -> list[Task]:
    """Return the tasks of a plan without those that a run has given up; raises NoObject."""
    failed = run_notes.failed_tasks(objects, run_id)
    return [task for task in read_tasks(objects, key) if task not in failed]


def commit(objects: Objects, run_id: str) -> datetime:
    """Move the watermark to where a run's plan says, and return it; raises NoObject without a plan.

    What the run has given up is remembered before, because the watermark passes it.
    """
    made = json.loads(objects.get(layout.run_key(run_id, "plan.json")))
    planned = read_tasks(objects, layout.run_key(run_id, "tasks.json"))
    run_notes.remember_tasks(objects, planned, run_notes.failed_tasks(objects, run_id))
    move_watermark(objects, datetime.fromisoformat(made["watermark"]), made["past_days"])
    return read_watermark(objects)
