"""What an engine answers: typed columns, in batches, so that a large answer need not be held in memory."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa

DIGITS_MAX = 38  # of a decimal number, on every engine
Tell = Callable[[str], None]


class QueryFailed(RuntimeError):
    """An engine refused a query, or it is no query. The message is one sentence."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A query's rows, which can be read once. engine: its name; scanned_bytes: None if it does not tell."""

    engine: str
    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    scanned_bytes: int | None = None

    def table(self) -> pa.Table:
        """Return all rows."""
        return pa.Table.from_batches(list(self.batches), self.schema)


def sentence(engine: str, reason: object) -> str:
    """Return an engine's error in one line. Its lines are joined; what is empty is left out."""
    lines = [" ".join(line.split()) for line in str(reason).splitlines()]
    return f"{engine} refused the query: {' '.join(line for line in lines if line)}"


def decimal_type(digits: int, scale: int, seen: Sequence[str | Decimal | None]) -> pa.DataType:
    """Return the type of decimal numbers: as the engine declares it, or as the values seen need it.

    PostgreSQL and the laptop's Athena declare no digits or no scale for a computed number.
    """
    needed = max((len(str(each).partition(".")[2]) for each in seen if each is not None), default=0)
    return pa.decimal128(digits or DIGITS_MAX, max(scale, needed))


def from_texts(schema: pa.Schema, rows: Sequence[Sequence[str | None]]) -> pa.RecordBatch:
    """Return rows of texts as typed columns. A text may be empty; None is NULL."""
    columns = zip(*rows, strict=True) if rows else ([] for _ in schema)
    arrays = [
        pa.array(values, pa.string()).cast(each.type) for each, values in zip(schema, columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def nested_as_json(reader: pa.RecordBatchReader) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return a reader's schema and batches with each nested value as JSON text, as Redshift gives a SUPER."""
    schema = pa.schema(
        [
            pa.field(each.name, pa.string() if pa.types.is_nested(each.type) else each.type)
            for each in reader.schema
        ]
    )
    return schema, (_flat(batch, schema) for batch in reader)


def _flat(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = [
        pa.array(
            [
                None if value is None else json.dumps(value, default=str, ensure_ascii=False)
                for value in column.to_pylist()
            ],
            pa.string(),
        )
        if pa.types.is_nested(column.type)
        else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
