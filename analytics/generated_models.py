"""Writes every file under sql/ that follows from a declaration in rules/. `make models` runs it.

Example: sql/models/staging/rule_book.sql follows from rules/book/shipped.json, and the page sql/lake.md,
which lists every entity of the lake with its columns for analysts, from rules/lake. `make check` fails while
one of these files is stale.

The page is also the record of what was published. Files of years are read by the place of a column and by its
type, so a schema only grows: the page is not written anew for a declaration that takes something back.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from adapters.book import shipped_version
from analytics.features.feature_models import GENERATED
from analytics.warehouse.ddl import SQL, TYPES, column_type
from analytics.warehouse.models import staged_columns
from analytics.warehouse.statements import literal
from rules.days import stamp, unstamp
from rules.lake.entities import ENTITIES
from rules.lake.rule_entities import BOOK, RULES, book_items
from rules.lake.schema import Entity, Field, Type

SECTION = "\n## "
COLUMN = re.compile(r"^\| `(\w+)` \| (\w+)(?:\((\d+)\))?(\??) \|", re.MULTILINE)
# By type, those that have every value of it, too.
WIDER = {
    "BIGINT": {"VARCHAR"},
    "BOOLEAN": {"VARCHAR"},
    "DATE": {"TIMESTAMP", "VARCHAR"},
    "TIMESTAMP": {"VARCHAR"},
}
Columns = list[tuple[str, ...]]  # name, type, size of a text, `?` where it may be NULL
MODELS = SQL / "models"
_TYPES = TYPES | {Type.TEXT: "VARCHAR(512)"}
# The columns of an item; those before them are its version's.
_OF_VERSION = ("version", "effective_at", "published_at", "author", "note")
_OF_ITEM = {
    each.name: _TYPES[each.type]
    for each in RULES.fields
    if each.name not in {*_OF_VERSION, RULES.occurred, "document"}
}


class BreakingChange(ValueError):
    """A declaration lacks or narrows a published column. The text names it and the reason."""


def lake_page(written: str, entities: Mapping[str, Entity] = ENTITIES) -> str:
    """Return the page. written: the page as it was, whose introduction stays. Raises BreakingChange."""
    introduction, *published = written.split(SECTION)
    sections = {name: _section(entity) for name, entity in entities.items()}
    for each in published:
        name = each.partition("\n")[0]
        _check(name, COLUMN.findall(each), COLUMN.findall(sections.get(name, "")))
    return SECTION.join([introduction, *sections.values()])


def _section(entity: Entity) -> str:
    about = [entity.doc, f"Key: {', '.join(entity.key)}."]
    if not entity.in_warehouse:
        about.append("The warehouse does not have it: it is for restores alone.")
    elif entity.newest_of:
        about.append("`staging` shows the newest.")
    head = "| column | type | what it says |\n|---|---|---|"
    return f"{entity.name}\n\n{' '.join(about)}\n\n{head}\n{''.join(map(_line, entity.fields))}"


def _line(field: Field) -> str:
    others = [f"`{each.name}`" for each in staged_columns(field) if each.name != field.name]
    staged = f" (in staging: {', '.join(others)})" if others else ""
    type_ = f"{column_type(field)}{'' if field.required else '?'}"
    return f"| `{field.name}` | {type_} | {field.doc}{staged} |\n"


def _check(name: str, published: Columns, declared: Columns) -> None:
    for index, (column, kind, size, optional) in enumerate(published):
        if index >= len(declared) or declared[index][0] != column:
            raise BreakingChange(
                f"{name}.{column}: a published column stays, in place {index}; new ones come last"
            )
        _, new, new_size, new_optional = declared[index]
        if new not in {kind, *WIDER.get(kind, ())} or (size and int(new_size) < int(size)):
            raise BreakingChange(
                f"{name}.{column}: a published type only gets wider, and it was {kind}({size})"
            )
        if optional and not new_optional:
            raise BreakingChange(f"{name}.{column}: rows of before may lack it, so it stays optional")
    for column, _, _, optional in declared[len(published) :]:
        if not optional:
            raise BreakingChange(f"{name}.{column}: rows of before lack it, so a new column is optional")


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


def rule_book_sql() -> str:
    """Return the SQL of the items of all versions. The shipped book stands in it, a row an item."""
    version = shipped_version()
    items = list(book_items(version.book))
    filled = [name for name in _OF_ITEM if any(each.get(name) is not None for each in items)]
    first, *others = ([_value(name, each.get(name)) for name in filled] for each in items)
    named = ", ".join(f"{value} AS {name}" for name, value in zip(filled, first, strict=True))
    epoch = _value("since", stamp(version.effective_at))
    own = (str(version.number), epoch, epoch, literal(version.author), literal(version.note))
    values = [f"{value} AS {name}" for name, value in zip(_OF_VERSION, own, strict=True)]
    values += [name if name in filled else f"{_value(name, None)} AS {name}" for name in _OF_ITEM]
    return _RULE_BOOK.format(
        shipped="\n    UNION ALL SELECT ".join([f"SELECT {named}", *map(", ".join, others)]),
        names=",\n    ".join([*_OF_VERSION, *_OF_ITEM]),
        values=",\n    ".join(values),
        book=BOOK,
        first=version.number,
    )


def _value(name: str, value: Any) -> str:
    """Return a value as SQL. A NULL has its column's type, which no other row may tell."""
    if value is None:
        return f"CAST(NULL AS {_OF_ITEM[name]})"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return literal(unstamp(value).replace(tzinfo=None) if _OF_ITEM[name] == "TIMESTAMP" else value)


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
