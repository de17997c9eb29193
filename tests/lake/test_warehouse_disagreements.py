"""One user who differs in the warehouse costs the reading of few others, even if all ids begin alike."""

from collections.abc import Iterator
from datetime import date
from typing import TYPE_CHECKING, Any, cast

import duckdb
import pyarrow as pa
import pyarrow.compute
import pytest

from analytics.recompute.user_shares import UserShare
from analytics.recompute.warehouse_disagreements import COLUMNS, disagreements
from rules.turns import share_of

if TYPE_CHECKING:
    from analytics.warehouse.warehouse import Warehouse

USERS = 5_000


class Answering:
    """A warehouse that only answers queries; it counts the rows."""

    def __init__(self, table: pa.Table) -> None:
        self.db = duckdb.connect()
        self.db.execute("CREATE SCHEMA marts")
        self.db.register("told", table)
        self.db.execute("CREATE TABLE marts.streaks_recomputed AS FROM told")
        self.answered: list[int] = []

    def rows(self, sql: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.db.sql(sql).to_arrow_table().to_pylist()
        self.answered.append(len(found))
        return found


def recomputed() -> pa.Table:
    numbers = list(range(USERS))
    columns: dict[str, Any] = dict.fromkeys(COLUMNS, numbers)
    columns["last_activity_date"] = pa.array([date(2026, 3, 1)] * USERS)
    columns["freezes_spent"] = pa.nulls(USERS, pa.string())
    ids = [f"usr_{number:08}" for number in numbers]
    return pa.table({"user_id": ids, "entries": numbers, **columns})


def in_shares(shares: int) -> Iterator[tuple[UserShare, pa.Table]]:
    table = recomputed()
    numbers = pa.array([share_of(user, shares) for user in table["user_id"].to_pylist()])
    for number in range(shares):
        yield UserShare(number, shares), table.filter(pa.compute.equal(numbers, number))


def test_the_users_of_a_share_that_failed_are_not_compared() -> None:
    warehouse = Answering(recomputed())
    warehouse.db.execute("UPDATE marts.streaks_recomputed SET balance = 1 WHERE user_id = 'usr_00000123'")
    theirs = share_of("usr_00000123", 8)
    some = [each for each in in_shares(8) if each[0].number != theirs]
    assert disagreements(cast("Warehouse", warehouse), some) == []


def test_nobody_differs_and_no_user_is_asked_for() -> None:
    warehouse = Answering(recomputed())
    assert disagreements(cast("Warehouse", warehouse), in_shares(1)) == []
    assert len(warehouse.answered) == 1


@pytest.mark.parametrize("shares", [1, 8])
def test_one_user_who_differs_costs_a_few_rows(shares: int) -> None:
    warehouse = Answering(recomputed())
    warehouse.db.execute("UPDATE marts.streaks_recomputed SET balance = 1 WHERE user_id = 'usr_00000123'")
    (found,) = disagreements(cast("Warehouse", warehouse), in_shares(shares))
    assert found["user_id"] == "usr_00000123"
    assert (found["lake"][-1], found["warehouse"][-1]) == ("123", "1")
    assert warehouse.answered[1] < 15, "of 5,000 users"
