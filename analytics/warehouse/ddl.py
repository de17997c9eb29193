"""Makes the warehouse's lake tables, and gives them the columns that are declared.

A table of an entity follows from its declaration in rules/lake. sql/ddl has those of loads and builds.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import sqlglot
from sqlglot import exp

from adapters.platform.tables import chunks
from analytics.warehouse.statements import STATEMENTS_MAX
from analytics.warehouse.translate import REDSHIFT
from analytics.warehouse.warehouse import Warehouse
from rules.lake.entities import loaded_entities
from rules.lake.schema import BYTES_MAX, EXTRA, Entity, Field, Required, Type
from rules.parts import ALL_PARTS, Part

SQL = Path(__file__).resolve().parents[2] / "sql"
SCHEMAS = ("lake", "staging", "facts", "dimensions", "marts")
DIGITS_MAX = 38  # of a decimal
LOAD_NUMBER = "load_number"  # the load that brought a row, or last changed it
TYPES = {
    Type.TEXT: "VARCHAR",
    Type.INTEGER: "BIGINT",
    Type.BOOLEAN: "BOOLEAN",
    Type.DATE: "DATE",
    Type.TIMESTAMP: "TIMESTAMP",
}
# The names of the declared types in the engines' catalogs.
_FAMILIES = {
    "character varying": "varchar",
    "text": "varchar",
    "timestamp without time zone": "timestamp",
    "numeric": "decimal",
}
_COLUMNS = """SELECT table_name, column_name, data_type, character_maximum_length AS size_max,
numeric_precision AS digits, numeric_scale AS decimals
FROM information_schema.columns WHERE table_schema = 'lake'"""


@dataclass(frozen=True, slots=True)
class Column:
    """A column as it is declared, or as the engine's catalog has it."""

    name: str
    type: str  # Redshift's type with its size, such as `VARCHAR(64)`

    @property
    def family(self) -> str:
        """The type without its size, in lower case."""
        return self.type.partition("(")[0].lower()

    @property
    def sizes(self) -> tuple[int, ...]:
        """The most bytes of a text, or digits before and behind a decimal's point; () for other types."""
        sizes = tuple(map(int, re.findall(r"\d+", self.type)))
        if self.family != "decimal":
            return sizes
        digits, decimals = (*sizes, 0)[:2]
        return digits - decimals, decimals


StoredColumns = dict[str, Column]  # the columns of a stored table, by name


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the schema `lake`."""

    name: str
    columns: tuple[Column, ...]
    sql: str  # the statement that creates it


@cache
def declared_tables(deployed: frozenset[Part] = ALL_PARTS) -> dict[str, Table]:
    """Return the tables of the schema `lake` of a deployment with some parts, by name."""
    files = {path.stem: _table(path) for path in sorted((SQL / "ddl").glob("*.sql"))}
    return {name: entity_table(entity) for name, entity in loaded_entities(deployed).items()} | files


def entity_table(entity: Entity) -> Table:
    """Return an entity's table: its fields, then `extra` and the number of the load."""
    fields = [*entity.fields, Field(EXTRA, Type.TEXT, ""), Required(LOAD_NUMBER, Type.INTEGER, "")]
    columns = tuple(Column(field.name, column_type(field)) for field in fields)
    listed = (
        f'"{field.name}" {column.type}{" NOT NULL" * field.required} ENCODE {_encoding(entity, field)}'
        for field, column in zip(fields, columns, strict=True)
    )
    spread = f"KEY DISTKEY ({entity.spread})" if entity.spread else "ALL"
    sql = (
        f"CREATE TABLE IF NOT EXISTS lake.{entity.name} ({', '.join(listed)}, "
        f"PRIMARY KEY ({', '.join(entity.key)})) DISTSTYLE {spread} COMPOUND SORTKEY ({entity.occurred})"
    )
    return Table(entity.name, columns, sql)


def column_type(field: Field) -> str:
    """Return Redshift's type of a field, such as `VARCHAR(64)`."""
    return f"VARCHAR({field.bytes_max})" if field.type is Type.TEXT else TYPES[field.type]


def _encoding(entity: Entity, field: Field) -> str:
    """Return how Redshift compresses a column. A sort key and a boolean are not compressed."""
    if field.name == entity.occurred or field.type is Type.BOOLEAN:
        return "RAW"
    return "ZSTD" if field.type is Type.TEXT else "AZ64"


def _table(path: Path) -> Table:
    sql = path.read_text(encoding="utf-8")
    tree = sqlglot.parse_one(sql, read=REDSHIFT)
    columns = tuple(
        Column(column.name, column.args["kind"].sql(dialect=REDSHIFT))
        for column in tree.find_all(exp.ColumnDef)
    )
    return Table(path.stem, columns, sql.strip().rstrip(";"))


