"""Error records of Firehose become raw objects.

A delivery stream writes to 500 partitions at a time. A backfill of years touches more, and Firehose puts the
rows beyond the limit into errors/. Each of these rows is moved to its partition. A record that is no row
stays in errors/ for an operator.
"""

import base64
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from adapters.platform.objects import NoObject, ObjectChanged, Objects, StoredObject
from analytics.curation.raw_lines import Unreadable, unzip, zip_like
from analytics.lake.layout import is_date, raw_prefix
from rules.lake.entities import ENTITIES
from rules.lake.packed_records import row_texts

ERRORS = "errors/"  # followed by the entity
DATA = "rawData"  # the field with what Firehose was sent, in base64
_JSON = json.JSONDecoder()
# What may stand between records. They may be a list, and begin with a byte order mark.
_BETWEEN = re.compile(r"[\s,\[\]\ufeff]*")
# Where a record may begin after text that is no record: after a newline, or where an object meets the next.
_NEXT = re.compile(r"\n|(?<=\})(?=\s*\{)")
HOUR = re.compile(r"[01]\d|2[0-3]", re.ASCII)


@dataclass(frozen=True, slots=True)
class ErrorRecord:
    """A record of an error object."""

    text: bytes
    fields: Mapping[str, Any]  # of the text as JSON; {} if it is no JSON object

    @property
    def data(self) -> bytes | None:
        """The data that Firehose was sent; None if the record does not have them."""
        try:
            return base64.b64decode(self.fields[DATA], validate=True)
        except (KeyError, TypeError, ValueError):
            return None

    def having(self, data: bytes) -> bytes:
        """Return the text of this record with other data, as a line."""
        return json.dumps({**self.fields, DATA: base64.b64encode(data).decode()}).encode() + b"\n"


def error_records(text: bytes) -> Iterator[ErrorRecord]:
    """Yield the records of an error object, in lines, in one line, indented or as a list.

    Text that is no record is yielded too, line by line. Only the separators of records are left out.
    """
    chars = text.decode(errors="surrogateescape")
    at = _end_of_gap(chars, 0)
    while at < len(chars):
        try:
            fields, end = _JSON.raw_decode(chars, at)
        except (ValueError, RecursionError):
            fields = None
        if not isinstance(fields, dict):
            following = _NEXT.search(chars, at + 1)
            fields, end = {}, following.end() if following else len(chars)
        record = chars[at:end].rstrip("\n") + "\n"
        yield ErrorRecord(record.encode(errors="surrogateescape"), fields)
        at = _end_of_gap(chars, end)


def _end_of_gap(chars: str, at: int) -> int:
    """Return the position after the separators of records that begin at a position."""
    gap = _BETWEEN.match(chars, at)
    return gap.end() if gap else at


@dataclass(slots=True)
class _SortedRows:
    """An error object's rows by partition, and the records that stay, because they have rows of none."""

    by_partition: dict[tuple[str, str], list[bytes]] = field(default_factory=dict)  # (dt, hour): lines
    staying_records: list[bytes] = field(default_factory=list)  # their texts
    # How many rows these have. A record without rows counts as one, as does the object's unreadable part.
    staying_rows: int = 0

    def take(self, record: ErrorRecord) -> None:
        """Sort a record's rows into their partitions. Rows of none stay, in the record's form."""
        if not (texts := row_texts(record.data or b"")):
            self.staying_records.append(record.text)
            self.staying_rows += 1
            return
        rows_of_none = []
        for row in texts:
            try:
                self.by_partition.setdefault(_partition(row), []).append(row + b"\n")
            except (KeyError, TypeError, ValueError, RecursionError):
                rows_of_none.append(row + b"\n")
        if rows_of_none:
            is_unchanged = len(rows_of_none) == len(texts)
            text = record.text if is_unchanged else record.having(b"".join(rows_of_none))
            self.staying_records.append(text)
            self.staying_rows += len(rows_of_none)


def recover(objects: Objects, today: date, say: Callable[[str, str], object]) -> tuple[int, int]:
    """Move the rows of error records to their partitions; returns how many rows moved, and how many stay.

    say: is called with the key of each object that stays, and the reason. An object whose records have all
    been moved is deleted. Otherwise it keeps the other records. A repetition after a crash writes the same
    raw objects, or on another date (UTC) copies of them, whose rows are duplicates.
    """
    moved = staying = 0
    for stored in list(objects.list(ERRORS)):
        if stored.key == ERRORS:  # the folder's own marker
            continue
        entity, _, name = stored.key.removeprefix(ERRORS).partition("/")
        if entity not in ENTITIES:
            say(stored.key, f"there is no entity {entity}")
            staying += 1
            continue
        with suppress(NoObject, ObjectChanged):  # somebody else has changed it: the next night looks again
            rows = _recover_object(objects, stored, f"recovered/{name}", today, say)
            moved += sum(map(len, rows.by_partition.values()))
            staying += rows.staying_rows
    return moved, staying


def _recover_object(
    objects: Objects, stored: StoredObject, name: str, today: date, say: Callable[[str, str], object]
) -> _SortedRows:
    """Move the rows of one error object; returns its rows. name: of the raw objects that get them.

    Raises NoObject or ObjectChanged if somebody else moves or changes the object.
    """
    _, entity, *_ = stored.key.split("/")
    data = objects.get(stored.key)
    rows, unreadable, reasons = _SortedRows(), b"", list[str]()
    try:
        text = unzip(data)
    except Unreadable as error:
        text, unreadable = error.text, error.rest
        rows.staying_rows += 1
        reasons.append(str(error))
    for record in error_records(text):
        rows.take(record)
    # The rows are put before their records are deleted: a crash in between leaves both.
    for (dt, hour), lines in sorted(rows.by_partition.items()):
        objects.put(raw_prefix(entity, today.isoformat(), dt, hour) + name, b"".join(lines))
    if rows.staying_records:
        reasons.append(f"{len(rows.staying_records)} records have rows of no partition")
    if reasons:
        say(stored.key, "; ".join(reasons))
    if not (rows.staying_records or unreadable):
        objects.delete_if(stored.key, stored.etag)
    elif rows.by_partition:
        text = b"".join(rows.staying_records)
        objects.put_if(stored.key, (zip_like(data, text) if text else b"") + unreadable, stored.etag)
    return rows


def _partition(row: bytes) -> tuple[str, str]:
    """Return a row's dt and hour. Raises KeyError, TypeError, ValueError or RecursionError if it has none."""
    fields = json.loads(row)
    if not isinstance(fields, dict):
        raise TypeError
    dt, hour = fields["dt"], fields["hour"]
    if not is_date(dt) or HOUR.fullmatch(hour) is None:
        raise ValueError
    return dt, hour
