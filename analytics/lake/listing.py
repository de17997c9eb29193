"""Lists the lake's raw objects by when they arrived, and lists the lake once for many small curation tasks.

Firehose writes below arrived=YYYY-MM-DD/, by its own clock. So new objects lie under a few dates, and a night
need not list all objects that have ever arrived.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, takewhile
from pathlib import Path
from typing import TypeVar

from adapters.platform.objects import NoObject, ObjectChanged, Objects, StoredObject
from analytics.lake.layout import (
    NOWHERE,
    Place,
    arrival_date,
    curated_prefix,
    dates_prefix,
    raw_place,
    raw_prefix,
)

T = TypeVar("T")
FEW_TASKS = 10  # of an entity: two listings for each are cheaper than listing all days between them
ARRIVED = "arrived="
LISTED_AT_ONCE = 16


def arrival_dates(objects: Objects, entity: str, since: str = "") -> list[str]:
    """Return the dates (YYYY-MM-DD) on which raw objects of an entity arrived, from one on; ascending."""
    folders = objects.below(raw_prefix(entity))
    names = (folder.split("/")[-2].removeprefix(ARRIVED) for folder in folders if _is_arrival(entity, folder))
    return sorted(name for name in names if name >= since)


def raw_objects_since(objects: Objects, entity: str, since: str) -> Iterator[StoredObject]:
    """Yield an entity's raw objects that arrived on a date (YYYY-MM-DD) or later; since: empty for all.

    It also yields all objects that lie under no date of arrival: they are of no hour (layout.NOWHERE).
    """
    start = raw_prefix(entity)
    for folder in objects.below(start):
        if not _is_arrival(entity, folder) or folder >= f"{start}{ARRIVED}{since}":
            yield from objects.list(folder)


def raw_objects_of_dates(
    objects: Objects, entity: str, since_dt: str, until_dt: str
) -> Iterator[StoredObject]:
    """Yield an entity's raw objects of partitions from one date to another, whenever they arrived.

    It may yield others too: those of partitions whose dates begin with the same characters, and those under
    no date of arrival.
    """
    shared = dates_prefix(since_dt, until_dt)
    folders = objects.below(raw_prefix(entity))
    prefixes = [f"{folder}{shared}" if _is_arrival(entity, folder) else folder for folder in folders]
    with ThreadPoolExecutor(LISTED_AT_ONCE) as pool:
        yield from chain.from_iterable(pool.map(lambda prefix: list(objects.list(prefix)), prefixes))


def raw_objects_of_place(
    objects: Objects, place: Place, arrived: Collection[str] | None
) -> list[StoredObject]:
    """Return a partition's raw objects, by hour, and by key within it.

    arrived: the dates of arrival (YYYY-MM-DD) to look under; None: all. For the place NOWHERE they are the
    objects that belong to no hour.
    """
    if place.dt == NOWHERE:
        since = min(arrived, default="9999") if arrived is not None else ""
        return [
            raw_object
            for raw_object in raw_objects_since(objects, place.entity, since)
            if not raw_place(raw_object.key)
        ]
    dates = arrival_dates(objects, place.entity) if arrived is None else sorted(arrived)
    prefixes = [raw_prefix(place.entity, date, place.dt, place.hour) for date in dates]
    stored_objects = [
        stored for prefix in prefixes for stored in objects.list(prefix) if raw_place(stored.key)
    ]
    return sorted(
        stored_objects, key=lambda stored: (_hour(stored.key), arrival_date(stored.key), stored.key)
    )


def prelist_objects(objects: Objects, tasks: Sequence[Place], arrived: Sequence[str]) -> Objects:
    """Return objects that have already listed the raw and curated keys of many tasks.

    arrived: the dates of arrival (YYYY-MM-DD) under which the tasks look. Entities with FEW_TASKS or fewer
    are not listed beforehand.
    """
    days: dict[str, list[str]] = {}
    for task in tasks:
        days.setdefault(task.entity, []).append(task.dt)
    prefixes = []
    for entity, dates in days.items():
        if len(dates) > FEW_TASKS:
            shared = dates_prefix(min(dates), max(dates))
            raw = [raw_prefix(entity, arrival) for arrival in arrived]
            prefixes += [folder + shared for folder in [*raw, curated_prefix(entity)]]
    return PrelistedObjects(objects, prefixes) if prefixes else objects


class PrelistedObjects:
    """Objects whose listings were read when this was made. All other calls go to the objects themselves.

    A reader does not see an object that arrived later. Curation may use this: its next run sees that object,
    and its tasks do not read each other's files. If another run has replaced a file since, a conditional
    write fails, and the task is done again with new listings.
    """

    def __init__(self, objects: Objects, prefixes: Iterable[str]) -> None:
        self._objects = objects
        self._written: set[str] = set()
        self._listings = {prefix: list(objects.list(prefix)) for prefix in prefixes}

    def list(self, prefix: str) -> Iterator[StoredObject]:
        """Yield the objects with a prefix, from the stored listing that covers it or from a new listing.

        A folder in which a file was put on condition is listed anew.
        """
        if prefix in self._written:
            return self._objects.list(prefix)
        for covered, listing in self._listings.items():
            if prefix.startswith(covered):
                first = bisect_left(listing, prefix, key=lambda stored: stored.key)
                rest = (listing[index] for index in range(first, len(listing)))
                return takewhile(lambda stored: stored.key.startswith(prefix), rest)
        return self._objects.list(prefix)

    def below(self, folder: str) -> Iterator[str]:
        """Yield the prefixes of the folders directly below a folder."""
        return self._objects.below(folder)

    def get(self, key: str) -> bytes:
        """Return an object's bytes; raises NoObject."""
        return self._while_listed(lambda: self._objects.get(key))

    def save(self, key: str, path: Path) -> None:
        """Write an object's bytes to a file; raises NoObject."""
        self._while_listed(lambda: self._objects.save(key, path))

    def link(self, key: str, path: Path) -> None:
        """Let a new file have an object's bytes; raises NoObject."""
        self._while_listed(lambda: self._objects.link(key, path))

    def tail(self, key: str, size: int) -> bytes:
        """Return an object's last bytes; raises NoObject."""
        return self._while_listed(lambda: self._objects.tail(key, size))

    def part(self, key: str, start: int, size: int) -> bytes:
        """Return some bytes of an object; raises NoObject."""
        return self._while_listed(lambda: self._objects.part(key, start, size))

    def put(self, key: str, data: bytes) -> None:
        """Store an object."""
        self._objects.put(key, data)

    def delete(self, keys: Iterable[str]) -> None:
        """Remove objects."""
        self._objects.delete(keys)

    def etag(self, key: str) -> str | None:
        """Return an object's ETag as it is now."""
        return self._objects.etag(key)

    def put_if(self, key: str, data: bytes | Path, etag: str | None) -> None:
        """Store an object on a condition. Raises ObjectChanged, after which all is listed anew."""
        self._while_listed(lambda: self._objects.put_if(key, data, etag))
        self._written.add(key.rpartition("/")[0] + "/")

    def delete_if(self, key: str, etag: str) -> None:
        """Remove an object on a condition; raises ObjectChanged, as put_if does."""
        self._while_listed(lambda: self._objects.delete_if(key, etag))

    def _while_listed(self, act: Callable[[], T]) -> T:
        """Do something; if it shows that the stored listings are old, drop these."""
        try:
            return act()
        except (NoObject, ObjectChanged):
            self._listings.clear()
            raise


def _hour(key: str) -> str:
    place = raw_place(key)
    return str(place.hour) if place else ""


def _is_arrival(entity: str, name: str) -> bool:
    """Whether a prefix is that of the folder of a date of arrival."""
    return name.startswith(raw_prefix(entity) + ARRIVED) and name.endswith("/")
