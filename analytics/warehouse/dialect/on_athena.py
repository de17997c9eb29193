"""Translates a query of Redshift into one of Athena (Trino) that answers the same, or refuses it by name.

No Trino runs in our tests, so what is written here follows its manual alone
(https://trino.io/docs/current/functions.html): a function that is not in `_FORMS` is refused.
"""

import re
from collections.abc import Callable
from string import ascii_lowercase, ascii_uppercase
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.transforms import eliminate_qualify

from analytics.warehouse.dialect.clauses import NOT_KNOWN, check_clauses
from analytics.warehouse.dialect.formats import date_part, to_char
from analytics.warehouse.dialect.inference import Catalog, infer_kinds
from analytics.warehouse.dialect.kinds import (
    BOOLEAN,
    DATE,
    FLOAT,
    INT8,
    INTERVAL,
    NOTHING,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    UNKNOWN,
    Kind,
    arithmetic,
    kind_of,
    of_sum,
)
from analytics.warehouse.dialect.parser import NotAsRedshift
from analytics.warehouse.dialect.rewriting import Engine, name_columns, rewrite
from analytics.warehouse.dialect.special import MOMENTS, Call, Function, moment, with_hyphens, zone

ATHENA = sqlglot.Dialect.get_or_raise("athena")
_CLOSED = (exp.Boolean, exp.Column, exp.Distinct, exp.Literal, exp.Null, exp.Paren, exp.Star)
# Parts of a pattern that Java's expressions read otherwise: classes by name, look-around, escapes
_OTHERWISE = re.compile(r"\[[:.=][^\]]*[:.=]\]|\(\?|&&|\\")
_NOW = "current_timestamp AT TIME ZONE 'UTC'"
# Date parts that EXTRACT, date_trunc, date_diff and date_add of Trino mean as Redshift does.
_EXTRACTED = frozenset({"year", "quarter", "month", "week", "day", "doy", "hour", "minute", "second"})
_TRUNCATED = _EXTRACTED - {"doy"} | {"millisecond"}
_A_SUNDAY = "TIMESTAMP '0001-01-07 00:00:00'"  # weeks of DATEDIFF are counted from it
# Patterns of TO_CHAR, {0} is the timestamp (analytics/warehouse/dialect/formats.py).
_TO_CHAR = {
    "YYYY": "date_format({0}, '%Y')",
    "YY": "date_format({0}, '%y')",
    "IYYY": "CAST(year_of_week({0}) AS VARCHAR)",
    "IW": "lpad(CAST(week({0}) AS VARCHAR), 2, '0')",
    "Q": "CAST(quarter({0}) AS VARCHAR)",
    "MM": "date_format({0}, '%m')",
    "MONTH": "rpad(upper(date_format({0}, '%M')), 9, ' ')",
    "Month": "rpad(date_format({0}, '%M'), 9, ' ')",
    "month": "rpad(lower(date_format({0}, '%M')), 9, ' ')",
    "MON": "upper(date_format({0}, '%b'))",
    "Mon": "date_format({0}, '%b')",
    "mon": "lower(date_format({0}, '%b'))",
    "DDD": "date_format({0}, '%j')",
    "DD": "date_format({0}, '%d')",
    "D": "CAST(day_of_week({0}) % 7 + 1 AS VARCHAR)",
    "ID": "CAST(day_of_week({0}) AS VARCHAR)",
    "DAY": "rpad(upper(date_format({0}, '%W')), 9, ' ')",
    "Day": "rpad(date_format({0}, '%W'), 9, ' ')",
    "day": "rpad(lower(date_format({0}, '%W')), 9, ' ')",
    "DY": "upper(date_format({0}, '%a'))",
    "Dy": "date_format({0}, '%a')",
    "dy": "lower(date_format({0}, '%a'))",
    "HH24": "date_format({0}, '%H')",
    "HH12": "date_format({0}, '%I')",
    "HH": "date_format({0}, '%I')",
    "MI": "date_format({0}, '%i')",
    "SS": "date_format({0}, '%s')",
    "AM": "date_format({0}, '%p')",
    "PM": "date_format({0}, '%p')",
}


