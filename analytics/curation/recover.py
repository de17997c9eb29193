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

from adapters.platform.objects import NoObject, ObjectChanged, Objects
from analytics.curation.raw_lines import Unreadable, unzip, zip_like
from analytics.lake.layout import raw_prefix
from rules.lake.entities import ENTITIES
from rules.lake.packed_records import row_texts

ERRORS = "errors/"
HOUR = re.compile(r"[01]\d|2[0-3]", re.ASCII)
DATA = "rawData"  # the field with what Firehose was sent, in base64
_JSON = json.JSONDecoder()
_BETWEEN = re.compile(r"[\s,\[\]\ufeff]*")  # records: they may be a list, and begin with a byte order mark
# Where a record may begin after text that is none.
_NEXT = re.compile(r"\n|(?<=\})(?=\s*\{)")


class NoPartition(ValueError):
    """A row that belongs to no partition."""


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
        """Return the text of this record with other data."""
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
    """An error object's rows by partition, and the records whose rows belong to none."""

    rows: dict[tuple[str, str], list[bytes]] = field(default_factory=dict)  # (dt, hour): lines
    left: list[bytes] = field(default_factory=list)  # texts of records that stay
    lost: int = 0  # how many rows these have; a record without rows counts as one

    def take(self, record: ErrorRecord) -> None:
        """Sort a record's rows into their partitions. Rows of none stay, in the record's form."""
        if not (texts := row_texts(record.data or b"")):
            self.left.append(record.text)
            self.lost += 1
            return
        astray = []
        for row in texts:
            try:
                self.rows.setdefault(_partition(row), []).append(row + b"\n")
            except (KeyError, TypeError, ValueError, RecursionError):
                astray.append(row + b"\n")
        if astray:
            self.left.append(record.text if len(astray) == len(texts) else record.having(b"".join(astray)))
            self.lost += len(astray)


def recover(objects: Objects, today: date, say: Callable[[str, str], object]) -> tuple[int, int]:
    """Move the rows of error records to their partitions; returns how many rows moved, and how many stay.

    say: is called with the key of each object that stays, and the reason. An object whose records have all
    been moved is deleted. Otherwise it keeps the other records. A repetition after a crash writes the same
    raw objects, or on another date (UTC) copies of them, whose rows are duplicates.
    """
    moved = stay = 0
    for stored in list(objects.list(ERRORS)):
        entity, _, name = stored.key.removeprefix(ERRORS).partition("/")
        if entity not in ENTITIES:
            say(stored.key, f"there is no entity {entity}")
            stay += 1
            continue
        with suppress(NoObject, ObjectChanged):  # another night moves it
            data = objects.get(stored.key)
            unzipped_rows, unreadable, reasons = _SortedRows(), b"", list[str]()
            try:
                text = unzip(data)
            except Unreadable as error:
                text, unreadable = error.text, error.rest
                unzipped_rows.lost += 1
                reasons.append(str(error))
            for record in error_records(text):
                unzipped_rows.take(record)
            for (dt, hour), lines in sorted(unzipped_rows.rows.items()):
                prefix = raw_prefix(entity, today.isoformat(), dt, hour)
                objects.put(f"{prefix}recovered/{name}", b"".join(lines))
            if unzipped_rows.left:
                reasons.append(f"{len(unzipped_rows.left)} records have no row of a partition")
            if reasons:
                say(stored.key, "; ".join(reasons))
            if not (unzipped_rows.left or unreadable):
                objects.delete_if(stored.key, stored.etag)
            elif unzipped_rows.rows:
                left = zip_like(data, b"".join(unzipped_rows.left)) if unzipped_rows.left else b""
                objects.put_if(stored.key, left + unreadable, stored.etag)
            moved += sum(map(len, unzipped_rows.rows.values()))
            stay += unzipped_rows.lost
    return moved, stay


def _partition(row: bytes) -> tuple[str, str]:
    """Return a row's dt and hour. Raises KeyError, TypeError, ValueError or RecursionError if it has none."""
    fields = json.loads(row)
    if not isinstance(fields, dict):
        raise NoPartition("no object")
    dt, hour = fields["dt"], fields["hour"]
    if date.fromisoformat(dt).isoformat() != dt or HOUR.fullmatch(hour) is None:
        raise NoPartition("no partition")
    return dt, hour
