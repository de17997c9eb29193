"""Which rows are kept, and in which order: held against sorting all rows by all columns."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.curation.kept_rows import newest_versions
from analytics.lake.arrow import arrow_schema
from rules.lake.entities import EVENTS, LEAD_EVENTS, LEAD_FEATURES, RESPONSES
from rules.lake.schema import Entity, Type

# Few values, long common beginnings, and ones that differ behind the first bytes that are compared.
texts = st.one_of(
    st.sampled_from(["a", "", "shop", "shop\0", "\U0001f600", "é"]),
    st.integers(0, 400).map(lambda number: f"2026-03-02T10:00:00.{number:06}Z#the same for all of them"),
    st.integers(0, 9).map(lambda number: f"the same for all of them, and this is {number}"),
    st.text(max_size=12),
)
numbers = st.integers(0, 5)


def drawn(entity: Entity, data: st.DataObject) -> list[dict[str, Any]]:
    names = dict.fromkeys([*entity.key, *([entity.version] if entity.version else [])])
    kinds = {field.name: field.type for field in entity.fields}
    few = data.draw(st.lists(texts, min_size=1, max_size=4))
    values = {name: texts if kinds[name] is Type.TEXT else numbers for name in names}
    if data.draw(st.booleans()):
        values[entity.key[0]] = st.sampled_from(few)
    return data.draw(st.lists(st.fixed_dictionaries(values), max_size=60))


@pytest.mark.parametrize(
    "entity", [EVENTS, LEAD_EVENTS, LEAD_FEATURES, RESPONSES], ids=lambda each: each.name
)
@given(data=st.data())
def test_each_key_s_newest_row_is_kept_in_order(entity: Entity, data: st.DataObject) -> None:
    found = drawn(entity, data)
    names = list(found[0]) if found else [*entity.key]
    schema = arrow_schema(entity)
    columns = [
        pa.array([row[name] for row in found], pa.int64()).cast(schema.field(name).type)
        if schema.field(name).type != pa.string()
        else pa.array([row[name] for row in found], pa.string())
        for name in names
    ]
    table = pa.table([*columns, pa.array(range(len(found)), pa.int64())], names=[*names, "n"])

    version = entity.version if entity.version not in entity.key else None
    versions = sorted(_bytes(row[version]) for row in found) if version else []

    def placed(at: int) -> list[Any]:
        row = found[at]
        order = [_bytes(row[name]) for name in entity.key]
        return [*order, -versions.index(_bytes(row[version])) if version else 0, at]

    expected, seen = [], set()
    for at in sorted(range(len(found)), key=placed):
        key = tuple(found[at][name] for name in entity.key)
        if key not in seen:
            seen.add(key)
            expected.append(at)
    assert np.asarray(newest_versions(entity, table)).tolist() == expected


def _bytes(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value
