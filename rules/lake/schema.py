"""How the lake's entities are declared (entities.py): fields, their types, and what makes rows the same."""

from dataclasses import dataclass
from enum import StrEnum

EXTRA = "extra"


class Type(StrEnum):
    """A field's type. Timestamps are UTC, to the microsecond; JSON carries both as ISO 8601 text."""

    TEXT = "text"
    INTEGER = "integer"  # 64 bits
    BOOLEAN = "boolean"
    DATE = "date"
    TIMESTAMP = "timestamp"


@dataclass(frozen=True, slots=True)
class Field:
    """One column. required: a row without it is quarantined."""

    name: str
    type: Type
    doc: str
    required: bool = False


@dataclass(frozen=True, slots=True)
class Entity:
    """One kind of row.

    key: by which rows are the same. version: the field that tells which of two rows with one key is
    the newer; between equals the first one stays. occurred: the field that decides day and hour (UTC).
    order: how rows are sorted in a file.
    """

    name: str
    fields: tuple[Field, ...]
    key: tuple[str, ...]
    occurred: str
    order: tuple[str, ...]
    version: str | None = None

    def field(self, name: str) -> Field:
        """Return a field by name; raises KeyError."""
        return {each.name: each for each in self.fields}[name]