def on_athena(tree: exp.Expr, catalog: Catalog) -> str:
    """Return a query's tree (parser.py) as Athena's SQL.

    catalog: the columns of a table by schema.name. Raises NotAsRedshift.
    """
    check_clauses(tree)
    for node in tree.find_all(exp.Star, exp.Group, exp.Pivot):
        if node.args.get("except_") or node.args.get("all") or isinstance(node, exp.Pivot):
            name = {exp.Star: "* EXCLUDE", exp.Group: "GROUP BY ALL"}.get(type(node), "PIVOT")
            raise NotAsRedshift(f"{name}: Athena has none")
    tree = tree.copy()
    name_columns(tree)
    for select in list(tree.find_all(exp.Select)):
        if select.args.get("qualify"):  # Trino has none; its windows are still to be rewritten
            outer = eliminate_qualify(select.copy())
            select.replace(outer) if select.parent else None
            tree = tree if select.parent or select is not tree else outer
    infer_kinds(tree, catalog)
    rewrite(tree, _ENGINE)
    return str(tree.sql(dialect=ATHENA, comments=False, copy=False))


def _sql(node: Any) -> str:
    """Return an expression as Athena's SQL, in parentheses where an operator could reach into it."""
    text = str(node.sql(dialect=ATHENA, comments=False, copy=False))
    return text if isinstance(node, _CLOSED) or text.isidentifier() else f"({text})"


def _fail(reason: str, type_: str = "DOUBLE") -> str:
    """Return an expression that is an error: Trino has no function for it. The error shows the reason."""
    return f"CAST('{reason}' AS {type_})"


def _finite(text: str) -> str:
    """Return a floating-point number, or an error where Trino has NaN or infinity."""
    return f"IF(is_finite({text}) OR ({text}) IS NULL, {text}, {_fail('out of range')})"


def _not_zero(divisor: str) -> str:
    return f"IF({divisor} = 0, {_fail('division by zero')}, {divisor})"


def _moment(node: Any, text: str, kind: Kind) -> str:
    if isinstance(node, exp.Literal) and node.is_string:
        return f"CAST('{with_hyphens(node.name)}' AS TIMESTAMP)"
    return moment(node, text, kind)


def _text(kind: Kind, text: str) -> str:
    """Return an operand of ||, which Trino has only of texts."""
    if kind in (FLOAT, BOOLEAN, TIMESTAMP, TIMESTAMPTZ, INTERVAL):
        raise NotAsRedshift(
            f"||: how Redshift writes a {kind.name} Athena does not: CAST it to DECIMAL, or TO_CHAR"
        )
    return text if kind in (TEXT, UNKNOWN, NOTHING) else f"CAST({text} AS VARCHAR)"


def _sum(call: Call) -> str:
    kind, total = call.kinds[0], f"sum({call.texts[0]}){call.over}"
    if kind == BOOLEAN:
        raise NotAsRedshift("SUM of a boolean: Redshift has none")
    if not kind.is_exact:
        return total
    return f"CAST({total} AS {'BIGINT' if of_sum(kind) == INT8 else f'DECIMAL(38, {kind.scale})'})"


def _avg(call: Call) -> str:
    kind, text = call.kinds[0], call.texts[0]
    if kind.is_whole:  # NULL / 0 is NULL
        return f"(sum({text}){call.over} / count({text}){call.over})"
    if kind == FLOAT or kind.is_exact:
        return f"avg({text}){call.over}"
    raise NotAsRedshift(
        "AVG: of whole numbers it is a whole number, and this type is not known here: CAST it"
    )