def prepare(warehouse: Warehouse, deployed: frozenset[Part] = ALL_PARTS) -> list[str]:
    """Create missing schemas and tables, add missing columns, and recreate tables whose types have changed.

    Returns the statements for columns and for recreated tables. A repetition changes nothing. A schema only
    grows: a column that is no longer declared stays. Raises StatementFailed.
    """
    create = [f"CREATE SCHEMA IF NOT EXISTS {schema}" for schema in SCHEMAS]
    create += [table.sql for table in declared_tables(deployed).values()]
    for batch in chunks(create, STATEMENTS_MAX):
        warehouse.run(batch)
    stored: dict[str, StoredColumns] = {}  # by table
    for row in warehouse.rows(_COLUMNS):
        column = _stored_column(row)
        stored.setdefault(str(row["table_name"]), {})[column.name] = column
    changes: list[list[str]] = []
    for table in declared_tables(deployed).values():
        changes += _changes(table, stored.get(table.name, {}))
    if changes:
        # Views keep the types that they were created with, so all models are built anew.
        warehouse.run(["DELETE FROM lake.builds"])
    for change in changes:
        warehouse.run(change)
    return list(chain.from_iterable(changes))


def _stored_column(row: dict[str, Any]) -> Column:
    """Return a column from its row of the catalog (_COLUMNS)."""
    family = str(row["data_type"]).lower().partition("(")[0]
    family = _FAMILIES.get(family, family)
    sizes = {
        "varchar": f"({row['size_max'] or BYTES_MAX})",  # PostgreSQL and DuckDB may say no length
        "decimal": f"({row['digits']}, {row['decimals']})",
    }
    return Column(str(row["column_name"]), family.upper() + sizes.get(family, ""))


def _changes(table: Table, stored: StoredColumns) -> Iterator[list[str]]:
    """Yield the transactions that give a table its declared columns.

    If a column's type has changed or is to be widened, the table is recreated. Redshift widens few types in
    place, and no column that it spreads or sorts by.
    """
    both = [(stored[column.name], column) for column in table.columns if column.name in stored]
    if any(_wide_type(present, declared) != present.type for present, declared in both):
        yield _recreate_statements(table, stored)
        return
    for column in table.columns:
        if column.name not in stored:
            yield [f'ALTER TABLE lake.{table.name} ADD COLUMN "{column.name}" {column.type}']


def _recreate_statements(table: Table, stored: StoredColumns) -> list[str]:
    tree = sqlglot.parse_one(table.sql, read=REDSHIFT)
    tree.set("exists", False)
    tree.this.set("this", exp.to_table(f"lake.{table.name}__wide"))
    types = {column.name: _wide_type(stored.get(column.name, column), column) for column in table.columns}
    for column in tree.find_all(exp.ColumnDef):
        column.set("kind", exp.DataType.build(types[column.name], dialect=REDSHIFT))
        if column.name not in stored:  # earlier rows have no value for it, so it cannot be NOT NULL
            constraints = [
                constraint
                for constraint in column.constraints
                if not isinstance(constraint.kind, exp.NotNullColumnConstraint)
            ]
            column.set("constraints", constraints)
    for name in sorted(stored.keys() - types.keys()):  # no longer declared: it stays
        types[name] = stored[name].type
        kind = exp.DataType.build(types[name], dialect=REDSHIFT)
        tree.this.append("expressions", exp.ColumnDef(this=exp.to_identifier(name, quoted=True), kind=kind))
    stored_names = [name for name in types if name in stored]
    names = ", ".join(f'"{name}"' for name in stored_names)
    values = ", ".join(f'CAST("{name}" AS {types[name]})' for name in stored_names)
    return [
        tree.sql(dialect=REDSHIFT),
        f"INSERT INTO lake.{table.name}__wide ({names}) SELECT {values} FROM lake.{table.name}",  # noqa: S608
        f"DROP TABLE lake.{table.name}",
        f"ALTER TABLE lake.{table.name}__wide RENAME TO {table.name}",
    ]


def _wide_type(stored: Column, declared: Column) -> str:
    """Return the type that has all digits or bytes of both columns; the declared type if families differ.

    Of more than DIGITS_MAX digits it lacks those before the point.
    """
    if stored.family != declared.family:
        return declared.type
    sizes = tuple(map(max, stored.sizes, declared.sizes))
    if sizes == stored.sizes:
        return stored.type
    if sizes == declared.sizes:
        return declared.type
    before, behind = sizes  # only a decimal has two
    return f"DECIMAL({min(DIGITS_MAX, before + behind)}, {behind})"
