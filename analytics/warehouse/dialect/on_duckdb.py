"""Translates a statement of Redshift into one of DuckDB that answers the same, or refuses it with the reason.

Only listed expressions are translated: functions by name (functions.py), others by their class (below). Any
other expression is refused, because nobody has compared its answers on both.

Example: on Redshift `7 / 2` is 3, so `a / b` of whole numbers becomes `(a // b)`.

This happens in this order: columns without a name get the one that Redshift gives. Types are noted
(inference.py). Then each node, from the leaves up, is checked and built by its entry in `_BUILDERS`, at the
end of the file.
"""

from collections.abc import Callable
from string import ascii_lowercase, ascii_uppercase
from typing import Any

from sqlglot import exp

from analytics.warehouse.dialect import special
from analytics.warehouse.dialect.clauses import NOT_KNOWN, check_clauses
from analytics.warehouse.dialect.formats import date_part, similar_to_regex
from analytics.warehouse.dialect.inference import Catalog, infer_kinds
from analytics.warehouse.dialect.kinds import BOOLEAN, FLOAT, NOTHING, TEXT, UNKNOWN, Kind, kind_of
from analytics.warehouse.dialect.kinds import arithmetic as kind_of_arithmetic
from analytics.warehouse.dialect.parser import DUCKDB, NotAsRedshift
from analytics.warehouse.dialect.rewriting import Engine, name_columns, rewrite
from analytics.warehouse.dialect.special import MOMENTS, moment, with_hyphens, zone

VARCHAR_DEFAULT = 256  # bytes of a VARCHAR without a size
LONGEST_PLAIN_TEXT = 45  # characters of any number or moment
# Expressions of these classes need no parentheses beside an operator.
_CLOSED = (exp.Boolean, exp.Column, exp.Distinct, exp.Literal, exp.Null, exp.Paren, exp.Star)


def on_duckdb(tree: exp.Expr, catalog: Catalog) -> exp.Expr:
    """Return a copy of a statement's tree (parser.py) for DuckDB.

    catalog: the columns of a table by schema.name. Raises NotAsRedshift.
    """
    check_clauses(tree)
    tree = tree.copy()
    name_columns(tree)
    infer_kinds(tree, catalog)
    rewrite(tree, _ENGINE)
    return tree


def _sql(node: Any) -> str:
    """Return an expression as DuckDB's SQL, in parentheses where an operator could reach into it."""
    text = str(node.sql(dialect=DUCKDB, comments=False, copy=False))
    return text if isinstance(node, _CLOSED) or text.isidentifier() else f"({text})"


def _division(node: exp.Div) -> str:
    left, right = _sql(node.this), _sql(node.expression)
    left_kind, right_kind = kind_of(node.this), kind_of(node.expression)
    if FLOAT in (left_kind, right_kind):
        return f"(CAST({left} AS DOUBLE) / {special.not_zero(f'CAST({right} AS DOUBLE)')})"
    if NOTHING in (left_kind, right_kind):
        return "NULL"
    if not (left_kind.is_exact and right_kind.is_exact):
        unknown = right if left_kind.is_exact else left
        raise NotAsRedshift(
            f"/: the type of {unknown} is not known here, and decides what a quotient is: CAST it"
        )
    if left_kind.is_whole and right_kind.is_whole:
        return f"({left} // {right})"
    scale = kind_of_arithmetic(exp.Div, left_kind, right_kind).scale
    return special.decimal_quotient(left, left_kind, right, right_kind, scale)


def _concatenation(node: exp.DPipe) -> str:
    return f"({_as_text(node.this)} || {_as_text(node.expression)})"


def _as_text(node: exp.Expr) -> str:
    kind, text = kind_of(node), _sql(node)
    if kind in (FLOAT, BOOLEAN):
        raise NotAsRedshift(
            f"||: how Redshift writes a {kind.name} the manual leaves open: CAST it to DECIMAL or use CASE"
        )
    return text if kind == TEXT else f"CAST({text} AS VARCHAR)"


