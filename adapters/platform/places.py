"""A few places for each owner: who holds none must wait. A place expires by itself, if its holder dies.

Places are items of the table Limits, whose items expire at `expires_at`.
"""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from adapters.platform.items import item

KEY = "counter"


@dataclass(frozen=True, slots=True)
class Places:
    """table: Limits. most: places of each owner. seconds: how long one is held at most."""

    dynamodb: Any
    table: str
    most: int
    seconds: int

    @contextmanager
    def held(self, owner: str, now: datetime) -> Iterator[bool]:
        """Hold a place while the block runs; False: the owner has none left."""
        holder, place = uuid.uuid4().hex, None
        # Holders begin to look at different places, so that most find one with the first request.
        first = int(holder, 16)
        for number in range(self.most):
            name = f"{owner}#{(first + number) % self.most}"
            if self._take(name, holder, int(now.timestamp())):
                place = name
                break
        try:
            yield place is not None
        finally:
            if place:
                self._free(place, holder)

    def _take(self, name: str, holder: str, now: int) -> bool:
        try:
            self.dynamodb.put_item(
                TableName=self.table,
                Item=item({KEY: name, "holder": holder, "expires_at": now + self.seconds}),
                ConditionExpression="attribute_not_exists(holder) OR expires_at <= :now",
                ExpressionAttributeValues=item({":now": now}),
            )
        except self.dynamodb.exceptions.ConditionalCheckFailedException:
            return False
        return True

    def _free(self, name: str, holder: str) -> None:
        try:
            self.dynamodb.delete_item(
                TableName=self.table,
                Key=item({KEY: name}),
                ConditionExpression="holder = :holder",
                ExpressionAttributeValues=item({":holder": holder}),
            )
        except self.dynamodb.exceptions.ConditionalCheckFailedException:
            return  # it has expired, and somebody else holds it
