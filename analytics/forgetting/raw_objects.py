"""Takes lines of persons out of raw objects, the quarantine and Firehose's errors.

lake_pass.py does so for erased persons, parts do for what ends. A `Finder` removes the lines from a text.
`RawObjects` cleans objects: it lists them, and puts each again without these lines.
"""

import base64
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from adapters.platform.objects import ForgettingObjects, NoObject
from analytics.curation.intake import line_of
from analytics.curation.raw_lines import Unreadable, unzip, zip_like
from analytics.curation.recover import DATA, ErrorRecord, error_records
from analytics.forgetting.erasees import KIND_OF_COLUMN
from analytics.forgetting.named_persons import is_ordinary
from analytics.lake.layout import QUARANTINE, RAW, Partition, curated_partition, curated_prefix, raw_partition
from analytics.lake.listing import raw_objects_since
from rules.lake.entities import ENTITIES
from rules.lake.packed_records import row_text, row_texts
from rules.lake.residue import PERSONS

# Called before an object is changed: with its key and ETag, and how many lines of each person it has.
Note = Callable[[str, Mapping[str, int]], None]
# Returns a text without some persons' lines, and how many lines of each were removed.
LineRemover = Callable[[bytes], tuple[bytes, Counter[str]]]
# Stands before a name in a line that is no row.
_PERSONS_FIELD = re.compile(rb'"(?:' + "|".join(KIND_OF_COLUMN).encode() + rb')"\s*:\s*\Z')
# Stands behind a text that is no value, but the name of a field.
_FIELD_ENDS = re.compile(rb"\s*:")
_BASE64 = re.compile(rb"[A-Za-z0-9+/]{8,}")
# Takes a row of one of the persons, and returns whether it is to be removed.
MustGo = Callable[[Mapping[str, Any]], bool]


class Finder:
    """Finds lines of an entity whose rows are of some persons."""

    def __init__(
        self, entity: str, names: Collection[str], must_go: MustGo = lambda _: True, column: str = ""
    ) -> None:
        """must_go: which rows of these persons to remove. column: has the names; "": that of PERSONS."""
        self._column, self._names, self._must_go = column or PERSONS[entity], frozenset(names), must_go
        self._name_of: dict[bytes, str] = {}  # by each JSON text of the name that a line may have
        for name in names:
            for ascii_only in (True, False):
                self._name_of[json.dumps(name, ensure_ascii=ascii_only).encode(errors="replace")] = name
        pattern = b"|".join(map(re.escape, sorted(self._name_of)))
        self._pattern = re.compile(pattern) if pattern else None  # None: no names
        # Fields of an entity that have no id: a word there means no person.
        columns = {"dt", "hour", *(field.name for field in ENTITIES[entity].fields)} - KIND_OF_COLUMN.keys()
        self._field_begins = re.compile(rb'"(?:' + "|".join(sorted(columns)).encode() + rb')"\s*:\s*\Z')

    def count_names(self, text: bytes) -> Counter[str]:
        """Return how often a text has each of the names.

        A number, date or key counts only in a person's field. A word also counts elsewhere, as `ann` in
        `["ann"]`, but not as a field's name, nor in a field of the entity that has no id.
        """
        return Counter(self._named(text))

    def _named(self, text: bytes) -> Iterator[str]:
        for match in self._pattern.finditer(text) if self._pattern else ():
            name = self._name_of[match[0]]
            before = text[: match.start()]
            is_field = _FIELD_ENDS.match(text, match.end()) or self._field_begins.search(before)
            if (
                not is_ordinary(name)
                or _PERSONS_FIELD.search(before)
                or (name.isalpha() and len(name) > 1 and not is_field)
            ):
                yield name

    def owner_if_removed(self, line: bytes) -> str | None:
        """Return the person whose line it is, if it is to be removed; None: it stays.

        A line that names a person but cannot be read as a row is removed, too.
        """
        if self._pattern is None or not self._pattern.search(line):
            return None
        try:
            row = json.loads(row_text(line))
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict) or not isinstance(row.get(self._column), str):
            return next(self._named(line), None)
        person: str = row[self._column]
        return person if person in self._names and self._must_go(row) else None

    def remove_lines(
        self, text: bytes, read: Callable[[bytes], bytes] | None = None
    ) -> tuple[bytes, Counter[str]]:
        """Return a text without the lines that are to be removed, and how many of them each person had.

        read: returns the raw line that a line of the text holds; None: it is one itself.
        """
        removed: Counter[str] = Counter()
        if self._pattern is None or (read is None and not self._pattern.search(text)):
            return text, removed
        staying_lines = []
        for line in re.findall(rb"[^\n]*\n|[^\n]+", text):
            if person := self.owner_if_removed(read(line) if read else line):
                removed[person] += 1
            else:
                staying_lines.append(line)
        return b"".join(staying_lines), removed


