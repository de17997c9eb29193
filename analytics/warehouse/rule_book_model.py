"""The model staging.rule_book: the items of all versions of the rules, as SQL."""

from typing import Any

from adapters.book import shipped_version
from analytics.warehouse.ddl import TYPES
from analytics.warehouse.statements import literal
from rules.days import stamp, unstamp
from rules.lake.rule_entities import BOOK, RULES, book_items
from rules.lake.schema import Type

_TYPES = TYPES | {Type.TEXT: "VARCHAR(512)"}
# The columns of an item; those before them are its version's.
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
