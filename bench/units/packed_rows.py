"""How small rows become, gzipped as Firehose leaves them and as curated Parquet; the CPU of curating one."""

import gzip
import json
import random
import re
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from adapters.platform.items import decode_item
from adapters.platform.objects import FolderObjects
from analytics.curation.curate import Task, curate
from bench.units.paths.publishing import Record
from processors import publisher
from processors.lake_rows import table_of
from rules.lake.entities import TABLE_ITEMS, event_version, row_of
from rules.lake.table_items import table_item

ROWS = 20_000
# What differs between two rows: parts of ids and digests, and the microseconds of a stamp.
UNIQUE = re.compile(r"[0-9a-f]{12}|\d{6}Z")


def packed_rows(rows: Mapping[str, list[Record]]) -> dict[str, float]:
    """Return figures by table: bytes of a row gzipped and curated, CPU microseconds of curating it."""
    found: dict[str, float] = {}
    for table, records in sorted(rows.items()):
        line = _row(records[0])
        lines = list(_lines(line))
        with TemporaryDirectory() as folder:
            objects, entity = FolderObjects(Path(folder)), _entity(table)
            packed = gzip.compress(b"".join(lines))
            objects.put(f"raw/{entity}/dt={line['dt']}/hour={line['hour']}/part.gz", packed)
            started = time.process_time()
            curate(objects, Task(entity, line["dt"], line["hour"]))
            seconds = time.process_time() - started
            curated = sum(each.size for each in objects.list("curated/"))
        found[f"raw_bytes.{table}"] = round(len(packed) / ROWS, 1)
        found[f"curated_bytes.{table}"] = round(curated / ROWS, 1)
        found[f"curate_us.{table}"] = round(1e6 * seconds / ROWS, 1)
    return found


def _entity(table: str) -> str:
    found = publisher._parts().destinations.get(table)
    return str(found[0].name if found else TABLE_ITEMS.name)


def _row(record: Record) -> dict[str, Any]:
    change, table = record["dynamodb"], table_of(record)
    arrived = datetime.fromtimestamp(change["ApproximateCreationDateTime"], UTC)
    if _entity(table) == TABLE_ITEMS.name:
        kept = table_item(
            table, change["NewImage"], arrived, event_version(arrived.timestamp(), change["SequenceNumber"])
        )
        assert kept
        return dict(row_of(TABLE_ITEMS, kept, arrived))
    entity = publisher._parts().destinations[table][0]
    return dict(row_of(entity, decode_item(change["NewImage"]), arrived))


def _lines(row: Mapping[str, Any]) -> Iterator[bytes]:
    chance, text = random.Random(7), json.dumps(row, separators=(",", ":"))
    for _ in range(ROWS):
        yield UNIQUE.sub(lambda found: _other(found[0], chance), text).encode() + b"\n"


def _other(text: str, chance: random.Random) -> str:
    if text.endswith("Z"):
        return f"{chance.randrange(10**6):06}Z"
    return f"{chance.randrange(16**12):012x}"
