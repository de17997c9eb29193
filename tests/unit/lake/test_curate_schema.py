"""Curated files have the declared schema, also when the declaration has changed since."""

from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adapters.platform.objects import FolderObjects
from analytics.curation.curate import curate
from analytics.lake.arrow import arrow_schema
from analytics.lake.bookkeeping import Counts, bookkeeping_of
from analytics.lake.layout import curated_files
from rules.lake import entities
from rules.lake.entities import ENTITIES, EVENTS, Field, Type
from tests.support.raw_lake import (
    PLACE,
    event,
    put_raw,
    quarantined,
    rows,
    table,
)


def test_the_file_has_the_declared_schema(objects: FolderObjects) -> None:
    for name, some in (("a", []), ("b", [event(1)]), ("c", [event(2, timezone="UTC")])):
        put_raw(objects, name, [*some, b"nonsense"])
        curate(objects, PLACE, rebuild=True)
        assert table(objects).schema.remove_metadata() == arrow_schema(EVENTS)


def test_a_grown_schema(objects: FolderObjects, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new optional field: history stays as it is until its file is written again."""
    older = replace(EVENTS, fields=tuple(f for f in EVENTS.fields if f.name != "timezone"))
    grown = replace(EVENTS, fields=(*EVENTS.fields, Field("mood", Type.TEXT, "how it felt")))
    monkeypatch.setitem(ENTITIES, "events", older)
    put_raw(objects, "a", [event(1, mood="good", timezone="Europe/Berlin"), event(2)])
    curate(objects, PLACE)
    monkeypatch.setitem(ENTITIES, "events", grown)
    put_raw(objects, "b", [event(3, mood="fair")])
    assert curate(objects, PLACE) == Counts(3, 3, 0, 0)
    assert table(objects).schema.remove_metadata() == arrow_schema(grown)
    names = ("mood", "timezone", "extra")
    found = {row["idempotency_key"]: tuple(row[each] for each in names) for row in rows(objects)}
    assert found == {
        "k1": ("good", "Europe/Berlin", None),
        "k2": (None, None, None),
        "k3": ("fair", None, None),
    }
    before = rows(objects)
    curate(objects, PLACE, rebuild=True)
    assert rows(objects) == before
    assert bookkeeping_of(objects, curated_files(objects, "events")[0].key).fields_count == len(grown.fields)


def test_a_widened_type_frees_what_was_refused(
    objects: FolderObjects, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = tuple(replace(f, type=Type.TEXT) if f.name == "zone" else f for f in EVENTS.fields)
    strict = tuple(replace(f, type=Type.INTEGER) if f.name == "zone" else f for f in EVENTS.fields)
    monkeypatch.setitem(ENTITIES, "events", replace(EVENTS, fields=strict))
    put_raw(objects, "a", [event(1), event(2)])
    assert curate(objects, PLACE) == Counts(2, 0, 0, 2)
    monkeypatch.setitem(ENTITIES, "events", replace(EVENTS, fields=fields))
    assert curate(objects, PLACE, rebuild=True) == Counts(2, 2, 0, 0)
    assert quarantined(objects) == []


def test_narrow_types_of_old_files_are_widened(objects: FolderObjects) -> None:
    put_raw(objects, "a", [event(1), event(2)])
    curate(objects, PLACE)
    key = curated_files(objects, "events")[0].key
    old = pq.read_table(pa.BufferReader(objects.get(key)))
    at = old.schema.get_field_index("points_awarded")
    old = old.set_column(at, "points_awarded", old["points_awarded"].cast(pa.int32()))
    sink = pa.BufferOutputStream()
    pq.write_table(old, sink)
    objects.put(key, sink.getvalue().to_pybytes())
    put_raw(objects, "b", [event(3, points_awarded=2**40)])
    assert curate(objects, PLACE) == Counts(3, 3, 0, 0)
    assert table(objects).schema.remove_metadata() == arrow_schema(EVENTS)
    assert sorted(row["points_awarded"] for row in rows(objects)) == [5, 5, 2**40]


def test_lake_schema_is_the_contract() -> None:
    assert arrow_schema(EVENTS).names == [*(f.name for f in entities.EVENTS.fields), "extra"]
