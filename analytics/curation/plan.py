"""The plan of a nightly run: which hours and days are curated.

The plan has the hours of new raw objects, small past days to compact, and tasks that failed in an earlier
run. Or it has all hours of a range of dates that an operator has named. All raw objects that were stored up
to the watermark are curated. The watermark moves once a run has done all of its plan.

A task is a place (an hour, a day, or a month) that one call of `curate` brings up to date. What a history
brings for months of the past is curated by month at once, so a night's work grows with its rows, and not with
the hours in which they happened.

The curating function's steps (analytics/steps/curate_function.py) call `plan` and `write_plan`, and at the
end `commit`, which moves the watermark.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from itertools import chain
from typing import Any

from pyarrow import ArrowInvalid

from adapters.platform.objects import NoObject, Objects, StoredObject
from analytics.lake import layout, run_notes
from analytics.lake.bookkeeping import bookkeeping_of
from analytics.lake.layout import Place, curated_place, curated_prefix
from analytics.lake.listing import raw_objects_of_dates, raw_objects_since
from rules.lake.entities import ENTITIES
from rules.privacy.tombstones import SafeToLog
from rules.turns import dates_due

# What one call of the curating function gets. There are two limits, because a backfill of years has
# thousands of hours with a row or two each. A larger task goes to the large function.
BATCH_BYTES_MAX = 64 * 1024 * 1024
BATCH_TASKS_MAX = 200
FIRST_MARK = datetime(1970, 1, 1, 1, tzinfo=UTC)  # the watermark of a lake of which no run has been done
# Listings may show an object after one that was stored later. So each plan lists an hour again.
OVERLAP = timedelta(hours=1)
# An object lies under the date on which its oldest row arrived, and Firehose retries a delivery for up to a
# day.
ARRIVAL_LAG = timedelta(days=2)
COMPACTED_AFTER = timedelta(days=3)  # then a day is past: few events arrive over 72 h late
# So long after its end a month is past: what still arrives for it is a history, of rows from any of its days.
MONTH_PAST_AFTER = timedelta(days=31)
LISTED_AT_ONCE = 16  # prefixes
COMPACTED_BYTES_MAX = 64 * 1024 * 1024  # of a day's hours, which become one file
NEW_BYTES_MAX = 8 * 1024 * 1024  # of a day's or month's raw objects, zipped: it gets one file at once
BATCHES = "batches.json"  # of a run
STRAYS_MAX = 1000  # strays that the next run looks for again
FIRST, LAST = "0000", "9999"  # sort before and after all dates


@dataclass(frozen=True, slots=True)
class Plan:
    """A run's work."""

    tasks: list[Place]
    watermark: datetime  # the next plan starts from it, once all tasks are done
    # Bytes that a task will read: new raw objects, zipped, and curated files
    sizes: Mapping[Place, int] = field(default_factory=dict)
    arrived: Sequence[str] = ()  # the dates on which the raw objects arrived
    past_days: Sequence[Place] = ()  # past days of which hours are written; the next plan may compact them
    # Files whose seals are checked, with their sizes. No task reads them
    checks: Mapping[Place, int] = field(default_factory=dict)
    failed: frozenset[Place] = frozenset()  # the tasks that have failed in an earlier run
    raw_bytes: int = 0  # of all raw objects that are to be read, zipped
    # The keys of objects in raw/ and curated/ that nobody reads, because their names say no hour
    strays: Sequence[str] = ()

    def of_days(self, days: Mapping[str, Sequence[str]]) -> "Plan":
        """Return the plan with only the tasks of given dates (YYYY-MM-DD, by entity)."""
        tasks = [
            task for task in self.tasks if any(task.has_any_of(dt, dt) for dt in days.get(task.entity, ()))
        ]
        return replace(self, tasks=tasks)

    def is_large(self, task: Place) -> bool:
        """Whether the large function does a task."""
        return task in self.failed or self.sizes.get(task, 0) > BATCH_BYTES_MAX

    def batches(self) -> Iterator[list[Place]]:
        """Yield the tasks, small ones together, each large one by itself."""
        yield from ([task] for task in self.tasks if self.is_large(task))
        batch: list[Place] = []
        size = 0
        for task in self.tasks:
            if self.is_large(task):
                continue
            task_size = self.sizes.get(task, 0)
            if batch and (len(batch) == BATCH_TASKS_MAX or size + task_size > BATCH_BYTES_MAX):
                yield batch
                batch, size = [], 0
            batch.append(task)
            size += task_size
        if batch:
            yield batch


