"""Reads and writes the desk's tables past the meter, and tells what a query reads before it filters."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import botocore.session

from adapters.platform.items import Item
from adapters.platform.tables import put_all

ATTRIBUTES = ("ExpressionAttributeNames", "ExpressionAttributeValues")
WORD = re.compile(r"[#:]\w+")


class PastTheMeter:
    """A client of its own. It must be made while moto is in force."""

    def __init__(self) -> None:
        self._dynamodb: Any = botocore.session.get_session().create_client("dynamodb")

    def create(self, definition: Mapping[str, Any]) -> None:
        """Create a table."""
        self._dynamodb.create_table(**definition)

    def peek(self, table: str, key: Item) -> Item | None:
        """Return an item, or None."""
        backend = _backend().tables[table]
        names = [name for name in (backend.hash_key_attr, backend.range_key_attr) if name]
        found = backend.items.get(_typed(key[names[0]]))
        if found is not None and len(names) == 2:
            found = found.get(_typed(key[names[1]]))
        return None if not found else dict(found.to_json()["Attributes"])

    def insert(self, table: str, key: Item, item: Item) -> bool:
        """Put an item; returns False, and puts nothing, if there is one."""
        if self.peek(table, key) is not None:
            return False
        self._dynamodb.put_item(TableName=table, Item=item)
        return True

    def put(self, table: str, items: Iterable[Item]) -> None:
        """Put items in place of any others."""
        put_all(self._dynamodb, table, list(items))

    def evaluated(self, operation: str, params: Mapping[str, Any]) -> list[Item]:
        """Return the items that a Query or Scan reads, before its filter and whole: these are billed."""
        plain = {k: v for k, v in params.items() if k not in ("FilterExpression", "ProjectionExpression")}
        used = set(WORD.findall(str(plain.get("KeyConditionExpression", ""))))
        for name in ATTRIBUTES:
            kept = {word: value for word, value in plain.pop(name, {}).items() if word in used}
            plain |= {name: kept} if kept else {}
        answer = self._dynamodb.query(**plain) if operation == "Query" else self._dynamodb.scan(**plain)
        items: list[Item] = answer["Items"]
        return items


def _backend() -> Any:
    from moto.core.models import DEFAULT_ACCOUNT_ID
    from moto.dynamodb.models import dynamodb_backends

    return dynamodb_backends[DEFAULT_ACCOUNT_ID]["us-east-1"]


def _typed(value: Mapping[str, Any]) -> Any:
    from moto.dynamodb.models.dynamo_type import DynamoType

    return DynamoType(dict(value))