def _listagg(call: Call) -> str:
    if call.over:
        raise NotAsRedshift("LISTAGG OVER: Athena has none")
    distinct = isinstance(call.nodes[0], exp.Distinct)
    nodes = call.nodes[0].expressions if distinct else call.nodes
    text, *rest = [_sql(node) for node in nodes]
    order = f" {call.order.sql(dialect=ATHENA).strip()}" if call.order is not None else ""
    word = "DISTINCT " if distinct else ""
    values = f"array_agg({word}{_text(call.kinds[0], text)}{order})"
    separator = rest[0] if rest else "''"
    return f"CASE WHEN count({text}) > 0 THEN array_join({values}, {separator}) END"


def _part(part: str, text: str, kind: Kind) -> str:
    if part == "dow":  # to Athena a Sunday is day 7, to Redshift day 0
        return f"(EXTRACT(DOW FROM {text}) % 7)"
    if part == "epoch" and kind == INTERVAL:
        return f"(to_milliseconds({text}) / 1000)"
    if part == "epoch" and kind in (DATE, TIMESTAMP):
        return f"CAST(floor(to_unixtime({text})) AS BIGINT)"
    if part == "millisecond":
        return f"millisecond({text})"
    if part not in _EXTRACTED:
        raise NotAsRedshift(f"EXTRACT of {part}: {NOT_KNOWN}")
    return f"EXTRACT({part.upper()} FROM {text})"


def _extract(node: exp.Extract) -> str:
    start, kind = node.expression, kind_of(node.expression)
    is_text = kind == TEXT
    return _part(
        date_part(node.this.name), _moment(start, _sql(start), kind) if is_text else _sql(start), kind
    )


def _date_part(call: Call) -> str:
    part = call.unit()
    if part in ("second", "millisecond", "microsecond", "epoch"):
        raise NotAsRedshift(f"DATE_PART of {part}: it has fractions; EXTRACT({part} FROM ...)")
    return _part(part, _moment(call.nodes[1], call.texts[1], call.kinds[1]), call.kinds[1])


def _datediff(call: Call) -> str:
    """Count the boundaries between two instants: Trino counts whole units that have passed."""
    part = call.unit()
    if part not in _TRUNCATED:
        raise NotAsRedshift(f"{call.name} of {part}: {NOT_KNOWN}")
    start, end = (_moment(call.nodes[at], call.texts[at], call.kinds[at]) for at in (1, 2))
    if part == "week":  # weeks begin on Sundays
        first, last = (
            f"(date_diff('day', {_A_SUNDAY}, date_trunc('day', {instant})) / 7)" for instant in (start, end)
        )
        return f"({last} - {first})"
    return f"date_diff('{part}', date_trunc('{part}', {start}), date_trunc('{part}', {end}))"


def _dateadd(call: Call) -> str:
    part, start = call.unit(), _moment(call.nodes[2], call.texts[2], call.kinds[2])
    part = "day" if part in ("dow", "doy") else part
    if part not in _TRUNCATED:
        raise NotAsRedshift(f"{call.name} of {part}: {NOT_KNOWN}")
    end = f"date_add('{part}', CAST({call.texts[1]} AS BIGINT), {start})"
    if part == "year":  # 29 February plus years is 1 March in a year without that day
        return f"date_add('day', IF(day({start}) = 29 AND day({end}) = 28, 1, 0), {end})"
    return end


def _date_trunc(call: Call) -> str:
    part = date_part(call.literal(0, "the date part"))
    if part not in _TRUNCATED:
        raise NotAsRedshift(f"DATE_TRUNC to {part}: {NOT_KNOWN}")
    return f"date_trunc('{part}', {_moment(call.nodes[1], call.texts[1], call.kinds[1])})"


def _to_char(call: Call) -> str:
    form = call.literal(1, "the format")
    if call.kinds[0] not in (DATE, TIMESTAMP):
        raise NotAsRedshift("TO_CHAR is translated for dates and timestamps: CAST it if it is one")
    return to_char(_moment(call.nodes[0], call.texts[0], call.kinds[0]), form, _TO_CHAR)


