"""The functions of Redshift that DuckDB can answer, by name: FUNCTIONS, at the end. Any other is refused.

Most are declared as the type of the answer and an expression of DuckDB, by `sql`. special.py has the others.
Source: https://docs.aws.amazon.com/redshift/latest/dg/c_SQL_functions.html. Tests have its examples.
"""

import re

from sqlglot import exp

from analytics.warehouse.dialect.kinds import (
    BOOLEAN,
    DATE,
    FLOAT,
    INT4,
    INT8,
    SUPER,
    TEXT,
    TIMESTAMP,
    Kind,
    common,
    first,
)
from analytics.warehouse.dialect.parser import NotAsRedshift
from analytics.warehouse.dialect.special import SPECIAL, AnswerKind, Call, Function, not_zero


def sql(kind: AnswerKind, *forms: str) -> Function:
    """Return a function that is an expression of DuckDB, one for each number of arguments.

    In a form {0} is the first argument, {moment0} the same as an instant, {args} any number of arguments,
    {over} the OVER of a window, {nulls} its IGNORE NULLS.
    """
    by_count = {_arguments(form): form for form in forms}
    takes_any = "{args}" in forms[0]

    def build(call: Call) -> str:
        form = forms[0] if takes_any else by_count[len(call.texts)]
        instant = call.moment(0) if "{moment0}" in form else ""
        named = {"args": ", ".join(call.texts), "over": call.over, "nulls": call.nulls, "moment0": instant}
        return f"({form.format(*call.texts, **named)})"

    counts = () if takes_any else tuple(by_count)
    return Function(kind, counts, build)


def _arguments(form: str) -> int:
    """Return how many arguments a form has places for."""
    return max(map(int, re.findall(r"\{(?:moment)?(\d)\}", form)), default=-1) + 1


# Aggregates, which are window functions too.
AGGREGATES: dict[str, Function] = {
    "ANY_VALUE": sql(first, "any_value({0})"),
    "BIT_AND": sql(first, "bit_and({0})"),
    "BIT_OR": sql(first, "bit_or({0})"),
    "BOOL_AND": sql(BOOLEAN, "bool_and({0})"),
    "BOOL_OR": sql(BOOLEAN, "bool_or({0})"),
    "COUNT": sql(INT8, "count({0}){over}"),
    "GROUPING": sql(INT4, "CAST(grouping({args}) AS INTEGER)"),
    "MAX": sql(first, "max({0}){over}"),
    "MIN": sql(first, "min({0}){over}"),
    **dict.fromkeys(("STDDEV", "STDDEV_SAMP"), sql(FLOAT, "stddev_samp({0}){over}")),
    "STDDEV_POP": sql(FLOAT, "stddev_pop({0}){over}"),
    **dict.fromkeys(("VARIANCE", "VAR_SAMP"), sql(FLOAT, "var_samp({0}){over}")),
    "VAR_POP": sql(FLOAT, "var_pop({0}){over}"),
}
# Window functions that return the value of a row of the window.
VALUES: dict[str, Function] = {
    "FIRST_VALUE": sql(first, "first_value({0}{nulls}){over}"),
    "LAG": sql(first, "lag({0}{nulls}){over}", "lag({0}, {1}{nulls}){over}"),
    "LAST_VALUE": sql(first, "last_value({0}{nulls}){over}"),
    "LEAD": sql(first, "lead({0}{nulls}){over}", "lead({0}, {1}{nulls}){over}"),
    "NTH_VALUE": sql(first, "nth_value({0}, {1}{nulls}){over}"),
}
# DuckDB takes a comma before a closing bracket, NaN and Infinity for JSON. Within a text they are allowed, so
# they are searched after all texts have been replaced.
_LOOSE = r"',\s*[\]}}]|(?i:nan|inf)'"
_TEXTS_AWAY = r"regexp_replace({0}, '\"(\\.|[^\"\\])*\"', '0', 'g')"
_IS_LOOSE = f"regexp_matches({{0}}, {_LOOSE}) AND regexp_matches({_TEXTS_AWAY}, {_LOOSE})"
_VALID = f"(json_valid({{0}}) AND NOT ({_IS_LOOSE}))"
_JSON_TEXT = f"(CASE WHEN {_VALID} THEN {{0}} END)"


def _json_sql(kind: Kind, expression: str) -> Function:
    """Return a function of a JSON text. A last argument TRUE makes NULL of what is no JSON.

    In an expression {json} is the text, {1} a second argument, {path} what all further arguments name.
    """
    wrong = "{0} IS NULL OR {lenient} THEN NULL ELSE error('this is no JSON: ' || left({0}, 99))"
    form = f"CASE WHEN {_VALID} THEN {expression} WHEN {wrong} END".replace("{json}", _JSON_TEXT)

    def build(call: Call) -> str:
        texts, lenient, path = list(call.texts), "FALSE", ""
        if len(texts) > 1 and isinstance(call.nodes[-1], exp.Boolean):
            lenient = texts.pop()
        if "{path}" in form:
            path = _json_path(call, len(texts))
        elif len(texts) != _arguments(form):
            raise NotAsRedshift(f"{call.name}: it is not known with {len(texts)} arguments")
        return f"({form.format(*texts, lenient=lenient, path=path)})"

    return Function(kind, (), build)


