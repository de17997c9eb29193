"""Writes every file under sql/ that follows from a declaration in rules/. `make models` runs it.

Example: sql/models/staging/rule_book.sql follows from rules/book/shipped.json, and the page sql/lake.md,
which lists every entity of the lake with its columns for analysts, from rules/lake. `make check` fails while
one of these files is stale.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from adapters.book_store import shipped_version
from analytics.lake_page import lake_page
from analytics.warehouse.ddl import SQL, TYPES
from analytics.warehouse.statements import literal
from rules.book.book import Version
from rules.days import unstamp
from rules.lake.entities import LEDGER, LOADED, Type
from rules.lake.rule_entities import BOOK, RULES, book_items
from rules.parts import said

_SQL_TYPES = TYPES | {Type.TEXT: "VARCHAR(512)"}
# Columns that describe the version, and the types of those that describe one item of it.
_VERSION_COLUMNS = ("version", "effective_at", "published_at", "author", "note")
_ITEM_TYPES = {
    each.name: _SQL_TYPES[each.type]
    for each in RULES.fields
    if each.name not in {*_VERSION_COLUMNS, RULES.occurred, "document"}
}
_RULE_BOOK_SQL = """-- Generated from rules/book/shipped.json by `make models`.
-- The items of all versions of the book. The shipped book is version 1 while the lake has no version 1.
WITH shipped AS (
    {shipped}
)
SELECT
    {names}
FROM staging.rules
WHERE kind <> '{book}'
UNION ALL
SELECT
    {values}
FROM shipped
CROSS JOIN (SELECT COUNT(*) AS stored FROM staging.rules WHERE version = {first}) AS first_version
WHERE first_version.stored = 0
"""
MODELS = SQL / "models"
_LOADED_ROWS_HEAD = (
    "-- How many rows the warehouse has of each entity and day. The ledger is not here, because the opening "
    "entry of an\n-- account has no time of its own that would tell its day.\n"
)


def rule_book_sql() -> str:
    """Return the SQL of the items of all versions. The shipped book's items stand in it as literals."""
    version = shipped_version()
    items = list(book_items(version.book))
    # The other columns are NULL in each item, so the shipped rows leave them out.
    filled = [name for name in _ITEM_TYPES if any(item.get(name) is not None for item in items)]
    return _RULE_BOOK_SQL.format(
        shipped="\n    UNION ALL ".join(f"SELECT {row}" for row in _shipped_rows(items, filled)),
        names=",\n    ".join([*_VERSION_COLUMNS, *_ITEM_TYPES]),
        values=",\n    ".join(_selected_values(version, filled)),
        book=BOOK,
        first=version.number,
    )


def _shipped_rows(items: Iterable[Mapping[str, Any]], filled: Sequence[str]) -> list[str]:
    """Return the filled columns of each item, as what a SELECT lists."""
    first, *others = ([_sql_value(item.get(name), _ITEM_TYPES[name]) for name in filled] for item in items)
    # A UNION takes the names of its columns from its first row.
    named_row = ", ".join(f"{value} AS {name}" for name, value in zip(filled, first, strict=True))
    return [named_row, *map(", ".join, others)]


def _selected_values(version: Version, filled: Collection[str]) -> list[str]:
    """Return what is selected from the shipped rows: the version's columns, then the items'."""
    shipped_at = _sql_timestamp(version.effective_at)
    # Nobody published the shipped book: it counts as published when it became effective.
    of_version = [
        str(version.number),
        shipped_at,
        shipped_at,
        literal(version.author),
        literal(version.note),
    ]
    values = [f"{value} AS {name}" for name, value in zip(_VERSION_COLUMNS, of_version, strict=True)]
    for name, type_ in _ITEM_TYPES.items():
        values.append(name if name in filled else f"{_sql_value(None, type_)} AS {name}")
    return values


def _sql_value(value: Any, type_: str) -> str:
    """Return a value as SQL. A NULL is cast to its column's type, because no other row may show the type."""
    if value is None:
        return f"CAST(NULL AS {type_})"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return _sql_timestamp(unstamp(value)) if type_ == "TIMESTAMP" else literal(value)


def _sql_timestamp(instant: datetime) -> str:
    """Return an instant in UTC as a literal. The warehouse's timestamps have no zone."""
    return literal(instant.replace(tzinfo=None))


def loaded_rows_sql() -> str:
    """Return the SQL of how many rows each entity has. The ledger's opening entries have no day."""
    branches = []
    for entity in LOADED.values():
        if entity.name == LEDGER.name:
            continue
        column = entity.occurred
        is_date = entity.field(column).type is Type.DATE
        day = column if is_date else f"CAST({column} AS DATE)"
        branches.append(
            f"SELECT '{entity.name}' AS entity, {day} AS dt, COUNT(*) AS loaded\n"
            f"FROM lake.{entity.name}\nGROUP BY {day}\n"
        )
    return _LOADED_ROWS_HEAD + "UNION ALL\n".join(branches)


def generated_files() -> Iterator[tuple[Path, str]]:
    """Yield each file that follows from a declaration, with the text that it must have."""
    yield MODELS / "staging" / "rule_book.sql", rule_book_sql()
    yield MODELS / "facts" / "loaded_rows.sql", loaded_rows_sql()
    page = SQL / "lake.md"
    yield page, lake_page(page.read_text(encoding="utf-8"))
    for generated in said("models"):
        for path, text in generated.items():
            yield MODELS / path, text()


def main() -> None:
    """Write all generated files."""
    for path, text in generated_files():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