class NoEntity(SafeToLog, ValueError):
    """A name that no entity of the lake has. The text has this name, and those of all entities."""


def plan(
    objects: Objects,
    today: date,
    *,
    since_dt: str | None = None,
    until_dt: str | None = None,
    entities: Collection[str] = (),
) -> Plan:
    """Return the plan of a run: for raw objects that came since the watermark, or for given dates.

    since_dt, until_dt: YYYY-MM-DD, both included. If these or entities are given, all of their partitions are
    curated and loaded, even if they have not changed, and the watermark stays. If not, small past days are
    compacted, too. today: UTC. Raises NoEntity.
    """
    if unknown := set(entities) - set(ENTITIES):
        raise NoEntity(f"entities: there is no {min(unknown)}, but {', '.join(sorted(ENTITIES))}")
    past_before = (today - COMPACTED_AFTER).isoformat()  # days before this date are past
    watermark, past_days, known_strays = _read_state(objects)
    failed = run_notes.remembered_tasks(objects)
    strays = {key for key in known_strays if objects.etag(key) is not None}
    due: Mapping[Place, StoredObject] = {}
    if since_dt or until_dt or entities:
        # All places of these dates, whether they have changed or not.
        raw, files = _all_of_dates(objects, since_dt or FIRST, until_dt or LAST, entities or ENTITIES, strays)
        places = {*raw.sizes, *files}
    else:
        # Places of new raw objects, those that failed, and days whose hours may become one file now.
        raw = _raw_since(objects, watermark, strays)
        perhaps_compacted = {*past_days, *_newly_past_days(watermark, past_before)}
        files = _files_of_months(objects, [*raw.sizes, *failed, *perhaps_compacted], strays)
        _leave_out_curated(objects, raw, files)
        places = {*raw.sizes, *failed, *_compactions(files, past_before)}
        due = _files_due(objects, today, strays)
        watermark, past_days = max(watermark, raw.newest), []

    wholes = _new_wholes(raw.sizes, files, today)
    places.update(whole for whole in wholes if _is_within(whole, since_dt or FIRST, until_dt or LAST))
    # There is one task per file to write: a day's file takes all of its hours, and a month's all of its days.
    known = {*places, *files}
    tasks = {_widest_among(known, place) for place in places}
    sizes: Counter[Place] = Counter()
    for place, size in chain(raw.sizes.items(), ((place, file.size) for place, file in files.items())):
        sizes[_widest_among(tasks, place)] += size
    days_with_hours = {day_of(task) for task in tasks if task.hour and task.dt < past_before}
    return Plan(
        sorted(tasks, key=sort_key),
        watermark,
        sizes,
        arrived=sorted(raw.arrivals),
        past_days=[*past_days, *sorted(days_with_hours, key=sort_key)],
        # A task that reads a file checks its seal itself.
        checks={place: file.size for place, file in due.items() if tasks.isdisjoint((place, *place.wider))},
        failed=run_notes.among_tasks(tasks, failed),
        raw_bytes=sum(raw.sizes.values()),
        strays=sorted(strays)[:STRAYS_MAX],
    )


def day_of(place: Place) -> Place:
    """Return the whole day of an hour."""
    return replace(place, hour=None)


def _is_within(place: Place, since: str, until: str) -> bool:
    """Whether all dates of a place are among those from one to another, both included."""
    return since <= place.first_dt and place.last_dt <= until


def _widest_among(places: Collection[Place], place: Place) -> Place:
    """Return the month or the day of a place if it is among these places, else the place itself."""
    return next((wider for wider in place.wider if wider in places), place)


