"""In which of the lake's days an account has rows, on a real engine: what the publisher makes of its items."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from adapters.platform.items import decode_item
from local.operate.nightly_run import TABLES as READ
from local.operate.nightly_run import account_days
from local.stack import Stack
from rules.lake.entities import ENTITIES, row_of
from tests.support.engine import TABLES, Engine
from tests.support.town import Town


@pytest.fixture
def town(engine: Engine, tmp_path: Path) -> Iterator[Town]:
    made = Town(engine.client("dynamodb"), tmp_path, f"days{tmp_path.name[-8:]}", 3)
    yield made
    made.clear()


def test_each_item_tells_its_day(engine: Engine, town: Town) -> None:
    stack = Stack("", engine.endpoint, "us-east-1", {}, {name: name for name in TABLES}, "")
    first, second, other = town.users
    town.apply([town.event(user, number, 3 * number) for user in town.users[:2] for number in range(3)])
    town.apply([town.event(other, 9, 30)])
    found = account_days(stack, [first, second])
    wanted: dict[str, set[str]] = {}
    for entity, (table, key) in READ.items():
        for item in engine.client("dynamodb").scan(TableName=table)["Items"]:
            attributes: dict[str, Any] = decode_item(item)
            if attributes[key] in (first, second):
                row = row_of(ENTITIES[entity], attributes, datetime.now(UTC))
                wanted.setdefault(entity, set()).add(row["dt"])
    wanted["streaks"] |= wanted["ledger"]
    assert {entity: set(dates) for entity, dates in found.items()} == wanted
    assert len(found["daily_activity"]) > 1
    assert set(account_days(stack, [other])["events"]).isdisjoint(found["events"])
    with pytest.raises(ValueError, match="there is nothing of these accounts"):
        account_days(stack, ["nobody"])
