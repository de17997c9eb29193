"""Lists the lake's raw objects by when they arrived.

Firehose writes below arrived=YYYY-MM-DD/, by its own clock. So new objects lie under a few dates, and a night
need not list all objects that have ever arrived.
"""

from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

from adapters.platform.objects import Objects, StoredObject, objects_of_entry
from analytics.lake.layout import Partition, dates_prefix, is_date, raw_partition, raw_prefix, source_name

ARRIVED = "arrived="
LISTED_AT_ONCE = 16


def arrival_dates(objects: Objects, entity: str, since: str = "") -> list[str]:
    """Return the dates (YYYY-MM-DD) on which raw objects of an entity arrived, from one on; ascending."""
    dates = (_arrival_of(entity, entry) for entry in objects.below(raw_prefix(entity)))
    return sorted(day for day in dates if day and day >= since)


def raw_objects_since(objects: Objects, entity: str, since: str) -> Iterator[StoredObject]:
    """Yield an entity's raw objects that arrived on a date (YYYY-MM-DD) or later; since: empty for all.

    It also yields all objects that lie under no date of arrival: they are strays (layout.raw_partition).
    """
    for entry in objects.below(raw_prefix(entity)):
        if (_arrival_of(entity, entry) or since) >= since:
            yield from objects_of_entry(objects, entry)


def raw_objects_of_dates(
    objects: Objects, entity: str, since_dt: str, until_dt: str
) -> Iterator[StoredObject]:
    """Yield an entity's raw objects of partitions from one date to another, whenever they arrived.

    It may yield others too: those of partitions whose dates begin with the same characters, and those under
    no date of arrival.
    """
    shared = dates_prefix(since_dt, until_dt)

    def listed(entry: str) -> list[StoredObject]:
        is_arrival = _arrival_of(entity, entry)
        return list(objects.list(f"{entry}{shared}") if is_arrival else objects_of_entry(objects, entry))

    with ThreadPoolExecutor(LISTED_AT_ONCE) as pool:
        yield from chain.from_iterable(pool.map(listed, objects.below(raw_prefix(entity))))


def raw_objects_of_partition(
    objects: Objects, partition: Partition, arrived: Collection[str] | None
) -> list[StoredObject]:
    """Return a partition's raw objects, by day and hour, and by date of arrival and name within it.

    arrived: the dates of arrival (YYYY-MM-DD) to look under; None: all.
    """
    dates = arrival_dates(objects, partition.entity) if arrived is None else sorted(arrived)
    prefixes = [raw_prefix(partition.entity, date, partition.dt, partition.hour) for date in dates]
    stored_objects = [
        stored for prefix in prefixes for stored in objects.list(prefix) if raw_partition(stored.key)
    ]
    return sorted(stored_objects, key=lambda stored: source_name(stored.key, partition))


def _arrival_of(entity: str, entry: str) -> str:
    """Return the date of arrival (YYYY-MM-DD) whose folder an entry is; empty for any other entry."""
    name = entry.removeprefix(raw_prefix(entity) + ARRIVED).removesuffix("/")
    return name if entry == f"{raw_prefix(entity, name)}" and is_date(name) else ""
