"""Parses a statement of Redshift so that each call of a function stays a call under its written name.

sqlglot by itself translates the functions that it knows into another dialect, and leaves the others as they
are. Nobody would see which of these then answer otherwise. Here functions.py says what each name is.
"""

from collections.abc import Sequence
from functools import lru_cache
from string import ascii_lowercase, ascii_uppercase
from typing import Any

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.errors import ParseError
from sqlglot.parsers.redshift import RedshiftParser

REDSHIFT, DUCKDB = map(sqlglot.Dialect.get_or_raise, ("redshift", "duckdb"))
# To find tables within SUPER values, sqlglot would copy each subquery. We have no such values.
RedshiftParser.SUPPORTS_IMPLICIT_UNNEST = False
# Functions with a grammar of their own, such as CAST(a AS b): they become nodes of sqlglot, and not calls.
GRAMMAR = frozenset({"CAST", "CONVERT", "DECODE", "EXTRACT", "POSITION", "SUBSTRING", "TRIM"})
# sqlglot leaves a call alone if this comment stands before its closing parenthesis (exp.SQLGLOT_ANONYMOUS).
_ALONE = [exp.SQLGLOT_ANONYMOUS]
_MARK = "__call"  # put after names for which sqlglot has a grammar and Redshift has none
_TYPES = frozenset({"CHAR"})  # CHAR(3) is a type, and no call
# Redshift writes all names in small letters, also those in quotes; it knows capitals of ASCII alone.
# https://docs.aws.amazon.com/redshift/latest/dg/r_names.html
_SMALL = str.maketrans(ascii_uppercase, ascii_lowercase)
# https://docs.aws.amazon.com/redshift/latest/dg/c_Supported_data_types.html
_TYPES_WRITTEN = frozenset(
    """SMALLINT INT2 INTEGER INT INT4 BIGINT INT8 DECIMAL DEC NUMERIC REAL FLOAT4 FLOAT8 FLOAT BOOLEAN BOOL
    CHAR CHARACTER NCHAR BPCHAR VARCHAR NVARCHAR TEXT DATE TIMESTAMP TIMESTAMPTZ DATETIME TIME TIMETZ
    INTERVAL SUPER VARBYTE VARBINARY GEOMETRY GEOGRAPHY HLLSKETCH""".split()  # noqa: SIM905 (as quoted words they say no more)
) | {"DOUBLE PRECISION", "CHARACTER VARYING"}
# Signs of Redshift's operators, and what stands between names
_SIGNS = frozenset(
    "( ) [ ] , . ; :: + - * / % ^ = <> != < > <= >= || | & ~ ~* ~~ ~~* # << >> |/ ||/".split()  # noqa: SIM905 (as quoted signs they say no more)
)
_TEXTS = (TokenType.STRING, TokenType.IDENTIFIER, TokenType.NUMBER)
_OTHERS_WORDS = frozenset({"RLIKE", "REGEXP"})
_BEGIN_QUERIES = frozenset({TokenType.FROM, TokenType.L_PAREN, TokenType.SELECT, TokenType.WITH})
# Behind these words of one level of parentheses another query begins.
_BETWEEN_QUERIES = frozenset({TokenType.SEMICOLON, TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT})
_BEFORE_QUERIES = _BETWEEN_QUERIES | {TokenType.L_PAREN}
# What may stand behind a list; sqlglot lets a list end with a comma.
_ENDS_LISTS = _BETWEEN_QUERIES | {
    *(TokenType.FROM, TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING, TokenType.QUALIFY),
    *(TokenType.ORDER_BY, TokenType.LIMIT, TokenType.OFFSET, TokenType.R_PAREN, TokenType.R_BRACKET),
}


class NotAsRedshift(ValueError):
    """DuckDB is not known to answer an expression as Redshift does. The message names it, and the reason."""


@lru_cache(maxsize=4096)
def parse_statement(sql: str) -> exp.Expr:
    """Return the tree of one statement. It is cached, so nobody may change it.

    Raises sqlglot's ParseError and TokenError, and NotAsRedshift for a word or sign that sqlglot takes and
    Redshift does not.
    """
    trees = parse_statements(sql)
    if len(trees) != 1:
        raise ParseError(f"these are {len(trees)} statements")
    tokens = REDSHIFT.tokenize(sql)
    _check_tokens(tokens)
    _check_pairs(tokens)
    _check_joins(tokens, trees[0])
    return trees[0]