@dataclass(frozen=True, slots=True)
class RawObjects:
    """Cleans objects that have raw lines."""

    objects: ForgettingObjects
    note: Note  # is called before each change

    def clean(self, keys: Iterable[str], finder: Finder) -> None:
        """Put raw objects again without some persons' lines. A repetition changes nothing."""
        for key in keys:
            self._clean_object(key, finder.remove_lines, finder)

    def clean_loose(self, entity: str, finder: Finder, failed: Collection[Partition]) -> None:
        """Clean the raw objects to which no curated file leads. failed: partitions that were not curated."""
        files = self.objects.list(curated_prefix(entity))
        curated = {partition for file in files if (partition := curated_partition(file.key))} - {*failed}
        failed_dates = {partition.dt for partition in failed}  # or months
        loose_keys = []
        for raw_object in raw_objects_since(self.objects, entity, ""):
            partition = raw_partition(raw_object.key)
            if partition is None or not _is_curated(partition, curated, failed_dates):
                loose_keys.append(raw_object.key)
        self.clean(loose_keys, finder)

    def clean_quarantine(self, entity: str, finder: Finder) -> None:
        """Clean the refused lines of an entity."""
        for stored in list(self.objects.list(f"{QUARANTINE}{entity}/")):
            self._clean_object(stored.key, lambda text: finder.remove_lines(text, _refused_line), finder)

    def clean_errors(self, prefix: str, finder: Finder) -> None:
        """Clean the records below a prefix that Firehose could not place."""
        for stored in list(self.objects.list(prefix)):
            self._clean_object(stored.key, lambda text: _remove_from_records(text, finder), finder)

    def _clean_object(self, key: str, remove_lines: LineRemover, finder: Finder) -> None:
        """Put an object again without some persons' lines, and delete its former versions.

        A raw object without a line stays, because its curated file names it as a source.
        """
        with suppress(NoObject):
            data = self.objects.get(key)
            cleaned, removed = _remove_from_object(data, remove_lines, finder)
            if removed:
                self.note(f"{key} {self.objects.etag(key)}", removed)
                if cleaned or key.startswith(RAW):
                    self.objects.put(key, cleaned or zip_like(data, b""))
                else:
                    self.objects.delete([key])
        self.objects.forget_former(key)


def _is_curated(
    partition: Partition, curated: AbstractSet[Partition], failed_dates: AbstractSet[str]
) -> bool:
    """Whether a curated file leads to the raw objects of an hour.

    It is the hour's file, or the whole day's or month's. These may lack an hour whose curation has failed.
    """
    is_failed = not failed_dates.isdisjoint((partition.dt, partition.month.dt))
    return partition in curated or (not is_failed and not curated.isdisjoint(partition.wider))


def _remove_from_object(data: bytes, remove_lines: LineRemover, finder: Finder) -> tuple[bytes, Counter[str]]:
    """Return an object without some persons' lines (b"": no line stays), and how many of each were removed.

    Members that cannot be unzipped stay, unless they name a person. Then what can be read of them takes their
    partition, but for the persons' lines.
    """
    try:
        text, removed = remove_lines(unzip(data))
        rest = b""
    except Unreadable as error:
        # text: the lines of whole gzip members. rest: the bytes of the others. seen: their text, if readable.
        text, removed = remove_lines(error.text)
        rest = error.rest
        seen_text, removed_from_seen = remove_lines(error.seen)
        if names_in_rest := removed_from_seen or finder.count_names(rest):
            text = b"\n".join(lines for lines in (text, seen_text) if lines)
            removed += names_in_rest
            rest = b""
    return (zip_like(data, text) if text else b"") + rest, removed


def _refused_line(entry: bytes) -> bytes:
    """Return the refused line that an entry of the quarantine holds; the entry itself, if it holds none."""
    try:
        return line_of(json.loads(entry)) or entry
    except (AttributeError, RecursionError, TypeError, ValueError):
        return entry


def _remove_from_records(text: bytes, finder: Finder) -> tuple[bytes, Counter[str]]:
    removed: Counter[str] = Counter()
    staying_texts = []
    for record in error_records(text):
        record_text, removed_from_record = _remove_from_record(record, finder)
        staying_texts.append(record_text)
        removed.update(removed_from_record)
    return b"".join(staying_texts) if removed else text, removed


def _remove_from_record(record: ErrorRecord, finder: Finder) -> tuple[bytes, Counter[str]]:
    """Return a record without some persons' rows, and without messages that name them; b"" if no row stays.

    Also returns how many rows of each were removed. A record without rows counts as one.
    """
    if record.data is None:
        names = finder.count_names(record.text) + finder.count_names(b"\n".join(_decoded_runs(record.text)))
        return b"" if names else record.text, Counter(names.keys())
    rows, removed_rows = finder.remove_lines(record.data)
    messages = {field: _message(value) for field, value in record.fields.items() if field != DATA}
    names_in = {field: names for field, message in messages.items() if (names := finder.count_names(message))}
    if not (removed_rows or names_in):
        return record.text, removed_rows
    clean_fields = {field: value for field, value in record.fields.items() if field not in names_in}
    clean_text = ErrorRecord(b"", clean_fields).having(rows) if row_texts(rows) else b""
    return clean_text, removed_rows or Counter({name for names in names_in.values() for name in names})


def _decoded_runs(text: bytes) -> Iterator[bytes]:
    """Yield the bytes that a text may have in base64. In a record that was cut, base64 may begin anywhere."""
    for run in _BASE64.findall(text.replace(b"\\/", b"/")):
        for start in range(4):
            part = run[start:]
            yield base64.b64decode(part[: len(part) // 4 * 4])


def _message(value: Any) -> bytes:
    text = value if isinstance(value, str) else json.dumps(value)
    return text.encode(errors="replace")