def _json_path(call: Call, end: int) -> str:
    """Return the path that the arguments before `end` name, as DuckDB writes it."""
    keys = [call.literal(at, "a path") for at in range(1, end)]
    if not keys:
        raise NotAsRedshift(f"{call.name} needs a path")
    if any('"' in key for key in keys):
        raise NotAsRedshift(f"{call.name}: a path with quotes is not translated")
    return "'$" + "".join('."' + key.replace("'", "''") + '"' for key in keys) + "'"


JSON: dict[str, Function] = {
    "ARRAY": sql(SUPER, "[{args}]"),
    "CAN_JSON_PARSE": sql(BOOLEAN, _VALID),
    "IS_VALID_JSON": sql(BOOLEAN, f"({_VALID} AND json_type({_JSON_TEXT}) = 'OBJECT')"),
    "IS_VALID_JSON_ARRAY": sql(BOOLEAN, f"({_VALID} AND json_type({_JSON_TEXT}) = 'ARRAY')"),
    "JSON_PARSE": sql(
        SUPER,
        f"CASE WHEN {_VALID} THEN CAST({_JSON_TEXT} AS JSON) "
        "WHEN {0} IS NOT NULL THEN error('this is no JSON') END",
    ),
    "JSON_SERIALIZE": sql(TEXT, "CAST(to_json({0}) AS VARCHAR)"),
    # Functions with null_if_invalid as their last argument. For an element that an array lacks the manual
    # says an empty text. For a missing path it says NULL in one place and an empty text in another; its
    # examples show NULL.
    "JSON_ARRAY_LENGTH": _json_sql(
        INT4,
        "CASE WHEN json_type({json}) = 'ARRAY' THEN CAST(json_array_length({json}) AS INTEGER) "
        "ELSE error('JSON_ARRAY_LENGTH: this is no array') END",
    ),
    "JSON_EXTRACT_ARRAY_ELEMENT_TEXT": _json_sql(
        TEXT,
        "CASE WHEN json_type({json}) <> 'ARRAY' "
        "THEN error('JSON_EXTRACT_ARRAY_ELEMENT_TEXT: this is no array') "
        "WHEN {1} < 0 OR {1} >= json_array_length({json}) THEN '' "
        "ELSE ({json} ->> CAST({1} AS BIGINT)) END",
    ),
    "JSON_EXTRACT_PATH_TEXT": _json_sql(TEXT, "({json} ->> {path})"),
}


def _not_negative(name: str) -> str:
    return f"CASE WHEN {{1}} < 0 THEN error('{name} takes no negative length') ELSE {name}({{0}}, {{1}}) END"


def _comparison(type_: str) -> str:
    one, other = f"CAST({{0}} AS {type_})", f"CAST({{1}} AS {type_})"
    return f"CASE WHEN {one} > {other} THEN 1 WHEN {one} < {other} THEN -1 WHEN {one} = {other} THEN 0 END"


