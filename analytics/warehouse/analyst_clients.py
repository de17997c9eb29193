"""The warehouse for batch jobs that write: sessions of redshift_connector, from within its network.

Who only asks needs none of this: local.analyst.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import awswrangler
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pyarrow.compute as pc
import redshift_connector

PORT = 5439
TEXT_BYTES = 256  # of a new column, unless somebody says more
_TEXTS = frozenset({"character varying", "character", "text"})
_ARROW = {
    "smallint": pa.int16(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "real": pa.float32(),
    "double precision": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp without time zone": pa.timestamp("us"),
    "timestamp with time zone": pa.timestamp("us", "UTC"),
}


class _Type(NamedTuple):
    """A column's type as the catalogue has it."""

    name: str
    characters: int | None = None  # bytes, to Redshift
    precision: int | None = None
    scale: int | None = None


@contextmanager
def connect(
    host: str, database: str, *, workgroup: str | None = None, region: str | None = None, **more: Any
) -> Iterator[Any]:
    """Open a connection for a `with` block. At its end, whatever was not committed is rolled back.

    host: a workgroup's endpoint (workgroup-name.account.region.redshift-serverless.amazonaws.com). If a
    workgroup is named, user and password come from the caller's AWS identity
    (redshift-serverless:GetCredentials); otherwise give user and password. more: any parameter of
    redshift_connector.connect.
    """
    identity: dict[str, Any] = {}
    if workgroup is not None:
        identity = {"iam": True, "is_serverless": True, "serverless_work_group": workgroup, "region": region}
    options: dict[str, Any] = {"port": PORT, "ssl": True, **identity, **more}
    with redshift_connector.connect(host=host, database=database, **options) as connection:
        yield connection


def upsert(  # noqa: PLR0913 (of a table that is not there yet, its types)
    connection: Any,
    frame: Any,
    table: str,
    keys: Sequence[str],
    *,
    text_bytes: int = TEXT_BYTES,
    types: Mapping[str, str] | None = None,
) -> None:
    """Write a DataFrame's rows to schema.table, by the names of columns, in place of rows of the same keys.

    The table is created if it is missing: text_bytes is the size of its texts, types has Redshift's types of
    columns by name, where a column holds nothing or another type is wanted. One transaction, committed at
    its end; safe to repeat. Raises ValueError, and writes nothing, if a column is missing or unknown, holds a
    value that its type would change or a text that is too long, and if a key is NULL or stands twice in the
    frame, because it would be chance which row wins.
    """
    schema, _, name = table.partition(".")
    frame = frame.rename(columns={column: str(column).lower() for column in frame.columns})
    keys = [key.lower() for key in keys]
    wanted = _columns(connection, schema, name)
    given = {each.lower(): type_ for each, type_ in (types or {}).items()}
    _check_names(frame, keys, wanted or dict.fromkeys(frame.columns), given)
    if frame[keys].isna().any(axis=None):
        raise ValueError(f"{', '.join(keys)}: a key is empty, so the row could not be found again")
    if frame.duplicated(keys).any():
        raise ValueError(f"{', '.join(keys)} stand twice in the frame")
    columns = {column: _column(frame[column], column) for column in frame.columns}
    if wanted:
        columns = {each: _fitting_values(columns[each], each, type_) for each, type_ in wanted.items()}
    else:
        _check_new(columns, given, text_bytes)
    awswrangler.redshift.to_sql(
        pd.DataFrame({each: pd.Series(values.to_pylist(), dtype=object) for each, values in columns.items()}),
        con=connection,
        schema=schema,
        table=name,
        mode="upsert",
        primary_keys=keys,
        index=False,
        use_column_names=True,
        dtype=given or None,
        varchar_lengths_default=text_bytes,
    )


def _columns(connection: Any, schema: str, table: str) -> dict[str, _Type]:
    """Return a table's columns in order; none if there is no such table."""
    cursor = connection.cursor()
    cursor.execute(
        "SELECT column_name, data_type, character_maximum_length, numeric_precision, numeric_scale "
        "FROM information_schema.columns WHERE table_schema = %s AND table_name = %s "
        "ORDER BY ordinal_position",
        (schema, table),
    )
    return {str(name): _Type(str(type_), *sizes) for name, type_, *sizes in cursor.fetchall()}


def _check_names(
    frame: Any, keys: Sequence[str], wanted: Mapping[str, Any], given: Mapping[str, str]
) -> None:
    if twice := sorted(set(frame.columns[frame.columns.duplicated()])):
        raise ValueError(f"{', '.join(twice)}: a column of this name stands twice in the frame")
    if missing := [each for each in [*wanted, *keys, *given] if each not in frame.columns]:
        raise ValueError(
            f"{', '.join(missing)}: the frame has no such column, and the table's rows would lose it"
        )
    if unknown := [column for column in frame.columns if column not in wanted]:
        raise ValueError(f"{', '.join(unknown)}: the table has no such column")


def _column(values: Any, name: str) -> pa.Array:
    try:
        return pa.array(values, from_pandas=True)
    except pa.ArrowException as error:
        raise ValueError(f"{name}: its values are of several types: {error}") from error


def _fitting_values(values: pa.Array, name: str, wanted: _Type) -> pa.Array:
    """Return values as a column of the table holds them. Raises ValueError if any of them would change."""
    if wanted.name in _TEXTS:
        return _texts(values, name, wanted)
    type_ = (
        pa.decimal128(wanted.precision, wanted.scale) if wanted.name == "numeric" else _ARROW.get(wanted.name)
    )
    if type_ is None or pa.types.is_null(values.type):
        return values
    try:
        if wanted.name == "numeric" and pa.types.is_integer(values.type):
            values = values.cast(pa.decimal128(38, wanted.scale))  # Arrow asks for room for any whole number
        found = values.cast(type_)
        is_same = not pa.types.is_floating(values.type) or found.cast(values.type).equals(values)
    except pa.ArrowException as error:
        raise ValueError(f"{name}: {error}, and the column is {wanted.name}") from error
    if not is_same:
        raise ValueError(f"{name}: a value has more digits than the column, {wanted.name}, keeps of it")
    return found


def _texts(values: pa.Array, name: str, wanted: _Type) -> pa.Array:
    if not (pa.types.is_null(values.type) or _is_text(values.type)):
        raise ValueError(f"{name}: these are {values.type}, and the column has texts")
    if wanted.characters and _longest(values) > wanted.characters:
        raise ValueError(
            f"{name}: a text has {_longest(values)} bytes, and the column takes {wanted.characters}"
        )
    return values


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))


def _longest(values: pa.Array) -> int:
    return int(pc.max(pc.binary_length(values)).as_py() or 0) if _is_text(values.type) else 0


def _check_new(columns: Mapping[str, pa.Array], given: Mapping[str, str], text_bytes: int) -> None:
    for name, values in columns.items():
        if name in given:
            continue
        if pa.types.is_null(values.type):
            raise ValueError(f"{name}: it holds nothing, so its type is not known: types={{{name!r}: ...}}")
        if (size := _longest(values)) > text_bytes:
            raise ValueError(f"{name}: a text has {size} bytes, over {text_bytes}: text_bytes={size}")
