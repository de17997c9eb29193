"""The events that the benchmarks apply: users with open accounts, each of whom starts a new date."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import NAMESPACE_OID, uuid5

BATCH = 100  # records in a batch
PER_USER = (1, 5, 20)  # events of a user in a batch
DAY_ONE = datetime(2026, 3, 20, 8, tzinfo=UTC)
DAY = timedelta(days=1)
# Twenty events just reach the daily cap. The naive design does not know the cap, so they must not cross it.
KIND, POINTS = "LESSON_COMPLETED", 10
Body = dict[str, Any]
Record = dict[str, Any]


def users(per_user: int) -> list[str]:
    """Return as many users as fill one batch."""
    return [str(uuid5(NAMESPACE_OID, f"{per_user} {number}")) for number in range(BATCH // per_user)]


def bodies(who: Sequence[str], per_user: int, at: datetime) -> list[Body]:
    """Return events as an app sends them: user by user, a minute apart, from `at` on."""
    return [_body(user, at + timedelta(minutes=number)) for user in who for number in range(per_user)]


def _body(user: str, occurred: datetime) -> Body:
    return {
        "user_id": user,
        "idempotency_key": str(uuid5(NAMESPACE_OID, f"{user} {occurred}")),
        "event_type": KIND,
        "occurred_at": occurred.isoformat(),
        "timezone": "Europe/Berlin",
        "source": "app",
        "properties": {"lesson": "geometry-12", "score": 87},
    }


def record(number: int, image: Body) -> Record:
    """Return a stream record of a stored event, given as a DynamoDB item."""
    return {"eventName": "INSERT", "dynamodb": {"SequenceNumber": f"{number:021}", "NewImage": image}}
