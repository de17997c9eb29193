"""The shape of a line is the text around its values: {"user_id":"...","version":...}.

A line is a JSON object with the fields of a shape if it is made of the shape's texts, in their order,
with one valid value between each two. It need not be parsed then. The publisher writes all lines of one
entity in a few shapes.
"""

import re
from dataclasses import dataclass

from analytics.curation.value_columns import first_moment
from analytics.lake.layout import Place
from rules.lake.entities import ENTITIES, Field, Type

# The last part of a line has its end, too. Behind a row of a packed record there is a comma.
FIELD = re.compile(
    rb'(\{?[ \t]*"([^"\\]*)"[ \t]*:[ \t]*)("(?:[^"\\]|\\.)*"|[-0-9a-z]+)([ \t]*(?:\},\n|\}?[ \t\r\n]*))',
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Slot:
    """Where a shape has a value of a field.

    part: a line is split before each `,"`; the value is in this part, counted from 0.
    before, after: how many bytes of the part are ahead of the value, and behind it.
    text: all that is between the value before this one and this one.
    """

    field: Field
    part: int
    before: int
    after: int
    text: bytes


@dataclass(frozen=True, slots=True)
class Shape:
    """The text around the values of lines. commas: how many `,"` a line has. end: the last text."""

    place: Place
    commas: int
    slots: tuple[Slot, ...]
    end: bytes


def shape_of(line: bytes, place: Place) -> Shape | None:
    """Return the shape of a line (with its newline); None if it is surely no row, or has an unknown field."""
    entity = ENTITIES[place.entity]
    parts = re.split(rb',(?=")', line)
    found = [FIELD.fullmatch(part) for part in parts]
    names = [each[2].decode(errors="replace") for each in found if each]
    required = {field.name for field in entity.fields if field.required} | {"dt", "hour"}
    is_whole = len(names) == len(parts) == len(set(names)) and required <= set(names)
    if not is_whole or first_moment(place) is None:
        return None
    fields = {field.name: field for field in entity.fields}
    slots: list[Slot] = []
    text, last = b"", len(parts) - 1
    for at, (name, part) in enumerate(zip(names, found, strict=True)):
        if part is None or not _may_stand(part, fields.get(name), (at == 0, at == last), place):
            return None
        before, _, value, after = part.groups()
        text += before if at == 0 else b"," + before
        if name in fields and value != b"null":
            quote = b'"' * value.startswith(b'"')
            size = len(quote)
            slots.append(Slot(fields[name], at, len(before) + size, len(after) + size, text + quote))
            text = quote + after
        else:
            text += value + after
    return Shape(place, last, tuple(slots), text)


def _may_stand(part: re.Match[bytes], field: Field | None, edges: tuple[bool, bool], place: Place) -> bool:
    """Tell whether a part of a line has braces at the line's edges alone, and a value of a fitting type."""
    before, name, value, after = part.groups()
    if (before.startswith(b"{"), b"}" in after) != edges:
        return False
    if field is None:
        wanted = {b"dt": place.dt, b"hour": place.hour}.get(name)
        return wanted is not None and value == f'"{wanted}"'.encode()
    if value == b"null":
        return not field.required
    return value.startswith(b'"') != (field.type in (Type.INTEGER, Type.BOOLEAN))
