"""The page sql/lake.md: all entities of the lake with their columns.

It is also the record of what was published, so a change that takes something back is refused.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from analytics.warehouse.ddl import column_type
from analytics.warehouse.models import staged_columns
from rules.lake.entities import ENTITIES
from rules.lake.schema import Entity, Field

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


class PageColumn(NamedTuple):
    """A column as its line in the page has it."""

    name: str
    type: str
    size: str  # of a text, in bytes; "" for other types
    optional: str  # "?" if it may be NULL, else ""


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
        _check_columns(name, _columns(published), _columns(sections.get(name, "")))
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


def _columns(section: str) -> list[PageColumn]:
    return [PageColumn(*groups) for groups in COLUMN.findall(section)]


def _check_columns(entity: str, published: Sequence[PageColumn], declared: Sequence[PageColumn]) -> None:
    """Raise BreakingChange if an entity's declared columns lack or narrow published ones."""
    for index, old in enumerate(published):
        # A column keeps its name and its place.
        if index >= len(declared) or declared[index].name != old.name:
            raise BreakingChange(
                f"{entity}.{old.name}: a published column stays, in place {index}; new ones come last"
            )
        new = declared[index]
        # Its type takes all values that it took before.
        is_wide = new.type in {old.type, *WIDER.get(old.type, ())}
        if not is_wide or (old.size and int(new.size) < int(old.size)):
            raise BreakingChange(
                f"{entity}.{old.name}: a published type only gets wider, and it was {old.type}({old.size})"
            )
        # A column that rows may lack stays optional, and a new one is: earlier rows lack it.
        if old.optional and not new.optional:
            raise BreakingChange(f"{entity}.{old.name}: earlier rows may lack it, so it stays optional")
    for new in declared[len(published) :]:
        if not new.optional:
            raise BreakingChange(f"{entity}.{new.name}: earlier rows lack it, so a new column is optional")
