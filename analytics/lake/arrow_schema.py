"""The schema that rules.lake.entities declares, as Arrow, DuckDB and Glue write it."""

from functools import cache

import pyarrow as pa

from rules.lake.entities import EXTRA, Entity, Type

ARROW = {
    Type.TEXT: pa.string(),
    Type.INTEGER: pa.int64(),
    Type.BOOLEAN: pa.bool_(),
    Type.DATE: pa.date32(),
    Type.TIMESTAMP: pa.timestamp("us", tz="UTC"),
}
DUCKDB = {
    Type.TEXT: "VARCHAR",
    Type.INTEGER: "BIGINT",
    Type.BOOLEAN: "BOOLEAN",
    Type.DATE: "DATE",
    Type.TIMESTAMP: "TIMESTAMPTZ",
}
HIVE = {
    Type.TEXT: "string",
    Type.INTEGER: "bigint",
    Type.BOOLEAN: "boolean",
    Type.DATE: "date",
    Type.TIMESTAMP: "timestamp",
}


def arrow_schema(entity: Entity) -> pa.Schema:
    """Return the columns of an entity's curated files: its fields as declared, then `extra`."""
    # In the files every column is nullable, even a required one: curation has checked the rows.
    fields = [pa.field(field.name, ARROW[field.type]) for field in entity.fields]
    return pa.schema([*fields, pa.field(EXTRA, pa.string())])


@cache
def columns(entity: Entity) -> tuple[tuple[str, str], ...]:
    """Return an entity's curated columns as (name, DuckDB type), in the order of `arrow_schema`."""
    fields = [(field.name, DUCKDB[field.type]) for field in entity.fields]
    return (*fields, (EXTRA, DUCKDB[Type.TEXT]))


def glue_columns(entity: Entity) -> list[dict[str, str]]:
    """Return the columns of an entity's curated files as the Glue catalog lists them, in the same order."""
    fields = [{"Name": f.name, "Type": HIVE[f.type], "Comment": f.doc} for f in entity.fields]
    comment = "fields beyond the schema, JSON text"
    return [*fields, {"Name": EXTRA, "Type": HIVE[Type.TEXT], "Comment": comment}]
