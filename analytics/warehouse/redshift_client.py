"""Connections to Redshift from within its network, and writes of DataFrames by batch jobs.

An analyst who only asks uses local.analyst, which opens its connection here.
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
NEW_TEXT_BYTES = 256  # the size of text columns in a table that upsert creates
_TEXT_TYPES = frozenset({"character varying", "character", "text"})
_ARROW_TYPES = {
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


class _ColumnType(NamedTuple):
    """A column's type as the catalogue has it."""

    name: str
    text_bytes: int | None = None  # which information_schema calls characters
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


def upsert(  # noqa: PLR0913 (a new table needs types)
    connection: Any,
    frame: Any,
    table: str,
    keys: Sequence[str],
    *,
    text_bytes: int = NEW_TEXT_BYTES,
    types: Mapping[str, str] | None = None,
) -> None:
    """Write a DataFrame's rows to schema.table, by the names of columns, in place of rows with the same keys.

    The table is created if it is missing. For a new table, text_bytes is the size of its text columns. types
    gives Redshift's type of a column that is empty, or that is to have another type than its values'. All is
    one transaction, committed at its end, and safe to repeat. Raises ValueError, and writes nothing, for a
    quoted name, a column that is missing or unknown, a value that its type would change, a text that is too
    long, and a key that is NULL or stands twice in the frame: then it would be chance which row wins.
    """
    # Redshift writes names in small letters. A table that is not found by its name would be taken for a new
    # one, and rows with the same keys would stay beside the frame's.
    schema, _, name = table.lower().partition(".")
    if not (schema and name) or "." in name or '"' in table:
        raise ValueError(f"{table} is no schema.table")
    frame = frame.rename(columns={column: str(column).lower() for column in frame.columns})
    keys = [key.lower() for key in keys]
    stored = _stored_columns(connection, schema, name)
    new_types = {column.lower(): type_ for column, type_ in (types or {}).items()}
    _check_names(frame, keys, stored or dict.fromkeys(frame.columns), new_types)
    if frame[keys].isna().any(axis=None):
        raise ValueError(f"{', '.join(keys)}: a key is empty, so the row could not be found again")
    if frame.duplicated(keys).any():
        raise ValueError(f"{', '.join(keys)} stand twice in the frame")
    columns = {column: _arrow_values(frame[column], column) for column in frame.columns}
    if stored:
        columns = {
            column: _cast_to_column(columns[column], column, type_) for column, type_ in stored.items()
        }
    else:
        _check_new(columns, new_types, text_bytes)
    # As objects, because pandas would make whole numbers with a NULL floating-point numbers.
    awswrangler.redshift.to_sql(
        pd.DataFrame(
            {column: pd.Series(values.to_pylist(), dtype=object) for column, values in columns.items()}
        ),
        con=connection,
        schema=schema,
        table=name,
        mode="upsert",
        primary_keys=keys,
        index=False,
        use_column_names=True,
        dtype=new_types or None,
        varchar_lengths_default=text_bytes,
    )


def _stored_columns(connection: Any, schema: str, table: str) -> dict[str, _ColumnType]:
    """Return a table's columns in order; none if there is no such table."""
    cursor = connection.cursor()
    cursor.execute(
        "SELECT column_name, data_type, character_maximum_length, numeric_precision, numeric_scale "
        "FROM information_schema.columns WHERE table_schema = %s AND table_name = %s "
        "ORDER BY ordinal_position",
        (schema, table),
    )
    return {str(name): _ColumnType(str(type_), *sizes) for name, type_, *sizes in cursor.fetchall()}


def _check_names(
    frame: Any, keys: Sequence[str], stored: Mapping[str, Any], new_types: Mapping[str, str]
) -> None:
    """Raise ValueError unless the frame has each column of the table once, and no other."""
    if twice := sorted(set(frame.columns[frame.columns.duplicated()])):
        raise ValueError(f"{', '.join(twice)}: a column of this name stands twice in the frame")
    if missing := [name for name in [*stored, *keys, *new_types] if name not in frame.columns]:
        raise ValueError(
            f"{', '.join(missing)}: the frame has no such column, and the table's rows would lose it"
        )
    if unknown := [column for column in frame.columns if column not in stored]:
        raise ValueError(f"{', '.join(unknown)}: the table has no such column")


def _arrow_values(values: Any, name: str) -> pa.Array:
    """Return a column of a frame as Arrow reads it: of categories their values.

    Raises ValueError if its values are of several types, or of one that no column has.
    """
    try:
        column = pa.array(values, from_pandas=True)
    except pa.ArrowException as error:
        raise ValueError(f"{name}: its values are of several types: {error}") from error
    if isinstance(column.type, pa.BaseExtensionType) or pa.types.is_duration(column.type):
        raise ValueError(
            f"{name}: no column of Redshift has values such as {values.dtype}: make texts of them"
        )
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column.cast(pa.string()) if pa.types.is_string_view(column.type) else column


def _cast_to_column(values: pa.Array, name: str, wanted: _ColumnType) -> pa.Array:
    """Return values in a column's type. Raises ValueError if the type would change any of them."""
    if wanted.name in _TEXT_TYPES:
        _check_texts(values, name, wanted)
        return values
    type_ = (
        pa.decimal128(wanted.precision, wanted.scale)
        if wanted.name == "numeric"
        else _ARROW_TYPES.get(wanted.name)
    )
    if type_ is None or pa.types.is_null(values.type):
        return values
    try:
        if wanted.name == "numeric" and pa.types.is_integer(values.type):
            # Arrow does not cast whole numbers to a narrow decimal, whatever the values. So they become wide
            # decimals first.
            values = values.cast(pa.decimal128(38, wanted.scale))
        fitting = values.cast(type_)
        # A text may write a number in another way than Arrow: "1.5" is "1.50" in a column with two decimals.
        is_same = _is_text(values.type) or fitting.cast(values.type).equals(values)
    except pa.ArrowException as error:
        raise ValueError(f"{name}: {error}, and the column is {wanted.name}") from error
    if not is_same:
        raise ValueError(f"{name}: the column, {wanted.name}, would change a value")
    return fitting


def _check_texts(values: pa.Array, name: str, wanted: _ColumnType) -> None:
    """Raise ValueError if a text column does not take the values."""
    if not (pa.types.is_null(values.type) or _is_text(values.type)):
        raise ValueError(f"{name}: these are {values.type}, and the column has texts")
    size = _longest_text_bytes(values)
    if wanted.text_bytes and size > wanted.text_bytes:
        raise ValueError(f"{name}: a text has {size} bytes, and the column takes {wanted.text_bytes}")


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))


def _longest_text_bytes(values: pa.Array) -> int:
    """Return the bytes of the longest text; 0 for values of another type."""
    return int(pc.max(pc.binary_length(values)).as_py() or 0) if _is_text(values.type) else 0


def _check_new(columns: Mapping[str, pa.Array], new_types: Mapping[str, str], text_bytes: int) -> None:
    """Raise ValueError for a column whose type cannot be told, or whose texts are too long."""
    for name, values in columns.items():
        if name in new_types:
            continue
        if pa.types.is_null(values.type):
            raise ValueError(f"{name}: it holds nothing, so its type is not known: types={{{name!r}: ...}}")
        if (size := _longest_text_bytes(values)) > text_bytes:
            raise ValueError(f"{name}: a text has {size} bytes, over {text_bytes}: text_bytes={size}")
