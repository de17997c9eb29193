"""Attributes in DynamoDB's wire format read back as they were written."""

import json
import string
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.platform.items import decode_item, encode_item, encode_value

names = st.text(string.ascii_letters + "_", min_size=1, max_size=8)
values = st.recursive(
    st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(names, values, max_size=6))
def test_an_item_reads_back(attributes: dict[str, Any]) -> None:
    assert decode_item(encode_item(attributes)) == attributes
    assert decode_item(json.loads(json.dumps(encode_item(attributes)))) == attributes


@pytest.mark.parametrize(
    ("written", "wire"),
    [
        ("", {"S": ""}),
        (True, {"BOOL": True}),
        (1, {"N": "1"}),
        (-7, {"N": "-7"}),
        ({}, {"M": {}}),
        ((1, "a"), {"L": [{"N": "1"}, {"S": "a"}]}),
        ({"a": None, "b": False}, {"M": {"b": {"BOOL": False}}}),
    ],
)
def test_each_type_has_its_wire_format(written: Any, wire: dict[str, Any]) -> None:
    assert encode_value(written) == wire


def test_flags_do_not_become_numbers_nor_numbers_flags() -> None:
    read = decode_item(encode_item({"flag": True, "number": 1}))
    assert (read["flag"] is True, type(read["number"]) is int) == (True, True)


def test_an_attribute_that_is_none_is_left_out() -> None:
    assert encode_item({"a": None, "b": "x"}) == {"b": {"S": "x"}}


@pytest.mark.parametrize("odd", [1.5, b"x", {1, 2}, date(2026, 1, 1)])
def test_a_type_that_no_table_holds_is_refused(odd: Any) -> None:
    with pytest.raises(TypeError, match="does not go into a table"):
        encode_item({"a": odd})


NULL = {"NULL": True}


@pytest.mark.parametrize(
    ("wire", "read"),
    [
        ({"a": NULL}, {}),
        ({"a": NULL, "b": {"S": "x"}}, {"b": "x"}),
        ({"a": {"L": [NULL, {"S": "x"}]}}, {"a": [None, "x"]}),
        ({"a": {"M": {"b": NULL}}}, {"a": {"b": None}}),
        ({"a": {"M": {"b": {"L": [{"M": {"c": NULL}}]}}}}, {"a": {"b": [{"c": None}]}}),
        ({"a": {"M": {"NULL": {"S": "a name"}}}}, {"a": {"NULL": "a name"}}),
        ({"NULL": {"S": "a name"}}, {"NULL": "a name"}),
    ],
)
def test_null_is_read_as_none_and_an_attribute_that_is_null_as_absent(wire: Any, read: Any) -> None:
    assert decode_item(wire) == read
    assert decode_item(encode_item(read)) == {name: _without_none(each) for name, each in read.items()}


def _without_none(each: Any) -> Any:
    """What is written of a value: a map's None is left out, a list's keeps its place."""
    if isinstance(each, dict):
        return {name: _without_none(inner) for name, inner in each.items() if inner is not None}
    return [_without_none(inner) for inner in each] if isinstance(each, list) else each


@pytest.mark.parametrize("wire", [{"N": "1.5"}, {"N": "1e3"}, {"B": "eA=="}, {"SS": ["a"]}])
def test_what_our_code_never_writes_stays_in_its_wire_format(wire: dict[str, Any]) -> None:
    assert decode_item({"a": wire}) == {"a": wire}
