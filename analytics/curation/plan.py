"""The plan says which hours and days are curated.

These are the ones that new raw objects touch, those of a range of dates, and small past days to compact.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from os.path import commonprefix
from typing import Any

from adapters.platform.objects import NoObject, Objects, StoredObject
from analytics.curation.curate import Task
from analytics.lake import layout
from analytics.lake.raw_listing import arrived_since, of_dates
from rules.lake.entities import ENTITIES

# An object may show up in listings after one that was finished later.
OVERLAP = timedelta(hours=1)
# An object lies under the date of its oldest row; Firehose retries a delivery for up to a day.
ARRIVAL_LAG = timedelta(days=2)
COMPACTED_AFTER = timedelta(days=3)  # events arrive up to 72 h late
COMPACTED_BYTES_MAX = 64 * 1024 * 1024
NEW_BYTES_MAX = 8 * 1024 * 1024  # of raw objects, zipped: about a tenth of what they hold
BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
FIRST, LAST = "0000", "9999"  # sort before and after all dates
LISTED_AT_ONCE = 16
# For one call of the curating function. A backfill of years is thousands of hours with a row or two.
BATCH_BYTES_MAX = 64 * 1024 * 1024
BATCH_TASKS_MAX = 200


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run has to do. watermark: what the next plan may start from, once all is done.

    sizes: bytes of raw objects that a task will read, where they are new. arrived: the dates on which these
    arrived. past_days: past days of which hours are written; the next plan may compact them.
    """

    tasks: list[Task]
    watermark: datetime
    sizes: Mapping[Task, int] = field(default_factory=dict)
    arrived: Sequence[str] = ()
    past_days: Sequence[Task] = ()

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
    last = (today - COMPACTED_AFTER).isoformat()
    if since_dt or until_dt or entities:
        return _plan_of_dates(objects, since_dt or FIRST, until_dt or LAST, entities or ENTITIES, last)
    mark, past_days = _state(objects)
    raw = RawSizes.arrived(objects, mark - OVERLAP)
    files = _curated_files(objects, {*raw.days(), *past_days, *_grown_old(mark, last)})
    made = _plan({*raw.sizes, *_compactions(files, last)}, files, raw, last)
    return replace(made, watermark=max(mark, raw.newest))


def _plan_of_dates(objects: Objects, since: str, until: str, entities: Collection[str], last: str) -> Plan:
    raw = RawSizes.of_dates(objects, since, until, entities)
    files = {
        place: each
        for entity in entities
        for each in _curated_of(objects, entity, since, until)
        if (place := layout.curated_place(each.key)) and since <= place.dt <= until
    }
    mark, past_days = _state(objects)
    made = _plan({*raw.sizes, *files}, files, raw, last)
    return replace(made, watermark=mark, past_days=[*past_days, *made.past_days])


def _plan(places: Iterable[Task], files: Mapping[Task, StoredObject], raw: "RawSizes", last: str) -> Plan:
    tasks = _tasks({*places, *_new_days(raw.sizes, files, last)}, files)
    wanted = set(tasks)
    by_task: Counter[Task] = Counter()
    for place, size in raw.sizes.items():
        day = replace(place, hour=None)
        by_task[day if day in wanted else place] += size
    past_days = sorted(
        {replace(each, hour=None) for each in tasks if each.hour and each.dt < last}, key=_order
    )
    return Plan(tasks, BEGINNING, by_task, sorted(raw.arrivals), past_days)


def watermark(objects: Objects) -> datetime:
    """Return up to when raw objects are curated."""
    return _state(objects)[0]


def _state(objects: Objects) -> tuple[datetime, list[Task]]:
    """Return the watermark, and the past days of which the last run has written hours."""
    try:
        state = json.loads(objects.get(layout.WATERMARK))
    except NoObject:
        return BEGINNING + OVERLAP, []
    past_days = [Task(**each) for each in state.get("past_days", ())]
    return datetime.fromisoformat(state["watermark"]), past_days


def move_watermark(objects: Objects, to: datetime, past_days: Sequence[Mapping[str, Any]] = ()) -> None:
    """Note that everything up to then is curated; it never moves back."""
    mark = max(to, watermark(objects))
    state = {"watermark": mark.isoformat(), "past_days": list(past_days)}
    objects.put(layout.WATERMARK, json.dumps(state).encode())