def _trunc(call: Call) -> str:
    if call.kinds[0].is_whole and len(call.texts) == 1:
        return call.texts[0]
    if call.kinds[0].is_number:
        return f"truncate({', '.join(call.texts)})"
    if call.kinds[0] in (DATE, TIMESTAMP) and len(call.texts) == 1:
        return f"CAST({call.texts[0]} AS DATE)"
    raise NotAsRedshift("TRUNC: whether this is a number or a timestamp is not known here: CAST it")


def _convert_timezone(call: Call) -> str:
    *zones, start = range(len(call.texts))
    *before, target = [zone(call.nodes[at], call.texts[at]) for at in zones]
    instant = _moment(call.nodes[start], call.texts[start], call.kinds[start])
    source = before[0] if before else "'UTC'"
    return f"CAST(at_timezone(with_timezone(CAST({instant} AS TIMESTAMP), {source}), {target}) AS TIMESTAMP)"


def _not_negative(call: Call, at: int) -> int:
    return call.whole(at, "a length")


def _left(call: Call) -> str:
    return f"substr({call.texts[0]}, 1, {_not_negative(call, 1)})"


def _right(call: Call) -> str:
    text, size = call.texts[0], _not_negative(call, 1)
    return f"substr({text}, greatest(length({text}) - {size} + 1, 1))"


def _substring(text: str, start: str, length: Any) -> str:
    """Return a part of a text. A start below 1 lies to the left of the first character, which is at 1."""
    if length is None:
        return f"CASE WHEN {start} >= 1 THEN substr({text}, {start}) WHEN {start} < 1 THEN {text} END"
    if not (isinstance(length, exp.Literal) and length.name.isdecimal()):
        raise NotAsRedshift(
            "SUBSTRING: a length is translated for Athena only if it is a number as it stands"
        )
    size = length.name
    return (
        f"CASE WHEN {start} >= 1 THEN substr({text}, {start}, {size}) "
        f"WHEN {start} < 1 THEN substr({text}, 1, greatest({start} + {size} - 1, 0)) END"
    )


def _substr(call: Call) -> str:
    return _substring(call.texts[0], call.texts[1], call.nodes[2] if len(call.nodes) == 3 else None)


def _path_text(call: Call) -> str:
    nodes, parsed = list(call.nodes), f"json_parse({call.texts[0]})"
    if len(nodes) > 1 and isinstance(nodes[-1], exp.Boolean):
        parsed = f"TRY({parsed})" if nodes.pop().this else parsed
    keys = [call.literal(at, "a path") for at in range(1, len(nodes))]
    if not keys or any(set(key) & set("\"'\\") for key in keys):
        raise NotAsRedshift(f"{call.name} needs a path, and it has no quotes")
    path = "'$" + "".join(f'["{key}"]' for key in keys) + "'"
    nested = f"nullif(json_format(json_extract({parsed}, {path})), 'null')"
    return f"coalesce(json_extract_scalar({parsed}, {path}), {nested})"


def _among(function: str) -> str:
    """Return the form of GREATEST or LEAST, for which a NULL is no value. Trino's would be NULL."""
    return f"{function}(filter(ARRAY[{{args}}], value -> value IS NOT NULL))"


def _comparison(type_: str) -> str:
    one, other = f"CAST({{0}} AS {type_})", f"CAST({{1}} AS {type_})"
    return f"CASE WHEN {one} > {other} THEN 1 WHEN {one} < {other} THEN -1 WHEN {one} = {other} THEN 0 END"


