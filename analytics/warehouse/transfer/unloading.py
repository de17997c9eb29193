"""Redshift's UNLOAD of a query to Parquet files, and what stands for it where there is no Redshift."""

import io
import re
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from adapters.platform.objects import Objects

FILE_MB_MAX = 64
FIRST_FILE = "0000_part_00.parquet"
_UNLOAD = re.compile(
    r"UNLOAD \('(?P<select>.+)'\) TO '(?P<to>[^']+)' IAM_ROLE '(?P<role>[^']*)'"
    r" FORMAT AS PARQUET ALLOWOVERWRITE MAXFILESIZE \d+ MB",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Unload:
    """An UNLOAD statement. select: a query; its columns are whole numbers, texts, dates and truth values.

    to: the URL that the names of the files begin with; role: the role with which Redshift writes them.
    """

    select: str
    to: str
    role: str

    def sql(self) -> str:
        """Return the statement's text."""
        quoted = self.select.replace("'", "''")
        return (
            f"UNLOAD ('{quoted}') TO '{self.to}' IAM_ROLE '{self.role}'"
            f" FORMAT AS PARQUET ALLOWOVERWRITE MAXFILESIZE {FILE_MB_MAX} MB"
        )

    @classmethod
    def parse(cls, statement: str) -> "Unload | None":
        """Read a statement that `sql` wrote; None for any other statement."""
        match = _UNLOAD.fullmatch(statement)
        return cls(match["select"].replace("''", "'"), match["to"], match["role"]) if match else None


def write_unloaded(objects: Objects, lake: str, to: str, rows: pa.Table) -> None:
    """Store a query's rows as UNLOAD does, in one file. lake: the URL of the bucket."""
    data = io.BytesIO()
    pq.write_table(rows, data, compression="snappy")
    objects.put(to.removeprefix(f"{lake}/") + FIRST_FILE, data.getvalue())