def _like(node: Any, escape: str = "'\\'") -> str:
    negated = "NOT " if node.args.get("negate") else ""
    text, pattern = _sql(node.this), _sql(node.expression)
    if isinstance(node, exp.ILike):  # capitals are those of ASCII; DuckDB's ILIKE knows all
        if escape.strip("()'").isalpha():
            raise NotAsRedshift("ILIKE: a letter that is the escape is not translated")
        text, pattern = (
            f"translate({side}, '{ascii_uppercase}', '{ascii_lowercase}')" for side in (text, pattern)
        )
    return f"({text} {negated}LIKE {pattern} ESCAPE {escape})"


def _escape(node: exp.Escape) -> str:
    inner: Any = node.this
    if isinstance(inner, exp.SimilarTo):
        return _similar_to(inner, node.expression.name)
    if isinstance(inner, exp.Like | exp.ILike):
        return _like(inner, _sql(node.expression))
    raise NotAsRedshift("ESCAPE: it belongs to LIKE, ILIKE and SIMILAR TO")


def _similar_to(node: exp.SimilarTo, escape: str = "\\") -> str:
    if not (isinstance(node.expression, exp.Literal) and node.expression.is_string):
        raise NotAsRedshift("SIMILAR TO: a pattern is translated only if it is a text in quotes")
    pattern = similar_to_regex(node.expression.name, escape).replace("'", "''")
    negated = "NOT " if node.args.get("negate") else ""
    return f"({negated}regexp_full_match({_sql(node.this)}, '{pattern}'))"


def _matches(node: Any) -> str:
    flags = ""
    if isinstance(node, exp.RegexpILike):
        flags = ", 'i'"
        special.check_ascii("~*", node.expression)
    return f"regexp_matches({_sql(node.this)}, {_sql(node.expression)}{flags})"


def _cast(node: exp.Cast) -> str:
    kind, to, text = kind_of(node.this), kind_of(node), _sql(node.this)
    to_type = node.to.sql(dialect=DUCKDB)
    _check_cast(node, to, to_type)
    if to == TEXT:
        return _cast_to_text(node, kind, text)
    if isinstance(node.this, exp.Literal) and node.this.is_string and to in MOMENTS:
        return f"CAST('{with_hyphens(node.this.name)}' AS {to_type})"
    if to.is_whole and kind in (TEXT, UNKNOWN):
        return _cast_to_whole(kind, text, to_type)
    if to.name == "decimal":
        return f"CAST({text} AS DECIMAL({to.precision}, {to.scale}))"
    return f"CAST({text} AS {to_type})"


def _check_cast(node: exp.Cast, to: Kind, to_type: str) -> None:
    name = node.to.this.value if isinstance(node.to.this, exp.DType) else str(node.to.this)
    if name in ("CHAR", "NCHAR", "BPCHAR"):
        raise NotAsRedshift(f"CAST AS {name}: it is filled up with blanks on Redshift: VARCHAR(n)")
    if to == UNKNOWN or name == "INTERVAL":
        raise NotAsRedshift(f"CAST AS {to_type}: {NOT_KNOWN}")


def _cast_to_whole(kind: Kind, text: str, to_type: str) -> str:
    """Return a cast to whole numbers. DuckDB would also take 1.5 and round it, which Redshift refuses."""
    fits = f"regexp_full_match(CAST({text} AS VARCHAR), '\\s*[+-]?\\d+\\s*')"
    is_text = "TRUE" if kind == TEXT else f"typeof({text}) = 'VARCHAR'"
    wrong = f"error('this is no whole number: ' || CAST({text} AS VARCHAR))"
    return f"CASE WHEN {is_text} AND NOT {fits} THEN {wrong} ELSE CAST({text} AS {to_type}) END"


