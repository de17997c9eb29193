"""The schema that rules.lake.entities declares, as Arrow and Glue write it."""

import pyarrow as pa

from rules.lake.entities import EXTRA, Entity, Type

ARROW = {
    Type.TEXT: pa.string(),
    Type.INTEGER: pa.int64(),
    Type.BOOLEAN: pa.bool_(),
    Type.DATE: pa.date32(),
    Type.TIMESTAMP: pa.timestamp("us", tz="UTC"),
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


def glue_columns(entity: Entity) -> list[dict[str, str]]:
    """Return the columns of an entity's curated files as the Glue catalog lists them, in the same order."""
    fields = [{"Name": f.name, "Type": HIVE[f.type], "Comment": f.doc} for f in entity.fields]
    comment = "fields beyond the schema, JSON text"
    return [*fields, {"Name": EXTRA, "Type": HIVE[Type.TEXT], "Comment": comment}]
