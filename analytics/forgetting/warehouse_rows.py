"""Deletes rows of persons from the warehouse's tables. Their residues are loaded under other names.

This comes between the night's loads and its models. The dates of deleted rows are noted as a load notes its
dates, so all models of these dates are built anew.
"""

# ruff: noqa: S608 (names of tables and columns are from the catalog and our declarations)

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from analytics.forgetting.erasees import KIND_OF_COLUMN, Erasee
from analytics.warehouse.ddl import SCHEMAS
from analytics.warehouse.load import LOCK
from analytics.warehouse.statements import literal, literal_lists
from analytics.warehouse.warehouse import Warehouse
from rules.lake.entities import LOADED

TABLES = f"""
SELECT c.table_schema || '.' || c.table_name AS name, c.column_name AS col
FROM information_schema.columns AS c
INNER JOIN information_schema.tables AS t
    ON t.table_schema = c.table_schema AND t.table_name = c.table_name
WHERE t.table_type = 'BASE TABLE' AND c.table_schema IN ({", ".join(map(literal, SCHEMAS))})
    AND c.column_name IN ({", ".join(map(literal, sorted(KIND_OF_COLUMN)))})
ORDER BY 1, 2
"""


@dataclass(frozen=True, slots=True)
class WarehouseRows:
    """The rows of the persons who wait."""

    warehouse: Warehouse
    by_kind: Mapping[str, Mapping[str, Erasee]]  # kind of name -> name -> the person who waits

    def count(self) -> Counter[str]:
        """Return how many rows there are, by erasure."""
        counts: Counter[str] = Counter()
        for table, column, condition in self._conditions():
            select = f"SELECT {column} AS person, COUNT(*) AS number FROM {table} WHERE {condition}"
            waiting = self.by_kind[KIND_OF_COLUMN[column]]
            for row in self.warehouse.rows(f"{select} GROUP BY {column}"):
                counts[waiting[row["person"]].erasure_id] += int(row["number"])
        return counts

    def remove(self) -> None:
        """Delete the rows, table by table. A repetition changes nothing."""
        for table, _, condition in self._conditions():
            delete = f"DELETE FROM {table} WHERE {condition}"
            schema, _, name = table.partition(".")
            notes = [LOCK, _note_dates(name, condition)] if schema == "lake" and name in LOADED else []
            self.warehouse.run([*notes, delete])

    def _conditions(self) -> Iterator[tuple[str, str, str]]:
        """Yield a table, its column, and a condition for its rows, for as many names as a statement takes."""
        for row in self.warehouse.rows(TABLES):
            for names in literal_lists(sorted(self.by_kind[KIND_OF_COLUMN[row["col"]]])):
                yield row["name"], row["col"], f"{row['col']} IN ({names})"


def _note_dates(entity: str, condition: str) -> str:
    occurred = LOADED[entity].occurred
    number = f"(SELECT COALESCE(MAX(load_number), 0) + 1 FROM lake.loads WHERE entity = {literal(entity)})"
    return (
        f"INSERT INTO lake.loads SELECT {literal(entity)}, latest.load_number, deleted.dt FROM "
        f'(SELECT DISTINCT CAST("{occurred}" AS DATE) AS dt FROM lake.{entity} '
        f"WHERE {condition}) AS deleted CROSS JOIN (SELECT {number} AS load_number) AS latest"
    )
