"""Raw hours of each entity as the publisher writes them, with duplicates and bad lines; made once each.

A lake has lines with their fields in the publisher's order, or each line's in an order of its own.
"""

import json
import os
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from isal import igzip

from bench.lake.curating.table_items import ITEMS
from rules.lake.entities import ENTITIES, Entity, Type, row_of
from rules.lake.packed_records import row_line

LINES = int(os.environ.get("BENCH_LAKE_LINES", "60000"))
HOURS, FILES = 2, 4  # files an hour
FIRST = datetime(2026, 3, 1, tzinfo=UTC)
DT = f"{FIRST:%Y-%m-%d}"
DUPLICATES, MALFORMED = 0.01, 0.001
FOLDER = Path(os.environ.get("BENCH_FOLDER", ".local/bench"))


@dataclass(frozen=True, slots=True)
class RawLake:
    """One entity's raw rows. is_shuffled: each line's fields are in an order of its own."""

    entity: str
    is_shuffled: bool = False

    @property
    def name(self) -> str:
        return self.entity + ", any order" * self.is_shuffled

    @property
    def hours(self) -> list[str]:
        """Return the hours that have rows: those of days lie in the first one."""
        is_by_day = ENTITIES[self.entity].field(ENTITIES[self.entity].occurred).type is Type.DATE
        return [f"{hour:02}" for hour in range(1 if is_by_day else HOURS)]

    def folder(self) -> Path:
        """Return the folder of a lake whose raw/ is filled."""
        folder = FOLDER / f"lake-{self.entity}-{LINES}{'-shuffled' * self.is_shuffled}"
        if not (folder / "complete").exists():
            tasks = [(self, folder, hour, number) for hour in self.hours for number in range(FILES)]
            with ProcessPoolExecutor(2) as pool:
                list(pool.map(_write, *zip(*tasks, strict=True)))
            (folder / "complete").touch()
        return folder.resolve()


LAKES = [
    *map(RawLake, ITEMS),
    *(RawLake(name, is_shuffled=True) for name in ("events", "lead_events", "lead_features")),
]


def _write(lake: RawLake, folder: Path, hour: str, number: int) -> None:
    path = folder / "raw" / lake.entity / f"dt={DT}/hour={hour}/part-{number:03}.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    count = LINES // (len(lake.hours) * FILES)
    path.write_bytes(
        igzip.compress(b"".join(line + b"\n" for line in _lines(lake, int(hour), number, count)), 2)
    )


def _lines(lake: RawLake, hour: int, number: int, count: int) -> list[bytes]:
    chance, entity = Random(f"{lake.name} {hour} {number}"), ENTITIES[lake.entity]
    lines: list[bytes] = []
    whole: list[bytes] = []
    while len(lines) < count:
        draw = chance.random()
        if whole and draw < DUPLICATES:
            lines.append(chance.choice(whole))
            continue
        moment = FIRST + timedelta(hours=hour, microseconds=chance.randrange(3_600_000_000))
        row = row_of(entity, ITEMS[entity.name](chance, moment), moment)
        if lake.is_shuffled:
            row = dict(chance.sample(list(row.items()), len(row)))
        line = row_line(row).text
        if draw > 1 - MALFORMED:
            lines.append(_spoiled(chance, entity, row, line))
            continue
        whole.append(line)
        lines.append(line)
    return lines


def _spoiled(chance: Random, entity: Entity, row: dict[str, Any], line: bytes) -> bytes:
    """Return a line with one of the usual faults: cut off, a wrong type, a missing field, no object."""
    required: dict[Type, list[str]] = defaultdict(list)
    for field in entity.fields:
        if field.required:
            required[field.type].append(field.name)
    texts, numbers = required[Type.TEXT], required[Type.INTEGER]
    match chance.randrange(6):
        case 0:
            return line[: chance.randrange(20, 200)]
        case 1 if numbers:
            return _json(row | {chance.choice(numbers): "ten"})
        case 2 if numbers:
            return _json(row | {chance.choice(numbers): "5"})
        case 3:
            del row[chance.choice(texts)]
            return _json(row)
        case 4:
            return _json(row | {chance.choice(texts): 5})
        case _:
            return b"null"


def _json(row: dict[str, Any]) -> bytes:
    return json.dumps(row, separators=(",", ":"), ensure_ascii=False).encode()
