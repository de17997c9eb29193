"""How an entity of the lake is declared (entities.py): its fields, its key, and what values are valid."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from functools import partial
from typing import Any

from rules.days import parse_moment
from rules.parts import Part

EXTRA = "extra"  # the column with the fields beyond the schema, as JSON text
BYTES_MAX = 65_535  # of a VARCHAR of Redshift
VERSION = "version"
Row = dict[str, Any]
DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
INTEGER_MIN, INTEGER_MAX = -(2**63), 2**63 - 1
EXCERPT_MAX = 80  # characters of a value in a reason
UTF8_BYTES_MAX = 4  # of a character


class Type(StrEnum):
    """A field's type. Timestamps are in UTC, to the microsecond. JSON has times and dates as ISO 8601."""

    TEXT = "text"
    INTEGER = "integer"  # 64 bits
    BOOLEAN = "boolean"
    DATE = "date"
    TIMESTAMP = "timestamp"


@dataclass(frozen=True, slots=True)
class StagedColumn:
    """A column of the view in staging."""

    name: str
    sql: str = ""  # its expression, in Redshift's SQL; "": the field unchanged
    doc: str = ""  # "": that of the field


@dataclass(frozen=True, slots=True)
class Field:
    """One column."""

    name: str
    type: Type
    doc: str
    # Of a text in UTF-8. A row with a longer text goes into quarantine: it would stop the load of all tables.
    bytes_max: int = BYTES_MAX
    required: bool = False  # curation puts a row without it into quarantine
    attribute: str = ""  # the name that it has in the table's item; "": the same
    default: str = ""  # the value in place of NULL in the view in staging, as SQL; "": NULL
    staged: tuple[StagedColumn, ...] = ()  # the view's columns in the field's place; (): the field unchanged


Required = partial(Field, required=True)


def _unchanged(row: Row, _arrived: datetime, _change: str) -> Row:
    return row


def _always(_attributes: Mapping[str, Any]) -> bool:
    return True


# Changes of a table that are published, as Lambda's filter patterns.
CHANGES, INSERTS = ('{"eventName": ["INSERT", "MODIFY"]}',), ('{"eventName": ["INSERT"]}',)


@dataclass(frozen=True, slots=True)
class PublishedTable:
    """A table whose changes are rows of an entity of the lake."""

    table: str  # its logical id
    # The logical id of the mapping from the table's stream to the publisher; "": another entity of the same
    # table has it
    mapping: str
    changes: tuple[str, ...] = CHANGES


@dataclass(frozen=True, slots=True)
class Entity:
    """One kind of row."""

    name: str
    doc: str  # what a row is, as a sentence
    fields: tuple[Field, ...]
    # What identifies a row; rows of a file are sorted by it. If it ends with `version`, each written version
    # of a thing is a row.
    key: tuple[str, ...]
    occurred: str  # the field whose day and hour (UTC) place the row
    # The field by which the warehouse spreads rows over its nodes; None: all rows are on each node.
    spread: str | None = None
    # Of two rows with one key, the one with the higher value here is the newer. If they are equal, or there
    # is no version, the first one stays.
    version: str | None = None
    published: PublishedTable | None = None  # the table whose changes are its rows; None: several, or nights
    # Whether an item of the table, by its attributes, has a row
    has_row: Callable[[Mapping[str, Any]], bool] = _always
    left_out: frozenset[str] = frozenset()  # attributes of the table's item that are no columns
    # Returns a row. It takes the item's attributes by the names of columns, when the change came into the
    # stream, and the version of the change (event_version).
    shape: Callable[[Row, datetime, str], Row] = _unchanged
    # Returns the attributes of each row of an item that becomes several; None: an item is one row. It takes
    # what shape takes but for the version of the change. May raise KeyError, TypeError, ValueError.
    expand: Callable[[Mapping[str, Any], datetime], Iterable[Row]] | None = None
    in_warehouse: bool = True  # whether analysts have it; any other is for restores alone
    # Whether old curated files may be deleted. Nights compute streaks, balances and stats from all rows of
    # some entities, and restores read all items of tables (rule 21).
    may_age: bool = True
    # Whether nights write the rows. Rows of all other entities are published from streams of tables.
    is_of_nights: bool = False
    part: Part | None = None  # the part whose rows these are, if a deployment may leave it out

    def field(self, name: str) -> Field:
        """Return a field by name; raises KeyError."""
        return {field.name: field for field in self.fields}[name]

    @property
    def newest_of(self) -> tuple[str, ...]:
        """The columns that name the thing whose versions are rows; () if rows are no versions of a thing."""
        return self.key[:-1] if self.key[-1] == VERSION else ()


class RowRefused(ValueError):
    """A line that is no row of its partition; the text says which field and why."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number that no field takes, such as 1.5, as it was written."""

    text: str


def check_value(field: Field, value: Any) -> Any:
    """Return a field's value, None if it is null; raises RowRefused."""
    if value is None:
        if field.required:
            raise RowRefused(f"{field.name}: missing")
        return None
    try:
        parsed = READERS[field.type](value)
        if field.type is Type.TEXT:
            check_size(parsed, field.bytes_max)
        return parsed
    except ValueError as error:
        raise RowRefused(f"{field.name}: {error}: {json_excerpt(value)}") from None


def json_excerpt(value: Any) -> str:
    """Return the beginning of a value, as JSON, for a reason."""
    text = value.text if isinstance(value, Number) else json.dumps(value, default=lambda number: number.text)
    return text if len(text) <= EXCERPT_MAX else text[:EXCERPT_MAX] + "..."


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise RowRefused("not text")
    if "\0" in value:
        raise RowRefused("holds a NUL, which the warehouse cannot")
    return value


def check_size(text: str, bytes_max: int) -> None:
    """Raise RowRefused for a text that its column in the warehouse cannot hold: Redshift counts bytes."""
    size = len(text.encode()) if len(text) * UTF8_BYTES_MAX > bytes_max else 0
    if size > bytes_max:
        raise RowRefused(f"{size} bytes, and its column holds {bytes_max}")


def _whole(value: Any) -> int:
    if isinstance(value, Number) and not value.text.lstrip("-").isdigit():
        raise RowRefused("not an integer")
    if isinstance(value, Number) or (type(value) is int and not INTEGER_MIN <= value <= INTEGER_MAX):
        raise RowRefused("beyond 64 bits")
    if type(value) is not int:
        raise RowRefused("not an integer")
    return value


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise RowRefused("not a boolean")
    return value


def _date(value: Any) -> date:
    if not isinstance(value, str) or DATE.fullmatch(value) is None:
        raise RowRefused("not a date")
    try:
        return date.fromisoformat(value)
    except ValueError:
        raise RowRefused("not a date that exists") from None


def _timestamp(value: Any) -> datetime:
    if not isinstance(value, str):
        raise RowRefused("not a timestamp")
    return parse_moment(value).utc


READERS: dict[Type, Callable[[Any], Any]] = {
    Type.TEXT: _text,
    Type.INTEGER: _whole,
    Type.BOOLEAN: _boolean,
    Type.DATE: _date,
    Type.TIMESTAMP: _timestamp,
}
