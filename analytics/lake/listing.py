"""Lists the lake once for many small curation tasks. Otherwise each task would make two listings."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import TypeVar

from adapters.platform.objects import NoObject, ObjectChanged, Objects, StoredObject
from analytics.lake.layout import Place, curated_prefix, dates_prefix, raw_prefix

T = TypeVar("T")
FEW = 10  # for so many tasks of an entity, two listings each are cheaper than listing all days between them


class PrelistedObjects:
    """Objects whose listings were read when this was made. All other calls go to the objects themselves.

    A reader does not see an object that arrived later. Curation may use this: its next run sees that object,
    and its tasks do not read each other's files. What another run
    has changed since is found when it is written.
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
                first = bisect_left(listing, prefix, key=lambda each: each.key)
                rest = (listing[place] for place in range(first, len(listing)))
                return takewhile(lambda each: each.key.startswith(prefix), rest)
        return self._objects.list(prefix)

    def below(self, folder: str) -> Iterator[str]:
        """Yield what is directly below a folder."""
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
        """Store an object on a condition; raises ObjectChanged. Then the stored listings are old, and go."""
        self._while_listed(lambda: self._objects.put_if(key, data, etag))
        self._written.add(key.rpartition("/")[0] + "/")

    def delete_if(self, key: str, etag: str) -> None:
        """Remove an object on a condition; raises ObjectChanged, as put_if does."""
        self._while_listed(lambda: self._objects.delete_if(key, etag))

    def _while_listed(self, act: Callable[[], T]) -> T:
        try:
            return act()
        except (NoObject, ObjectChanged):
            self._listings.clear()
            raise


def list_beforehand(objects: Objects, tasks: Sequence[Place], arrived: Sequence[str]) -> Objects:
    """Return objects that have already listed the raw and curated keys of many tasks.

    arrived: the dates of arrival (YYYY-MM-DD) under which the tasks look. Entities with FEW tasks or less
    are not listed beforehand.
    """
    days: dict[str, list[str]] = {}
    for task in tasks:
        days.setdefault(task.entity, []).append(task.dt)
    prefixes = []
    for entity, dates in days.items():
        if len(dates) > FEW:
            shared = dates_prefix(min(dates), max(dates))
            raw = [raw_prefix(entity, arrived=each) for each in ["", *arrived]]
            prefixes += [each + shared for each in [*raw, curated_prefix(entity)]]
    return PrelistedObjects(objects, prefixes) if prefixes else objects
