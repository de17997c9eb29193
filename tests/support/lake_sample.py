"""Generated rows of the lake, by entity and key, and how they are written as curated files."""

import json
import tempfile
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from adapters.platform.objects import Objects
from analytics.curation.sealed_file import write_groups
from analytics.lake.arrow import arrow_schema
from analytics.lake.layout import Partition, curated_key
from rules.days import key_of_stamp, stamp
from rules.lake.entities import ENTITIES
from tests.support.books import TYPES

FIRST = date(2025, 12, 27)
DAYS = 70  # over the ends of two years, of a short February and of months
USERS = [f"user-{number}" for number in range(9)] + ["o'brien@example.org", "same-a", "same-b"]
PROPERTIES = [
    '{"amount":"12.34","quantity":2}',
    '{"amount":5,"quantity":1}',
    '{"amount":0.5}',
    '{"amount":"cheap","quantity":"many"}',
    '{"amount":"-3.00"}',
    '{"quantity":3,"note":"d\\"après","amount":"1000000.99"}',
    '{"amount":null}',
    "{}",
    "no JSON at all",
    None,
]
Row = dict[str, Any]


@dataclass
class Sample:
    """Rows per entity and key; where a later version comes, it takes the place of the row."""

    rows: dict[str, dict[Any, Row]] = field(default_factory=lambda: defaultdict(dict))
    arrived: dict[str, datetime] = field(default_factory=dict)  # of opening entries
    touched: set[Partition] = field(default_factory=set)

    def put(self, entity: str, row: Row) -> None:
        self.rows[entity][tuple(row[key] for key in ENTITIES[entity].key)] = row
        self.touched.add(self.place(entity, row))

    def place(self, entity: str, row: Row) -> Partition:
        moment = row[ENTITIES[entity].occurred]
        if entity == "ledger" and row["seq"] == 0:
            moment = self.arrived[row["account_id"]]
        return Partition(
            entity, f"{moment:%Y-%m-%d}", f"{moment.hour:02}" if isinstance(moment, datetime) else "00"
        )

    def write(self, objects: Objects) -> list[Partition]:
        """Write the curated files touched since the last time, one per hour; returns their places."""
        by_place: dict[Partition, list[Row]] = {place: [] for place in sorted(self.touched, key=str)}
        self.touched.clear()
        for entity, rows in self.rows.items():
            for row in rows.values():
                if (place := self.place(entity, row)) in by_place:
                    by_place[place].append(row)
        for place, rows_of in by_place.items():
            write(objects, place, rows_of)
        return list(by_place)


def write(objects: Objects, place: Partition, rows: list[Row], schema: pa.Schema | None = None) -> None:
    """Write a curated file; its bookkeeping claims a duplicate and two refused rows besides."""
    counts = {"in": len(rows) + 3, "curated": len(rows), "duplicates": 1, "quarantined": 2}
    footer = json.dumps({"schema": len(ENTITIES[place.entity].fields), "sources": {}, **counts})
    table = pa.Table.from_pylist(rows, schema=schema or arrow_schema(ENTITIES[place.entity]))
    with tempfile.TemporaryDirectory() as folder:
        write_groups(path := Path(folder, "rows.parquet"), iter([table]), lambda: {"streakline": footer})
        objects.put(curated_key(place), path.read_bytes())


def event(user: str, moment: datetime, event_type: str, number: int, **more: Any) -> Row:
    return {
        "event_id": f"{key_of_stamp(stamp(moment))}#{number}",
        "user_id": user,
        "idempotency_key": f"key-{number}",
        "event_type": event_type,
        "occurred_at": moment,
        "occurred_local": moment.isoformat(),
        "activity_date": moment.date(),
        "zone": "UTC",
        "timezone": None,
        "points_awarded": TYPES[event_type].points,
        "source": ("web", "mobile", "größe's")[number % 3],
        "properties": None,
        "created_at": moment + timedelta(seconds=2),
        "version": "0",
        "extra": None,
        **more,
    }
