"""Lists the lake's raw objects by when they arrived.

Firehose writes below arrived=YYYY-MM-DD/, by its own clock. So new objects lie under a few dates, and a night
need not list all objects that have ever arrived.
"""

from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

from adapters.platform.objects import Objects, StoredObject
from analytics.lake.layout import NOWHERE, Place, dates_prefix, raw_place, raw_prefix, source_name

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
    """Return a partition's raw objects, by hour, and by date of arrival and name within it.

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
    return sorted(stored_objects, key=lambda stored: source_name(stored.key))


def _is_arrival(entity: str, name: str) -> bool:
    """Whether a prefix is that of the folder of a date of arrival."""
    return name.startswith(raw_prefix(entity) + ARRIVED) and name.endswith("/")
