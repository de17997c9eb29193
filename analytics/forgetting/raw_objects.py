"""Persons' lines leave raw objects, the quarantine and Firehose's errors."""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from adapters.platform.objects import ForgettingObjects, NoObject
from analytics.curation.raw_lines import Unreadable, unzipped, zipped_as
from analytics.curation.recover import DATA, ErrorRecord, error_records
from analytics.curation.refused_lines import line_of
from analytics.forgetting.lines import Finder, in_base64
from analytics.lake.layout import (
    QUARANTINE,
    RAW,
    Place,
    curated_place,
    curated_prefix,
    raw_place,
)
from analytics.lake.raw_listing import of_dates
from rules.lake.packed_records import row_texts

# Takes what is found in an object, before that is changed: its key and ETag, and lines by person.
Note = Callable[[str, Mapping[str, int]], None]
# Returns a text without some persons' lines, and how many each had.
Without = Callable[[bytes], tuple[bytes, Counter[str]]]
FIRST, LAST = "0000", "9999"


@dataclass(frozen=True, slots=True)
class RawObjects:
    """Objects with lines. note: is told before each change."""

    objects: ForgettingObjects
    note: Note

    def clean(self, keys: Iterable[str], finder: Finder) -> None:
        """Put raw objects again without some persons' lines; again it changes nothing."""
        for key in keys:
            self._clean(key, finder.without, finder)

    def clean_loose(self, entity: str, finder: Finder, failed: Collection[Place]) -> None:
        """Clean the raw objects to which no curated file leads: nothing is curated of them, or not all.

        failed: partitions that could not be curated.
        """
        files = self.objects.list(curated_prefix(entity))
        curated = {place for each in files if (place := curated_place(each.key))} - {*failed}
        days = {each.dt for each in curated if each.hour is None} - {each.dt for each in failed}
        keys = [
            each.key
            for each in of_dates(self.objects, entity, FIRST, LAST)
            if (place := raw_place(each.key)) is None or (place not in curated and place.dt not in days)
        ]
        self.clean(keys, finder)

    def clean_quarantine(self, entity: str, finder: Finder) -> None:
        """Clean the refused lines of an entity."""
        for stored in list(self.objects.list(f"{QUARANTINE}{entity}/")):
            self._clean(stored.key, lambda text: finder.without(text, _refused_line), finder)

    def clean_errors(self, prefix: str, finder: Finder) -> None:
        """Clean the records below a prefix that Firehose could not place."""
        for stored in list(self.objects.list(prefix)):
            self._clean(stored.key, lambda text: _without_records(text, finder), finder)

    def _clean(self, key: str, without: Without, finder: Finder) -> None:
        with suppress(NoObject):
            data = self.objects.get(key)
            left, gone = _cleaned(data, without, finder)
            if gone:
                self.note(f"{key} {self.objects.etag(key)}", gone)
                if left or key.startswith(RAW):
                    self.objects.put(key, left or zipped_as(data, b""))
                else:
                    self.objects.delete([key])
        self.objects.forget_former(key)


def _cleaned(data: bytes, without: Without, finder: Finder) -> tuple[bytes, Counter[str]]:
    """Return an object without some persons' lines, and how many each had; nothing if it had no others.

    A part that cannot be unzipped whole goes, too, if it names one of them; what can be read of it stays.
    """
    rest = b""
    try:
        text, gone = without(unzipped(data))
    except Unreadable as error:
        text, gone = without(error.text)
        seen, of_seen = without(error.seen)
        if named := of_seen or finder.named(error.rest):
            text, gone = b"\n".join(each for each in (text, seen) if each), gone + named
        else:
            rest = error.rest
    return (zipped_as(data, text) if text else b"") + rest, gone


def _refused_line(entry: bytes) -> bytes:
    """Return the line that an entry of the quarantine has; the entry itself, if it has none."""
    try:
        return line_of(json.loads(entry)) or entry
    except (AttributeError, RecursionError, TypeError, ValueError):
        return entry


def _without_records(text: bytes, finder: Finder) -> tuple[bytes, Counter[str]]:
    """Return the text of an error object without some persons' rows, and how many each had."""
    gone: Counter[str] = Counter()
    kept = [_without_rows(each, finder, gone) for each in error_records(text)]
    return b"".join(kept) if gone else text, gone


def _without_rows(record: ErrorRecord, finder: Finder, gone: Counter[str]) -> bytes:
    """Return a record without some persons' rows and messages that name them; nothing if that is all."""
    if record.data is None:
        named = finder.named(record.text) + finder.named(b"\n".join(in_base64(record.text)))
        gone.update(named.keys())
        return b"" if named else record.text
    text, found = finder.without(record.data)
    told, named = dict[str, Any](), Counter[str]()
    for name, value in record.told.items():
        in_message = Counter[str]() if name == DATA else finder.named(_message(value))
        named += in_message
        if not in_message:
            told[name] = value
    if not (found or named):
        return record.text
    gone.update(found or named.keys())
    return ErrorRecord(b"", told).having(text) if row_texts(text) else b""


def _message(value: Any) -> bytes:
    text = value if isinstance(value, str) else json.dumps(value)
    return text.encode(errors="replace")