_BLANKS = "regexp_replace({0}, '%s', '')"
_SPLIT = (
    "CASE WHEN {0} IS NOT NULL AND {1} IS NOT NULL AND {2} IS NOT NULL "
    "THEN coalesce(split_part({0}, {1}, {2}), '') END"
)
_IS_JSON = (
    "CASE WHEN {0} IS NULL THEN NULL WHEN TRY(JSON_PARSE({0})) IS NULL THEN FALSE "
    "ELSE substr(json_format(json_parse({0})), 1, 1) = '%s' END"
)
_FORMS: dict[str, str | Callable[[Call], str]] = {
    **{
        name: f"{written}({{0}}){{over}}"
        for name, written in {
            "COUNT": "count",
            "MAX": "max",
            "MIN": "min",
            "STDDEV": "stddev_samp",
            "STDDEV_SAMP": "stddev_samp",
            "STDDEV_POP": "stddev_pop",
            "VARIANCE": "var_samp",
            "VAR_SAMP": "var_samp",
            "VAR_POP": "var_pop",
            "BOOL_AND": "bool_and",
            "BOOL_OR": "bool_or",
            "ANY_VALUE": "arbitrary",
        }.items()
    },
    **{
        f"{name}": f"{name.lower()}(){{over}}" for name in ("CUME_DIST", "DENSE_RANK", "PERCENT_RANK", "RANK")
    },
    "ROW_NUMBER": "row_number(){over}",
    "NTILE": "ntile({0}){over}",
    **{
        name: f"{name.lower()}({{args}}){{nulls}}{{over}}"
        for name in ("FIRST_VALUE", "LAST_VALUE", "NTH_VALUE", "LAG", "LEAD")
    },
    "SUM": _sum,
    "AVG": _avg,
    "LISTAGG": _listagg,
    # texts
    **{name: f"{name.lower()}({{0}})" for name in ("LOWER", "UPPER", "REVERSE", "CHR")},
    **dict.fromkeys(("LEN", "LENGTH", "CHAR_LENGTH", "CHARACTER_LENGTH", "TEXTLEN"), "length({0})"),
    "OCTET_LENGTH": "length(to_utf8({0}))",
    "BTRIM": _BLANKS % "^ +| +$",
    "LTRIM": _BLANKS % "^ +",
    "RTRIM": _BLANKS % " +$",
    "LEFT": _left,
    "RIGHT": _right,
    "SUBSTR": _substr,
    "CHARINDEX": "strpos({1}, {0})",
    "STRPOS": "strpos({0}, {1})",
    "CONCAT": lambda call: f"({' || '.join(map(_text, call.kinds, call.texts))})",
    "REPEAT": "array_join(repeat({0}, CAST({1} AS INTEGER)), '')",
    "REPLICATE": "array_join(repeat({0}, CAST({1} AS INTEGER)), '')",
    **{name: f"{name.lower()}({{0}}, {{1}}, {{2}})" for name in ("LPAD", "RPAD")},
    "REPLACE": "replace({0}, {1}, {2})",
    "TRANSLATE": "translate({0}, {1}, {2})",
    "SPLIT_PART": _SPLIT,
    "MD5": "lower(to_hex(md5(to_utf8({0}))))",
    **dict.fromkeys(("SHA", "SHA1", "FUNC_SHA1"), "lower(to_hex(sha1(to_utf8({0}))))"),
    # numbers
    **{name: f"{name.lower()}({{0}})" for name in ("ABS", "FLOOR", "SIGN", "DEGREES", "RADIANS", "CBRT")},
    **{name: f"{name.lower()}({{0}})" for name in ("SIN", "COS", "TAN", "ATAN")},
    **dict.fromkeys(("CEIL", "CEILING"), "ceiling({0})"),
    "ATAN2": "atan2({0}, {1})",
    "PI": "pi()",
    "RANDOM": "random()",
    "ROUND": "round({args})",
    "TRUNC": _trunc,
    "MOD": lambda call: _remainder_of(call.texts[0], call.texts[1], call.kinds),
    **dict.fromkeys(
        ("DPOW", "POW", "POWER"), lambda call: _finite(f"power({call.texts[0]}, {call.texts[1]})")
    ),
    **dict.fromkeys(("DSQRT", "SQRT"), lambda call: _finite(f"sqrt({call.texts[0]})")),
    **dict.fromkeys(("DEXP", "EXP"), lambda call: _finite(f"exp({call.texts[0]})")),
    **dict.fromkeys(("DLOG1", "LN"), lambda call: _finite(f"ln({call.texts[0]})")),
    **dict.fromkeys(("DLOG10", "LOG"), lambda call: _finite(f"log10({call.texts[0]})")),
    # choices
    **dict.fromkeys(("COALESCE", "NVL"), "coalesce({args})"),
    "GREATEST": _among("array_max"),
    "LEAST": _among("array_min"),
    "NULLIF": "nullif({0}, {1})",
    "NVL2": "CASE WHEN {0} IS NOT NULL THEN {1} ELSE {2} END",
    # dates
    "CONVERT_TIMEZONE": _convert_timezone,
    **dict.fromkeys(("DATEADD", "DATE_ADD"), _dateadd),
    **dict.fromkeys(("DATEDIFF", "DATE_DIFF"), _datediff),
    **dict.fromkeys(("DATE_PART", "PGDATE_PART"), _date_part),
    "DATE_PART_YEAR": "year(CAST({0} AS DATE))",
    "DATE_CMP": _comparison("DATE"),
    "TIMESTAMP_CMP": _comparison("TIMESTAMP"),
    "DATE_TRUNC": _date_trunc,
    "GETDATE": f"date_trunc('second', CAST({_NOW} AS TIMESTAMP))",
    "LAST_DAY": "last_day_of_month(CAST({0} AS DATE))",
    "TO_CHAR": _to_char,
    # JSON
    "IS_VALID_JSON": _IS_JSON % "{{",
    "IS_VALID_JSON_ARRAY": _IS_JSON % "[",
    "JSON_EXTRACT_PATH_TEXT": _path_text,
}
_OF_ONE = frozenset({"BTRIM", "LTRIM", "RTRIM"})  # with letters of their own they are refused


