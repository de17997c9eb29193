"""The models' tests find what is wrong: each planted error, and by the test that is meant for it."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from analytics.leads.lead_repair import LEADS
from analytics.warehouse.build import build
from analytics.warehouse.duckdb_warehouse import DuckWarehouse
from analytics.warehouse.models import ModelError, ancestors, check_model, models, queries_of_tests
from tests.sql.conftest import Lake

FIRST = "(SELECT MIN(event_id) FROM lake.events)"
PLANTED = {
    "a gap in a ledger": (
        "DELETE FROM lake.ledger WHERE account_id = 'user-0' AND seq = 3",
        ("marts.ledger_quality", "expression missing_entries = 0"),
    ),
    "a wrong balance": (
        "UPDATE lake.ledger SET balance = balance + 1 WHERE account_id = 'user-1' AND seq = 2",
        ("marts.ledger_quality", "expression wrong_balances = 0"),
    ),
    "a balance below 0": (
        "UPDATE lake.ledger SET balance = -1 WHERE account_id = 'user-1' AND seq = 2",
        ("marts.ledger_quality", "sql a balance below 0"),
    ),
    "an unknown kind": (
        "UPDATE lake.ledger SET kind = 'GIFT' WHERE account_id = 'user-1' AND seq = 2",
        ("staging.ledger", "accepted_values kind"),
    ),
    "an event twice": (
        f"INSERT INTO lake.events SELECT * FROM lake.events WHERE event_id = {FIRST}",
        ("facts.events", "unique event_id, user_id"),
    ),
    "a lost event": (
        f"DELETE FROM lake.events WHERE event_id = {FIRST}",
        ("marts.data_quality", "expression loaded IS NULL OR loaded = curated"),
    ),
    "a line that nobody accounts for": (
        "UPDATE lake.curation SET rows_in = rows_in + 1 WHERE entity = 'events' AND dt = DATE '2026-01-31'",
        ("marts.data_quality", "expression unexplained = 0"),
    ),
    "a lost event of a lead": (
        "DELETE FROM lake.lead_events WHERE event_type NOT LIKE 'leads%'",
        ("marts.lead_quality", "expression is_settled = FALSE OR different_features = 0"),
    ),
    "a feature that is off by one": (
        "UPDATE lake.lead_features SET activity_state = '0:0:0:2020-01-01:2020-01-01'",
        ("marts.lead_quality", "expression is_settled = FALSE OR different_features = 0"),
    ),
    "a streak longer than the longest": (
        "UPDATE lake.streaks SET current_streak = 99 WHERE user_id = 'user-0'",
        ("staging.profiles", "expression current_streak <= longest_streak"),
    ),
    "no points at all": (
        f"UPDATE lake.events SET points_awarded = -5 WHERE event_id = {FIRST}",
        ("staging.events", "expression points_awarded >= 0"),
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_found(told: Lake, tmp_path: Path, name: str) -> None:
    statement, (model, test) = PLANTED[name]
    shutil.copy(told.duck.path, tmp_path / "copy.duckdb")
    copy = DuckWarehouse(tmp_path / "copy.duckdb")
    known = models()
    with copy.kept_open():
        copy.run([statement])
        build(copy, only={model, *(each.name for each in ancestors(known[model], known))}, full=True)
        found = check_model(copy, known[model])
    assert test in {each.test for each in found}
    assert all(each.model == model and each.rows > 0 for each in found)
    if name == "a feature that is off by one":
        named = copy.rows(LEADS)
        assert named
        assert {row["different"] for row in named} == {"recency_days"}


def test_a_test_that_nobody_knows() -> None:
    wrong = replace(models()["staging.ledger"], tests={"not_nul": ["kind"]})
    with pytest.raises(ModelError, match="unknown tests"):
        list(queries_of_tests(wrong))
