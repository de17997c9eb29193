"""Makes the warehouse's lake tables, and gives them the columns that sql/ddl declares."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import sqlglot
from sqlglot import exp

from analytics.warehouse.translate import REDSHIFT
from analytics.warehouse.warehouse import Warehouse

SQL = Path(__file__).resolve().parents[2] / "sql"
SCHEMAS = ("lake", "staging", "facts", "dimensions", "marts")
# What the engines' catalogs call our types.
_FAMILIES = {"character varying": "varchar", "text": "varchar", "timestamp without time zone": "timestamp"}
_COLUMNS = """SELECT table_name, column_name, data_type, character_maximum_length AS size_max
FROM information_schema.columns WHERE table_schema = 'lake'"""


@dataclass(frozen=True, slots=True)
class Column:
    """A declared column. type: Redshift's type with its size, such as `VARCHAR(64)`."""

    name: str
    type: str

    @property
    def family(self) -> str:
        """The type without its size, in lower case."""
        return self.type.partition("(")[0].lower()

    @property
    def size_max(self) -> int | None:
        """The most bytes that a text may have; None for other types."""
        return int(self.type.partition("(")[2].rstrip(")")) if "(" in self.type else None


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the schema `lake`."""

    name: str
    columns: tuple[Column, ...]
    sql: str


@cache
def declared_tables() -> dict[str, Table]:
    """Return the tables that sql/ddl declares, by name."""
    return {path.stem: _table(path) for path in sorted((SQL / "ddl").glob("*.sql"))}


def _table(path: Path) -> Table:
    sql = path.read_text(encoding="utf-8")
    tree = sqlglot.parse_one(sql, read=REDSHIFT)
    columns = tuple(
        Column(each.name, each.args["kind"].sql(dialect=REDSHIFT)) for each in tree.find_all(exp.ColumnDef)
    )
    return Table(path.stem, columns, sql.strip().rstrip(";"))


def prepare(warehouse: Warehouse) -> list[str]:
    """Make missing schemas and tables, add missing columns, widen types; returns the statements for columns.

    Running it again changes nothing. A schema only grows: a column that is no longer declared stays.
    """
    create = [f"CREATE SCHEMA IF NOT EXISTS {schema}" for schema in SCHEMAS]
    warehouse.run([*create, *(table.sql for table in declared_tables().values())])
    found = {(row["table_name"], row["column_name"]): row for row in warehouse.rows(_COLUMNS)}
    changes = [
        change
        for table in declared_tables().values()
        for column in table.columns
        for change in _changes(table.name, column, found.get((table.name, column.name)))
    ]
    if changes:
        warehouse.run(changes)
    return changes


def _changes(table: str, column: Column, found: dict[str, object] | None) -> Iterator[str]:
    if found is None:
        yield f'ALTER TABLE lake.{table} ADD COLUMN "{column.name}" {column.type}'
    elif _is_narrower(found, column):
        # Redshift can alter few types, and only outside of a transaction. Adding a column always works.
        yield f'ALTER TABLE lake.{table} ADD COLUMN "{column.name}__wide" {column.type}'
        yield f'UPDATE lake.{table} SET "{column.name}__wide" = CAST("{column.name}" AS {column.type})'  # noqa: S608
        yield f'ALTER TABLE lake.{table} DROP COLUMN "{column.name}"'
        yield f'ALTER TABLE lake.{table} RENAME COLUMN "{column.name}__wide" TO "{column.name}"'


def _is_narrower(found: dict[str, object], column: Column) -> bool:
    name = str(found["data_type"]).lower()
    if _FAMILIES.get(name, name) != column.family:
        return True
    size = found["size_max"]
    return isinstance(size, int) and column.size_max is not None and size < column.size_max
