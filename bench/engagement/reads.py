"""Counts the items that DynamoDB (here the emulator) reads, and what AWS would bill for them.

The emulator reports the same units for a page of any size. So the units are worked out from the items' bytes:
4 KB are one unit, half of one if the read is eventually consistent.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from adapters.platform.items import Item, item_bytes

READS = frozenset({"BatchGetItem", "GetItem", "Query", "Scan"})
UNIT_BYTES = 4096


@dataclass(slots=True)
class ReadCount:
    """What the watched clients have read since `take` was last called.

    whole_bytes: of an item of which a scan returns only some attributes; DynamoDB bills all of it.
    """

    whole_bytes: float = 0.0
    items: int = 0
    units: float = 0.0

    def watch(self, client: Any) -> None:
        """Count what a botocore client reads from now on."""
        client.meta.events.register("before-parameter-build.dynamodb", self._asked)
        client.meta.events.register("after-call.dynamodb", self._read)

    def _asked(self, params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
        context["unit_share"] = 1.0 if params.get("ConsistentRead") else 0.5
        context["is_partial"] = "ProjectionExpression" in params

    def _read(self, parsed: dict[str, Any], model: Any, context: dict[str, Any], **_: Any) -> None:
        if model.name not in READS or "Error" in parsed:
            return
        alone = [parsed["Item"]] if "Item" in parsed else []
        alone += [each for found in parsed.get("Responses", {}).values() for each in found]
        page = parsed.get("Items", [])
        scanned = parsed.get("ScannedCount", 0)
        in_page = scanned * self.whole_bytes if context["is_partial"] else sum(map(item_bytes, page))
        self.items += len(alone) + scanned
        for size in (*map(item_bytes, alone), in_page):
            self.units += context["unit_share"] * math.ceil(size / UNIT_BYTES)

    def take(self) -> tuple[int, float]:
        """Return items and units counted so far, and start again at 0."""
        taken, self.items, self.units = (self.items, self.units), 0, 0.0
        return taken


def mean_bytes(items: Iterable[Item]) -> float:
    """Return the mean size of items."""
    sizes = [item_bytes(each) for each in items]
    return sum(sizes) / len(sizes)