def _cast_to_text(node: exp.Cast, kind: Kind, text: str) -> str:
    """Return a cast to VARCHAR(size). A text is cut at the size in bytes; any other value must fit."""
    if kind in (FLOAT, BOOLEAN):
        raise NotAsRedshift(
            f"CAST of a {kind.name} to VARCHAR: the manual leaves its text open: DECIMAL first, or CASE"
        )
    size = node.to.expressions[0].name if node.to.expressions else str(VARCHAR_DEFAULT)
    full_text = f"CAST({text} AS VARCHAR)"
    if not size.isdecimal():  # VARCHAR(MAX)
        return full_text
    # The size is in bytes, and no character is cut in two. So the lengths in characters that fit are counted.
    # They end with the text: a list of all up to the size DuckDB would make while it plans, for each column.
    lengths = f"range(1, len(left({full_text}, {size})) + 1)"
    fitting = f"list_filter({lengths}, lambda length: strlen(left({full_text}, length)) <= {size})"
    cut = f"left({full_text}, len({fitting}))"
    if kind == UNKNOWN:
        wrong = f"error('the value is too long for VARCHAR({size})')"
        cut = f"CASE WHEN typeof({text}) IN ('VARCHAR', 'JSON') THEN {cut} ELSE {wrong} END"
    elif kind not in (TEXT, NOTHING):
        if kind.name != "super" and int(size) >= LONGEST_PLAIN_TEXT:
            return full_text
        cut = f"error('the value is too long for VARCHAR({size})')"
    return f"(CASE WHEN strlen({full_text}) > {size} THEN {cut} ELSE {full_text} END)"


def _decode(node: exp.DecodeCase) -> str:
    """Return DECODE(value, search, result, search, result ..., default) as a CASE. It finds NULL, too."""
    value, *rest = [_sql(expression) for expression in node.expressions]
    whens = [
        f"WHEN {value} IS NOT DISTINCT FROM {search} THEN {result}"
        for search, result in zip(rest[::2], rest[1::2], strict=False)
    ]
    default = f" ELSE {rest[-1]}" if len(rest) % 2 else ""
    return f"(CASE {' '.join(whens)}{default} END)"


def _extract(node: exp.Extract) -> str:
    start = moment(node.expression, _sql(node.expression), kind_of(node.expression))
    return special.extract_part(date_part(node.this.name), start, kind_of(node.expression))


def _trim(node: exp.Trim) -> str:
    side = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position") or ""), "trim")
    letters = _sql(node.expression) if node.args.get("expression") else "' '"
    return f"{side}({_sql(node.this)}, {letters})"


def _substring(node: exp.Substring) -> str:
    length = node.args.get("length")
    return special.substring(_sql(node.this), _sql(node.args.get("start")), _sql(length) if length else None)


def _now(node: exp.CurrentTimestamp) -> str:
    if not node.args.get("sysdate"):
        raise NotAsRedshift("CURRENT_TIMESTAMP: Redshift runs it on its leader node alone: SYSDATE")
    return "CAST(now() AT TIME ZONE 'UTC' AS TIMESTAMP)"


def _at_zone(node: exp.AtTimeZone) -> str:
    return f"({_sql(node.this)} AT TIME ZONE {zone(node.args['zone'], _sql(node.args['zone']))})"


# A builder returns a node as SQL of DuckDB.
_BUILDERS: dict[type[exp.Expr], Callable[[Any], str]] = {
    # The exact count is within what Redshift allows.
    exp.ApproxDistinct: lambda node: f"count(DISTINCT {_sql(node.this)})",
    exp.AtTimeZone: _at_zone,
    exp.BitwiseXor: lambda node: f"xor({_sql(node.this)}, {_sql(node.expression)})",
    exp.Cast: _cast,
    exp.CurrentDate: lambda _: "CAST(now() AT TIME ZONE 'UTC' AS DATE)",
    exp.CurrentTimestamp: _now,
    exp.DPipe: _concatenation,
    exp.DecodeCase: _decode,
    exp.Div: _division,
    exp.Escape: _escape,
    exp.Extract: _extract,
    exp.ILike: _like,
    exp.Like: _like,
    exp.Mod: lambda node: special.remainder(
        _sql(node.this), _sql(node.expression), [kind_of(node.this), kind_of(node.expression)]
    ),
    exp.RegexpILike: _matches,
    exp.RegexpLike: _matches,
    exp.SimilarTo: _similar_to,
    exp.StrPosition: lambda node: f"strpos({_sql(node.this)}, {_sql(node.args['substr'])})",
    exp.Substring: _substring,
    exp.Trim: _trim,
}
_ENGINE = Engine(DUCKDB, _BUILDERS, _sql, lambda function, call: function.build(call))
