"""How many polls of an agent wait at once: each holds one of few places, which expires by itself.

A place is an item of the Subscriptions table, whose items expire. If a function dies, its place is free again
after HELD_SECONDS_MAX.
"""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from adapters.platform.items import item
from adapters.questions.subscription_items import KEY, poll_key

PLACES = 5
# Longer than any poll waits.
HELD_SECONDS_MAX = 30


@dataclass(frozen=True, slots=True)
class PollPlaces:
    """Places of all agents."""

    dynamodb: Any
    table: str

    @contextmanager
    def held(self, agent_id: str, now: datetime) -> Iterator[bool]:
        """Hold a place while the block runs; False: the agent has none left."""
        owner, place = uuid.uuid4().hex, None
        # Polls of one agent begin to look at different places, so that most find one with the first request.
        first = int(owner, 16)
        for number in range(PLACES):
            key = poll_key(agent_id, (first + number) % PLACES)
            if self._take(key, owner, int(now.timestamp())):
                place = key
                break
        try:
            yield place is not None
        finally:
            if place:
                self._free(place, owner)

    def _take(self, key: str, owner: str, now: int) -> bool:
        try:
            self.dynamodb.put_item(
                TableName=self.table,
                Item=item({KEY: key, "holder": owner, "expires_at": now + HELD_SECONDS_MAX}),
                ConditionExpression=f"attribute_not_exists({KEY}) OR expires_at <= :now",
                ExpressionAttributeValues=item({":now": now}),
            )
        except self.dynamodb.exceptions.ConditionalCheckFailedException:
            return False
        return True

    def _free(self, key: str, owner: str) -> None:
        try:
            self.dynamodb.delete_item(
                TableName=self.table,
                Key=item({KEY: key}),
                ConditionExpression="holder = :owner",
                ExpressionAttributeValues=item({":owner": owner}),
            )
        except self.dynamodb.exceptions.ConditionalCheckFailedException:
            return  # it has expired, and another poll holds it
