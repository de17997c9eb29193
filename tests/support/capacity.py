"""Counts what watched clients of DynamoDB (here the emulator) read and write, in AWS's units.

The emulator reports the same read units for a page of any size. So they are worked out from the items' bytes:
4 KB are one unit, half of one if the read is eventually consistent.
"""

import math
from dataclasses import dataclass
from typing import Any

from adapters.platform.items import item_bytes

READS = frozenset({"BatchGetItem", "GetItem", "Query", "Scan"})
WRITES = frozenset(
    {"BatchExecuteStatement", "BatchWriteItem", "DeleteItem", "PutItem", "TransactWriteItems", "UpdateItem"}
)
UNIT_BYTES = 4096


class WriteUnits:
    """The units of all writes that the watched clients have made since `take` was last called."""

    def __init__(self) -> None:
        self._units = 0.0

    def watch(self, client: Any) -> None:
        """Make a botocore client ask for the capacity that each write consumed, and add it up."""
        client.meta.events.register("before-parameter-build.dynamodb", self._ask)
        client.meta.events.register("after-call.dynamodb", self._add)

    def _ask(self, params: dict[str, Any], model: Any, **_: Any) -> None:
        if model.name in WRITES:
            params["ReturnConsumedCapacity"] = "TOTAL"

    def _add(self, parsed: dict[str, Any], model: Any, **_: Any) -> None:
        if model.name not in WRITES or "Error" in parsed:
            return
        consumed = parsed["ConsumedCapacity"]
        tables = consumed if isinstance(consumed, list) else [consumed]
        self._units += sum(each["CapacityUnits"] for each in tables)

    def take(self) -> float:
        """Return the units counted so far, and start again at 0."""
        taken, self._units = self._units, 0.0
        return taken


@dataclass(slots=True)
class ReadCount:
    """The items and units that the watched clients have read since `take` was last called."""

    items: int = 0
    units: float = 0.0

    def watch(self, client: Any) -> None:
        """Count what a botocore client reads from now on."""
        client.meta.events.register("before-parameter-build.dynamodb", self._asked)
        client.meta.events.register("after-call.dynamodb", self._read)

    def _asked(self, params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
        context["unit_share"] = 1.0 if params.get("ConsistentRead") else 0.5

    def _read(self, parsed: dict[str, Any], model: Any, context: dict[str, Any], **_: Any) -> None:
        if model.name not in READS or "Error" in parsed:
            return
        alone = [parsed["Item"]] if "Item" in parsed else []
        alone += [each for found in parsed.get("Responses", {}).values() for each in found]
        self.items += len(alone) + parsed.get("ScannedCount", 0)
        for size in (*map(item_bytes, alone), sum(map(item_bytes, parsed.get("Items", [])))):
            self.units += context["unit_share"] * math.ceil(size / UNIT_BYTES)

    def take(self) -> tuple[int, float]:
        """Return items and units counted so far, and start again at 0."""
        taken, self.items, self.units = (self.items, self.units), 0, 0.0
        return taken
