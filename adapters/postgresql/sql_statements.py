"""Splits a SQL script into its statements, as PostgreSQL reads it: the Data API takes one statement a call.

A semicolon ends a statement unless it is quoted, or in a comment. Scripts of psql do more (BEGIN ATOMIC,
semicolons within parentheses); who needs that writes a function with a quoted body.
"""

import re
from collections.abc import Iterator

_ESCAPED = r"'(?:[^'\\]|\\.|'')*'"
# An escaped string goes on after a line break, by the same rules; comments may stand around it. A name may
# hold a $, which quotes nothing.
_BREAK = r"[^\S\n]*(?:--[^\n]*)?\n(?:\s|--[^\n]*\n)*"
_TOKEN = re.compile(
    rf"""
      --[^\n]*
    | (?P<comment>/\*)
    | [eE]{_ESCAPED}(?:{_BREAK}{_ESCAPED})*
    | '(?:[^']|'')*'
    | "(?:[^"]|"")*"
    | (?P<dollar>\$(?:[^\W\d]\w*)?\$)
    | (?P<open>[eE]'|['"])
    | [^\W\d][\w$]*
    | (?P<end>;)
    | .
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT = re.compile(r"/\*|\*/")
_IGNORED = re.compile(r"(?:\s|--[^\n]*)+")
_ATOMIC = re.compile(r"\bBEGIN\s+ATOMIC\b", re.IGNORECASE)


def split(text: str) -> list[str]:
    """Return the statements of a script, each with its semicolon and what stands before it.

    Joined they are the text. The last one may hold nothing but space and comments. Raises ValueError if a
    quote or a comment has no end.
    """
    ends = [*_ends(text), len(text)]
    pieces = [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    return pieces if pieces[-1] or len(pieces) == 1 else pieces[:-1]


def statements(text: str) -> list[str]:
    """Return the statements to be executed: without semicolons, and without those that are empty.

    Raises ValueError as `split` does, and if a statement is BEGIN ATOMIC, which split cuts in pieces.
    """
    found = [each.strip() for each in split(text)]
    if any(_ATOMIC.search(each) for each in found):
        raise ValueError("BEGIN ATOMIC cannot be split into statements: quote the function's body")
    return [bare for each in found if not is_empty(bare := each.removesuffix(";").rstrip())]


def is_empty(statement: str) -> bool:
    """Whether a piece of `split` holds nothing but space, comments and its semicolon."""
    at = 0
    while at < len(statement):
        if ignored := _IGNORED.match(statement, at):
            at = ignored.end()
        elif statement.startswith("/*", at):
            at = _after_comment(statement, at)
        else:
            return statement[at:] == ";"
    return True


def _ends(text: str) -> Iterator[int]:
    """Yield the place after each semicolon that ends a statement."""
    at = 0
    while token := _TOKEN.match(text, at):
        at = token.end()
        if token["end"]:
            yield at
        elif token["comment"]:
            at = _after_comment(text, token.start())
        elif token["dollar"]:
            at = text.find(token["dollar"], at) + len(token["dollar"])
            if at < token.end():
                raise _unended(text, token.start())
        elif token["open"]:
            raise _unended(text, token.start())


def _after_comment(text: str, start: int) -> int:
    """Return the place after a comment, which may hold others."""
    depth = 0
    for mark in _COMMENT.finditer(text, start):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    raise _unended(text, start)


def _unended(text: str, start: int) -> ValueError:
    line = text.count("\n", 0, start) + 1
    return ValueError(f"what begins with {text[start : start + 20]!r} in line {line} has no end")
