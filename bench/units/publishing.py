"""What the publisher makes of the rows of each table: records to Firehose, their bytes, and what is billed.

The publisher is handed so many rows of one hour at once. So the figures follow however it puts rows into
records: one each, or packed.
"""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from itertools import cycle, islice
from math import ceil
from typing import Any

from bench.counting.desk import Desk, Units
from bench.units.engagement import apply

PUBLISHER = "PublisherFunction"
FILLS = (1, 100)
# Firehose bills each record in steps of so many bytes.
BILLED_STEP_BYTES = 5120
Record = dict[str, Any]


def billed_bytes(record: bytes) -> int:
    """Return the bytes that Firehose bills for a record."""
    return max(1, ceil(len(record) / BILLED_STEP_BYTES)) * BILLED_STEP_BYTES


def publish(desk: Desk, records: list[Record]) -> None:
    """Hand records of one table to the publisher; its records to Firehose are added to what it has cost."""
    before = len(desk.services.delivered)
    desk.call("PublisherFunction", {"Records": records})
    put = [record for _, record in desk.services.delivered[before:]]
    desk.note(
        "PublisherFunction",
        {
            "firehose.records": len(put),
            "firehose.bytes": sum(map(len, put)),
            "firehose.billed_bytes": sum(map(billed_bytes, put)),
        },
    )


def publishing_paths(desk: Desk, rows: Mapping[str, list[Record]]) -> Iterator[tuple[str, dict[str, Units]]]:
    """Yield, for each table, what so many of its rows cost. rows: by table, stream records of its items."""
    for table, records in sorted(rows.items()):
        for fill in FILLS:
            desk.forget()
            publish(desk, list(islice(cycle(records), fill)))
            yield f"publish.{table}.{fill}", desk.take()


def engagement_rows(desk: Desk) -> dict[str, list[Record]]:
    """Return a row of each table of engagement, as an ordinary event leads to it."""
    user = "0d5f3c1e-7b0e-4f0f-8a43-000000000000"
    apply(desk, user, 1)
    desk.tick(timedelta(days=1))
    desk.forget()
    apply(desk, user, 2)
    return rows_of(desk)


def rows_of(desk: Desk) -> dict[str, list[Record]]:
    """Return the last row that waits for the publisher, of each table that has one."""
    waiting = {table: each for (function, table), each in desk.streams.items() if function == PUBLISHER}
    return {table: each[-1:] for table, each in waiting.items()}