def _call(_: Function, call: Call) -> str:
    form = _FORMS.get(call.name)
    if form is None or (call.name in _OF_ONE and len(call.texts) > 1):
        raise NotAsRedshift(f"{call.name}: it is not known to answer on Athena as Redshift does")
    if not isinstance(form, str):
        return f"({form(call)})"
    texts = list(call.texts)
    if call.name in ("LPAD", "RPAD") and len(texts) == 2:
        texts.append("' '")
    return f"({form.format(*texts, args=', '.join(texts), over=call.over, nulls=call.nulls)})"


def _division(node: exp.Div) -> str:
    left, right = _sql(node.this), _sql(node.expression)
    kinds = kind_of(node.this), kind_of(node.expression)
    if FLOAT in kinds:
        return f"(CAST({left} AS DOUBLE) / {_not_zero(f'CAST({right} AS DOUBLE)')})"
    if NOTHING in kinds:
        return "NULL"
    if not all(kind.is_exact for kind in kinds):
        unknown = right if kinds[0].is_exact else left
        raise NotAsRedshift(
            f"/: the type of {unknown} is not known here, and decides what a quotient is: CAST it"
        )
    if all(kind.is_whole for kind in kinds):
        return f"({left} / {right})"
    scale = arithmetic(exp.Div, *kinds).scale
    return f"CAST(CAST({left} AS DECIMAL(38, {scale})) / {right} AS DECIMAL(38, {scale}))"


def _remainder_of(left: str, right: str, kinds: Any) -> str:
    is_exact = all(kind.is_exact for kind in kinds)
    return f"({left} % {right if is_exact else _not_zero(right)})"


def _sum_or_difference(node: Any) -> str:
    """Return a sum or a difference. Trino adds no days to a date, and dates have no number between them."""
    left, right, one, other = (
        _sql(node.this),
        _sql(node.expression),
        kind_of(node.this),
        kind_of(node.expression),
    )
    sign = "+" if isinstance(node, exp.Add) else "-"
    if one == DATE and other == DATE and sign == "-":
        return f"date_diff('day', {right}, {left})"
    if one in (DATE, TIMESTAMP) and other.is_whole:
        return f"date_add('day', {'-' if sign == '-' else ''}{right}, {left})"
    if other in (DATE, TIMESTAMP) and one.is_whole and sign == "+":
        return f"date_add('day', {left}, {right})"
    if one == DATE and other == INTERVAL:
        return f"(CAST({left} AS TIMESTAMP) {sign} {right})"
    return f"({left} {sign} {right})"


