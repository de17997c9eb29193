"""Curated files are of the kind that Redshift's COPY and Spectrum take: codec, encodings, columns and timestamps.

Pages: c-spectrum-data-files.html (Parquet of format v1), copy-usage_notes-copy-from-columnar.html (columns by
position, as many as the table has), r_Datetime_types.html (microseconds).
"""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adapters.platform.objects import FolderObjects
from analytics.curation import row_staging
from analytics.curation.curate import curate
from analytics.lake.arrow import arrow_schema
from analytics.lake.layout import curated_files
from analytics.warehouse.ddl import declared_tables
from rules.lake.entities import LOADED
from tests.support.raw_lake import DT, PLACE, event, put_raw

OF_FORMAT_1 = {"PLAIN", "RLE", "BIT_PACKED", "PLAIN_DICTIONARY", "RLE_DICTIONARY"}


@pytest.fixture(params=["in memory", "spilled"])
def file(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    if request.param == "spilled":
        monkeypatch.setattr(row_staging, "MEMORY_BYTES_MAX", 1)
    objects = FolderObjects(tmp_path)
    put_raw(objects, "one", [event(number) for number in range(500)])
    curate(objects, PLACE)
    (stored,) = curated_files(objects, PLACE.entity, DT, DT)
    yield tmp_path / stored.key


def test_a_curated_file_can_be_copied(file: Path) -> None:
    found, schema = pq.read_metadata(file), pq.read_schema(file)
    columns = [found.row_group(0).column(at) for at in range(found.num_columns)]
    assert {each.compression for each in columns} == {"ZSTD"}
    assert {name for each in columns for name in each.encodings} <= OF_FORMAT_1
    times = {each.type for each in schema if pa.types.is_timestamp(each.type)}
    assert times == {pa.timestamp("us", "UTC")}
    assert not [each for each in schema if pa.types.is_nested(each.type)]


@pytest.mark.parametrize("entity", LOADED)
def test_the_file_s_columns_are_the_table_s(entity: str) -> None:
    declared = [each.name for each in declared_tables()[entity].columns]
    assert [*arrow_schema(LOADED[entity]).names, "load_number"] == declared
