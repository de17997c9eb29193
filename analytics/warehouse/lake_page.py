"""Writes sql/lake.md, the page that lists every entity of the lake with its columns for analysts.

The page is also the record of what was published. Files of years are read by the place of a column and by its
type, so a schema only grows: the page is not written anew for a declaration that takes something back.
"""

import re
from collections.abc import Mapping

from analytics.warehouse.ddl import column_type
from analytics.warehouse.models import staged_columns
from rules.lake.entities import ENTITIES
from rules.lake.schema import Entity, Field

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