def sort_key(place: Place) -> tuple[str, str, str]:
    """Return the sort key of places: entity, date, hour."""
    return place.entity, place.dt, place.hour or ""


@dataclass(slots=True)
class RawSizes:
    """Raw objects that a plan may read, summed up by hour, because a backfill has very many."""

    sizes: Counter[Place] = field(default_factory=Counter)  # bytes by hour
    arrivals: set[str] = field(default_factory=set)  # the dates on which they arrived
    newest: datetime = FIRST_MARK  # when the newest one was stored
    # The objects of OVERLAP, of hours that have no newer object: an earlier run may have read them all
    overlapping: dict[Place, list[StoredObject]] = field(default_factory=dict)

    def add(self, stored: StoredObject, place: Place) -> None:
        """Add an object of a place."""
        self.sizes[place] += stored.size
        self.newest = max(self.newest, stored.modified)
        if arrival := layout.arrival_date(stored.key):
            self.arrivals.add(arrival)


def _all_of_dates(
    objects: Objects, since: str, until: str, entities: Collection[str], strays: set[str]
) -> tuple[RawSizes, dict[Place, StoredObject]]:
    """Return the raw objects and the curated files of partitions from one date to another, both included.

    If a month has one file, they are all of the month's. strays: gets the keys of objects that are neither,
    as in the other functions here.
    """
    raw, files = RawSizes(), dict[Place, StoredObject]()
    for entity in entities:
        # All listings may have objects of other dates, too.
        listed = objects.list(curated_prefix(entity) + layout.dates_prefix(since, until))
        of_dates = {place: file for place, file in _curated(listed, strays) if place.has_any_of(since, until)}
        files |= of_dates
        first, last = (
            min([since, *(place.first_dt for place in of_dates)]),
            max([until, *(place.last_dt for place in of_dates)]),
        )
        for raw_object in raw_objects_of_dates(objects, entity, first, last):
            place = layout.raw_place(raw_object.key)
            if place is None:
                strays.add(raw_object.key)
            elif since <= place.dt <= until or place.month in files:
                raw.add(raw_object, place)
    return raw, files


def _raw_since(objects: Objects, watermark: datetime, strays: set[str]) -> RawSizes:
    """Return the raw objects that were stored since a watermark, or within OVERLAP before it."""
    raw, since = RawSizes(), watermark - OVERLAP
    places_of_new = set[Place]()
    for entity in ENTITIES:
        for raw_object in raw_objects_since(objects, entity, (since - ARRIVAL_LAG).date().isoformat()):
            place = layout.raw_place(raw_object.key)
            if place is None:
                strays.add(raw_object.key)
            elif raw_object.modified >= since:
                raw.add(raw_object, place)
                if raw_object.modified > watermark:
                    places_of_new.add(place)
                else:
                    raw.overlapping.setdefault(place, []).append(raw_object)
    for place in places_of_new:
        raw.overlapping.pop(place, None)
    return raw


def _newly_past_days(watermark: datetime, past_before: str) -> Iterator[Place]:
    """Yield the days that have become past since the last run: their hours may be compacted."""
    if watermark <= FIRST_MARK:
        return  # this is the first run
    first = (watermark.date() - COMPACTED_AFTER - timedelta(days=1)).isoformat()
    for dt in layout.dates_between(first, past_before):
        yield from (Place(entity, dt, None) for entity in ENTITIES)


def _files_of_months(
    objects: Objects, places: Iterable[Place], strays: set[str]
) -> dict[Place, StoredObject]:
    """Return all curated files of the months in which places lie."""
    prefixes = sorted({layout.month_prefix(place) for place in places})
    with ThreadPoolExecutor(LISTED_AT_ONCE) as pool:
        listings = pool.map(lambda prefix: list(objects.list(prefix)), prefixes)
        return dict(_curated(chain.from_iterable(listings), strays))


def _curated(
    stored_objects: Iterable[StoredObject], strays: set[str]
) -> Iterator[tuple[Place, StoredObject]]:
    """Yield the curated files among objects, each with its place."""
    for stored in stored_objects:
        if place := curated_place(stored.key):
            yield place, stored
        else:
            strays.add(stored.key)


