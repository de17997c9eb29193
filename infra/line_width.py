"""Breaks long lines of a template: what is in braces or brackets goes to lines of its own, text is folded."""

import re
import textwrap
from collections.abc import Iterator

WIDTH = 120
LINE = re.compile(
    r'( *)((?:- )*)((?:"[^"]*"|[^\s"\'{}\[\],#!:]+(?:::?[^\s"\'{}\[\],#!:]+)*): )?((?:![\w:]+ )?)(.+)'
)
CLOSING = {"{": "}", "[": "]"}
QUOTES = "\"'"


def short_lines(text: str) -> str:
    """Return a template, or a part of one, that says the same in lines of at most WIDTH characters.

    A word that is longer stays as it is, and so does a line within a text of several lines (|, >-).
    """
    lines: list[str] = []
    block = -1  # the least indentation of a text of several lines, -1 outside of one
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip(" "))
        if block >= 0 and (not line or indent >= block):
            lines.append(line)
            continue
        block = indent + 1 if re.search(r"(?:: |- )(?:![\w:]+ )?[|>][-+]?$", line) else -1
        lines += _broken(line)
    return "".join(f"{line}\n" for line in lines)


def _broken(line: str) -> Iterator[str]:
    """Yield the lines that say what one line says."""
    if len(line) <= WIDTH or not (match := LINE.fullmatch(line)):
        yield line
        return
    indent, dashes, key, tag, value = (part or "" for part in match.groups())
    if value.startswith("#"):
        start = f"{indent}# "
        yield from textwrap.wrap(value[1:].strip(), WIDTH, initial_indent=start, subsequent_indent=start)
        return
    end = _end_of(value)
    if comment := re.fullmatch(r" +# (.*)", value[end:]):
        if not dashes and not key:
            yield line
            return
        yield from _broken(f"{indent}# {comment[1]}")
        yield from _broken(line[: len(line) - len(value) + end])
        return
    inner = " " * (len(indent) + len(dashes))
    if value[0] in CLOSING and end == len(value):
        bullet = "- " if value[0] == "[" else ""
        first = f"{indent}{dashes}" if not key and not tag else ""
        if not first:
            yield f"{indent}{dashes}{key}{tag}".rstrip()
        for item in _split(value[1:-1]):
            yield from _broken((first or (f"{inner}  " if key else inner)) + bullet + item)
            first = ""
        return
    start = f"{inner}  "
    text = _text(value)
    folded = textwrap.wrap(
        text,
        WIDTH,
        initial_indent=start,
        subsequent_indent=start,
        break_long_words=False,
        break_on_hyphens=False,
    )
    is_shorter = len(folded) > 1 or len(folded[0]) <= WIDTH
    if is_shorter and " ".join(part.strip() for part in folded) == text:
        yield f"{indent}{dashes}{key}{tag}>-"
        yield from folded
    else:
        yield line


def _text(value: str) -> str:
    """Return what a scalar says, quoted or not; "" if it has to stay as it is."""
    if value[0] == '"':
        return "" if "\\" in value else value[1:-1]
    return value[1:-1].replace("''", "'") if value[0] == "'" else value


def _split(text: str) -> list[str]:
    """Return the items of a collection's inside, which are separated by commas."""
    items, start, depth, quote = [], 0, 0, ""
    for place, sign in enumerate(text):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in QUOTES:
            quote = sign
        elif sign in "{[":
            depth += 1
        elif sign in "}]":
            depth -= 1
        elif sign == "," and not depth:
            items.append(text[start:place].strip())
            start = place + 1
    return [*items, text[start:].strip()]


def _end_of(value: str) -> int:
    """Return where a value ends: what is after it is a comment, or nothing."""
    depth, quote = 0, ""
    for place, sign in enumerate(value):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in QUOTES and (value[0] in "\"'" or depth):
            quote = sign
        elif value[0] in CLOSING and sign in "{[":
            depth += 1
        elif value[0] in CLOSING and sign in "}]":
            depth -= 1
        elif sign == "#" and not depth and value[place - 1 : place] == " ":
            return len(value[:place].rstrip())
    return len(value)