def _comparison_of(sign: str) -> Callable[[Any], str]:
    def build(node: Any) -> str:
        left, right = node.this, node.expression
        return f"{_side(left, right)} {sign} {_side(right, left)}"

    return build


def _side(node: Any, other: Any) -> str:
    """Return a side of a comparison. A text in quotes takes the other's type, as on Redshift."""
    kind = kind_of(other)
    if isinstance(node, exp.Literal) and node.is_string and kind in (DATE, TIMESTAMP):
        return f"CAST('{with_hyphens(node.name)}' AS {kind.name.upper()})"
    return _sql(node)


def _between(node: exp.Between) -> str:
    low, high = (_side(node.args[name], node.this) for name in ("low", "high"))
    return f"{_sql(node.this)} BETWEEN {low} AND {high}"


def _like(node: Any, escape: str = "'\\'") -> str:
    negated = "NOT " if node.args.get("negate") else ""
    text, pattern = _sql(node.this), _sql(node.expression)
    if isinstance(node, exp.ILike):  # capitals are those of ASCII
        if escape.strip("()'").isalpha():
            raise NotAsRedshift("ILIKE: a letter that is the escape is not translated")
        text, pattern = (
            f"translate({side}, '{ascii_uppercase}', '{ascii_lowercase}')" for side in (text, pattern)
        )
    return f"({text} {negated}LIKE {pattern} ESCAPE {escape})"


def _escape(node: exp.Escape) -> str:
    if isinstance(node.this, exp.Like | exp.ILike):
        return _like(node.this, _sql(node.expression))
    raise NotAsRedshift("SIMILAR TO: Athena has none; LIKE or ~")


def _matches(node: exp.RegexpLike) -> str:
    pattern = node.expression
    if not (isinstance(pattern, exp.Literal) and pattern.is_string):
        raise NotAsRedshift("~: a pattern is translated for Athena only if it is a text in quotes")
    if _OTHERWISE.search(pattern.name):
        raise NotAsRedshift(f"~: Athena reads the pattern {pattern.name!r} otherwise than Redshift")
    return f"regexp_like({_sql(node.this)}, {_sql(pattern)})"


def _cast(node: exp.Cast) -> str:
    kind, to, text = kind_of(node.this), kind_of(node), _sql(node.this)
    name = node.to.this.value if isinstance(node.to.this, exp.DType) else str(node.to.this)
    if to == UNKNOWN or name in ("CHAR", "NCHAR", "BPCHAR", "INTERVAL") or to.name == "super":
        raise NotAsRedshift(f"CAST AS {name}: it is not known to answer on Athena as Redshift does")
    if to == TEXT:
        if kind in (FLOAT, BOOLEAN, TIMESTAMP, TIMESTAMPTZ):
            raise NotAsRedshift(
                f"CAST of a {kind.name} to VARCHAR: Athena writes it otherwise: TO_CHAR, DECIMAL"
            )
        size = node.to.expressions[0].name if node.to.expressions else "256"
        if kind == TEXT and size.isdecimal():  # bytes, and no character is cut in two
            return f"from_utf8(substr(to_utf8({text}), 1, {size}), '')"
        return f"CAST({text} AS VARCHAR{f'({size})' if size.isdecimal() else ''})"
    if isinstance(node.this, exp.Literal) and node.this.is_string and to in MOMENTS:
        return f"CAST('{with_hyphens(node.this.name)}' AS {node.to.sql(dialect=ATHENA)})"
    if to.name == "decimal":
        return f"CAST({text} AS DECIMAL({to.precision}, {to.scale}))"
    text = f"trim({text})" if kind == TEXT and to.is_whole else text
    return f"CAST({text} AS {node.to.sql(dialect=ATHENA)})"


