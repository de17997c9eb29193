"""Measures the publisher: its records to Firehose for rows of each table, their bytes, and the billed ones.

The publisher is handed many rows of one hour at once, because it may put one or many of them into a record.
"""

from collections.abc import Mapping
from itertools import cycle, islice
from math import ceil

from bench.counting.desk import Desk, PathCosts
from bench.counting.requests import Record
from bench.units.engagement import DAY, apply_events

PUBLISHER = "PublisherFunction"
ROW_COUNTS = (1, 100)
BILLED_STEP_BYTES = 5120  # Firehose rounds each record up to these


def publishing_paths(desk: Desk, rows: Mapping[str, list[Record]]) -> PathCosts:
    """Yield, for each table, the cost of ROW_COUNTS of its rows. rows: stream records by table."""
    for table, records in sorted(rows.items()):
        for count in ROW_COUNTS:
            desk.start_path()
            desk.call(PUBLISHER, {"Records": list(islice(cycle(records), count))})
            sizes = [len(row) for row in desk.services.rows]
            billed = sum(max(1, ceil(size / BILLED_STEP_BYTES)) * BILLED_STEP_BYTES for size in sizes)
            counts = {"records": len(sizes), "bytes": sum(sizes), "billed_bytes": billed}
            desk.add_cost(PUBLISHER, {f"firehose.{name}": count for name, count in counts.items()})
            yield f"publish.{table}.{count}", desk.take_costs()


def engagement_rows(desk: Desk) -> dict[str, list[Record]]:
    """Return a row of each table of engagement, after ordinary events."""
    user = "0d5f3c1e-7b0e-4f0f-8a43-000000000000"  # of no other path
    apply_events(desk, user, 1)
    desk.tick(DAY)
    desk.start_path()
    apply_events(desk, user, 2)
    return newest_rows(desk)


def newest_rows(desk: Desk) -> dict[str, list[Record]]:
    """Return the newest row that waits for the publisher, by table, as a list of one."""
    return {table: rows[-1:] for (function, table), rows in desk.streams.items() if function == PUBLISHER}
