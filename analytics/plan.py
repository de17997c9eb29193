"""Which hours and days are to be curated: what new raw objects touch, a range of dates, compactions."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime, timedelta

from adapters.objects import NoObject, Objects, Stored
from analytics import layout
from analytics.curate import Task
from rules.lake import ENTITIES

# An object may show up in listings after one that was finished later.
OVERLAP = timedelta(hours=1)
COMPACTED_AFTER = timedelta(days=3)  # events arrive up to 72 h late
COMPACTED_BYTES_MAX = 64 * 1024 * 1024
BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run has to do. watermark: what the next plan may start from, once all is done."""

    tasks: list[Task]
    watermark: datetime


def plan(objects: Objects, today: date, *, since_dt: str | None = None, until_dt: str | None = None) -> Plan:
    """Return the tasks for everything that came since the watermark, or for a range of dates.

    since_dt, until_dt (YYYY-MM-DD, both included): curate and load these dates whatever has changed, and
    leave the watermark. Without them, small past days are compacted too. today: UTC.
    """
    mark = watermark(objects)
    files = _curated_files(objects)
    if since_dt or until_dt:
        since, until = since_dt or "0000", until_dt or "9999"
        places = {*_raw_places(objects, BEGINNING)[0], *files}
        return Plan(_tasks((each for each in places if since <= each.dt <= until), files), mark)
    places, newest = _raw_places(objects, mark - OVERLAP)
    return Plan(_tasks({*places, *_compactions(files, today)}, files), max(mark, newest))


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


def _raw_places(objects: Objects, since: datetime) -> tuple[set[Task], datetime]:
    places, newest = set(), BEGINNING
    for entity in ENTITIES:
        for each in objects.list(layout.raw_prefix(entity)):
            place = layout.raw_place(each.key)
            if place and each.modified >= since:
                places.add(place)
                newest = max(newest, each.modified)
    return places, newest


def _curated_files(objects: Objects) -> dict[Task, Stored]:
    listed = (each for entity in ENTITIES for each in objects.list(layout.curated_prefix(entity)))
    return {place: each for each in listed if (place := layout.curated_place(each.key))}


def _tasks(places: Iterable[Task], files: dict[Task, Stored]) -> list[Task]:
    """Return one task per file to write, in a fixed order: a day's file takes all its hours."""
    wanted = {day if (day := replace(place, hour=None)) in files else place for place in places}
    whole = {place for place in wanted if place.hour is None}
    tasks = {place for place in wanted if place in whole or replace(place, hour=None) not in whole}
    return sorted(tasks, key=lambda task: (task.entity, task.dt, task.hour or ""))


def _compactions(files: dict[Task, Stored], today: date) -> Iterator[Task]:
    """Yield past days with several hour files that are small together, or left from an unfinished one."""
    last = (today - COMPACTED_AFTER).isoformat()
    hours: dict[Task, list[int]] = {}
    for place, stored in files.items():
        if place.hour is not None:
            hours.setdefault(replace(place, hour=None), []).append(stored.size)
    for day, sizes in hours.items():
        is_small = day.dt < last and len(sizes) > 1 and sum(sizes) < COMPACTED_BYTES_MAX
        if day in files or is_small:
            yield day


def write_plan(objects: Objects, run_id: str, made: Plan) -> str:
    """Store a run's plan; returns the key of its tasks: a JSON array of entity, dt, hour."""
    key = layout.run_key(run_id, "tasks.json")
    objects.put(
        layout.run_key(run_id, "plan.json"), json.dumps({"watermark": made.watermark.isoformat()}).encode()
    )
    objects.put(key, json.dumps([asdict(task) for task in made.tasks]).encode())
    return key


def read_tasks(objects: Objects, key: str) -> list[Task]:
    """Return the tasks of a plan; raises NoObject."""
    return [Task(**each) for each in json.loads(objects.get(key))]


def commit(objects: Objects, run_id: str) -> datetime:
    """Move the watermark to where a run's plan says, and return it; raises NoObject without a plan."""
    made = json.loads(objects.get(layout.run_key(run_id, "plan.json")))
    move_watermark(objects, datetime.fromisoformat(made["watermark"]))
    return watermark(objects)