def _decode(node: exp.DecodeCase) -> str:
    """Return DECODE(value, search, result, search, result ..., default) as a CASE. It finds NULL, too."""
    value, *rest = [_sql(expression) for expression in node.expressions]
    whens = [
        f"WHEN {value} IS NOT DISTINCT FROM {search} THEN {result}"
        for search, result in zip(rest[::2], rest[1::2], strict=False)
    ]
    return f"(CASE {' '.join(whens)}{f' ELSE {rest[-1]}' if len(rest) % 2 else ''} END)"


def _trim(node: exp.Trim) -> str:
    if node.args.get("expression"):
        raise NotAsRedshift("TRIM of letters other than blanks: REGEXP_REPLACE is not known on Athena either")
    sides = {"LEADING": "^ +", "TRAILING": " +$"}
    return _BLANKS.format(_sql(node.this)) % sides.get(str(node.args.get("position") or ""), "^ +| +$")


def _now(node: exp.CurrentTimestamp) -> str:
    if not node.args.get("sysdate"):
        raise NotAsRedshift("CURRENT_TIMESTAMP: Redshift runs it on its leader node alone: SYSDATE")
    return f"CAST({_NOW} AS TIMESTAMP)"


def _at_zone(node: exp.AtTimeZone) -> str:
    text, name = _sql(node.this), zone(node.args["zone"], _sql(node.args["zone"]))
    if kind_of(node.this) == TIMESTAMPTZ:
        return f"CAST(at_timezone({text}, {name}) AS TIMESTAMP)"
    return f"with_timezone(CAST({text} AS TIMESTAMP), {name})"


def _interval(node: exp.Interval) -> str:
    if node.args.get("unit") is None:
        raise NotAsRedshift("INTERVAL: Athena has one unit in each: INTERVAL '1 day' + INTERVAL '2 hours'")
    return str(node.sql(dialect=ATHENA))


def _refused(node: Any) -> str:
    raise NotAsRedshift(f"{node.key.upper()}: it is not known to answer on Athena as Redshift does")


_BUILDERS: dict[type[exp.Expr], Callable[[Any], str]] = {
    **dict.fromkeys((exp.Add, exp.Sub), _sum_or_difference),
    exp.ApproxDistinct: lambda node: f"count(DISTINCT {_sql(node.this)})",
    exp.AtTimeZone: _at_zone,
    exp.Between: _between,
    exp.Cast: _cast,
    exp.Cbrt: lambda node: f"cbrt({_sql(node.this)})",
    exp.CurrentDate: lambda _: f"CAST({_NOW} AS DATE)",
    exp.CurrentTimestamp: _now,
    exp.DPipe: lambda node: " || ".join(
        _text(kind_of(side), _sql(side)) for side in (node.this, node.expression)
    ).join("()"),
    exp.DecodeCase: _decode,
    exp.Div: _division,
    **{
        kind: _comparison_of(sign)
        for kind, sign in {
            exp.EQ: "=",
            exp.NEQ: "<>",
            exp.GT: ">",
            exp.GTE: ">=",
            exp.LT: "<",
            exp.LTE: "<=",
        }.items()
    },
    exp.Escape: _escape,
    exp.Extract: _extract,
    **dict.fromkeys((exp.ILike, exp.Like), _like),
    exp.Interval: _interval,
    exp.Mod: lambda node: _remainder_of(
        _sql(node.this), _sql(node.expression), [kind_of(node.this), kind_of(node.expression)]
    ),
    exp.Pow: lambda node: _finite(f"power({_sql(node.this)}, {_sql(node.expression)})"),
    exp.RegexpILike: _refused,
    exp.RegexpLike: _matches,
    exp.SimilarTo: _refused,
    exp.Sqrt: lambda node: _finite(f"sqrt({_sql(node.this)})"),
    exp.StrPosition: lambda node: f"strpos({_sql(node.this)}, {_sql(node.args['substr'])})",
    exp.Substring: lambda node: _substring(
        _sql(node.this), _sql(node.args.get("start")), node.args.get("length")
    ),
    exp.Trim: _trim,
}
_ENGINE = Engine(ATHENA, _BUILDERS, _sql, _call)
