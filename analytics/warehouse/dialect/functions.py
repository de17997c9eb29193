"""What DuckDB runs for each function of Redshift, by name. A name that is neither here nor in special.py is refused.

A row has the type of the answer (a function of the arguments' types where it follows from them), then an
expression of DuckDB for each number of arguments: {0} is the first, {args} stands for any number of them,
{over} for the OVER of a window, {nulls} for IGNORE NULLS.
https://docs.aws.amazon.com/redshift/latest/dg/c_SQL_functions.html; a test has the documented answers.
"""

from collections.abc import Callable, Sequence

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

Of = Kind | Callable[[Sequence[Kind]], Kind]
Row = tuple[Of, str] | tuple[Of, str, str]

NOW = "CAST(now() AT TIME ZONE 'UTC' AS TIMESTAMP)"  # whatever the session's zone


# DuckDB also takes a comma before a closing bracket, NaN and Infinity; within a text each may stand.
_LOOSE = r"',\s*[\]}}]|(?i:nan|inf)'"
_TEXTS_AWAY = r"regexp_replace({0}, '\"(\\.|[^\"\\])*\"', '0', 'g')"
_VALID = f"(json_valid({{0}}) AND NOT (regexp_matches({{0}}, {_LOOSE}) AND regexp_matches({_TEXTS_AWAY}, {_LOOSE})))"
_JSON_TEXT = f"(CASE WHEN {_VALID} THEN {{0}} END)"


def _no_part_below_1(expression: str) -> str:
    return f"CASE WHEN {{2}} < 1 THEN error('SPLIT_PART counts from 1') ELSE {expression} END"


def _not_negative(name: str) -> str:
    return f"CASE WHEN {{1}} < 0 THEN error('{name} takes no negative length') ELSE {name}({{0}}, {{1}}) END"


def _of_json(expression: str) -> str:
    """Return an expression for texts of JSON, {json}. Of others it is an error, or NULL as null_if_invalid asks."""
    wrong = "{0} IS NULL OR {lenient} THEN NULL ELSE error('this is no JSON: ' || left({0}, 99))"
    return f"CASE WHEN {_VALID} THEN {expression} WHEN {wrong} END".replace("{json}", _JSON_TEXT)


def _compared(type_: str) -> str:
    one, other = f"CAST({{0}} AS {type_})", f"CAST({{1}} AS {type_})"
    return f"CASE WHEN {one} > {other} THEN 1 WHEN {one} < {other} THEN -1 WHEN {one} = {other} THEN 0 END"


