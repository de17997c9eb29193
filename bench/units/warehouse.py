"""Counts the statements that the nightly run sends to a warehouse that has built all models before."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import date
from typing import Any

from analytics.warehouse import build as building
from analytics.warehouse import load
from analytics.warehouse.models import check, fingerprint, models
from rules.lake.entities import LOADED

# Of a load, besides its merge: a lock, a staging table, its COPY, and two that replace the bookkeeping.
LOAD_STATEMENTS = 5


class _CountingWarehouse:
    """A warehouse that has every model as it is declared now, and a new day of each entity."""

    def __init__(self) -> None:
        self.statement_count = 0

    def run(self, statements: Sequence[str]) -> None:
        self.statement_count += len(statements)

    def rows(self, sql: str) -> list[dict[str, Any]]:
        self.statement_count += 1
        declared = models()
        if sql == building._RELATIONS:
            return [
                {"name": name, "kind": "VIEW" if model.materialized == "view" else "BASE TABLE"}
                for name, model in declared.items()
            ]
        if sql == building._BUILDS:
            return [
                {"model": name, "fingerprint": fingerprint(model, declared), "loads": "", "tested": None}
                for name, model in declared.items()
            ]
        if sql == building._LOADS:
            return [{"entity": name, "newest": 1} for name in LOADED]
        return [{"dt": date(2026, 1, 31)}] if "FROM lake.loads" in sql else []

    def kept_open(self) -> AbstractContextManager[None]:
        return nullcontext()


def statements_a_night() -> int:
    """Return how many statements a night's load, models and tests take."""
    warehouse = _CountingWarehouse()
    building.build(warehouse)
    check(warehouse)
    loads = (LOAD_STATEMENTS + len(list(load.merge_statements(entity, [()]))) for entity in LOADED.values())
    return warehouse.statement_count + sum(loads)
