"""Error records of Firehose become raw objects.

A delivery stream writes to 500 partitions at a time. A backfill of years touches more, and Firehose puts
the rows beyond the limit into errors/. These are moved to their partitions, each row of a packed record
by itself. What is no row at all is in errors/ too, and stays there for an operator.
"""

import base64
import json
import re
from collections.abc import Iterable
from datetime import date

from adapters.platform.objects import Objects
from analytics.lake.layout import raw_prefix
from rules.lake.entities import ENTITIES
from rules.lake.packed_records import row_texts

ERRORS = "errors/"
HOUR = re.compile(r"[01]\d|2[0-3]", re.ASCII)


class Lost(ValueError):
    """A row that belongs to no partition, or an error record without any row."""


def recover(objects: Objects, today: date) -> tuple[int, int]:
    """Move error records' rows to their partitions; returns how many rows moved, how many stay.

    An object leaves errors/ when all of its records have been moved. A repetition after a crash writes the
    same raw objects, or on another date (UTC) copies of them, whose rows are duplicates.
    """
    moved = stay = 0
    for entity in ENTITIES:
        for stored in list(objects.list(f"{ERRORS}{entity}/")):
            rows, lost = _rows(objects.get(stored.key).splitlines())
            name = stored.key.removeprefix(f"{ERRORS}{entity}/")
            for (dt, hour), lines in sorted(rows.items()):
                prefix = raw_prefix(entity, dt, hour, arrived=today.isoformat())
                objects.put(f"{prefix}recovered/{name}", b"".join(lines))
            if not lost:
                objects.delete([stored.key])
            moved, stay = moved + sum(map(len, rows.values())), stay + lost
    return moved, stay


def _rows(records: Iterable[bytes]) -> tuple[dict[tuple[str, str], list[bytes]], int]:
    """Return the rows of an error object by partition, and how many have none."""
    rows: dict[tuple[str, str], list[bytes]] = {}
    lost = 0
    for record in records:
        try:
            data = base64.b64decode(json.loads(record)["rawData"], validate=True)
        except (KeyError, TypeError, ValueError):
            lost += 1
            continue
        texts = row_texts(data)
        lost += not texts
        for row in texts:
            try:
                rows.setdefault(_partition(row), []).append(row + b"\n")
            except (KeyError, TypeError, ValueError):
                lost += 1
    return rows, lost


def _partition(row: bytes) -> tuple[str, str]:
    fields = json.loads(row)
    if not isinstance(fields, dict):
        raise Lost("no object")
    dt, hour = fields["dt"], fields["hour"]
    if date.fromisoformat(dt).isoformat() != dt or HOUR.fullmatch(hour) is None:
        raise Lost("no partition")
    return dt, hour
