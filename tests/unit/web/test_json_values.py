"""One reader of JSON for all doors: what is no JSON is told in words, and a wrong value by its field."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.json_values import (
    FIELD_CHARACTERS_MAX,
    NESTING_MAX,
    NO_NUMBER,
    NO_TEXT,
    READ_LEVELS,
    TOO_DEEP,
    BadValue,
    NoJson,
    check_strict,
    parse_json,
    read_json,
)
from tests.support.http_requests import json_values


def told(data: str | bytes) -> tuple[str, str]:
    with pytest.raises(BadValue) as bad:
        check_strict(read_json(data))
    return bad.value.field, bad.value.reason


@pytest.mark.parametrize(
    ("data", "field", "reason"),
    [
        ('"\\ud83d"', "body", NO_TEXT),
        ('{"a": [1, {"b": "x\\udc00"}]}', "a.1.b", NO_TEXT),
        ('{"a": {"\\ud83d": 1}}', "a", f"has a name that {NO_TEXT}"),
        (b'{"a": "caf\xe9"}', "a", NO_TEXT),
        (b'{"a": "\xed\xa0\xbd\xed\xb8\x80"}', "a", NO_TEXT),
        (b'{"a\xff": 1}', "body", f"has a name that {NO_TEXT}"),
        ('{"a": 1e400}', "a", NO_NUMBER),
        ('{"a": -1E+999999999}', "a", NO_NUMBER),
        ('{"a": ' + "9" * 309 + "}", "a", NO_NUMBER),
        ('{"a": -' + "9" * 100_000 + "}", "a", NO_NUMBER),
        ("[NaN]", "0", NO_NUMBER),
        ("[0, Infinity]", "1", NO_NUMBER),
        ("[0, -Infinity]", "1", NO_NUMBER),
    ],
    ids=lambda each: str(each)[:20],
)
def test_a_value_that_json_could_not_hold_is_told_by_its_field(
    data: str | bytes, field: str, reason: str
) -> None:
    assert told(data) == (field, reason)


def levels_of(value: Any) -> int:
    levels, layer = 0, [value]
    while layer := [inner for each in layer if isinstance(each, (list, dict)) for inner in each]:
        levels += 1
    return levels


@pytest.mark.parametrize("levels", [NESTING_MAX + 1, 127, 128, 129, 900, 1_000, 100_000])
def test_a_deep_value_is_told_by_its_field_and_its_neighbours_are_read(levels: int) -> None:
    deep = "[" * levels + '"]}\\""' + "]" * levels
    value = read_json(f'[{{"k": 1}}, {deep}, {{"k": 2}}]')
    assert (value[0], value[2]) == ({"k": 1}, {"k": 2})
    with pytest.raises(BadValue) as bad:
        check_strict(value[1])
    assert bad.value.reason == TOO_DEEP
    assert len(bad.value.field) <= FIELD_CHARACTERS_MAX
    assert json.dumps(value).count("[") == len(f"[{deep}]") - len(f"[{deep}]".replace("[", "")), (
        "nothing is lost"
    )
    assert levels_of(value) < READ_LEVELS + 1


@pytest.mark.parametrize(
    ("data", "value"),
    [
        ("\ufeff[1]", [1]),
        (b"\xef\xbb\xbf[1]", [1]),
        ("[1]".encode("utf-16"), [1]),
        ("[1]".encode("utf-16-le"), [1]),
        ('{"a": 1, "a": 2}', {"a": 2}),
        ('["\\ud83d\\ude00"]', ["😀"]),
        ('["a\tb\nc"]', ["a\tb\nc"]),
        (f"[{2**53 + 1}, 1e308, -0.0]", [2**53 + 1, 1e308, -0.0]),
        ("[" * NESTING_MAX + "]" * NESTING_MAX, None),
    ],
    ids=lambda each: str(each)[:20],
)
def test_what_json_holds_is_read(data: str | bytes, value: Any) -> None:
    found = parse_json(data)
    assert value is None or found == value


@pytest.mark.parametrize(
    "data",
    ["", "{", "[" * 100_000, '{"a" 1}', '["\\ud8"]', b"\x00", b"\xff\xfe", b"\xff\xfea", "\ufeff\ufeff1"],
)
def test_what_is_no_json_is_told_in_words(data: str | bytes) -> None:
    with pytest.raises(NoJson) as error:
        read_json(data)
    assert not any(word in str(error.value) for word in ("codec", "surrogate", "Error", "char "))


def test_brackets_without_end_cost_no_more_than_their_length() -> None:
    for text in ("[" * 1_000_000, '[{"a":' * 200_000, '"' + "\\" * 999_999, '["' * 300_000):
        with pytest.raises(NoJson):
            read_json(text)


@given(json_values.filter(lambda value: "Infinity" not in json.dumps(value)))
def test_what_json_writes_is_read_again(value: Any) -> None:
    assert parse_json(json.dumps(value)) == value
    assert parse_json(json.dumps(value, ensure_ascii=False).encode()) == value


@given(st.binary(max_size=60))
def test_any_bytes_are_a_value_or_no_json(data: bytes) -> None:
    try:
        value = read_json(data)
    except NoJson:
        return
    try:
        check_strict(value)
    except BadValue as bad:
        f"{bad.field} {bad.reason}".encode()
    else:
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
