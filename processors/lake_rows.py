"""Sends rows of the lake to Firehose, and makes rows of changed items, which a restore needs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from adapters.logs import Logger
from adapters.platform.aws import Unavailable
from adapters.platform.publishing import RECORD_BYTES_MAX, DeliveryStream
from processors.batches import Record, sequence_number_of
from rules.lake.entities import TABLE_ITEMS, event_version, row_of
from rules.lake.packed_records import END, FRAME_BYTES, RowLine, pack_rows, row_line
from rules.lake.table_items import removed_item, table_item

logger = Logger(service="lake_rows")
ROW_BYTES_MAX = RECORD_BYTES_MAX - FRAME_BYTES - len(END)
Pair = tuple[Record, RowLine]


def table_of(record: Record) -> str:
    """Return the name of the table whose stream a record came from."""
    return str(record["eventSourceARN"]).split("/")[1]


def lake_line(row: Mapping[str, Any]) -> RowLine:
    """Return a row as a line. Raises ValueError for one that is too long for Firehose."""
    line = row_line(row)
    if len(line.text) > ROW_BYTES_MAX:
        raise ValueError(f"a row of {len(line.text)} bytes: Firehose takes {ROW_BYTES_MAX}")
    return line


def put_rows(stream: DeliveryStream, pairs: Iterable[Pair]) -> list[str]:
    """Put rows, each with its change. Returns the sequence numbers of changes to be delivered again.

    They are the changes whose rows are in a record that Firehose has refused, in the stream's order.
    """
    pairs = list(pairs)
    packed = pack_rows([row for _, row in pairs], RECORD_BYTES_MAX)
    try:
        refused = stream.put([record.data for record in packed])
    except Unavailable:
        logger.exception("to come again")
        refused = list(range(len(packed)))
    # Pairs are in the stream's order, so sorted indices are, too.
    indices = sorted(index for number in refused for index in packed[number].indices)
    records = [record for record, _ in pairs]
    return [sequence_number_of(records[index]) for index in indices]


@dataclass(frozen=True, slots=True)
class TableItemRows:
    """Makes rows of changed items (rules/lake/table_items.py)."""

    stores: Mapping[str, str]  # table name -> its name in the template
    stream: DeliveryStream  # where the rows go

    def rows(self, record: Record) -> list[RowLine]:
        """Return the row of a change or removal; [] for an item that no restore needs.

        Raises KeyError or ValueError for a record that is no change of an item.
        """
        table, change = table_of(record), record["dynamodb"]
        if table not in self.stores:
            return []
        seconds = float(change["ApproximateCreationDateTime"])
        arrived = datetime.fromtimestamp(seconds, UTC)
        version = event_version(seconds, sequence_number_of(record))
        store, image = self.stores[table], change.get("NewImage")
        item = (
            table_item(store, image, arrived, version)
            if image
            else removed_item(store, change["Keys"], arrived, version)
        )
        return [lake_line(row_of(TABLE_ITEMS, item, arrived))] if item else []
