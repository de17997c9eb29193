"""Persons' lines leave raw objects, the quarantine and Firehose's errors."""

import base64
import gzip
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from adapters.platform.objects import ForgettingObjects, NoObject
from analytics.curation.raw_lines import GZIP, Unreadable, unzipped
from analytics.curation.recover import ERRORS
from analytics.curation.refused_lines import line_of, ndjson
from analytics.forgetting.lines import Finder
from analytics.lake.layout import QUARANTINE, curated_place, curated_prefix, raw_key, raw_place
from analytics.lake.raw_listing import of_dates
from rules.lake.packed_records import row_texts

# Takes what is found in an object, before that is changed: its key and ETag, and lines by person.
Note = Callable[[str, Mapping[str, int]], None]
FIRST, LAST = "0000", "9999"


@dataclass(frozen=True, slots=True)
class RawObjects:
    """Objects with lines. note: is told before each change."""

    objects: ForgettingObjects
    note: Note

    def clean(self, keys: Iterable[str], finder: Finder) -> None:
        """Put raw objects again without some persons' lines; again it changes nothing.

        One that nobody can unzip has no lines, and is left alone.
        """
        for key in keys:
            try:
                data = self.objects.get(key)
                text, gone = finder.without(unzipped(data))
            except (NoObject, Unreadable):
                continue
            if gone:
                self.note(f"{key} {self.objects.etag(key)}", gone)
                zipped = gzip.compress(text, mtime=0) if data.startswith(GZIP) else text
                self.objects.put(key, zipped)
            self.objects.forget_former(key)

    def clean_loose(self, entity: str, finder: Finder) -> None:
        """Clean the raw objects of which nothing is curated: no curated file leads to them."""
        files = self.objects.list(curated_prefix(entity))
        curated = {place for each in files if (place := curated_place(each.key))}
        days = {(place.entity, place.dt) for place in curated if place.hour is None}
        keys = [
            each.key
            for each in of_dates(self.objects, entity, FIRST, LAST)
            if (place := raw_place(each.key)) is None
            or (place not in curated and (place.entity, place.dt) not in days)
        ]
        self.clean(keys, finder)

    def clean_quarantine(self, entity: str, finder: Finder) -> None:
        """Clean the refused lines of an entity, and the raw objects that they are from."""
        for stored in list(self.objects.list(f"{QUARANTINE}{entity}/")):
            data = self.objects.get(stored.key)
            gone: Counter[str] = Counter()
            kept = []
            for entry in map(json.loads, data.splitlines()):
                if person := _whose(entry, finder):
                    gone[person] += 1
                else:
                    kept.append(entry)
            if gone:
                self.clean([raw_key(stored.key)], finder)
                self.note(f"{stored.key} {stored.etag}", gone)
                self._replace(stored.key, ndjson(kept))
            self.objects.forget_former(stored.key)

    def clean_errors(self, entity: str, finder: Finder) -> None:
        """Clean the records of an entity that Firehose could not place."""
        for stored in list(self.objects.list(f"{ERRORS}{entity}/")):
            gone: Counter[str] = Counter()
            kept = [
                _record(each, finder, gone) for each in self.objects.get(stored.key).splitlines(keepends=True)
            ]
            if gone:
                self.note(f"{stored.key} {stored.etag}", gone)
                self._replace(stored.key, b"".join(kept))
            self.objects.forget_former(stored.key)

    def _replace(self, key: str, data: bytes) -> None:
        if data:
            self.objects.put(key, data)
        else:
            self.objects.delete([key])


def _whose(entry: dict[str, Any], finder: Finder) -> str | None:
    line = line_of(entry)
    return finder.whose(line) if line is not None else None


def _record(record: bytes, finder: Finder, gone: Counter[str]) -> bytes:
    """Return an error record without some persons' rows; nothing if it had no others."""
    try:
        told = json.loads(record)
        data = base64.b64decode(told["rawData"], validate=True)
    except (KeyError, TypeError, ValueError):
        person = finder.whose(record)
        gone.update([person] if person else [])
        return b"" if person else record
    text, found = finder.without(data)
    if not found:
        return record
    gone.update(found)
    if row_texts(text):
        return json.dumps(told | {"rawData": base64.b64encode(text).decode()}).encode() + b"\n"
    return b""
