"""Reads and writes the desk's tables without the meter's notice."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import botocore.session

from adapters.platform.items import Item
from adapters.platform.tables import put_all

WORD = re.compile(r"[#:]\w+")


class UnmeteredTables:
    """The tables of moto, by a client that the meter does not watch. Make it while moto is in force."""

    def __init__(self) -> None:
        self._dynamodb: Any = botocore.session.get_session().create_client("dynamodb")

    def create(self, definition: Mapping[str, Any]) -> None:
        """Create a table."""
        self._dynamodb.create_table(**definition)

    def read(self, table: str, key: Item) -> Item | None:
        """Return an item, or None.

        It comes straight out of moto's memory, because the meter reads before and after each write.
        """
        from moto.core.models import DEFAULT_ACCOUNT_ID
        from moto.dynamodb.models import dynamodb_backends
        from moto.dynamodb.models.dynamo_type import DynamoType

        stored = dynamodb_backends[DEFAULT_ACCOUNT_ID]["us-east-1"].tables[table]
        found: Any = stored.items.get(DynamoType(dict(key[stored.hash_key_attr])))
        if found is not None and stored.range_key_attr:
            found = found.get(DynamoType(dict(key[stored.range_key_attr])))
        return None if not found else dict(found.to_json()["Attributes"])

    def insert(self, table: str, key: Item, item: Item) -> bool:
        """Put an item; returns False, and puts nothing, if there is one."""
        if self.read(table, key) is not None:
            return False
        self._dynamodb.put_item(TableName=table, Item=item)
        return True

    def put(self, table: str, items: Iterable[Item]) -> None:
        """Put items in place of any others."""
        put_all(self._dynamodb, table, list(items))

    def items_read(self, operation: str, params: Mapping[str, Any]) -> list[Item]:
        """Return the items that a Query or Scan reads, whole and before its filter: these are billed."""
        plain = {
            name: value
            for name, value in params.items()
            if name not in ("FilterExpression", "ProjectionExpression")
        }
        # DynamoDB refuses names and values that only the filter used.
        used = set(WORD.findall(str(plain.get("KeyConditionExpression", ""))))
        for name in ("ExpressionAttributeNames", "ExpressionAttributeValues"):
            words = {word: value for word, value in plain.pop(name, {}).items() if word in used}
            plain |= {name: words} if words else {}
        answer = self._dynamodb.query(**plain) if operation == "Query" else self._dynamodb.scan(**plain)
        items: list[Item] = answer["Items"]
        return items
