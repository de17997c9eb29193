"""Lines of persons are taken out of raw objects, the quarantine and Firehose's errors."""

import base64
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from adapters.platform.objects import ForgettingObjects, NoObject
from analytics.curation.error_records import DATA, ErrorRecord, error_records
from analytics.curation.raw_lines import Unreadable, unzip, zip_like
from analytics.curation.refused_lines import line_of
from analytics.forgetting.person_lines import Finder
from analytics.lake.layout import QUARANTINE, RAW, Place, curated_place, curated_prefix, raw_place
from analytics.lake.listing import raw_objects_of_dates
from rules.lake.packed_records import row_texts

_BASE64 = re.compile(rb"[A-Za-z0-9+/]{8,}")
# Called before an object is changed: with its key and ETag, and how many lines of each person it has.
Note = Callable[[str, Mapping[str, int]], None]
# Returns a text without some persons' lines, and how many each had.
Without = Callable[[bytes], tuple[bytes, Counter[str]]]
FIRST, LAST = "0000", "9999"  # sort before and after all dates


def in_base64(text: bytes) -> Iterator[bytes]:
    """Yield the bytes that a text may have in base64. In a record that was cut off, it may begin anywhere."""
    for run in _BASE64.findall(text.replace(b"\\/", b"/")):
        for start in range(4):
            part = run[start:]
            yield base64.b64decode(part[: len(part) // 4 * 4])


@dataclass(frozen=True, slots=True)
class RawObjects:
    """Cleans objects that have raw lines."""

    objects: ForgettingObjects
    note: Note  # is called before each change

    def clean(self, keys: Iterable[str], finder: Finder) -> None:
        """Put raw objects again without some persons' lines. A second time it changes nothing."""
        for key in keys:
            self._clean(key, finder.without, finder)

    def clean_loose(self, entity: str, finder: Finder, failed: Collection[Place]) -> None:
        """Clean the raw objects to which no curated file leads, because they are not curated, or not whole.

        failed: partitions that could not be curated.
        """
        files = self.objects.list(curated_prefix(entity))
        curated = {place for file in files if (place := curated_place(file.key))} - {*failed}
        days = {place.dt for place in curated if place.hour is None} - {place.dt for place in failed}
        keys = [
            raw_object.key
            for raw_object in raw_objects_of_dates(self.objects, entity, FIRST, LAST)
            if (place := raw_place(raw_object.key)) is None or (place not in curated and place.dt not in days)
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
            left, gone = _clean_object(data, without, finder)
            if gone:
                self.note(f"{key} {self.objects.etag(key)}", gone)
                if left or key.startswith(RAW):
                    self.objects.put(key, left or zip_like(data, b""))
                else:
                    self.objects.delete([key])
        self.objects.forget_former(key)


def _clean_object(data: bytes, without: Without, finder: Finder) -> tuple[bytes, Counter[str]]:
    """Return an object without some persons' lines, and how many each had; b"" if no line is left.

    A part that cannot be unzipped goes if it names one of them. The other lines that can be read of it stay.
    """
    rest = b""
    try:
        text, gone = without(unzip(data))
    except Unreadable as error:
        text, gone = without(error.text)
        seen, of_seen = without(error.seen)
        if named := of_seen or finder.named(error.rest):
            text, gone = b"\n".join(lines for lines in (text, seen) if lines), gone + named
        else:
            rest = error.rest
    return (zip_like(data, text) if text else b"") + rest, gone


def _refused_line(entry: bytes) -> bytes:
    """Return the refused line that an entry of the quarantine holds; the entry itself, if it holds none."""
    try:
        return line_of(json.loads(entry)) or entry
    except (AttributeError, RecursionError, TypeError, ValueError):
        return entry


def _without_records(text: bytes, finder: Finder) -> tuple[bytes, Counter[str]]:
    """Return the text of an error object without some persons' rows, and how many each had."""
    gone: Counter[str] = Counter()
    kept = [_without_rows(record, finder, gone) for record in error_records(text)]
    return b"".join(kept) if gone else text, gone


def _without_rows(record: ErrorRecord, finder: Finder, gone: Counter[str]) -> bytes:
    """Return a record without some persons' rows and messages that name them; b"" if nothing is left.

    gone: counts the rows that each had.
    """
    if record.data is None:
        named = finder.named(record.text) + finder.named(b"\n".join(in_base64(record.text)))
        gone.update(named.keys())
        return b"" if named else record.text
    text, of_rows = finder.without(record.data)
    fields, named = dict[str, Any](), Counter[str]()
    for name, value in record.fields.items():
        in_message = Counter[str]() if name == DATA else finder.named(_message(value))
        named += in_message
        if not in_message:
            fields[name] = value
    if not (of_rows or named):
        return record.text
    gone.update(of_rows or named.keys())
    return ErrorRecord(b"", fields).having(text) if row_texts(text) else b""


def _message(value: Any) -> bytes:
    """Return a field of an error record as text in which names are searched."""
    text = value if isinstance(value, str) else json.dumps(value)
    return text.encode(errors="replace")
