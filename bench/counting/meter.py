"""Counts what a function asks of AWS: DynamoDB's units by its own arithmetic, and requests to all else.

Counts are flat, so that they can be added up and compared:

    calls.{service}            requests, each a round trip
    write.{table}[/{index}]    write request units
    read.{table}[/{index}]     read request units
    stored.{table}             bytes that the writes added, indexes included
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from adapters.platform.items import Item
from bench.counting.item_sizes import STORED_OVERHEAD_BYTES, item_bytes, read_units, write_units
from bench.counting.table_shapes import TableShape
from bench.counting.written_keys import WrittenItem, places_of, refused_places

TRANSACTION_FACTOR = 2
NOTE = "streakline_meter"
Peek = Callable[[str, Item], Item | None]
Evaluate = Callable[[str, Mapping[str, Any]], list[Item]]
Record = dict[str, Any]


@dataclass
class Meter:
    """shapes: the tables by name. peek: reads an item past the meter. evaluate: see adapters of the desk."""

    shapes: dict[str, TableShape]
    peek: Peek
    evaluate: Evaluate
    counts: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    is_paused: bool = False
    changes: list[tuple[str, Item | None, Item]] = field(default_factory=list)

    def watch(self, events: Any) -> None:
        """Count all later requests of the clients of a session, or of one client."""
        events.register("before-call", self._call)
        # Last: boto3's resources first turn plain values into DynamoDB's.
        events.register_last("before-parameter-build.dynamodb", self._before)
        events.register("after-call.dynamodb", self._after)

    def take(self) -> dict[str, float]:
        """Return what was counted, without zeros, and start again."""
        taken = {name: count for name, count in sorted(self.counts.items()) if count}
        self.counts.clear()
        return taken

    def take_changes(self) -> list[tuple[str, Item | None, Item]]:
        """Return (table, before, after) of each change on a stream, in order, and start again."""
        taken, self.changes = self.changes, []
        return taken

    def _call(self, model: Any, **_: Any) -> None:
        if self.is_paused:
            return
        self.counts[f"calls.{model.service_model.service_name}"] += 1

    def _before(self, params: dict[str, Any], model: Any, context: dict[str, Any], **_: Any) -> None:
        if self.is_paused:
            return
        places = places_of(model.name, params, self.shapes)
        context[NOTE] = params, [(place, self.peek(place.table, place.key)) for place in places]

    def _after(self, parsed: dict[str, Any], model: Any, context: dict[str, Any], **_: Any) -> None:
        if self.is_paused:
            return
        params, written = context[NOTE]
        if written:
            factor = TRANSACTION_FACTOR if model.name == "TransactWriteItems" else 1
            refused = refused_places(parsed, len(written))
            for at, (place, before) in enumerate(written):
                self._write(place, before, factor, is_refused=at in refused)
        elif "Error" not in parsed:
            for place, units in self._reads(model.name, params, parsed):
                self.counts[f"read.{place}"] += units

    def _write(self, place: WrittenItem, before: Item | None, factor: int, *, is_refused: bool) -> None:
        shape = self.shapes[place.table]
        after = before if is_refused or place.is_check else self.peek(place.table, place.key)
        if before == after:  # It was refused, or changes nothing: the table's own unit is billed.
            self.counts[f"write.{shape.name}"] += factor * write_units(before)
            return
        for name, units in shape.units(before, after).items():
            self.counts[f"write.{name}"] += factor * units
        self.counts[f"stored.{shape.name}"] += stored_bytes(shape, after) - stored_bytes(shape, before)
        if shape.has_stream and after is not None:
            self.changes.append((shape.name, before, after))

    def _reads(
        self, operation: str, params: Mapping[str, Any], parsed: Mapping[str, Any]
    ) -> Iterable[tuple[str, float]]:
        if operation == "GetItem":
            size = item_bytes(self.peek(params["TableName"], params["Key"]))
            yield params["TableName"], read_units(size, consistent=bool(params.get("ConsistentRead")))
        elif operation == "BatchGetItem":
            for table, asked in params["RequestItems"].items():
                for key in asked["Keys"]:
                    size = item_bytes(self.peek(table, key))
                    yield table, read_units(size, consistent=bool(asked.get("ConsistentRead")))
        elif operation in ("Query", "Scan"):
            cuts = "FilterExpression" in params or "ProjectionExpression" in params
            whole = self.evaluate(operation, params) if cuts and parsed["ScannedCount"] else parsed["Items"]
            size = sum(map(item_bytes, whole))
            index = params.get("IndexName")
            place = f"{params['TableName']}/{index}" if index else params["TableName"]
            yield place, read_units(size, consistent=bool(params.get("ConsistentRead")))


def stored_bytes(shape: TableShape, item: Item | None) -> int:
    """Return the bytes that are billed for an item and its entries in indexes."""
    entries = [item, *(index.entry(item) for index in shape.indexes)]
    return sum(item_bytes(entry) + STORED_OVERHEAD_BYTES for entry in entries if entry is not None)
