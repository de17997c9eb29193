"""Finds raw objects without listing all that ever came: by the date on which they arrived.

Firehose writes below arrived=YYYY-MM-DD/, by its own clock. So what is new lies under a few dates. Objects of
the time before arrivals were noted lie outside of these; they grow no more, and are listed each time.
"""

from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor

from adapters.platform.objects import Objects, StoredObject
from analytics.lake.layout import NOWHERE, Place, arrival, dates_prefix, raw_place, raw_prefix

ARRIVED = "arrived="
LISTED_AT_ONCE = 16


def arrivals(objects: Objects, entity: str, since: str = "") -> list[str]:
    """Return the dates (YYYY-MM-DD) on which raw objects of an entity arrived, from one on; ascending."""
    folders = objects.below(raw_prefix(entity))
    names = (each.split("/")[-2].removeprefix(ARRIVED) for each in folders if _is_arrival(entity, each))
    return sorted(name for name in names if name >= since)


def arrived_since(objects: Objects, entity: str, since: str) -> Iterator[StoredObject]:
    """Yield an entity's raw objects that arrived on a date (YYYY-MM-DD) or later, or at a time unknown.

    since: empty for all.
    """
    if not since:
        yield from objects.list(raw_prefix(entity))
        return
    start = raw_prefix(entity)
    has_older_keys = False
    for each in objects.below(start):
        if each.startswith(f"{start}dt="):
            has_older_keys = True  # one listing takes them all
        elif not _is_arrival(entity, each) or each >= f"{start}{ARRIVED}{since}":
            yield from objects.list(each)
    if has_older_keys:
        yield from objects.list(f"{start}dt=")


def of_dates(objects: Objects, entity: str, since_dt: str, until_dt: str) -> Iterator[StoredObject]:
    """Yield an entity's raw objects of partitions from one date to another, whenever they arrived.

    It may yield others too: those of partitions whose dates begin with the same characters.
    """
    start, prefix = raw_prefix(entity), dates_prefix(since_dt, until_dt)
    below = list(objects.below(start))
    dated = [f"{each}{prefix}" for each in below if _is_arrival(entity, each)]
    others = [each for each in below if not _is_arrival(entity, each) and not each.startswith(f"{start}dt=")]
    with ThreadPoolExecutor(LISTED_AT_ONCE) as pool:
        for found in pool.map(lambda each: list(objects.list(each)), [*dated, f"{start}{prefix}", *others]):
            yield from found


def of_place(objects: Objects, place: Place, arrived: Collection[str] | None) -> list[StoredObject]:
    """Return a partition's raw objects, by hour, and by key within it.

    arrived: the dates of arrival to look under; None: all. Those of no hour are all that is below an entity.
    """
    if place.dt == NOWHERE:
        since = min(arrived, default="9999") if arrived is not None else ""
        return [each for each in arrived_since(objects, place.entity, since) if not raw_place(each.key)]
    dates = arrivals(objects, place.entity) if arrived is None else sorted(arrived)
    prefixes = [raw_prefix(place.entity, place.dt, place.hour, date) for date in ["", *dates]]
    found = [each for prefix in prefixes for each in objects.list(prefix) if raw_place(each.key)]
    return sorted(found, key=lambda each: (_hour(each.key), arrival(each.key), each.key))


def _hour(key: str) -> str:
    place = raw_place(key)
    return str(place.hour) if place else ""


def _is_arrival(entity: str, name: str) -> bool:
    return name.startswith(raw_prefix(entity) + ARRIVED) and name.endswith("/")
