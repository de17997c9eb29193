"""DynamoDB's arithmetic, by the examples of its developer guide and by what must hold for any item."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.platform.items import Item, encode_item
from bench.counting.dynamodb_units import Index, TableShape, item_bytes, read_units, value_bytes, write_units

KEYED = Index("ByScore", ("board", "score"), frozenset({"board", "score", "user", "until"}))
TABLE = TableShape("T", ("user",), (KEYED,), has_stream=True)


def entry(score: int, **more: object) -> Item:
    return encode_item({"user": "u", "board": "b", "score": score, **more})


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ({"S": "abc"}, 3),
        ({"S": "é"}, 2),
        ({"N": "7"}, 2),
        ({"N": "1234"}, 3),
        ({"N": "-1234"}, 4),
        ({"N": "1000"}, 2),
        ({"BOOL": True}, 1),
        ({"L": [{"S": "ab"}, {"S": "c"}]}, 3 + 2 + 3),
        ({"M": {"a": {"S": "b"}}}, 3 + 1 + 2),
    ],
)
def test_a_value_has_the_size_that_the_guide_says(value: dict[str, object], size: int) -> None:
    assert value_bytes(value) == size


@pytest.mark.parametrize(
    ("size", "writes", "strong", "weak"), [(0, 1, 1, 0.5), (1024, 1, 1, 0.5), (1025, 2, 1, 0.5)]
)
def test_units_are_steps(size: int, writes: int, strong: float, weak: float) -> None:
    image = encode_item({"a": "x" * (size - 1)}) if size else None
    assert item_bytes(image) == size
    assert write_units(image) == writes
    assert (read_units(size, consistent=True), read_units(size, consistent=False)) == (strong, weak)
    assert read_units(4097, consistent=True) == 2


def test_a_write_costs_the_larger_image() -> None:
    large, small = encode_item({"a": "x" * 2000}), encode_item({"a": "x"})
    assert write_units(large, small) == write_units(small, large) == 2


@pytest.mark.parametrize(
    ("before", "after", "units"),
    [
        (None, entry(1), 1),
        (entry(1), None, 1),
        (entry(1), entry(2), 2),  # the key changes: deleted and put
        (entry(1, until=5), entry(1, until=6), 1),
        (entry(1, other="a"), entry(1, other="b"), 0),  # not projected
        (encode_item({"user": "u"}), encode_item({"user": "u", "other": "x"}), 0),  # not in the index
    ],
)
def test_an_index_is_written_when_its_entry_changes(
    before: Item | None, after: Item | None, units: int
) -> None:
    assert KEYED.units(before, after) == units
    assert TABLE.units(before, after) == {"T": 1, **({"T/ByScore": units} if units else {})}


@given(st.dictionaries(st.text(min_size=1, max_size=5), st.text(max_size=50) | st.integers(), max_size=8))
def test_an_item_is_its_values_and_their_names(values: dict[str, str | int]) -> None:
    stored = encode_item(values)
    assert item_bytes(stored) == sum(len(name.encode()) + value_bytes(each) for name, each in stored.items())
