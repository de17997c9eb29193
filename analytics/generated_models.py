"""Writes every file under sql/ that follows from a declaration in rules/. `make models` runs it.

Example: sql/models/staging/rule_book.sql follows from rules/book/shipped.json, and the page sql/lake.md,
which lists every entity of the lake with its columns for analysts, from rules/lake. `make check` fails while
one of these files is stale.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from adapters.book import shipped_version
from analytics.features.feature_models import GENERATED
from analytics.warehouse.ddl import SQL, TYPES, column_type
from analytics.warehouse.models import staged_columns
from analytics.warehouse.statements import literal
from rules.days import unstamp
from rules.lake.entities import ENTITIES
from rules.lake.rule_entities import BOOK, RULES, book_items
from rules.lake.schema import Entity, Field, Type

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
SECTION = "\n## "
# A column's line in the page: name, type, size of a text, and `?` if it may be NULL.
COLUMN = re.compile(r"^\| `(\w+)` \| (\w+)(?:\((\d+)\))?(\??) \|", re.MULTILINE)
# By type, the types into which all of its values fit.
WIDER = {
    "BIGINT": {"VARCHAR"},
    "BOOLEAN": {"VARCHAR"},
    "DATE": {"TIMESTAMP", "VARCHAR"},
    "TIMESTAMP": {"VARCHAR"},
}
Columns = list[tuple[str, ...]]  # the groups of COLUMN for each column: "" for no size or no `?`
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


class BreakingChange(ValueError):
    """A declaration lacks or narrows a published column. The text names it and the reason."""


def lake_page(published_page: str, entities: Mapping[str, Entity] = ENTITIES) -> str:
    """Return the new text of sql/lake.md, whose introduction is that of the published page.

    The page is also the record of what was published. Files of former years are read by the index and type of
    each column, so a schema may only grow. Raises BreakingChange for a declaration that takes something back.
    """
    introduction, *published_sections = published_page.split(SECTION)
    sections = {name: _section(entity) for name, entity in entities.items()}
    for published in published_sections:
        name = published.partition("\n")[0]
        _check_columns(name, COLUMN.findall(published), COLUMN.findall(sections.get(name, "")))
    return SECTION.join([introduction, *sections.values()])


def _section(entity: Entity) -> str:
    """Return an entity's section, without SECTION at its beginning."""
    about = [entity.doc, f"Key: {', '.join(entity.key)}."]
    if not entity.in_warehouse:
        about.append("The warehouse does not have it: it is for restores alone.")
    elif entity.newest_of:
        about.append("`staging` shows the newest.")
    head = "| column | type | what it says |\n|---|---|---|"
    return f"{entity.name}\n\n{' '.join(about)}\n\n{head}\n{''.join(map(_line, entity.fields))}"


def _line(field: Field) -> str:
    """Return a field's line of the table. It names the columns that staging has in its stead."""
    others = [f"`{each.name}`" for each in staged_columns(field) if each.name != field.name]
    staged = f" (in staging: {', '.join(others)})" if others else ""
    type_ = f"{column_type(field)}{'' if field.required else '?'}"
    return f"| `{field.name}` | {type_} | {field.doc}{staged} |\n"


def _check_columns(name: str, published: Columns, declared: Columns) -> None:
    """Raise BreakingChange if an entity's declared columns lack or narrow published ones."""
    for index, (column, kind, size, optional) in enumerate(published):
        if index >= len(declared) or declared[index][0] != column:
            raise BreakingChange(
                f"{name}.{column}: a published column stays, in place {index}; new ones come last"
            )
        _, new_kind, new_size, new_optional = declared[index]
        if new_kind not in {kind, *WIDER.get(kind, ())} or (size and int(new_size) < int(size)):
            raise BreakingChange(
                f"{name}.{column}: a published type only gets wider, and it was {kind}({size})"
            )
        if optional and not new_optional:
            raise BreakingChange(f"{name}.{column}: earlier rows may lack it, so it stays optional")
    for column, _, _, optional in declared[len(published) :]:
        if not optional:
            raise BreakingChange(f"{name}.{column}: earlier rows lack it, so a new column is optional")


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
