"""The emulator's streams get what PartiQL statements change, as DynamoDB's streams do.

Claims are written by statements. Without this the lake has no claims, and no region gets them. The emulator's
own Python imports this module, and so do tests.
"""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

Answer = tuple[int, Any, Any]  # status, headers, body
Operation = Callable[..., Answer]  # of a table and a parsed statement


def announce_statements(dynamodb: Any) -> None:
    """Let the streams have the changes of INSERT, UPDATE and DELETE. dynamodb: MiniStack's module of it."""
    for name in ("_partiql_insert", "_partiql_update", "_partiql_delete"):
        setattr(dynamodb, name, _announced(dynamodb, getattr(dynamodb, name)))


def _announced(dynamodb: Any, operation: Operation) -> Operation:
    """Return an operation that puts its change into the table's stream, if it makes one."""

    def announced(table: Any, parsed: Any, *request: Any) -> Answer:
        before = _stored_item(dynamodb, table, parsed)
        answer = operation(table, parsed, *request)
        after = _stored_item(dynamodb, table, parsed)
        if answer[0] == HTTPStatus.OK and before != after:
            event = "INSERT" if before is None else "REMOVE" if after is None else "MODIFY"
            dynamodb._emit_stream_event(table["TableName"], event, before, after)  # noqa: SLF001 (it has no other)
        return answer

    return announced


def _stored_item(dynamodb: Any, table: Any, parsed: Any) -> Any:
    """Return the stored item that a statement is about; None if there is none.

    MiniStack replaces stored items and never changes them, so the item of before stays as it is.
    """
    conditions = parsed.get("conditions")
    if parsed["op"] == "INSERT":
        values = parsed.get("item") or {}
        item = values["M"] if set(values) == {"M"} else values
        conditions = [(name, "=", value) for name, value in item.items()]
    target = dynamodb._partiql_key_target(table, {**parsed, "conditions": conditions})  # noqa: SLF001 (the same)
    partition, sort_key, *_ = target
    return table["items"].get(partition, {}).get(sort_key)
