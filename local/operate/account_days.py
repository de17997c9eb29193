"""In which of the lake's days an account has rows: `streakline rebuild lake --user` curates these alone."""

from collections.abc import Iterable, Iterator
from typing import Any

from adapters import clock
from adapters.platform.items import item, plain
from adapters.platform.tables import query_all
from local.stack import Stack
from rules.lake.entities import ENTITIES, Unplaceable, row_of

TABLES = {
    "events": ("BPEvents", "user_id"),
    "daily_activity": ("DailyActivity", "user_id"),
    "ledger": ("RewardsLedger", "account_id"),
    "streaks": ("UserStreaks", "user_id"),
}


def account_days(stack: Stack, users: Iterable[str]) -> dict[str, list[str]]:
    """Return the dates (YYYY-MM-DD) of the partitions that have rows of some accounts, by entity.

    Each item of the tables tells the partition of its row. A profile has had a row for each change, and each
    entry of the ledger has changed it. Raises ValueError if no account has any item.
    """
    found: dict[str, set[str]] = {entity: set() for entity in TABLES}
    for user in users:
        for entity, dates in found.items():
            dates.update(_dates(stack, entity, user))
    if not any(found.values()):
        raise ValueError("there is nothing of these accounts")
    found["streaks"] |= found["ledger"]
    return {entity: sorted(dates) for entity, dates in found.items()}


def _dates(stack: Stack, entity: str, user: str) -> Iterator[str]:
    for attributes in _items(stack, entity, user):
        try:
            yield str(row_of(ENTITIES[entity], attributes, clock.now())["dt"])
        except Unplaceable:
            continue  # its line is not in the lake either


def _items(stack: Stack, entity: str, user: str) -> Iterator[dict[str, Any]]:
    table, key = TABLES[entity]
    found = query_all(
        stack.client("dynamodb"),
        TableName=stack.tables[table],
        KeyConditionExpression="#key = :user",
        ExpressionAttributeNames={"#key": key},
        ExpressionAttributeValues=item({":user": user}),
    )
    yield from map(plain, found)
