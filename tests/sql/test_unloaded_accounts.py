"""The warehouse's recompute by UNLOAD, on both engines, against the column-wise recompute of the same lake."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from analytics.recompute.recompute import recompute
from analytics.recompute.warehouse_recompute import accounts_query, unloaded_accounts
from analytics.warehouse.build import build
from analytics.warehouse.copy_unload import Unload
from analytics.warehouse.models import ancestors, models
from analytics.warehouse.warehouse import Warehouse
from rules.engagement.reconciliation import NIGHTS, slice_of, turn_digits
from tests.sql.conftest import ROLE, Databases, Lake, lake_at
from tests.support.lake_story import Story

TO_COME = datetime(2100, 1, 1, tzinfo=UTC)
ALL_TURNS = range(NIGHTS)
MODEL = "marts.streaks_recomputed"
Rows = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory, databases: Databases) -> Iterator[Lake]:
    """The story's first part, with the one model that is asked."""
    known = models()
    wanted = {MODEL, *(each.name for each in ancestors(known[MODEL], known))}
    for lake in lake_at(tmp_path_factory.mktemp("unloaded"), databases):
        lake.load("one", Story(days=20).first_part().write(lake.objects))
        for warehouse in lake.warehouses:
            build(warehouse, wanted)
        yield lake


def unloaded(lake: Lake, warehouse: Warehouse, name: str, since: datetime, turns: Any) -> Rows:
    query = accounts_query(since, turns)
    warehouse.run([Unload(query, f"{lake.root}/runs/{name}/accounts/", ROLE).sql()])
    keys = [each.key for each in lake.objects.list(f"runs/{name}/accounts/")]
    return {row["user_id"]: row for row in unloaded_accounts(lake.objects, keys).table.to_pylist()}


@pytest.mark.parametrize("engine", [0, 1], ids=["laptop", "data-api"])
def test_both_recomputes_tell_the_same_of_every_account(loaded: Lake, engine: int) -> None:
    found = unloaded(loaded, loaded.warehouses[engine], f"all-{engine}", TO_COME, ALL_TURNS)
    known = {
        row["user_id"]: row for row in recompute(loaded.objects, TO_COME.date(), anew=True).table.to_pylist()
    }
    assert found.keys() == known.keys()
    for user, row in known.items():
        assert found[user] == row, user


def test_an_account_is_named_if_it_has_changed_or_differs_or_has_its_turn(loaded: Lake) -> None:
    everybody = unloaded(loaded, loaded.duck, "everybody", TO_COME, ALL_TURNS)
    differ = unloaded(loaded, loaded.duck, "differ", TO_COME, ())
    turn = slice_of(next(each for each in everybody if each not in differ))
    named = unloaded(loaded, loaded.duck, "turn", TO_COME, {turn})
    assert named.keys() == differ.keys() | {each for each in everybody if slice_of(each) == turn}
    heads = sorted(row["ledger_head"] or "" for row in everybody.values())
    since = datetime.fromisoformat(heads[-3])
    changed = unloaded(loaded, loaded.duck, "changed", since, ())
    assert changed.keys() >= {
        user for user, row in everybody.items() if (row["ledger_head"] or "") >= heads[-3]
    }


def test_the_digits_of_all_slices_are_all_digits() -> None:
    found = [digits for turn in ALL_TURNS for digits in turn_digits({turn})]
    assert sorted(found) == [f"{value:03x}" for value in range(4096)]


def test_a_statement_is_read_as_it_was_written() -> None:
    made = Unload("SELECT 'O''Hara' AS a, 1", "s3://lake/runs/x/", "arn:aws:iam::1:role/copy")
    assert Unload.parse(made.sql()) == made
    assert Unload.parse("SELECT 1") is None
