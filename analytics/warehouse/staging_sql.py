"""The staging models of the lake's entities: each follows from its entity's declaration in rules/lake."""

from collections.abc import Iterator
from typing import Any

from analytics.warehouse.ddl import LOAD_NUMBER
from rules.lake.schema import Entity, Field, StagedColumn

LOAD_NUMBER_DOC = "the newest load that brought this row, or a row that it is made of"


def staged_columns(field: Field) -> Iterator[StagedColumn]:
    """Yield the columns that a staging model has of a field: mostly one, the field as it is."""
    as_it_is = f"COALESCE({field.name}, {field.default})" if field.default else field.name
    for each in field.staged or (StagedColumn(field.name),):
        yield StagedColumn(each.name, each.sql or as_it_is, each.doc or field.doc)


def columns_of(entity: Entity) -> list[StagedColumn]:
    """Return a staging model's columns, in order: those of the fields, and load_number."""
    found = [column for field in entity.fields for column in staged_columns(field)]
    return [*found, StagedColumn(LOAD_NUMBER, LOAD_NUMBER, LOAD_NUMBER_DOC)]


def staging_sql(entity: Entity) -> str:
    """Return the model's SELECT. Of rows that are versions of one thing, it has the newest."""
    listed = ",\n".join(
        f"    {each.sql}" if each.sql == each.name else f"    {each.sql} AS {each.name}"
        for each in columns_of(entity)
    )
    if not entity.newest_of:
        return f"SELECT\n{listed}\nFROM lake.{entity.name}"
    thing = ", ".join(f"v.{each}" for each in entity.newest_of)
    return f"""SELECT
{listed}
FROM (
    SELECT
        v.*,
        ROW_NUMBER() OVER (PARTITION BY {thing} ORDER BY v.version DESC) AS place
    FROM lake.{entity.name} AS v
) AS versions
WHERE place = 1"""  # noqa: S608


def staging_about(entity: Entity) -> dict[str, Any]:
    """Return what NAME.yml of another model says, as far as it follows from the declaration."""
    key = [next(staged_columns(entity.field(name))).name for name in entity.newest_of or entity.key]
    columns = {each.name: each.doc for each in columns_of(entity)}
    return {"key": key, "materialized": "view", "columns": columns}
