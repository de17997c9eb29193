"""The plan of a nightly run: which hours and days are curated.

The plan has the hours of new raw objects, small past days to compact, and tasks that failed in an earlier
run. Or it has all hours of a range of dates that an operator has named. All raw objects that were stored up
to the watermark are curated. The watermark moves once a run has done all of its plan.

A task is a partition (an hour, a day, or a month) that one call of `curate` brings up to date. What a history
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
from analytics.lake.layout import Partition, curated_partition, curated_prefix
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

    tasks: list[Partition]
    watermark: datetime  # the next plan starts from it, once all tasks are done
    # Bytes that a task will read: new raw objects, zipped, and curated files
    sizes: Mapping[Partition, int] = field(default_factory=dict)
    arrived: Sequence[str] = ()  # the dates on which the raw objects arrived
    # Past days of which hours are written; the next plan may compact them
    past_days: Sequence[Partition] = ()
    # Files whose seals are checked, with their sizes. No task reads them
    checks: Mapping[Partition, int] = field(default_factory=dict)
    failed: frozenset[Partition] = frozenset()  # the tasks that have failed in an earlier run
    raw_bytes: int = 0  # of all raw objects that are to be read, zipped
    # The keys of objects in raw/ and curated/ that nobody reads, because their names say no hour
    strays: Sequence[str] = ()

    def of_days(self, days: Mapping[str, Sequence[str]]) -> "Plan":
        """Return the plan with only the tasks of given dates (YYYY-MM-DD, by entity)."""
        tasks = [
            task for task in self.tasks if any(task.has_any_of(dt, dt) for dt in days.get(task.entity, ()))
        ]
        return replace(self, tasks=tasks)

    def is_large(self, task: Partition) -> bool:
        """Whether the large function does a task."""
        return task in self.failed or self.sizes.get(task, 0) > BATCH_BYTES_MAX

    def batches(self) -> Iterator[list[Partition]]:
        """Yield the tasks, small ones together, each large one by itself."""
        yield from ([task] for task in self.tasks if self.is_large(task))
        batch: list[Partition] = []
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
    due: Mapping[Partition, StoredObject] = {}
    if since_dt or until_dt or entities:
        # All partitions of these dates, whether they have changed or not.
        raw, files = _all_of_dates(objects, since_dt or FIRST, until_dt or LAST, entities or ENTITIES, strays)
        partitions = {*raw.sizes, *files}
    else:
        # Places of new raw objects, those that failed, and days whose hours may become one file now.
        raw = _raw_since(objects, watermark, strays)
        perhaps_compacted = {*past_days, *_newly_past_days(watermark, past_before)}
        files = _files_of_months(objects, [*raw.sizes, *failed, *perhaps_compacted], strays)
        _leave_out_curated(objects, raw, files)
        partitions = {*raw.sizes, *failed, *_compactions(files, past_before)}
        due = _files_due(objects, today, strays)
        watermark, past_days = max(watermark, raw.newest), []

    wholes = _new_wholes(raw.sizes, files, today)
    partitions.update(whole for whole in wholes if _is_within(whole, since_dt or FIRST, until_dt or LAST))
    # There is one task per file to write: a day's file takes all of its hours, and a month's all of its days.
    known = {*partitions, *files}
    tasks = {_widest_among(known, partition) for partition in partitions}
    sizes: Counter[Partition] = Counter()
    for partition, size in chain(
        raw.sizes.items(), ((partition, file.size) for partition, file in files.items())
    ):
        sizes[_widest_among(tasks, partition)] += size
    days_with_hours = {day_of(task) for task in tasks if task.hour and task.dt < past_before}
    return Plan(
        sorted(tasks, key=sort_key),
        watermark,
        sizes,
        arrived=sorted(raw.arrivals),
        past_days=[*past_days, *sorted(days_with_hours, key=sort_key)],
        # A task that reads a file checks its seal itself.
        checks={
            partition: file.size
            for partition, file in due.items()
            if tasks.isdisjoint((partition, *partition.wider))
        },
        failed=run_notes.among_tasks(tasks, failed),
        raw_bytes=sum(raw.sizes.values()),
        strays=sorted(strays)[:STRAYS_MAX],
    )


def day_of(partition: Partition) -> Partition:
    """Return the whole day of an hour."""
    return replace(partition, hour=None)


def _is_within(partition: Partition, since: str, until: str) -> bool:
    """Whether all dates of a partition are among those from one to another, both included."""
    return since <= partition.first_dt and partition.last_dt <= until


def _widest_among(partitions: Collection[Partition], partition: Partition) -> Partition:
    """Return the month or the day of a partition if it is among these, else the partition itself."""
    return next((wider for wider in partition.wider if wider in partitions), partition)


def sort_key(partition: Partition) -> tuple[str, str, str]:
    """Return the sort key of partitions: entity, date, hour."""
    return partition.entity, partition.dt, partition.hour or ""


@dataclass(slots=True)
class RawSizes:
    """Raw objects that a plan may read, summed up by hour, because a backfill has very many."""

    sizes: Counter[Partition] = field(default_factory=Counter)  # bytes by hour
    arrivals: set[str] = field(default_factory=set)  # the dates on which they arrived
    newest: datetime = FIRST_MARK  # when the newest one was stored
    # The objects of OVERLAP, of hours that have no newer object: an earlier run may have read them all
    overlapping: dict[Partition, list[StoredObject]] = field(default_factory=dict)

    def add(self, stored: StoredObject, partition: Partition) -> None:
        """Add an object of a partition."""
        self.sizes[partition] += stored.size
        self.newest = max(self.newest, stored.modified)
        if arrival := layout.arrival_date(stored.key):
            self.arrivals.add(arrival)


def _all_of_dates(
    objects: Objects, since: str, until: str, entities: Collection[str], strays: set[str]
) -> tuple[RawSizes, dict[Partition, StoredObject]]:
    """Return the raw objects and the curated files of partitions from one date to another, both included.

    If a month has one file, they are all of the month's. strays: gets the keys of objects that are neither,
    as in the other functions here.
    """
    raw, files = RawSizes(), dict[Partition, StoredObject]()
    for entity in entities:
        # All listings may have objects of other dates, too.
        listed = objects.list(curated_prefix(entity) + layout.dates_prefix(since, until))
        of_dates = {
            partition: file
            for partition, file in _curated(listed, strays)
            if partition.has_any_of(since, until)
        }
        files |= of_dates
        first, last = (
            min([since, *(partition.first_dt for partition in of_dates)]),
            max([until, *(partition.last_dt for partition in of_dates)]),
        )
        for raw_object in raw_objects_of_dates(objects, entity, first, last):
            partition = layout.raw_partition(raw_object.key)
            if partition is None:
                strays.add(raw_object.key)
            elif since <= partition.dt <= until or partition.month in files:
                raw.add(raw_object, partition)
    return raw, files


def _raw_since(objects: Objects, watermark: datetime, strays: set[str]) -> RawSizes:
    """Return the raw objects that were stored since a watermark, or within OVERLAP before it."""
    raw, since = RawSizes(), watermark - OVERLAP
    partitions_of_new = set[Partition]()
    for entity in ENTITIES:
        for raw_object in raw_objects_since(objects, entity, (since - ARRIVAL_LAG).date().isoformat()):
            partition = layout.raw_partition(raw_object.key)
            if partition is None:
                strays.add(raw_object.key)
            elif raw_object.modified >= since:
                raw.add(raw_object, partition)
                if raw_object.modified > watermark:
                    partitions_of_new.add(partition)
                else:
                    raw.overlapping.setdefault(partition, []).append(raw_object)
    for partition in partitions_of_new:
        raw.overlapping.pop(partition, None)
    return raw


def _newly_past_days(watermark: datetime, past_before: str) -> Iterator[Partition]:
    """Yield the days that have become past since the last run: their hours may be compacted."""
    if watermark <= FIRST_MARK:
        return  # this is the first run
    first = (watermark.date() - COMPACTED_AFTER - timedelta(days=1)).isoformat()
    for dt in layout.dates_between(first, past_before):
        yield from (Partition(entity, dt, None) for entity in ENTITIES)


def _files_of_months(
    objects: Objects, partitions: Iterable[Partition], strays: set[str]
) -> dict[Partition, StoredObject]:
    """Return all curated files of the months in which partitions lie."""
    prefixes = sorted({layout.month_prefix(partition) for partition in partitions})
    with ThreadPoolExecutor(LISTED_AT_ONCE) as pool:
        listings = pool.map(lambda prefix: list(objects.list(prefix)), prefixes)
        return dict(_curated(chain.from_iterable(listings), strays))


def _curated(
    stored_objects: Iterable[StoredObject], strays: set[str]
) -> Iterator[tuple[Partition, StoredObject]]:
    """Yield the curated files among objects, each with its partition."""
    for stored in stored_objects:
        if partition := curated_partition(stored.key):
            yield partition, stored
        else:
            strays.add(stored.key)


def _leave_out_curated(objects: Objects, raw: RawSizes, files: Mapping[Partition, StoredObject]) -> None:
    """Leave out the hours of `overlapping` whose curated files have all lines of these objects already."""

    def is_curated(partition: Partition) -> bool:
        of_file = _widest_among(files, partition)
        if of_file not in files:
            return False
        try:
            sources = bookkeeping_of(objects, files[of_file].key).sources
        except (NoObject, KeyError, ArrowInvalid):  # its task is planned, and fails with the reason
            return False
        return all(
            sources.get(layout.source_name(each.key, of_file)) == each.etag
            for each in raw.overlapping[partition]
        )

    with ThreadPoolExecutor(LISTED_AT_ONCE) as pool:
        for partition, has_all in zip(raw.overlapping, pool.map(is_curated, raw.overlapping), strict=True):
            if has_all:
                del raw.sizes[partition]


def _compactions(files: Mapping[Partition, StoredObject], past_before: str) -> Iterator[Partition]:
    """Yield the days whose hours are compacted.

    These are past days with several small hours. A day that has hours beside its day's file is one of them,
    too, because an earlier compaction has not come to its end. So is a month with other files beside its own.
    """
    hours: dict[Partition, list[int]] = {}
    for partition, stored in files.items():
        if partition.month in files and not partition.is_month:
            yield partition.month
        elif partition.hour is not None:
            hours.setdefault(day_of(partition), []).append(stored.size)
    for day, sizes in hours.items():
        is_small = day.dt < past_before and len(sizes) > 1 and sum(sizes) < COMPACTED_BYTES_MAX
        if day in files or is_small:
            yield day


def _files_due(objects: Objects, today: date, strays: set[str]) -> dict[Partition, StoredObject]:
    """Return the curated files of the dates that have a turn tonight: their seals are checked."""
    with ThreadPoolExecutor(LISTED_AT_ONCE) as pool:
        folders_of_entities = list(
            pool.map(lambda entity: list(objects.below(curated_prefix(entity))), ENTITIES)
        )
    due_partitions = set[Partition]()
    for folders in folders_of_entities:
        partitions_of_date: dict[date, list[Partition]] = {}
        for folder in folders:
            partition = curated_partition(f"{folder}day.parquet") or curated_partition(
                f"{folder}month.parquet"
            )
            if partition is None:
                strays.add(folder)
            else:
                partitions_of_date.setdefault(date.fromisoformat(partition.last_dt), []).append(partition)
        for day in dates_due(partitions_of_date.keys(), today - timedelta(days=1), today):
            due_partitions.update(partitions_of_date[day])
    files = _files_of_months(objects, due_partitions, strays)
    return {partition: file for partition, file in files.items() if day_of(partition) in due_partitions}


def _new_wholes(
    sizes: Mapping[Partition, int], files: Mapping[Partition, StoredObject], today: date
) -> Iterator[Partition]:
    """Yield past months and days without a curated file and with few raw bytes: each gets one file."""
    curated_wholes = {whole for partition in files for whole in (day_of(partition), partition.month)}
    wholes: Counter[Partition] = Counter()
    for partition, size in sizes.items():
        wholes[day_of(partition)] += size
        wholes[partition.month] += size
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
    run_id: str,
    tasks: Sequence[Partition],
    planned: Plan,
    arrived: Sequence[str] | None,
    rebuild: bool = False,
) -> dict[str, Any]:
    return {
        "run_id": run_id,
        "tasks": [asdict(task) for task in tasks],
        "arrived": arrived,
        "rebuild": rebuild,
        "large": planned.is_large(tasks[0]),
    }


def read_tasks(objects: Objects, key: str) -> list[Partition]:
    """Return the tasks of a plan; raises NoObject."""
    return [Partition(**task) for task in json.loads(objects.get(key))]


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


def curated_tasks(objects: Objects, run_id: str, key: str) -> list[Partition]:
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


def _read_state(objects: Objects) -> tuple[datetime, list[Partition], list[str]]:
    """Return the watermark, the past days of which the last run has written hours, and its strays."""
    try:
        state = json.loads(objects.get(layout.WATERMARK))
    except NoObject:
        return FIRST_MARK, [], []
    past_days = [Partition(**day) for day in state.get("past_days", ())]
    return datetime.fromisoformat(state["watermark"]), past_days, state.get("strays", [])