@dataclass(slots=True)
class RawSizes:
    """Raw objects: their bytes by hour, the dates on which they arrived, and when the newest was stored."""

    sizes: Counter[Task] = field(default_factory=Counter)
    arrivals: set[str] = field(default_factory=set)
    newest: datetime = BEGINNING

    @classmethod
    def arrived(cls, objects: Objects, since: datetime) -> "RawSizes":
        """Read of all that was stored at an instant or later, under the dates under which it may lie."""
        found = cls()
        first = (since - ARRIVAL_LAG).date().isoformat() if since >= BEGINNING + ARRIVAL_LAG else ""
        for entity in ENTITIES:
            for each in arrived_since(objects, entity, first):
                if each.modified >= since:
                    found._add(each, layout.raw_place(each.key) or layout.nowhere(entity))
        return found

    @classmethod
    def of_dates(cls, objects: Objects, since: str, until: str, entities: Collection[str]) -> "RawSizes":
        """Read of all that lies under some dates of partitions, both included."""
        found = cls()
        for entity in entities:
            for each in of_dates(objects, entity, since, until):
                place = layout.raw_place(each.key) or layout.nowhere(entity)
                if since <= place.dt <= until:
                    found._add(each, place)
        return found

    def _add(self, stored: StoredObject, place: Task) -> None:
        self.sizes[place] += stored.size
        self.newest = max(self.newest, stored.modified)
        if came := layout.arrival(stored.key):
            self.arrivals.add(came)

    def days(self) -> set[Task]:
        """Return the days of these hours."""
        return {replace(each, hour=None) for each in self.sizes}


def _grown_old(mark: datetime, last: str) -> Iterator[Task]:
    """Yield the days that have become past since the last run: their hours may be compacted."""
    if mark <= BEGINNING + OVERLAP:
        return
    first = (mark.date() - COMPACTED_AFTER - timedelta(days=1)).isoformat()
    for dt in layout.dates_between(first, last):
        yield from (Task(entity, dt, None) for entity in ENTITIES)


def _curated_files(objects: Objects, days: Iterable[Task]) -> dict[Task, StoredObject]:
    """Return the curated files of some days."""
    prefixes = [layout.curated_prefix(day.entity, day.dt) for day in sorted(days, key=_order)]
    with ThreadPoolExecutor(LISTED_AT_ONCE) as pool:
        listed = list(pool.map(lambda each: list(objects.list(each)), prefixes))
    return {place: each for some in listed for each in some if (place := layout.curated_place(each.key))}


def _curated_of(objects: Objects, entity: str, since: str, until: str) -> Iterator[StoredObject]:
    shared = commonprefix([since, until])  # noqa: RUF071 (compares characters, which is right here)
    return objects.list(f"{layout.curated_prefix(entity)}dt={shared}")


def _order(task: Task) -> tuple[str, str, str]:
    return task.entity, task.dt, task.hour or ""


def _tasks(places: Iterable[Task], files: Mapping[Task, StoredObject]) -> list[Task]:
    """Return one task per file to write, in a fixed order: a day's file takes all its hours."""
    wanted = {day if (day := replace(place, hour=None)) in files else place for place in places}
    whole = {place for place in wanted if place.hour is None}
    tasks = {place for place in wanted if place in whole or replace(place, hour=None) not in whole}
    return sorted(tasks, key=_order)


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

    A batch is {"tasks", "arrived", "rebuild"}: what one call of the curating function does.
    rebuild: it makes the files anew, so that today's declarations read all lines again.
    """
    key = layout.run_key(run_id, "tasks.json")
    state = {
        "watermark": made.watermark.isoformat(),
        "past_days": [asdict(each) for each in made.past_days],
    }
    objects.put(layout.run_key(run_id, "plan.json"), json.dumps(state).encode())
    objects.put(key, json.dumps([asdict(task) for task in made.tasks]).encode())
    batches = [
        {"tasks": [asdict(task) for task in batch], "arrived": list(made.arrived), "rebuild": rebuild}
        for batch in made.batches()
    ]
    batches_key = layout.run_key(run_id, "batches.json")
    objects.put(batches_key, json.dumps(batches).encode())
    return key, batches_key


def read_tasks(objects: Objects, key: str) -> list[Task]:
    """Return the tasks of a plan; raises NoObject."""
    return [Task(**each) for each in json.loads(objects.get(key))]


def commit(objects: Objects, run_id: str) -> datetime:
    """Move the watermark to where a run's plan says, and return it; raises NoObject without a plan."""
    made = json.loads(objects.get(layout.run_key(run_id, "plan.json")))
    move_watermark(objects, datetime.fromisoformat(made["watermark"]), made["past_days"])
    return watermark(objects)
