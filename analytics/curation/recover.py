"""Error records of Firehose become raw objects.

A delivery stream writes to 500 partitions at a time. A backfill of years touches more, and Firehose puts the
rows beyond the limit into errors/. Each of these rows is moved to its partition. A record that is no row
stays in errors/ for an operator.
"""

import json
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date

from adapters.platform.objects import NoObject, ObjectChanged, Objects, StoredObject
from analytics.curation.error_records import ErrorRecord, error_records
from analytics.curation.raw_lines import Unreadable, unzip, zip_like
from analytics.lake.layout import raw_prefix
from rules.lake.entities import ENTITIES
from rules.lake.packed_records import row_texts

ERRORS = "errors/"
HOUR = re.compile(r"[01]\d|2[0-3]", re.ASCII)


class NoPartition(ValueError):
    """A row that belongs to no partition."""


@dataclass(slots=True)
class _SortedRows:
    """An error object's rows by partition, and the records whose rows belong to none."""

    by_partition: dict[tuple[str, str], list[bytes]] = field(default_factory=dict)  # (dt, hour): lines
    staying: list[bytes] = field(default_factory=list)  # texts of records that stay
    staying_rows: int = 0  # how many rows these have; a record without rows counts as one

    def take(self, record: ErrorRecord) -> None:
        """Sort a record's rows into their partitions. Rows of none stay, in the record's form."""
        if not (texts := row_texts(record.data or b"")):
            self.staying.append(record.text)
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
            self.staying.append(record.text if is_unchanged else record.having(b"".join(rows_of_none)))
            self.staying_rows += len(rows_of_none)


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
            rows = _recover_object(objects, stored, f"recovered/{name}", today, say)
            moved += sum(map(len, rows.by_partition.values()))
            stay += rows.staying_rows
    return moved, stay


def _recover_object(
    objects: Objects, stored: StoredObject, name: str, today: date, say: Callable[[str, str], object]
) -> _SortedRows:
    """Move the rows of one error object; returns its rows. name: of the raw objects that get them.

    Raises NoObject or ObjectChanged if somebody else moves or changes the object.
    """
    entity, data = stored.key.split("/")[1], objects.get(stored.key)
    rows, unreadable, reasons = _SortedRows(), b"", list[str]()
    try:
        text = unzip(data)
    except Unreadable as error:
        text, unreadable = error.text, error.rest
        rows.staying_rows += 1
        reasons.append(str(error))
    for record in error_records(text):
        rows.take(record)
    for (dt, hour), lines in sorted(rows.by_partition.items()):
        objects.put(raw_prefix(entity, today.isoformat(), dt, hour) + name, b"".join(lines))
    if rows.staying:
        reasons.append(f"{len(rows.staying)} records have no row of a partition")
    if reasons:
        say(stored.key, "; ".join(reasons))
    if not (rows.staying or unreadable):
        objects.delete_if(stored.key, stored.etag)
    elif rows.by_partition:
        rest = zip_like(data, b"".join(rows.staying)) if rows.staying else b""
        objects.put_if(stored.key, rest + unreadable, stored.etag)
    return rows


def _partition(row: bytes) -> tuple[str, str]:
    """Return a row's dt and hour. Raises KeyError, TypeError, ValueError or RecursionError if it has none."""
    fields = json.loads(row)
    if not isinstance(fields, dict):
        raise NoPartition("no object")
    dt, hour = fields["dt"], fields["hour"]
    if date.fromisoformat(dt).isoformat() != dt or HOUR.fullmatch(hour) is None:
        raise NoPartition("no partition")
    return dt, hour
