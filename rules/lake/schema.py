"""How an entity of the lake is declared (entities.py): its fields, their types, and what identifies a row."""

from dataclasses import dataclass
from enum import StrEnum

EXTRA = "extra"
BYTES_MAX = 65_535  # of a VARCHAR of Redshift


class Type(StrEnum):
    """A field's type. Timestamps are in UTC, to the microsecond. JSON has times and dates as ISO 8601."""

    TEXT = "text"
    INTEGER = "integer"  # 64 bits
    BOOLEAN = "boolean"
    DATE = "date"
    TIMESTAMP = "timestamp"


@dataclass(frozen=True, slots=True)
class Field:
    """One column. required: curation puts a row without it into quarantine.

    bytes_max: of a text in UTF-8, as its column in sql/ddl has it. A row with a longer text goes into
    quarantine, for it would stop the load of all tables.
    """

    name: str
    type: Type
    doc: str
    required: bool = False
    bytes_max: int = BYTES_MAX


@dataclass(frozen=True, slots=True)
class Entity:
    """One kind of row.

    key: the fields that identify a row. version: of two rows with one key, the one with the higher value here
    is the newer; if they are equal, or there is no version, the first one stays. occurred: the field whose
    day and hour (UTC) place the row. order: how rows are sorted in a file. in_warehouse: whether analysts
    have it; what they do not have is for restores alone.
    """

    name: str
    fields: tuple[Field, ...]
    key: tuple[str, ...]
    occurred: str
    order: tuple[str, ...]
    version: str | None = None
    in_warehouse: bool = True

    def field(self, name: str) -> Field:
        """Return a field by name; raises KeyError."""
        return {each.name: each for each in self.fields}[name]