# Words begin after anything but a letter or a digit.
_INITCAP = (
    r"array_to_string(list_transform(regexp_extract_all(lower({0}), '[\p{{L}}\p{{N}}]+|[^\p{{L}}\p{{N}}]+'), "
    "lambda word: upper(word[1]) || word[2:]), '')"
)
FUNCTIONS: dict[str, Function] = {
    # Texts
    "ASCII": sql(INT4, "ascii({0})"),
    "BTRIM": sql(TEXT, "trim({0}, ' ')", "trim({0}, {1})"),
    "CHARINDEX": sql(INT4, "strpos({1}, {0})"),
    "CHR": sql(TEXT, "chr({0})"),
    "CONCAT": sql(TEXT, "({0} || {1})"),
    "INITCAP": sql(TEXT, _INITCAP),
    "LEFT": sql(TEXT, _not_negative("left")),
    **dict.fromkeys(
        ("LEN", "LENGTH", "CHAR_LENGTH", "CHARACTER_LENGTH", "TEXTLEN"), sql(INT4, "length({0})")
    ),
    "LOWER": sql(TEXT, "lower({0})"),
    "LPAD": sql(TEXT, "lpad({0}, {1}, ' ')", "lpad({0}, {1}, {2})"),
    "LTRIM": sql(TEXT, "ltrim({0}, ' ')", "ltrim({0}, {1})"),
    "MD5": sql(TEXT, "md5({0})"),
    "OCTET_LENGTH": sql(INT4, "strlen({0})"),
    "REPEAT": sql(TEXT, "repeat({0}, {1})"),
    "REPLACE": sql(TEXT, "replace({0}, {1}, {2})"),
    "REPLICATE": sql(TEXT, "repeat({0}, {1})"),
    "REVERSE": sql(TEXT, "reverse({0})"),
    "RIGHT": sql(TEXT, _not_negative("right")),
    "RPAD": sql(TEXT, "rpad({0}, {1}, ' ')", "rpad({0}, {1}, {2})"),
    "RTRIM": sql(TEXT, "rtrim({0}, ' ')", "rtrim({0}, {1})"),
    **dict.fromkeys(("SHA", "SHA1", "FUNC_SHA1"), sql(TEXT, "sha1({0})")),
    "SPLIT_PART": sql(
        TEXT,
        "CASE WHEN {2} < 1 THEN error('SPLIT_PART counts from 1') "
        "WHEN {1} = '' THEN error('SPLIT_PART needs a delimiter') ELSE split_part({0}, {1}, {2}) END",
    ),
    "STRPOS": sql(INT4, "strpos({0}, {1})"),
    "TRANSLATE": sql(TEXT, "translate({0}, {1}, {2})"),
    "UPPER": sql(TEXT, "upper({0})"),
    # Numbers
    "ABS": sql(first, "abs({0})"),
    "ACOS": sql(FLOAT, "acos({0})"),
    "ASIN": sql(FLOAT, "asin({0})"),
    "ATAN": sql(FLOAT, "atan({0})"),
    "ATAN2": sql(FLOAT, "atan2({0}, {1})"),
    "CBRT": sql(FLOAT, "cbrt({0})"),
    **dict.fromkeys(("CEIL", "CEILING"), sql(first, "ceil({0})")),
    "COS": sql(FLOAT, "cos({0})"),
    "COT": sql(FLOAT, "cot({0})"),
    "DEGREES": sql(FLOAT, "degrees({0})"),
    **dict.fromkeys(("DEXP", "EXP"), sql(FLOAT, "exp({0})")),
    **dict.fromkeys(("DLOG1", "LN"), sql(FLOAT, "ln({0})")),
    **dict.fromkeys(("DLOG10", "LOG"), sql(FLOAT, "log10({0})")),
    "FLOOR": sql(first, "floor({0})"),
    "PI": sql(FLOAT, "pi()"),
    **dict.fromkeys(("DPOW", "POW", "POWER"), sql(FLOAT, "pow({0}, {1})")),
    "RADIANS": sql(FLOAT, "radians({0})"),
    "RANDOM": sql(FLOAT, "random()"),
    "ROUND": sql(first, "round({0})", "round({0}, {1})"),
    "SIGN": sql(first, "sign({0})"),
    "SIN": sql(FLOAT, "sin({0})"),
    **dict.fromkeys(("DSQRT", "SQRT"), sql(FLOAT, "sqrt({0})")),
    "TAN": sql(FLOAT, "tan({0})"),
    "TO_HEX": sql(
        TEXT,
        "CASE WHEN {0} < 0 THEN error('TO_HEX takes no negative number') ELSE lower(to_hex({0})) END",
    ),
    # Choices
    **dict.fromkeys(("COALESCE", "NVL"), sql(common, "coalesce({args})")),
    "GREATEST": sql(common, "greatest({args})"),
    "LEAST": sql(common, "least({args})"),
    "NULLIF": sql(first, "nullif({0}, {1})"),
    "NVL2": sql(lambda kinds: common(kinds[1:]), "CASE WHEN {0} IS NOT NULL THEN {1} ELSE {2} END"),
    # Dates
    "DATE_CMP": sql(INT4, _comparison("DATE")),
    "DATE_PART_YEAR": sql(INT4, "CAST(year(CAST({0} AS DATE)) AS INTEGER)"),
    "GETDATE": sql(
        TIMESTAMP,  # in any zone of the session
        "date_trunc('second', CAST(now() AT TIME ZONE 'UTC' AS TIMESTAMP))",
    ),
    "LAST_DAY": sql(DATE, "last_day({moment0})"),
    "TIMESTAMP_CMP": sql(INT4, _comparison("TIMESTAMP")),
    # Windows
    "CUME_DIST": sql(FLOAT, "cume_dist(){over}"),
    "DENSE_RANK": sql(INT8, "dense_rank(){over}"),
    "NTILE": sql(INT8, "ntile({0}){over}"),
    # What it gives if the sum is 0 the manual leaves open.
    "RATIO_TO_REPORT": sql(FLOAT, f"CAST({{0}} AS DOUBLE) / {not_zero('CAST(sum({0}){over} AS DOUBLE)')}"),
    "PERCENT_RANK": sql(FLOAT, "percent_rank(){over}"),
    "RANK": sql(INT8, "rank(){over}"),
    "ROW_NUMBER": sql(INT8, "row_number(){over}"),
    **AGGREGATES,
    **VALUES,
    **JSON,
    **SPECIAL,
}
