"""Lines read by columns and by read_row, to be compared; and lines to compare them by."""

import json
import os
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

from analytics.curation import row_staging
from analytics.curation.raw_lines import batches
from analytics.curation.row_staging import Staging
from analytics.lake.layout import Partition
from rules.lake.entities import ENTITIES
from rules.lake.valid_row import RowRefused, read_row
from tests.support.effort import effort
from tests.support.mutated_lines import joined, mutated, texts_of
from tests.support.raw_lake import DT, event, line

LINES = int(os.environ.get("MUTATED_LINES", effort(9_600, soak=42_000)))
TAKEN = [
    event(1, source="caf\u00e9", properties='{"a":"b"}'),
    event(2, source="x, ", zone=""),
    event(6, source="\\"),
    event(3, properties='{"a":1,"b":2}', timezone="UTC"),
    dict(reversed(event(4).items())),
    event(5, source="a\nb\t\\", properties='{"a":"\\"b\\\\"}'),
    event(7, source="\x7f\U0001f600"),
    event(10, timezone=None),
]
LEFT = [
    event(3, source="\u0001"),
    event(3, mood="good"),
    event(4, user_id="ends in a comma,"),
    event(7, points_awarded="5"),
    event(8, activity_date="2026-02-30"),
    event(9, occurred_at=f"{DT}T06:00:00.000000Z"),
    event(10, created_at=f"{DT}T05:61:00.000000Z"),
    event(11, user_id=...),
    event(12, hour="06"),
    line(event(13)).replace(b'"version"', b'"Version"'),
    line(event(14)) + b"}",
    line(event(15)).replace(b'"app"', b'"a\x01p"'),
    line(event(16)).replace(b'"app"', b'"a\xffp"'),
    line(event(17)).replace(b'"app"', b'"a" p"'),
    line(event(18)).replace(b":5,", b":05,"),
    line(event(19))[:100],
    b"",
    b"null",
]


def written(row: Any) -> bytes:
    """As the publisher writes it."""
    return (
        row if isinstance(row, bytes) else json.dumps(row, separators=(",", ":"), ensure_ascii=False).encode()
    )


def read_by_columns(lines: list[bytes], place: Partition) -> tuple[dict[int, dict[str, object]], list[int]]:
    """The rows of the lines that were read by columns, and the indices of those that were left."""
    return read_text(b"".join(each + b"\n" for each in lines), place)


def read_text(text: bytes, place: Partition) -> tuple[dict[int, dict[str, object]], list[int]]:
    [batch] = batches([("a", text)])
    staging = Staging(ENTITIES[place.entity], Path("unused"))
    with mock.patch.object(row_staging, "FEW_LINES", 0):
        left = staging.add_lines(batch, place, 0)
    rows = [row for part in staging._parts for row in part.to_pylist()]
    return {row.pop("n"): row for row in rows}, left


def as_read_row(line: bytes, place: Partition) -> dict[str, object] | None:
    try:
        return read_row(line, ENTITIES[place.entity], place.dt, str(place.hour))
    except RowRefused:
        return None


def lines_of(chance: Random, place: Partition) -> tuple[list[bytes], list[bytes]]:
    """Lines of a shape or two, and the same ones mutated."""
    optional = [field.name for field in ENTITIES[place.entity].fields if not field.required]
    shapes = [{name: chance.random() < 0.3 for name in optional if chance.random() < 0.5} for _ in range(2)]
    found = [texts_of(chance, place, chance.choice(shapes)) for _ in range(chance.randrange(2, 12))]
    lines = [joined(texts) for texts in found]
    count = chance.choice((1, 3, 10, 40))
    return lines, [mutated(chance, chance.choice(found), chance.choice(lines)) for _ in range(count)]
