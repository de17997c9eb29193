"""Python values become the Arrow array that pa.array() makes, which would import pandas."""

from datetime import UTC
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.lake.arrow import ARROW, array_of
from rules.lake.entities import Type

VALUES: dict[Type, st.SearchStrategy[Any]] = {
    Type.TEXT: st.text(st.characters(exclude_categories=["Cs"])),
    Type.INTEGER: st.integers(-(2**63), 2**63 - 1),
    Type.BOOLEAN: st.booleans(),
    Type.DATE: st.dates(),
    Type.TIMESTAMP: st.datetimes(timezones=st.just(UTC)),
}


@pytest.mark.parametrize("kind", Type)
@given(data=st.data())
def test_values_of_every_type(kind: Type, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.none() | VALUES[kind], max_size=20))
    found = array_of(values, ARROW[kind])
    found.validate(full=True)
    assert found.equals(pa.array(values, ARROW[kind]))
