r"""A regular expression that only lines of one partition match whose every value has its declared type.

DuckDB's from_json takes "5", 1.5 and true for an integer and turns a wrong date into null; of a line
that matches, it can only read what is there. Required fields may still be missing.
A valid line may fail to match: one with unknown fields, odd timestamps (another offset than Z),
integers of 19 digits, escapes such as \u0001. analytics/curation/strict_reader.py decides about those.
"""

from functools import cache

from analytics.lake.layout import Place
from rules.lake.entities import ENTITIES, Field, Type

_HEX = "[0-9a-fA-F]"
_UNIT = rf"(?:00[2-9a-fA-F]|0[1-9a-fA-F]{_HEX}|[1-9a-cA-CeEfF]{_HEX}{{2}}|[dD][0-7]{_HEX}){_HEX}"
_PAIR = rf"[dD][89abAB]{_HEX}{{2}}\\u[dD][c-fC-F]{_HEX}{{2}}"
_ESCAPE = rf'\\(?:["\\/bfnrt]|u(?:{_UNIT}|{_PAIR}))'
_TEXT = rf'"(?:[^"\\\x00-\x1f]|{_ESCAPE})*"'
_INTEGER = r"-?(?:0|[1-9][0-9]{0,17})"
_LEAP = r"(?:[12][0-9](?:0[48]|[2468][048]|[13579][26])|(?:12|16|20|24|28)00)"
_LONG = r"(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
_SHORT = r"(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
_FEBRUARY = r"02-(?:0[1-9]|1[0-9]|2[0-8])"
_DATE = rf"(?:[12][0-9]{{3}}-(?:{_LONG}|{_SHORT}|{_FEBRUARY})|{_LEAP}-02-29)"
_MINUTE = r":[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?Z"
_TIMESTAMP = rf"{_DATE}T(?:[01][0-9]|2[0-3]){_MINUTE}"
# Values without quotes, texts apart.
VALUES = {
    Type.INTEGER: _INTEGER,
    Type.BOOLEAN: "(?:true|false)",
    Type.DATE: _DATE,
    Type.TIMESTAMP: _TIMESTAMP,
}
_QUOTED = (Type.DATE, Type.TIMESTAMP)
_NOTHING = r"a\bb"
_WS = r"[ \t\r\n]*"


@cache
def line_pattern(place: Place) -> str:
    """Return the expression (RE2 syntax, anchored) for the lines of an hour's raw objects."""
    entity = ENTITIES[place.entity]
    names: dict[str, list[str]] = {}
    for field in entity.fields:
        names.setdefault(_value(field, place, field.name == entity.occurred), []).append(field.name)
    names.setdefault(f'"{place.dt}"', []).append("dt")
    names.setdefault(f'"{place.hour}"', []).append("hour")
    pairs = "|".join(f'"(?:{"|".join(each)})"{_WS}:{_WS}{value}' for value, each in names.items())
    return rf"^{_WS}\{{{_WS}(?:{pairs})(?:{_WS},{_WS}(?:{pairs}))*{_WS}\}}{_WS}$"


def _value(field: Field, place: Place, decides_place: bool) -> str:
    if decides_place:
        day = f'"{place.dt}"' if place.hour == "00" else _NOTHING
        return day if field.type is Type.DATE else f'"{place.dt}T{place.hour}{_MINUTE}"'
    value = _TEXT if field.type is Type.TEXT else VALUES[field.type]
    value = f'"{value}"' if field.type in _QUOTED else value
    return value if field.required else f"(?:null|{value})"
