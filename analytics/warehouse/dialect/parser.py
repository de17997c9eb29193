"""Reads a statement of Redshift and leaves its functions unnamed: sqlglot gives them no meaning of its own.

sqlglot would make the functions of one dialect those of another where it knows how, and hand on the others.
Which of them then answer otherwise, nobody would see. Here each call stays a call under the name that was
written, so that functions.py can say of each name what it is.
"""

from functools import lru_cache
from typing import Any

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.errors import ParseError
from sqlglot.parsers.redshift import RedshiftParser

REDSHIFT = "redshift"
# Grammar of their own: CAST(a AS b), EXTRACT(a FROM b) and their like. They become nodes, and not calls.
GRAMMAR = frozenset({"CAST", "CONVERT", "DECODE", "EXTRACT", "POSITION", "SUBSTRING", "TRIM"})
# sqlglot leaves a call alone if this comment stands before its closing parenthesis (exp.SQLGLOT_ANONYMOUS).
_ALONE = [exp.SQLGLOT_ANONYMOUS]
_MARK = "__call"  # after the names of which sqlglot has a grammar and Redshift none
_AS_NODES = frozenset({"CHAR"})  # CHAR(3) is a type


@lru_cache(maxsize=4096)
def parse_statement(sql: str) -> exp.Expr:
    """Return the tree of one statement; nobody may change it, since it is kept. Raises ParseError."""
    trees = parse_statements(sql)
    if len(trees) != 1:
        raise ParseError(f"these are {len(trees)} statements")
    return trees[0]


def parse_statements(sql: str) -> list[exp.Expr]:
    """Return the trees of all statements of a text. Raises sqlglot's ParseError and TokenError."""
    dialect = sqlglot.Dialect.get_or_raise(REDSHIFT)
    tokens = dialect.tokenize(sql)
    _mark(tokens)
    return [each for each in dialect.parser().parse(tokens, sql) if each is not None]


def name_of(call: exp.Anonymous) -> str:
    """Return the name of a function as it was called, in upper case."""
    return call.name.upper().removesuffix(_MARK.upper())


def _mark(tokens: list[Any]) -> None:
    opened: list[int] = []
    for at, token in enumerate(tokens):
        if token.token_type is TokenType.L_PAREN:
            opened.append(at)
        elif token.token_type is TokenType.R_PAREN and opened:
            _leave_alone(tokens, opened.pop(), token)
        elif token.token_type is TokenType.VAR and token.text == "#":
            token.token_type = TokenType.HASH  # 5 # 3: for sqlglot it begins the name of a table
        elif token.token_type is TokenType.FLOAT and token.text.upper() == "FLOAT":
            token.token_type, token.text = TokenType.DOUBLE, "DOUBLE"  # FLOAT is FLOAT8, FLOAT4 is REAL


def _leave_alone(tokens: list[Any], opening: int, closing: Any) -> None:
    if opening == 0:
        return
    token, name = tokens[opening - 1], tokens[opening - 1].text.upper()
    is_approximate = opening > 1 and tokens[opening - 2].text.upper() == "APPROXIMATE"
    if token.token_type is TokenType.IDENTIFIER or name in GRAMMAR | _AS_NODES or is_approximate:
        return
    if name in RedshiftParser.FUNCTION_PARSERS:
        token.text += _MARK
        token.token_type = TokenType.VAR
    elif name in RedshiftParser.FUNCTIONS:
        closing.comments = list(_ALONE)


# The error of what Redshift would answer and DuckDB would answer otherwise.


class NotAsRedshift(ValueError):
    """An expression is not known to answer here as Redshift does. The message names it, and the reason."""
