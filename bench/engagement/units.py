"""Counts write request units, as DynamoDB (here the emulator) reports them with each answer."""

from typing import Any

WRITES = frozenset(
    {"BatchExecuteStatement", "BatchWriteItem", "DeleteItem", "PutItem", "TransactWriteItems", "UpdateItem"}
)


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
