"""The register: one item, in a table that all regions read and write as it is now.

On AWS it is a global table with strong consistency over three regions, so no region decides alone, and one
that is cut off from the others can neither read nor write it (docs/decisions/0071).
"""

from typing import Any

from adapters.platform.items import item, plain
from rules.regions.register import Phase, Register

KEY = {"name": {"S": "writer"}}


class RegisterMoved(Exception):
    """Somebody else has changed the register since it was read."""


class Registers:
    """The table of the register."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        """dynamodb: a client that no fence stops."""
        self._dynamodb, self._table = dynamodb, table

    def read(self) -> Register | None:
        """Return the register as it is now; None: it was never written. Raises what DynamoDB raises."""
        answer = self._dynamodb.get_item(TableName=self._table, Key=KEY, ConsistentRead=True)
        return _register(plain(answer["Item"])) if "Item" in answer else None

    def change(self, read: Register | None, to: Register) -> None:
        """Write the register in place of the one that was read; raises RegisterMoved if it is another."""
        written: dict[str, Any] = {
            "TableName": self._table,
            "Item": {**KEY, **item(_attributes(to))},
            "ConditionExpression": "attribute_not_exists(#name)",
            "ExpressionAttributeNames": {"#name": "name"},
        }
        if read:
            written["ConditionExpression"] = "epoch = :epoch AND phase = :phase AND standby = :standby"
            told = {":epoch": read.epoch, ":phase": read.phase.value, ":standby": read.standby}
            written["ExpressionAttributeValues"] = item(told)
            del written["ExpressionAttributeNames"]
        try:
            self._dynamodb.put_item(**written)
        except self._dynamodb.exceptions.ConditionalCheckFailedException:
            if self.read() == to:  # an attempt of ours, whose answer was lost
                return
            raise RegisterMoved(f"{to.writer}, epoch {to.epoch}") from None


def _attributes(register: Register) -> dict[str, Any]:
    return {
        "epoch": register.epoch,
        "writer": register.writer,
        "phase": register.phase.value,
        "standby": register.standby,
        "is_filled": register.is_filled,
        "former": register.former,
    }


def _register(told: dict[str, Any]) -> Register:
    standby, is_filled, former = told["standby"], told["is_filled"], told["former"]
    return Register(told["epoch"], told["writer"], Phase(told["phase"]), standby, is_filled, former)
