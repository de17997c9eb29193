"""Reads JSON, and finds what of it JSON could not hold again: each door, queue and file reads by this.

Reading and checking are two steps. A door that takes several things in one text reads the text once, and
checks each thing by itself: so half of an emoji in one refuses that one, and no other.
"""

import json
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any

NESTING_MAX = 64
# Beyond these levels a text is not read: reading and writing it would need as many calls within each other.
READ_LEVELS = 2 * NESTING_MAX
FIELD_CHARACTERS_MAX = 200
NUMBER_MAX = sys.float_info.max
# An integer with more digits is beyond a double. Python itself refuses some thousands of digits.
DIGITS_MAX = 310

NO_TEXT = "is no Unicode: half of a surrogate pair, or bytes that are not UTF-8"
NO_NUMBER = "is no number that a double holds: at most about 1.8e308, not NaN"
TOO_DEEP = f"is nested deeper than {NESTING_MAX} levels"
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)

Pairs = Callable[[list[tuple[str, Any]]], Any]


class NoJson(ValueError):
    """A text that is no JSON at all; it says where."""


class DoubledKey(ValueError):
    """An object that has a key twice; it says which."""


class BadValue(ValueError):
    """A value that JSON could not hold again. field: its path, such as `properties.note`; reason: why."""

    def __init__(self, path: list[str], reason: str) -> None:
        self.field = cut_text(".".join(path) or "body", FIELD_CHARACTERS_MAX)
        self.reason = reason
        super().__init__(f"{self.field} {reason}")


def cut_text(text: str, characters: int) -> str:
    """Return a text, or the beginning of one that has more characters than this, with three dots."""
    return text if len(text) <= characters else f"{text[: characters - 3]}..."


def parse_json(data: str | bytes, pairs: Pairs | None = None) -> Any:
    """Read JSON strictly: read_json, then check_strict; raises ValueError with the reason."""
    value = read_json(data, pairs)
    check_strict(value)
    return value


def read_json(data: str | bytes, pairs: Pairs | None = None) -> Any:
    """Read JSON; raises NoJson, with the reason in words, for what is no JSON at all.

    pairs: makes an object of its names and values, and may raise what it likes, as unique_keys does; left
    out, of two values of one name the last one stays.

    What JSON could not hold again is in the value, and check_strict finds it: halves of surrogate pairs,
    bytes that are not UTF-8 (as surrogates too), numbers beyond a double and NaN (as floats), and too many
    levels (what is deeper than READ_LEVELS is there as its text). A byte order mark is left out.
    """
    text = text_of(data)
    try:
        value = _loads(text, pairs)
        if not is_too_deep(text, value):
            return value
    except RecursionError:
        pass
    return _loads(_limit_levels(text), pairs)


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of its names and values, as `pairs` of read_json. Raises DoubledKey.

    A parser would take the last value of a key and say nothing, and a person may read the first one.
    """
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise DoubledKey(f"has the key {key[:64]!r} twice in one place")
        found[key] = value
    return found


def text_of(data: str | bytes) -> str:
    """Return a text without its byte order mark; each byte that is no UTF-8 becomes a surrogate.

    Bytes may be UTF-16 or UTF-32, as JSON's first characters show. Raises NoJson.
    """
    if isinstance(data, str):
        return data.removeprefix("\ufeff")
    try:
        return data.decode(json.detect_encoding(data), "surrogateescape")
    except UnicodeDecodeError:
        raise NoJson("it is no text in UTF-8") from None


def check_strict(value: Any, apart: str = "") -> None:
    """Raise BadValue for the first value that JSON could not hold again.

    apart: a field that is left out, because its parts are checked each by itself.
    """
    if apart and isinstance(value, dict):
        value = {name: each for name, each in value.items() if name != apart}
    if found := _unstorable_value(value, NESTING_MAX):
        raise BadValue(*found)


def storable(value: Any, levels: int = NESTING_MAX) -> Any:
    """Return a value with null for what in it JSON could not hold again, and without such names."""
    if not isinstance(value, (dict, list)):
        return None if _scalar_reason(value) else value
    if not levels:
        return None
    if isinstance(value, list):
        return [storable(each, levels - 1) for each in value]
    return {name: storable(each, levels - 1) for name, each in value.items() if _is_text(name)}


def bad_values(value: Mapping[str, Any]) -> dict[str, BadValue]:
    """Return the first value of each field that JSON could not hold again, by the field's name."""
    found = {name: _unstorable_value({name: each}, NESTING_MAX) for name, each in value.items()}
    return {name: BadValue(*each) for name, each in found.items() if each}


def _loads(text: str, pairs: Pairs | None) -> Any:
    try:
        return json.loads(text, strict=False, parse_int=read_integer, object_pairs_hook=pairs)
    except json.JSONDecodeError as error:
        fault = f"{error.msg[:1].lower()}{error.msg[1:]}"
        raise NoJson(f"{fault}, line {error.lineno} column {error.colno}") from None


def read_integer(digits: str) -> int | float:
    """Read an integer; infinity stands for one that is beyond a double."""
    return int(digits) if len(digits) < DIGITS_MAX else float(digits)


def _limit_levels(text: str) -> str:
    """Return a text with what is deeper than READ_LEVELS as JSON strings."""
    pieces, level, start = [], 0, 0
    for token in _TOKEN.finditer(text):
        if token[0] in "[{":
            level += 1
            if level == READ_LEVELS:
                pieces.append(text[start : token.start()])
                start = token.start()
        elif token[0] in "]}":
            if level == READ_LEVELS:
                pieces.append(json.dumps(text[start : token.end()]))
                start = token.end()
            level -= 1
    return "".join(pieces) + text[start:] if level < READ_LEVELS else "".join(pieces)


def is_too_deep(text: str, value: Any) -> bool:
    """Whether a value has more than READ_LEVELS levels. text: what it was read from.

    How deep a parser itself reads depends on the version of Python, so each reader of JSON asks this.
    """
    if text.count("[") + text.count("{") < READ_LEVELS:
        return False
    layer = [value]
    for _ in range(READ_LEVELS):
        inner = [
            each.values() if isinstance(each, dict) else each
            for each in layer
            if isinstance(each, (dict, list))
        ]
        layer = [each for some in inner for each in some]
        if not layer:
            return False
    return True


def _unstorable_value(value: Any, levels: int) -> tuple[list[str], str] | None:
    """Return the path of the first value that JSON could not hold again, and why."""
    if not isinstance(value, (dict, list)):
        reason = _scalar_reason(value)
        return ([], reason) if reason else None
    if not levels:
        return [], TOO_DEEP
    for name, each in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(name, str) and not _is_text(name):
            return [], f"has a name that {NO_TEXT}"
        if found := _unstorable_value(each, levels - 1):
            return [str(name), *found[0]], found[1]
    return None


def _scalar_reason(value: Any) -> str:
    if isinstance(value, str):
        return "" if _is_text(value) else NO_TEXT
    is_beyond = isinstance(value, (int, float)) and not -NUMBER_MAX <= value <= NUMBER_MAX
    return NO_NUMBER if is_beyond else ""


def _is_text(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
