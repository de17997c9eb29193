"""Redshift's COPY of the Parquet files in a manifest. DuckDB lacks it, and gets the files' rows instead."""

import io
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from adapters.platform.objects import Objects, StoredObject

ROWS_AT_ONCE = 200_000  # in one table of Arrow
_COPY = re.compile(
    r"COPY (?P<table>\w+) FROM '(?P<manifest>[^']+)' IAM_ROLE '(?P<role>[^']*)' FORMAT AS PARQUET MANIFEST"
)


@dataclass(frozen=True, slots=True)
class Copy:
    """A COPY statement: it appends a manifest's files to a table. Columns are matched by position."""

    table: str
    manifest: str  # the URL of a JSON object
    role: str  # the ARN of the role with which Redshift reads the bucket

    def sql(self) -> str:
        """Return the statement's text."""
        return f"COPY {self.table} FROM '{self.manifest}' IAM_ROLE '{self.role}' FORMAT AS PARQUET MANIFEST"

    @classmethod
    def parse(cls, statement: str) -> "Copy | None":
        """Read a statement that `sql` wrote; None for any other statement."""
        match = _COPY.fullmatch(statement)
        return cls(**match.groupdict()) if match else None


def manifest(lake: str, files: Sequence[StoredObject]) -> bytes:
    """Return a manifest of Parquet files, each with its length in bytes. lake: the bucket's URL."""
    entries = [
        {"url": f"{lake}/{file.key}", "mandatory": True, "meta": {"content_length": file.size}}
        for file in files
    ]
    return json.dumps({"entries": entries}).encode()


def manifest_tables(objects: Objects, lake: str, url: str) -> Iterator[pa.Table]:
    """Yield the rows of a manifest's files as Arrow tables; many small files make one table.

    url: the manifest's. Timestamps lose their zone; they are UTC. Raises NoObject if a file is missing.
    """
    small: list[pa.Table] = []
    for entry in json.loads(objects.get(url.removeprefix(f"{lake}/")))["entries"]:
        data = objects.get(entry["url"].removeprefix(f"{lake}/"))
        small.append(_without_zones(pq.ParquetFile(io.BytesIO(data)).read()))
        if sum(table.num_rows for table in small) >= ROWS_AT_ONCE:
            yield pa.concat_tables(small)
            small = []
    if small:
        yield pa.concat_tables(small)


def _without_zones(table: pa.Table) -> pa.Table:
    """Return a table whose timestamps have no zone, as DuckDB's columns have none."""
    table = table.replace_schema_metadata(None)
    for index, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type) and field.type.tz is not None:
            naive = table.column(index).cast(pa.timestamp("us"))
            table = table.set_column(index, field.name, naive)
    return table
