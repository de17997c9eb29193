"""What a valid row is: any row of an entity's types, in whatever way JSON writes it, and nothing nested too deep."""

import json
import sys
from datetime import UTC, date, datetime, timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.lake.layout import Partition
from rules.json_values import READ_LEVELS
from rules.lake.entities import ENTITIES, EVENTS, Entity, Type
from rules.lake.valid_row import RowRefused, read_row, read_value
from tests.support.examples import examples
from tests.support.mutated_lines import joined, texts_of
from tests.support.raw_lake import DT, HOUR, event, line

MICROS = st.integers(0, 3_599_999_999).map(lambda micros: timedelta(microseconds=micros))
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=4)
BYTES_LEAST = 8  # of a text's column
VALUES: dict[Type, st.SearchStrategy[Any]] = {
    Type.TEXT: TEXT.filter(lambda text: len(text.encode()) <= BYTES_LEAST),
    Type.INTEGER: st.integers(-(2**63), 2**63 - 1),
    Type.BOOLEAN: st.booleans(),
    Type.DATE: st.dates(),
    Type.TIMESTAMP: st.datetimes(timezones=st.just(UTC)),
}


def rows(entity: Entity, start: datetime) -> st.SearchStrategy[dict[str, Any]]:
    """Rows that lie in the hour from start on."""
    fields: dict[str, st.SearchStrategy[Any]] = {
        each.name: VALUES[each.type] if each.required else st.none() | VALUES[each.type]
        for each in entity.fields
    }
    is_date = entity.field(entity.occurred).type is Type.DATE
    place = st.just(start.date()) if is_date else MICROS.map(lambda micros: start + micros)
    return st.fixed_dictionaries(fields | {entity.occurred: place})


def written(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat(timespec="microseconds").replace("+00:00", "Z")
    return value.isoformat() if isinstance(value, date) else value


@given(st.data(), st.sampled_from(list(ENTITIES.values())), st.booleans())
@settings(max_examples=examples(60))
def test_a_row_is_read_as_it_was_meant(data: st.DataObject, entity: Entity, ascii_only: bool) -> None:
    start = datetime(2026, 3, 1, 0, tzinfo=UTC)
    row = data.draw(rows(entity, start))
    fields = {name: written(value) for name, value in row.items()} | {"dt": "2026-03-01", "hour": "00"}
    text = json.dumps(fields, ensure_ascii=ascii_only).encode()
    assert read_row(text, entity, "2026-03-01", "00") == row | {"extra": None}
    for field in entity.fields:
        value = json.dumps(fields[field.name], ensure_ascii=ascii_only).encode()
        assert read_value(field, value) == row[field.name]
    with pytest.raises(RowRefused, match=r"^hour: "):
        read_row(text, entity, "2026-03-01", "01")


@pytest.mark.parametrize(
    "place", [Partition(name, DT, "00") for name in ENTITIES], ids=lambda place: place.entity
)
def test_a_text_is_as_long_as_its_column_in_bytes(place: Partition) -> None:
    entity, fields = ENTITIES[place.entity], texts_of(Random(7), place)
    for field in (each for each in entity.fields if each.type is Type.TEXT):
        longest = "\u00e9" * (field.bytes_max // 2) + "x" * (field.bytes_max % 2)
        taken = joined(fields | {f'"{field.name}"'.encode(): f'"{longest}"'.encode()})
        assert read_row(taken, entity, place.dt, "00")[field.name] == longest
        refused = joined(fields | {f'"{field.name}"'.encode(): f'"{longest}x"'.encode()})
        reason = f"^{field.name}: {field.bytes_max + 1} bytes, and its column holds {field.bytes_max}: "
        with pytest.raises(RowRefused, match=reason):
            read_row(refused, entity, place.dt, "00")
    with pytest.raises(RowRefused, match=r"^extra: .* bytes, and its column holds 65535: words"):
        read_row(joined(fields | {b'"words"': b'"%s"' % (b"x" * 65_535)}), entity, place.dt, "00")


@given(st.data(), st.sampled_from(list(Type)), st.sampled_from(list(Type)))
@settings(max_examples=examples(60))
def test_a_value_of_another_type_is_refused(data: st.DataObject, wanted: Type, drawn: Type) -> None:
    field = next(each for entity in ENTITIES.values() for each in entity.fields if each.type is wanted)
    value = written(data.draw(VALUES[drawn]))
    if wanted is drawn or (wanted is Type.TEXT and isinstance(value, str)):
        assert written(read_value(field, json.dumps(value).encode())) == value
    else:
        with pytest.raises(RowRefused, match=f"^{field.name}: "):
            read_value(field, json.dumps(value).encode())


@pytest.mark.parametrize("name", ["dt", "event_id"])
def test_no_depth_of_nesting_is_an_error_of_ours(name: str) -> None:
    """The answer does not depend on how deep Python's own parser reads."""
    for depth in (1, READ_LEVELS - 2, READ_LEVELS - 1, READ_LEVELS, sys.getrecursionlimit(), 100_000):
        nested = b"[" * depth + b"]" * depth
        with pytest.raises(RowRefused) as refused:
            read_row(line(event()).replace(b"{", b'{"%s":%s,' % (name.encode(), nested), 1), EVENTS, DT, HOUR)
        assert str(refused.value).partition(": ")[0] == (name if depth < READ_LEVELS else "not JSON")
