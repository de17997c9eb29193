"""The runbook's query for events that no ledger entry names: it runs on both engines, and finds what is lost."""

import re

from tests.sql.conftest import Lake
from tests.support.redshift_rules import problems
from tests.support.template import ROOT

QUERIES = re.findall(r"```sql\n(.*?)```", (ROOT / "docs/runbook.md").read_text(encoding="utf-8"), re.DOTALL)


def found(lake: Lake, sql: str) -> set[str]:
    duck, redshift = (warehouse.rows(sql) for warehouse in lake.warehouses)
    assert duck == redshift
    return {row["event_id"] for row in duck if row["event_id"]}


def test_events_without_an_entry(told: Lake) -> None:
    (sql,) = QUERIES
    assert list(problems(sql)) == []
    assert found(told, sql) == set()
    # A ledger that has lost every other entry.
    lossy = sql.replace("facts.ledger", "(SELECT * FROM facts.ledger WHERE seq % 2 = 0)")
    stored = "event_id IN (SELECT event_id FROM facts.events)"
    lost = found(told, f"SELECT event_id FROM facts.ledger WHERE seq % 2 = 1 AND {stored} ORDER BY event_id")
    assert found(told, lossy) == lost != set()
