"""Sends changes of tables from their streams to Firehose, as rows of the lake.

PUBLISHED_TABLES (infra/marks.py) has the tables, and which of their changes come here. Firehose writes the
raw objects that the night curates (analytics/curation/curate.py).

Each change becomes one row; a version of the book, several. For a restore, some tables' items are rows
themselves, too, and so are their removals (rules/lake/table_items.py).

Rows of one hour go as one record, because Firehose bills each record rounded up to 5 KB. A row may be
published twice or out of order. Curation keeps the newest version of each key.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from adapters.bootstrap import ClientOf, bootstrap
from adapters.logs import Logger
from adapters.platform.aws import Unavailable
from adapters.platform.items import decode_item
from adapters.platform.publishing import RECORD_BYTES_MAX, DeliveryStream
from adapters.privacy.tombstones import NO_ERASURES, ErasureCheck, is_erased_record, tombstones_of
from adapters.settings import table_setting, with_settings
from processors.batches import BatchResult, ConsumerSettings, Record, sequence_number_of, stream_consumer
from rules.lake.entities import ENTITIES, FIRST_STORED, TABLE_ITEMS, Entity, event_version, row_of, rows_of
from rules.lake.packed_records import END, FRAME_BYTES, RowLine, pack_rows, row_line
from rules.lake.table_items import KEYS, removed_item, table_item

logger = Logger(service="publisher")
ROW_BYTES_MAX = RECORD_BYTES_MAX - FRAME_BYTES - len(END)


def stream_setting(entity: str) -> str:
    """Return the setting with the delivery stream of an entity's rows."""
    return f"{entity}_delivery_stream"


def table_of(record: Record) -> str:
    """Return the name of the table whose stream a record came from."""
    return str(record["eventSourceARN"]).split("/")[1]


def lake_line(row: Mapping[str, Any]) -> RowLine:
    """Return a row as a line. Raises ValueError for one that is too long for Firehose."""
    line = row_line(row)
    if len(line.text) > ROW_BYTES_MAX:
        raise ValueError(f"a row of {len(line.text)} bytes: Firehose takes {ROW_BYTES_MAX}")
    return line


def put_rows(stream: DeliveryStream, pairs: Iterable[tuple[Record, RowLine]]) -> list[str]:
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

        Raises KeyError or ValueError for a record that is no change of an item of these tables.
        """
        change = record["dynamodb"]
        seconds = float(change["ApproximateCreationDateTime"])
        arrived = datetime.fromtimestamp(seconds, UTC)
        version = event_version(seconds, sequence_number_of(record))
        store, image = self.stores[table_of(record)], change.get("NewImage")
        item = (
            table_item(store, image, arrived, version)
            if image
            else removed_item(store, change["Keys"], arrived, version)
        )
        return [lake_line(row_of(TABLE_ITEMS, item, arrived))] if item else []


@dataclass(frozen=True)
class OwnPublisherSettings(ConsumerSettings):
    """Settings that are no table's or stream's name. Those are in PublisherSettings, as the lake has them."""

    erasures_table: str
    erasure_secret_arn: str


# (entity of the lake, the table whose changes are its rows)
PUBLISHED = [(entity, entity.published.table) for entity in ENTITIES.values() if entity.published]
# Tables whose items are rows themselves. Those of Rewards are published by FulfilmentFunction.
KEPT_TABLES = [table for table in KEYS if table != "Rewards"]
_TABLES_AND_STREAMS = {
    *(table_setting(table) for _, table in PUBLISHED),
    *(table_setting(table) for table in KEPT_TABLES),
    *(stream_setting(entity.name) for entity, _ in PUBLISHED),
    stream_setting(TABLE_ITEMS.name),
}
_OTHERS = sorted(_TABLES_AND_STREAMS - {"erasures_table"})
PublisherSettings = with_settings(OwnPublisherSettings, dict.fromkeys(_OTHERS, str))


@dataclass(frozen=True, slots=True)
class Publisher:
    """Publishes changes, except those of persons who were erased."""

    # By table name, the entities of its items, each with the stream of its rows
    destinations: Mapping[str, Sequence[tuple[Entity, DeliveryStream]]]
    erased: ErasureCheck = NO_ERASURES
    item_rows: TableItemRows | None = None  # makes the rows that are items themselves

    def publish(self, records: list[Record]) -> BatchResult:
        """Publish a batch of stream records. Usually they all come from one table's stream."""
        outcome = BatchResult()
        by_stream: dict[DeliveryStream, list[tuple[Record, RowLine]]] = {}
        allowed = (record for record in records if not is_erased_record(record, self.erased))
        for record, rows in outcome.read(allowed, self._rows):
            for stream, row in rows:
                by_stream.setdefault(stream, []).append((record, row))
        numbers: dict[str, None] = {}  # in the order of the records
        refused: set[str] = set()
        for stream, pairs in by_stream.items():
            numbers |= dict.fromkeys(sequence_number_of(record) for record, _ in pairs)
            refused.update(put_rows(stream, pairs))
        outcome.again = [number for number in numbers if number in refused]
        outcome.counts["published"] = len(numbers) - len(refused)
        return outcome

    def _rows(self, record: Record) -> list[tuple[DeliveryStream, RowLine]]:
        """Return the rows of a change, each with its stream. Raises KeyError for an unknown table."""
        table, item_rows = table_of(record), []
        if self.item_rows and table in self.item_rows.stores:
            item_rows = [(self.item_rows.stream, row) for row in self.item_rows.rows(record)]
            if table not in self.destinations:
                return item_rows  # the table's items are rows themselves, and nothing else
        entities = self.destinations[table]
        return [
            *item_rows,
            *((stream, line) for entity, stream in entities for line in _entity_lines(entity, record)),
        ]


def _entity_lines(entity: Entity, record: Record) -> list[RowLine]:
    """Return the rows that a changed item has as an entity of the lake; [] for a removal."""
    change = record["dynamodb"]
    if "NewImage" not in change:
        return []
    attributes = decode_item(change["NewImage"])
    if not entity.has_row(attributes):
        return []
    arrived = float(change["ApproximateCreationDateTime"])
    is_change = record["eventName"] == "MODIFY"
    version = event_version(arrived, change["SequenceNumber"]) if is_change else FIRST_STORED
    rows = rows_of(entity, attributes, datetime.fromtimestamp(arrived, UTC), version)
    return [lake_line(row) for row in rows]


@bootstrap(PublisherSettings)
def _parts(config: OwnPublisherSettings, client: ClientOf) -> Publisher:
    def stream(entity: Entity) -> DeliveryStream:
        return DeliveryStream(client("firehose"), getattr(config, stream_setting(entity.name)))

    def name(table: str) -> str:  # "" of a part that the deployment leaves out
        return str(getattr(config, table_setting(table)))

    destinations: dict[str, list[tuple[Entity, DeliveryStream]]] = {}
    for entity, table in PUBLISHED:
        if name(table):
            destinations.setdefault(name(table), []).append((entity, stream(entity)))
    stores = {name(table): table for table in KEPT_TABLES if name(table)}
    item_rows = TableItemRows(stores, stream(TABLE_ITEMS))
    return Publisher(destinations, tombstones_of(config, client), item_rows)


@stream_consumer("publisher", logger)
def handler(records: list[Record], _now: datetime) -> BatchResult:
    """Lambda entry: a batch of one table's stream."""
    return _parts().publish(records)