def _leave_out_curated(objects: Objects, raw: RawSizes, files: Mapping[Place, StoredObject]) -> None:
    """Leave out the hours of `overlapping` whose curated files have all lines of these objects already."""

    def is_curated(place: Place) -> bool:
        of_file = _widest_among(files, place)
        if of_file not in files:
            return False
        try:
            sources = bookkeeping_of(objects, files[of_file].key).sources
        except (NoObject, KeyError, ArrowInvalid):  # its task is planned, and fails with the reason
            return False
        return all(
            sources.get(layout.source_name(each.key, of_file)) == each.etag for each in raw.overlapping[place]
        )

    with ThreadPoolExecutor(LISTED_AT_ONCE) as pool:
        for place, has_all in zip(raw.overlapping, pool.map(is_curated, raw.overlapping), strict=True):
            if has_all:
                del raw.sizes[place]


def _compactions(files: Mapping[Place, StoredObject], past_before: str) -> Iterator[Place]:
    """Yield the days whose hours are compacted.

    These are past days with several small hours. A day that has hours beside its day's file is one of them,
    too, because an earlier compaction has not come to its end. So is a month with other files beside its own.
    """
    hours: dict[Place, list[int]] = {}
    for place, stored in files.items():
        if place.month in files and not place.is_month:
            yield place.month
        elif place.hour is not None:
            hours.setdefault(day_of(place), []).append(stored.size)
    for day, sizes in hours.items():
        is_small = day.dt < past_before and len(sizes) > 1 and sum(sizes) < COMPACTED_BYTES_MAX
        if day in files or is_small:
            yield day


def _files_due(objects: Objects, today: date, strays: set[str]) -> dict[Place, StoredObject]:
    """Return the curated files of the dates that have a turn tonight: their seals are checked."""
    with ThreadPoolExecutor(LISTED_AT_ONCE) as pool:
        folders_of_entities = list(
            pool.map(lambda entity: list(objects.below(curated_prefix(entity))), ENTITIES)
        )
    due_places = set[Place]()
    for folders in folders_of_entities:
        places_of_date: dict[date, list[Place]] = {}
        for folder in folders:
            place = curated_place(f"{folder}day.parquet") or curated_place(f"{folder}month.parquet")
            if place is None:
                strays.add(folder)
            else:
                places_of_date.setdefault(date.fromisoformat(place.last_dt), []).append(place)
        for day in dates_due(places_of_date.keys(), today - timedelta(days=1), today):
            due_places.update(places_of_date[day])
    files = _files_of_months(objects, due_places, strays)
    return {place: file for place, file in files.items() if day_of(place) in due_places}


def _new_wholes(
    sizes: Mapping[Place, int], files: Mapping[Place, StoredObject], today: date
) -> Iterator[Place]:
    """Yield past months and days without a curated file and with few raw bytes: each gets one file."""
    curated_wholes = {whole for place in files for whole in (day_of(place), place.month)}
    wholes: Counter[Place] = Counter()
    for place, size in sizes.items():
        wholes[day_of(place)] += size
        wholes[place.month] += size
    for whole, size in wholes.items():
        past_after = MONTH_PAST_AFTER if whole.is_month else COMPACTED_AFTER
        is_past = whole.last_dt < (today - past_after).isoformat()
        if is_past and whole not in curated_wholes and size < NEW_BYTES_MAX:
            yield whole


