"""Decimals are written to JSON exactly."""

import json
from decimal import Decimal
from typing import Any

import pytest

from ingest.web.api import exact_json


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (Decimal("11.77"), "11.77"),
        (Decimal("12.00"), "12.00"),
        (Decimal("1E+2"), "100"),
        (Decimal("12345678901234567890.12"), "12345678901234567890.12"),
        ({"a": [Decimal("0.1"), None, True, 'é"']}, '{"a":[0.1,null,true,"\\u00e9\\""]}'),
    ],
)
def test_decimals_are_written_exactly(value: Any, written: str) -> None:
    assert exact_json(value) == written
    assert json.loads(written, parse_float=Decimal) == json.loads(exact_json(value), parse_float=Decimal)


@pytest.mark.parametrize("value", [Decimal("NaN"), Decimal("Infinity"), float("inf")])
def test_what_is_no_number_is_not_written(value: Any) -> None:
    with pytest.raises(ValueError):
        exact_json(value)
