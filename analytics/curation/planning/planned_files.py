"""What is there to plan with: the bytes of raw objects by hour, and the curated files of some days."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta

from pyarrow import ArrowInvalid

from adapters.platform.objects import NoObject, Objects, StoredObject
from analytics.curation.curate import Task
from analytics.curation.planning.watermark import BEGINNING, OVERLAP
from analytics.lake import layout
from analytics.lake.bookkeeping import bookkeeping
from analytics.lake.raw_listing import arrived_since, of_dates
from rules.engagement.reconciliation import dates_due
from rules.lake.entities import ENTITIES

# An object lies under the date of its oldest row; Firehose retries a delivery for up to a day.
ARRIVAL_LAG = timedelta(days=2)
COMPACTED_AFTER = timedelta(days=3)  # few events arrive over 72 h late
LISTED_AT_ONCE = 16


@dataclass(slots=True)
class RawSizes:
    """Raw objects: their bytes by hour, the dates on which they arrived, and when the newest was stored.

    seen: by hour the objects that an earlier run may have seen; of hours that have no others.
    """

    sizes: Counter[Task] = field(default_factory=Counter)
    arrivals: set[str] = field(default_factory=set)
    newest: datetime = BEGINNING
    seen: dict[Task, list[StoredObject]] = field(default_factory=dict)

    @classmethod
    def arrived(cls, objects: Objects, mark: datetime) -> "RawSizes":
        """Read of all that was stored since a watermark, or shortly before, where it may lie."""
        found, since, new = cls(), mark - OVERLAP, set[Task]()
        first = (since - ARRIVAL_LAG).date().isoformat() if since >= BEGINNING + ARRIVAL_LAG else ""
        for entity in ENTITIES:
            for each in arrived_since(objects, entity, first):
                if each.modified >= since:
                    place = layout.raw_place(each.key) or layout.nowhere(entity)
                    found._add(each, place)
                    if each.modified > mark:
                        new.add(place)
                    else:
                        found.seen.setdefault(place, []).append(each)
        for place in new:
            found.seen.pop(place, None)
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

    def leave_out(self, held: Callable[[Task], bool]) -> None:
        """Leave out the hours of which all was seen before. held: whether their file has all of `seen`."""
        with ThreadPoolExecutor(LISTED_AT_ONCE) as pool:
            for place, is_held in zip(self.seen, pool.map(held, self.seen), strict=True):
                if is_held:
                    del self.sizes[place]

    def days(self) -> set[Task]:
        """Return the days of these hours."""
        return set(map(day_of, self.sizes))


def holds(objects: Objects, file: StoredObject | None, raw: Iterable[StoredObject]) -> bool:
    """Whether a curated file has the lines of all these raw objects, as they are now."""
    if file is None:
        return False
    try:
        sources = bookkeeping(objects, file.key).sources
    except (NoObject, KeyError, ArrowInvalid):  # whoever curates it says what is wrong
        return False
    return all(sources.get(layout.source_name(each.key)) == each.etag for each in raw)


def grown_old(mark: datetime, last: str) -> Iterator[Task]:
    """Yield the days that have become past since the last run: their hours may be compacted."""
    if mark <= BEGINNING + OVERLAP:
        return  # nothing was curated before
    first = (mark.date() - COMPACTED_AFTER - timedelta(days=1)).isoformat()
    for dt in layout.dates_between(first, last):
        yield from (Task(entity, dt, None) for entity in ENTITIES)


def curated_files_of(objects: Objects, days: Iterable[Task]) -> dict[Task, StoredObject]:
    """Return the curated files of some days."""
    prefixes = [layout.curated_prefix(day.entity, day.dt) for day in sorted(days, key=order_of)]
    with ThreadPoolExecutor(LISTED_AT_ONCE) as pool:
        listed = list(pool.map(lambda each: list(objects.list(each)), prefixes))
    return {place: each for some in listed for each in some if (place := layout.curated_place(each.key))}


def curated_files_between(objects: Objects, entity: str, since: str, until: str) -> Iterator[StoredObject]:
    """Yield the curated files of these dates, and perhaps of others that begin with the same characters."""
    return objects.list(layout.curated_prefix(entity) + layout.dates_prefix(since, until))


def files_due(objects: Objects, today: date) -> dict[Task, StoredObject]:
    """Return the curated files whose turn it is (rules.engagement.reconciliation.dates_due)."""
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
    places = (layout.curated_place(f"{each}day.parquet") for each in folders)
    return {date.fromisoformat(each.dt) for each in places if each}


def order_of(task: Task) -> tuple[str, str, str]:
    """Return what tasks are sorted by: entity, date, hour."""
    return task.entity, task.dt, task.hour or ""


def day_of(task: Task) -> Task:
    """Return the whole day of an hour."""
    return replace(task, hour=None)
