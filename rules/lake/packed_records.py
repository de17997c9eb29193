"""Packed records: rows of one entity and hour that go to Firehose as one record; and how raw lines are read.

Firehose bills each record rounded up to 5 KB, and a row has 300 to 500 bytes. So rows are packed:

    {"dt":"2026-11-21","hour":"05","rows":[
    {row},
    {row},
    null]}

That is one JSON document, whose dt and hour name the partition for Firehose. Each row has a line of its own,
so no reader parses the document. Its first and last line are the frame. A reader looks at each line alone: it
leaves out a line of the frame, and the comma behind a row. A plain row, as nights write them, is read by the
same rule. So each whole row is found wherever a text was cut, and in any mixture. The null at the end lets
all rows end alike: curation reads lines of one shape fastest.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

HEADER = re.compile(rb'\{"dt":"\d{4}-\d\d-\d\d","hour":"\d\d","rows":\[\n?')
FOOTER = b"null]}\n"
END = b",\n"  # of a row's line
FOOTERS = frozenset({FOOTER, FOOTER[:-1]})
HEADER_BYTES = len(b'{"dt":"2026-11-21","hour":"05","rows":[\n')
FRAME_BYTES = HEADER_BYTES + len(FOOTER)


@dataclass(frozen=True, slots=True)
class RowLine:
    """A row as JSON text without a line break, and the first line of its record. Raises ValueError."""

    head: bytes
    text: bytes

    def __post_init__(self) -> None:
        if HEADER.fullmatch(self.head) is None:
            raise ValueError(f"no partition: {self.head!r}")
        if b"\n" in self.text or not (self.text.startswith(b"{") and self.text.endswith(b"}")):
            raise ValueError("a row is a JSON object on a line of its own")


@dataclass(frozen=True, slots=True)
class PackedRecord:
    """Rows of one hour as one record of Firehose."""

    data: bytes
    indices: list[int]  # which of the packed rows are in it, counted from 0


def row_line(row: Mapping[str, Any]) -> RowLine:
    """Write a row of the lake (see row_of); raises ValueError, also for half of a surrogate pair."""
    text = json.dumps(row, separators=(",", ":"), ensure_ascii=False).encode()
    return RowLine(record_header(row["dt"], row["hour"]), text)


def record_header(dt: str, hour: str) -> bytes:
    """Return the first line of a record of an hour; dt: YYYY-MM-DD, hour: HH, UTC."""
    return b'{"dt":"%s","hour":"%s","rows":[\n' % (dt.encode(), hour.encode())


def pack_rows(rows: Sequence[RowLine], bytes_max: int) -> list[PackedRecord]:
    """Pack rows into records of one hour each, in as few as their size allows.

    bytes_max: of a record. Each row is in one record, and rows of an hour stay in their order. Raises
    ValueError for a row that no record can hold.
    """
    records: list[tuple[bytes, list[int]]] = []
    filling: dict[bytes, list[int]] = {}
    room: dict[bytes, int] = {}
    for index, row in enumerate(rows):
        size = len(row.text) + len(END)
        if size > bytes_max - FRAME_BYTES:
            raise ValueError(f"a row of {len(row.text)} bytes: a record holds {bytes_max}")
        if room.get(row.head, 0) < size:
            filling[row.head], room[row.head] = [], bytes_max - FRAME_BYTES
            records.append((row.head, filling[row.head]))
        filling[row.head].append(index)
        room[row.head] -= size
    return [
        PackedRecord(frame_record(head, [rows[at].text for at in indices]), indices)
        for head, indices in records
    ]


def frame_record(head: bytes, texts: Sequence[bytes]) -> bytes:
    """Return a record of rows' texts."""
    return head + b"".join(text + END for text in texts) + FOOTER


def is_frame(line: bytes) -> bool:
    """Whether a line, with its newline or without, is a record's first or last. No row is."""
    return line in FOOTERS or HEADER.fullmatch(line) is not None


def row_text(line: bytes) -> bytes:
    """Return a row's line without the comma that separates it from the next row of its record."""
    return line.removesuffix(b"\n")[:-1] if line.endswith((b"},\n", b"},")) else line


def row_texts(text: bytes) -> list[bytes]:
    """Return the rows of a raw text, without line breaks; a line that was cut off is one of them."""
    lines = (line for line in text.split(b"\n") if line.strip() and not is_frame(line))
    return [row_text(line) for line in lines]
