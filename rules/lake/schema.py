"""How an entity of the lake is declared: its columns, and what identifies, places and shapes a row.

All else follows from a declaration: Arrow's schema, the Glue catalog, the warehouse's table, its view in the
schema staging, and the page sql/lake.md.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

EXTRA = "extra"
BYTES_MAX = 65_535  # of a VARCHAR of Redshift
VERSION = "version"
Row = dict[str, Any]


class Type(StrEnum):
    """A field's type. Timestamps are in UTC, to the microsecond. JSON has times and dates as ISO 8601."""

    TEXT = "text"
    INTEGER = "integer"  # 64 bits
    BOOLEAN = "boolean"
    DATE = "date"
    TIMESTAMP = "timestamp"


@dataclass(frozen=True, slots=True)
class Staged:
    """A column of the view in staging. sql: what it comes from, in Redshift's SQL; "": the field as it is."""

    name: str
    sql: str = ""
    doc: str = ""  # "": that of the field


@dataclass(frozen=True, slots=True)
class Field:
    """One column."""

    name: str
    type: Type
    doc: str
    required: bool = False  # curation puts a row without it into quarantine
    # Of a text in UTF-8. A row with a longer text goes into quarantine: it would stop the load of all tables.
    bytes_max: int = BYTES_MAX
    attribute: str = ""  # of the table's item, if that has another name
    default: str = ""  # what the view in staging has in place of NULL, as SQL
    staged: tuple[Staged, ...] = ()  # what the view has in the field's place; (): the field as it is


def _as_it_is(row: Row, _arrived: datetime, _change: str) -> Row:
    return row


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
    left_out: frozenset[str] = frozenset()  # attributes of the table's item that are no columns
    # Makes attributes a row: of attributes by the names of columns, when the change came into the stream, and
    # the place of the change (event_version).
    shape: Callable[[Row, datetime, str], Row] = _as_it_is
    # Makes an item that is several rows the attributes of each. May raise KeyError, TypeError, ValueError.
    expand: Callable[[Mapping[str, Any], datetime], Iterable[Row]] | None = None
    in_warehouse: bool = True  # whether analysts have it; what they do not have is for restores alone
    # Whether old curated files may be deleted. Nights are made from all rows of some entities: without the
    # old ones, streaks, balances and stats would be others. Restores are made from items of tables (rule 21).
    may_age: bool = True

    def field(self, name: str) -> Field:
        """Return a field by name; raises KeyError."""
        return {each.name: each for each in self.fields}[name]

    @property
    def newest_of(self) -> tuple[str, ...]:
        """What names the thing of which each version is a row; () if rows are no such versions."""
        return self.key[:-1] if self.key[-1] == VERSION else ()
