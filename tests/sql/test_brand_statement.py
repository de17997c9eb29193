"""What a brand's rewards came to in a month is what a plain loop over the ledger's rows says (rule 13)."""

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from analytics.warehouse.models import check_model, models
from tests.sql.conftest import Lake

if TYPE_CHECKING:
    from datetime import date

MART = "marts.brand_statement"


def test_a_statement_is_the_sum_of_a_brand_s_entries(told: Lake) -> None:
    wanted: dict[tuple[str, date], Counter[str]] = defaultdict(Counter)
    for each in told.duck.rows("SELECT * FROM lake.ledger WHERE brand IS NOT NULL"):
        sums = wanted[each["brand"], each["created_at"].date().replace(day=1)]
        counted, points = (
            ("redemptions", "points") if each["kind"] == "REDEEM" else ("reversals", "points_reversed")
        )
        sums.update({counted: 1, points: abs(each["points"]), "points_net": -each["points"]})
    assert {"redemptions", "reversals"} <= {name for each in wanted.values() for name in each}
    for warehouse in told.warehouses:
        found = warehouse.rows(f"SELECT * FROM {MART}")
        assert {(each["brand"], each["month_start"]): each for each in found}.keys() == wanted.keys()
        for each in found:
            sums = wanted[each["brand"], each["month_start"]]
            names = ("redemptions", "points", "reversals", "points_reversed", "points_net")
            assert [each[name] for name in names] == [sums[name] for name in names]
        assert check_model(warehouse, models()[MART]) == []
