"""Counts what is read of a table, in items."""

from typing import Any


class ItemsRead:
    """Counts the items that a client's answers have looked at."""

    def __init__(self, client: Any) -> None:
        self.count = 0
        client.meta.events.register("after-call.dynamodb", self._after)

    def _after(self, parsed: dict[str, Any], model: Any, **_: Any) -> None:
        batches = parsed.get("Responses") if model.name == "BatchGetItem" else None
        self.count += parsed.get("ScannedCount", 0) + ("Item" in parsed)
        self.count += sum(map(len, (batches or {}).values()))

    def take(self) -> int:
        counted, self.count = self.count, 0
        return counted