def write_plan(objects: Objects, run_id: str, planned: Plan, rebuild: bool = False) -> tuple[str, str]:
    """Store a run's plan; returns the keys of its tasks (a JSON array of entity, dt, hour) and batches.

    A batch is what one call of a curating function does: {"run_id", "tasks", "arrived", "rebuild", "large"}.
    arrived: the dates of arrival under which its raw objects lie; None: any; []: only seals are checked.
    rebuild: whether it makes the files anew, so that today's declarations read all lines again. large:
    whether the large function gets it.
    """
    key, batches_key = (layout.run_key(run_id, name) for name in ("tasks.json", BATCHES))
    state = {
        "watermark": planned.watermark.isoformat(),
        "past_days": [asdict(day) for day in planned.past_days],
        "strays": planned.strays,
    }
    objects.put(layout.run_key(run_id, "plan.json"), json.dumps(state).encode())
    objects.put(key, json.dumps([asdict(task) for task in planned.tasks]).encode())
    batches = []
    for tasks in planned.batches():
        # A failed task's raw objects may have arrived some nights ago.
        arrived = None if planned.failed.intersection(tasks) else planned.arrived
        batches.append(_batch(run_id, tasks, planned, arrived, rebuild))
    checks = Plan(sorted(planned.checks, key=sort_key), planned.watermark, planned.checks)
    batches += [_batch(run_id, tasks, checks, arrived=[]) for tasks in checks.batches()]
    objects.put(batches_key, json.dumps(batches).encode())
    return key, batches_key


def _batch(
    run_id: str, tasks: Sequence[Place], planned: Plan, arrived: Sequence[str] | None, rebuild: bool = False
) -> dict[str, Any]:
    return {
        "run_id": run_id,
        "tasks": [asdict(task) for task in tasks],
        "arrived": arrived,
        "rebuild": rebuild,
        "large": planned.is_large(tasks[0]),
    }


def read_tasks(objects: Objects, key: str) -> list[Place]:
    """Return the tasks of a plan; raises NoObject."""
    return [Place(**task) for task in json.loads(objects.get(key))]


def read_batches(objects: Objects, run_id: str) -> list[dict[str, Any]]:
    """Return a run's batches, as write_plan has made them; raises NoObject."""
    batches: list[dict[str, Any]] = json.loads(objects.get(layout.run_key(run_id, BATCHES)))
    return batches


def read_strays(objects: Objects, run_id: str) -> list[str]:
    """Return the strays that a run's plan has found (see Plan); nothing if there is no plan."""
    try:
        state = json.loads(objects.get(layout.run_key(run_id, "plan.json")))
    except NoObject:
        return []
    return list(state.get("strays", ()))


def curated_tasks(objects: Objects, run_id: str, key: str) -> list[Place]:
    """Return the tasks of a plan without those that a run has given up; raises NoObject."""
    failed = run_notes.failed_tasks(objects, run_id)
    return [task for task in read_tasks(objects, key) if task not in failed]


def commit(objects: Objects, run_id: str) -> datetime:
    """Move the watermark to where a run's plan says, and return it; raises NoObject without a plan.

    The tasks that the run has given up are remembered first, because the watermark moves past them.
    """
    state = json.loads(objects.get(layout.run_key(run_id, "plan.json")))
    planned = read_tasks(objects, layout.run_key(run_id, "tasks.json"))
    run_notes.remember_tasks(objects, planned, run_notes.failed_tasks(objects, run_id))
    to = datetime.fromisoformat(state["watermark"])
    return move_watermark(objects, to, state["past_days"], state.get("strays", ()))


def move_watermark(
    objects: Objects,
    to: datetime,
    past_days: Sequence[Mapping[str, Any]] = (),
    strays: Sequence[str] = (),
) -> datetime:
    """Note that all raw objects that were stored up to an instant are curated; returns the watermark.

    It never moves back. past_days: the past days of which hours were written (entity, dt, hour None).
    strays: see Plan.
    """
    watermark = max(to, read_watermark(objects))
    state = {"watermark": watermark.isoformat(), "past_days": list(past_days), "strays": list(strays)}
    objects.put(layout.WATERMARK, json.dumps(state).encode())
    return watermark


def read_watermark(objects: Objects) -> datetime:
    """Return the watermark: all raw objects that were stored up to it are curated."""
    return _read_state(objects)[0]


def _read_state(objects: Objects) -> tuple[datetime, list[Place], list[str]]:
    """Return the watermark, the past days of which the last run has written hours, and its strays."""
    try:
        state = json.loads(objects.get(layout.WATERMARK))
    except NoObject:
        return FIRST_MARK, [], []
    past_days = [Place(**day) for day in state.get("past_days", ())]
    return datetime.fromisoformat(state["watermark"]), past_days, state.get("strays", [])