# Words begin after anything but a letter or a digit.
_INITCAP = (
    r"array_to_string(list_transform(regexp_extract_all(lower({0}), '[\p{{L}}\p{{N}}]+|[^\p{{L}}\p{{N}}]+'), "
    "lambda word: upper(word[1]) || word[2:]), '')"
)
_TEXTS: dict[str, Row] = {
    "ASCII": (INT4, "ascii({0})"),
    "BTRIM": (TEXT, "trim({0}, ' ')", "trim({0}, {1})"),
    "CHARINDEX": (INT4, "strpos({1}, {0})"),
    "CHR": (TEXT, "chr({0})"),
    "CONCAT": (TEXT, "({0} || {1})"),
    "INITCAP": (TEXT, _INITCAP),
    "LEFT": (TEXT, _not_negative("left")),
    **dict.fromkeys(("LEN", "LENGTH", "CHAR_LENGTH", "CHARACTER_LENGTH", "TEXTLEN"), (INT4, "length({0})")),
    "LOWER": (TEXT, "lower({0})"),
    "LPAD": (TEXT, "lpad({0}, {1}, ' ')", "lpad({0}, {1}, {2})"),
    "LTRIM": (TEXT, "ltrim({0}, ' ')", "ltrim({0}, {1})"),
    "MD5": (TEXT, "md5({0})"),
    "OCTET_LENGTH": (INT4, "strlen({0})"),
    "REPEAT": (TEXT, "repeat({0}, {1})"),
    "REPLACE": (TEXT, "replace({0}, {1}, {2})"),
    "REPLICATE": (TEXT, "repeat({0}, {1})"),
    "REVERSE": (TEXT, "reverse({0})"),
    "RIGHT": (TEXT, _not_negative("right")),
    "RPAD": (TEXT, "rpad({0}, {1}, ' ')", "rpad({0}, {1}, {2})"),
    "RTRIM": (TEXT, "rtrim({0}, ' ')", "rtrim({0}, {1})"),
    **dict.fromkeys(("SHA", "SHA1", "FUNC_SHA1"), (TEXT, "sha1({0})")),
    "SPLIT_PART": (TEXT, _no_part_below_1("split_part({0}, {1}, {2})")),
    "STRPOS": (INT4, "strpos({0}, {1})"),
    "TRANSLATE": (TEXT, "translate({0}, {1}, {2})"),
    "UPPER": (TEXT, "upper({0})"),
}
_NUMBERS: dict[str, Row] = {
    "ABS": (first, "abs({0})"),
    "ACOS": (FLOAT, "acos({0})"),
    "ASIN": (FLOAT, "asin({0})"),
    "ATAN": (FLOAT, "atan({0})"),
    "ATAN2": (FLOAT, "atan2({0}, {1})"),
    "CBRT": (FLOAT, "cbrt({0})"),
    **dict.fromkeys(("CEIL", "CEILING"), (first, "ceil({0})")),
    "COS": (FLOAT, "cos({0})"),
    "COT": (FLOAT, "cot({0})"),
    "DEGREES": (FLOAT, "degrees({0})"),
    **dict.fromkeys(("DEXP", "EXP"), (FLOAT, "exp({0})")),
    **dict.fromkeys(("DLOG1", "LN"), (FLOAT, "ln({0})")),
    **dict.fromkeys(("DLOG10", "LOG"), (FLOAT, "log10({0})")),
    "FLOOR": (first, "floor({0})"),
    "MOD": (common, "({0} % {1})"),
    "PI": (FLOAT, "pi()"),
    **dict.fromkeys(("DPOW", "POW", "POWER"), (FLOAT, "pow({0}, {1})")),
    "RADIANS": (FLOAT, "radians({0})"),
    "RANDOM": (FLOAT, "random()"),
    "ROUND": (first, "round({0})", "round({0}, {1})"),
    "SIGN": (first, "sign({0})"),
    "SIN": (FLOAT, "sin({0})"),
    **dict.fromkeys(("DSQRT", "SQRT"), (FLOAT, "sqrt({0})")),
    "TAN": (FLOAT, "tan({0})"),
    "TO_HEX": (
        TEXT,
        "CASE WHEN {0} < 0 THEN error('TO_HEX takes no negative number') ELSE lower(to_hex({0})) END",
    ),
}
_CHOICES: dict[str, Row] = {
    **dict.fromkeys(("COALESCE", "NVL"), (common, "coalesce({args})")),
    "GREATEST": (common, "greatest({args})"),
    "LEAST": (common, "least({args})"),
    "NULLIF": (first, "nullif({0}, {1})"),
    "NVL2": (lambda kinds: common(kinds[1:]), "CASE WHEN {0} IS NOT NULL THEN {1} ELSE {2} END"),
}
_JSON: dict[str, Row] = {
    "ARRAY": (SUPER, "[{args}]"),
    "CAN_JSON_PARSE": (BOOLEAN, _VALID),
    "IS_VALID_JSON": (BOOLEAN, f"({_VALID} AND json_type({_JSON_TEXT}) = 'OBJECT')"),
    "IS_VALID_JSON_ARRAY": (BOOLEAN, f"({_VALID} AND json_type({_JSON_TEXT}) = 'ARRAY')"),
    "JSON_PARSE": (
        SUPER,
        f"CASE WHEN {_VALID} THEN CAST({_JSON_TEXT} AS JSON) WHEN {{0}} IS NOT NULL THEN error('this is no JSON') END",
    ),
    "JSON_SERIALIZE": (TEXT, "CAST(to_json({0}) AS VARCHAR)"),
}
# With null_if_invalid as their last argument. Of an element that is not there the manual says both, NULL and an
# empty text; its examples show NULL.
OF_JSON_TEXTS: dict[str, tuple[Kind, str]] = {
    "JSON_ARRAY_LENGTH": (
        INT4,
        _of_json(
            "CASE WHEN json_type({json}) = 'ARRAY' THEN CAST(json_array_length({json}) AS INTEGER) "
            "ELSE error('JSON_ARRAY_LENGTH: this is no array') END"
        ),
    ),
    "JSON_EXTRACT_ARRAY_ELEMENT_TEXT": (
        TEXT,
        _of_json(
            "CASE WHEN json_type({json}) <> 'ARRAY' THEN error('JSON_EXTRACT_ARRAY_ELEMENT_TEXT: this is no array') "
            "WHEN {1} < 0 OR {1} >= json_array_length({json}) THEN '' ELSE ({json} ->> CAST({1} AS BIGINT)) END"
        ),
    ),
    "JSON_EXTRACT_PATH_TEXT": (TEXT, _of_json("({json} ->> {path})")),
}
_DATES: dict[str, Row] = {
    "DATE_CMP": (INT4, _compared("DATE")),
    "DATE_PART_YEAR": (INT4, "CAST(year(CAST({0} AS DATE)) AS INTEGER)"),
    "GETDATE": (TIMESTAMP, f"date_trunc('second', {NOW})"),
    "LAST_DAY": (DATE, "last_day({moment0})"),
    "TIMESTAMP_CMP": (INT4, _compared("TIMESTAMP")),
}
# Aggregates, which are window functions too.
AGGREGATES: dict[str, Row] = {
    "ANY_VALUE": (first, "any_value({0}){over}"),
    "BIT_AND": (first, "bit_and({0}){over}"),
    "BIT_OR": (first, "bit_or({0}){over}"),
    "BOOL_AND": (BOOLEAN, "bool_and({0}){over}"),
    "BOOL_OR": (BOOLEAN, "bool_or({0}){over}"),
    "COUNT": (INT8, "count({0}){over}"),
    "MAX": (first, "max({0}){over}"),
    "MIN": (first, "min({0}){over}"),
    **dict.fromkeys(("STDDEV", "STDDEV_SAMP"), (FLOAT, "stddev_samp({0}){over}")),
    "STDDEV_POP": (FLOAT, "stddev_pop({0}){over}"),
    **dict.fromkeys(("VARIANCE", "VAR_SAMP"), (FLOAT, "var_samp({0}){over}")),
    "VAR_POP": (FLOAT, "var_pop({0}){over}"),
}
_WINDOWS: dict[str, Row] = {
    "CUME_DIST": (FLOAT, "cume_dist(){over}"),
    "DENSE_RANK": (INT8, "dense_rank(){over}"),
    "NTILE": (INT8, "ntile({0}){over}"),
    "PERCENT_RANK": (FLOAT, "percent_rank(){over}"),
    "RANK": (INT8, "rank(){over}"),
    "ROW_NUMBER": (INT8, "row_number(){over}"),
}
# Of a value in a row of the window.
VALUES: dict[str, Row] = {
    "FIRST_VALUE": (first, "first_value({0}{nulls}){over}"),
    "LAG": (first, "lag({0}{nulls}){over}", "lag({0}, {1}{nulls}){over}"),
    "LAST_VALUE": (first, "last_value({0}{nulls}){over}"),
    "LEAD": (first, "lead({0}{nulls}){over}", "lead({0}, {1}{nulls}){over}"),
    "NTH_VALUE": (first, "nth_value({0}, {1}{nulls}){over}"),
}
FUNCTIONS: dict[str, Row] = {
    **_TEXTS,
    **_NUMBERS,
    **_CHOICES,
    **_JSON,
    **_DATES,
    **AGGREGATES,
    **_WINDOWS,
    **VALUES,
}

_ON_THE_LEADER = "Redshift runs it on its leader node alone, and refuses it beside a table"
REFUSED: dict[str, str] = {
    **dict.fromkeys(
        ("AGE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "ISFINITE", "LOCALTIME", "NOW"), _ON_THE_LEADER
    ),
    **dict.fromkeys(
        ("CURRENT_SCHEMA", "CURRENT_SCHEMAS", "GETBIT", "GET_BYTE", "SET_BIT", "TO_ASCII"), _ON_THE_LEADER
    ),
    **dict.fromkeys(
        ("GENERATE_SERIES", "STRING_AGG", "UNNEST", "CONCAT_WS"), "Redshift has no such function"
    ),
    **dict.fromkeys(
        ("CHECKSUM", "CRC32", "FNV_HASH", "FARMFINGERPRINT64", "SOUNDEX", "DIFFERENCE"),
        "nothing here computes the same value: MD5, SHA1 and SHA2 are there",
    ),
    "TO_NUMBER": "its formats are not translated: CAST(REPLACE(...) AS DECIMAL(p, s))",
    "TIMEOFDAY": "its text is not written here: TO_CHAR(GETDATE(), ...)",
    "COLLATE": "a text is compared by its bytes here: compare LOWER(...)",
}
