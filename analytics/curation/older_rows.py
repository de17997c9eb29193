"""Rows of a curated file that was written under an older declaration, as today's declares them."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from analytics.lake.arrow import array_of, arrow_schema
from rules.lake.entities import EXTRA, Entity
from rules.lake.schema import Field
from rules.lake.valid_row import read_extra


def with_todays_columns(batch: pa.RecordBatch, entity: Entity) -> pa.Table:
    """Return rows in the entity's columns: types are widened, and fields come out of `extra`, or are null."""
    schema = arrow_schema(entity)
    there = set(batch.schema.names)
    columns = {each.name: batch[each.name].cast(each.type) for each in schema if each.name in there}
    lacking = [each for each in entity.fields if each.name not in there]
    columns |= {each.name: pa.nulls(batch.num_rows, schema.field(each.name).type) for each in lacking}
    if lacking and EXTRA in there:
        columns |= _columns_from_extra(columns[EXTRA], lacking, schema)
    return pa.table([columns[each.name] for each in schema], schema=schema)


def _columns_from_extra(extra: pa.Array, fields: Sequence[Field], schema: pa.Schema) -> dict[str, pa.Array]:
    """Return the columns of fields that wait in `extra`, and what is left of it."""
    has_any = pc.fill_null(
        pc.match_substring_regex(extra, "|".join(f'"{each.name}"' for each in fields)), False
    )
    if not pc.any(has_any).as_py():
        return {}
    values: dict[str, list[Any]] = {each.name: [] for each in fields}
    values[EXTRA] = []
    for text, is_asked in zip(extra.to_pylist(), has_any.to_pylist(), strict=True):
        found, rest = read_extra(text, fields) if is_asked else ({}, text)
        for name, column in values.items():
            column.append(rest if name == EXTRA else found.get(name))
    return {name: array_of(column, schema.field(name).type) for name, column in values.items()}