def parse_statements(sql: str) -> list[exp.Expr]:
    """Return the trees of all statements of a text. Raises sqlglot's ParseError and TokenError."""
    tokens = REDSHIFT.tokenize(sql)
    _mark(tokens)
    # A comment behind the last semicolon is a node of its own.
    parsed = REDSHIFT.parser().parse(tokens, sql)
    trees = [tree for tree in parsed if tree is not None and not isinstance(tree, exp.Semicolon)]
    for tree in trees:
        for node in tree.walk():
            node._meta = None  # noqa: SLF001 (places in the text: each copy of the tree would copy them)
            if isinstance(node, exp.Identifier):
                node.set("this", node.name.translate(_SMALL))
            elif isinstance(node, exp.Window):
                _move_nulls_behind(node)
    return trees


def _check_tokens(tokens: Sequence[Any]) -> None:
    """Raise NotAsRedshift for a word or sign that sqlglot takes for one of Redshift's, wrongly."""
    calls: list[str] = []  # the words before the parentheses that are open
    # Whether a SELECT has come, for the statement and for these parentheses. A DELETE needs none.
    begun = [bool(tokens) and tokens[0].token_type not in _BEGIN_QUERIES]
    for before, token, after in zip([None, *tokens], tokens, [*tokens[1:], None], strict=False):
        kind, word = token.token_type, token.text.upper()
        earlier = before.token_type if before else None
        if kind is TokenType.L_PAREN:
            calls.append(before.text.upper() if before else "")
            begun.append(False)
        elif kind is TokenType.R_PAREN and calls:
            calls.pop()
            begun.pop()
        elif kind is TokenType.SELECT or (kind in _BETWEEN_QUERIES and earlier is not TokenType.STAR):
            begun[-1] = kind is TokenType.SELECT
        call = calls[-1] if calls else ""
        is_type = earlier is TokenType.DCOLON or (earlier is TokenType.ALIAS and call == "CAST")
        if is_type and word not in _TYPES_WRITTEN:
            raise NotAsRedshift(f"{token.text} is no type of Redshift that is known here")
        is_negation = word == "!" and after is not None and after.text.startswith("~")
        is_word = kind in _TEXTS or is_negation or word in _SIGNS or word[:1].isalnum() or word[:1] == "_"
        if not is_word or word in _OTHERS_WORDS:
            raise NotAsRedshift(f"{token.text} is not known here: Redshift writes it otherwise, or lacks it")
        if kind is TokenType.STRING and earlier in (TokenType.FROM, TokenType.JOIN) and call not in GRAMMAR:
            raise NotAsRedshift(f"'{token.text}' is a text, and no table")
        is_clause = kind is TokenType.FROM and call not in GRAMMAR and earlier is not TokenType.DISTINCT
        is_first = is_clause and (not begun[-1] or earlier is TokenType.ALIAS)
        if is_first or (kind is TokenType.EXCEPT and earlier is TokenType.STAR):
            raise NotAsRedshift(f"{word} does not begin a query of Redshift: SELECT does")


def _check_pairs(tokens: Sequence[Any]) -> None:
    """Raise NotAsRedshift for two words side by side that sqlglot takes, and Redshift does not."""
    for before, token, after in zip([None, *tokens], tokens, [*tokens[1:], None], strict=False):
        earlier = before.token_type if before else TokenType.SEMICOLON
        if token.token_type is TokenType.COMMA and (after is None or after.token_type in _ENDS_LISTS):
            place = f"before {after.text}" if after else "at the end"
            raise NotAsRedshift(f"a comma {place}: a list ends without one")
        if token.token_type is TokenType.L_BRACKET and earlier is TokenType.IN:
            raise NotAsRedshift("IN: its values stand in parentheses")
        if token.token_type is TokenType.TABLE and earlier in _BEFORE_QUERIES:
            raise NotAsRedshift("TABLE does not begin a query of Redshift: SELECT does")


def _check_joins(tokens: Sequence[Any], tree: exp.Expr) -> None:
    """Raise NotAsRedshift for a JOIN without its condition, which sqlglot takes for a comma."""
    written = sum(token.token_type is TokenType.JOIN for token in tokens)
    joins = tree.find_all(exp.Join)
    complete = [
        join for join in joins if any(join.args.get(name) for name in ("on", "using", "kind", "method"))
    ]
    if len(complete) < written:
        raise NotAsRedshift("a JOIN needs ON or USING")


def _move_nulls_behind(window: exp.Window) -> None:
    """Read IGNORE NULLS within the parentheses of a call as behind them: to Redshift both mean the same."""
    call = window.this
    for argument in call.expressions if isinstance(call, exp.Anonymous) else ():
        if isinstance(argument, exp.IgnoreNulls | exp.RespectNulls):
            argument.replace(argument.this)
            window.set("this", type(argument)(this=call))


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
