"""What a restore deletes of the tables that are to be replaced."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from adapters.platform.items import Item
from analytics.restore.restorer import Restorer


class Table:
    """Items by their partition key."""

    def __init__(self, *partitions: str) -> None:
        self.items = [{"user_id": {"S": partition}} for partition in partitions]

    def all_items(self) -> list[Item]:
        return list(self.items)

    def partition_of(self, item: Item) -> str:
        return str(item["user_id"]["S"])

    def delete(self, item: Item) -> None:
        self.items.remove(item)


class EmptyLake:
    def users(self) -> Iterator[Any]:
        yield from ()

    ownerless_items = users


class NoTombstones:
    def look(self) -> None:
        pass


@pytest.mark.parametrize(
    ("keep", "left"),
    [
        ((), ["shop#order-1"]),
        (("UserStreaks",), ["shop#order-1"]),
        (("Rewards",), ["nobody-ever", "shop#order-1"]),
        (("Rewards", "UserStreaks"), ["nobody-ever", "shop#order-1"]),
    ],
)
def test_a_table_that_is_kept_loses_nothing_though_it_is_to_be_replaced(
    keep: tuple[str, ...], left: list[str]
) -> None:
    table: Any = Table("nobody-ever", "shop#order-1")
    lake, erased, unused = (cast("Any", each) for each in (EmptyLake(), NoTombstones(), None))
    restorer = Restorer(lake, {"Rewards": table}, unused, unused, unused, erased, keep, ("Rewards",))
    report = restorer.run(datetime(2027, 2, 1, tzinfo=UTC))
    assert [table.partition_of(item) for item in table.items] == left
    assert report.changes["Rewards"] == 2 - len(left)
