"""Writes every file under sql/ that follows from a declaration in rules/. `make models` runs it.

Example: sql/models/staging/rule_book.sql follows from rules/book/shipped.json, and the page sql/lake.md,
which lists every entity of the lake with its columns for analysts, from rules/lake. `make check` fails while
one of these files is stale.
"""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from adapters.book import shipped_version
from analytics.features.feature_models import GENERATED
from analytics.lake_page import lake_page
from analytics.warehouse.ddl import SQL, TYPES
from analytics.warehouse.statements import literal
from rules.days import unstamp
from rules.lake.rule_entities import BOOK, RULES, book_items
from rules.lake.schema import Type

_TYPES = TYPES | {Type.TEXT: "VARCHAR(512)"}
# _OF_VERSION: columns that describe the version. _OF_ITEM: those that describe one item of it, with types.
_OF_VERSION = ("version", "effective_at", "published_at", "author", "note")
_OF_ITEM = {
    each.name: _TYPES[each.type]
    for each in RULES.fields
    if each.name not in {*_OF_VERSION, RULES.occurred, "document"}
}
_RULE_BOOK = """-- Generated from rules/book/shipped.json by `make models`.
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


def rule_book_sql() -> str:
    """Return the SQL of the items of all versions. The shipped book's items stand in it as literals."""
    version = shipped_version()
    items = list(book_items(version.book))
    # The other columns are NULL in each item, so the shipped rows leave them out.
    filled = [name for name in _OF_ITEM if any(item.get(name) is not None for item in items)]
    first, *others = ([_sql_value(item.get(name), _OF_ITEM[name]) for name in filled] for item in items)
    # A UNION takes the names of its columns from its first row.
    named_row = ", ".join(f"{value} AS {name}" for name, value in zip(filled, first, strict=True))
    rows = [named_row, *map(", ".join, others)]
    shipped_at = _sql_timestamp(version.effective_at)
    # Nobody published the shipped book: it counts as published when it became effective.
    of_version = [
        str(version.number),
        shipped_at,
        shipped_at,
        literal(version.author),
        literal(version.note),
    ]
    values = [f"{value} AS {name}" for name, value in zip(_OF_VERSION, of_version, strict=True)]
    for name, type_ in _OF_ITEM.items():
        values.append(name if name in filled else f"{_sql_value(None, type_)} AS {name}")
    return _RULE_BOOK.format(
        shipped="\n    UNION ALL ".join(f"SELECT {row}" for row in rows),
        names=",\n    ".join([*_OF_VERSION, *_OF_ITEM]),
        values=",\n    ".join(values),
        book=BOOK,
        first=version.number,
    )


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


def generated_files() -> Iterator[tuple[Path, str]]:
    """Yield each file that follows from a declaration, with the text that it must have."""
    yield MODELS / "staging" / "rule_book.sql", rule_book_sql()
    page = SQL / "lake.md"
    yield page, lake_page(page.read_text(encoding="utf-8"))
    for name, text in GENERATED.items():
        yield MODELS / "marts" / f"{name}.sql", text()


def main() -> None:
    """Write all generated files."""
    for path, text in generated_files():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
