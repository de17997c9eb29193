"""Parses a statement of Redshift so that each call of a function stays a call under its written name.

sqlglot by itself translates the functions that it knows into another dialect, and leaves the others as they
are. Nobody would see which of these then answer otherwise. Here functions.py says what each name is.
"""

from functools import lru_cache
from typing import Any

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.errors import ParseError
from sqlglot.parsers.redshift import RedshiftParser

REDSHIFT, DUCKDB = map(sqlglot.Dialect.get_or_raise, ("redshift", "duckdb"))
# Functions with a grammar of their own, such as CAST(a AS b): they become nodes of sqlglot, and not calls.
GRAMMAR = frozenset({"CAST", "CONVERT", "DECODE", "EXTRACT", "POSITION", "SUBSTRING", "TRIM"})
# sqlglot leaves a call alone if this comment stands before its closing parenthesis (exp.SQLGLOT_ANONYMOUS).
_ALONE = [exp.SQLGLOT_ANONYMOUS]
_MARK = "__call"  # put after names for which sqlglot has a grammar and Redshift has none
_TYPES = frozenset({"CHAR"})  # CHAR(3) is a type, and no call


class NotAsRedshift(ValueError):
    """DuckDB is not known to answer an expression as Redshift does. The message names it, and the reason."""


@lru_cache(maxsize=4096)
def parse_statement(sql: str) -> exp.Expr:
    """Return the tree of one statement. It is cached, so nobody may change it. Raises ParseError."""
    trees = parse_statements(sql)
    if len(trees) != 1:
        raise ParseError(f"these are {len(trees)} statements")
    return trees[0]


def parse_statements(sql: str) -> list[exp.Expr]:
    """Return the trees of all statements of a text. Raises sqlglot's ParseError and TokenError."""
    tokens = REDSHIFT.tokenize(sql)
    _mark(tokens)
    trees = [tree for tree in REDSHIFT.parser().parse(tokens, sql) if tree is not None]
    for tree in trees:
        for node in tree.walk():
            node._meta = None  # noqa: SLF001 (places in the text: each copy of the tree would copy them)
    return trees


def name_of(call: exp.Anonymous) -> str:
    """Return the name of a function as it was called, in upper case."""
    return call.name.upper().removesuffix(_MARK.upper())


def _mark(tokens: list[Any]) -> None:
    """Change tokens so that sqlglot reads them as Redshift does, and leaves calls alone."""
    openings: list[int] = []  # the indices of parentheses that are not closed yet
    for index, token in enumerate(tokens):
        if token.token_type is TokenType.L_PAREN:
            openings.append(index)
        elif token.token_type is TokenType.R_PAREN and openings:
            _leave_alone(tokens, openings.pop(), token)
        elif token.token_type is TokenType.VAR and token.text == "#":
            token.token_type = TokenType.HASH  # 5 # 3: for sqlglot it begins the name of a table
        elif token.token_type is TokenType.FLOAT and token.text.upper() == "FLOAT":
            token.token_type, token.text = TokenType.DOUBLE, "DOUBLE"  # FLOAT is FLOAT8, FLOAT4 is REAL


def _leave_alone(tokens: list[Any], opening: int, closing: Any) -> None:
    """Mark a call, if a pair of parentheses is that of one. opening: the index of the first of both."""
    if opening == 0:
        return
    token, name = tokens[opening - 1], tokens[opening - 1].text.upper()
    is_approximate = opening > 1 and tokens[opening - 2].text.upper() == "APPROXIMATE"
    if token.token_type is TokenType.IDENTIFIER or name in GRAMMAR | _TYPES or is_approximate:
        return
    # FUNCTION_PARSERS are functions whose arguments sqlglot parses by a grammar of its own. The comment comes
    # too late for that, so the name must be another. For all other functions the comment is enough.
    if name in RedshiftParser.FUNCTION_PARSERS:
        token.text += _MARK
        token.token_type = TokenType.VAR
    elif name in RedshiftParser.FUNCTIONS:
        closing.comments = list(_ALONE)
