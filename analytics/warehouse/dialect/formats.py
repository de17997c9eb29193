"""Translates literals of Redshift to DuckDB: date parts, formats of dates, and patterns of SIMILAR TO."""

import re
from collections.abc import Mapping

from analytics.warehouse.dialect.parser import NotAsRedshift

# https://docs.aws.amazon.com/redshift/latest/dg/r_Dateparts_for_datetime_functions.html
_DATE_PART_NAMES = {
    "epoch": "epoch",
    "year": "year years y yr yrs",
    "quarter": "quarter quarters qtr qtrs",
    "month": "month months mon mons",
    "week": "week weeks w",
    "dow": "dayofweek day_of_week dow dw weekday",
    "doy": "dayofyear day_of_year doy dy yearday",
    "day": "day days d",
    "hour": "hour hours h hr hrs",
    "minute": "minute minutes m min mins",
    "second": "second seconds s sec secs",
    "millisecond": "millisecond milliseconds ms msec msecs msecond mseconds millisec millisecs millisecon",
    "microsecond": "microsecond microseconds microsec microsecs usec usecs us usecond useconds",
}
_DATE_PARTS = {name: part for part, names in _DATE_PART_NAMES.items() for name in names.split()}
# Patterns whose capitals are those of the text: MONTH, Month and month write JANUARY, January and january.
_CASE_SENSITIVE = frozenset(["MONTH", "MON", "DAY", "DY", "AM", "PM"])
# The expression that writes a timestamp, {0}, in each pattern of TO_CHAR. Whole names have nine characters.
# https://docs.aws.amazon.com/redshift/latest/dg/r_FORMAT_strings.html
_TO_CHAR = {
    "YYYY": "strftime({0}, '%Y')",
    "YYY": "right(strftime({0}, '%Y'), 3)",
    "YY": "strftime({0}, '%y')",
    "Y": "right(strftime({0}, '%Y'), 1)",
    "IYYY": "strftime({0}, '%G')",
    "IW": "strftime({0}, '%V')",
    "WW": "lpad(CAST((dayofyear({0}) + 6) // 7 AS VARCHAR), 2, '0')",
    "W": "CAST((day({0}) + 6) // 7 AS VARCHAR)",
    "CC": "lpad(CAST(century({0}) AS VARCHAR), 2, '0')",
    "Q": "CAST(quarter({0}) AS VARCHAR)",
    "MM": "strftime({0}, '%m')",
    "MONTH": "rpad(upper(strftime({0}, '%B')), 9, ' ')",
    "Month": "rpad(strftime({0}, '%B'), 9, ' ')",
    "month": "rpad(lower(strftime({0}, '%B')), 9, ' ')",
    "MON": "upper(strftime({0}, '%b'))",
    "Mon": "strftime({0}, '%b')",
    "mon": "lower(strftime({0}, '%b'))",
    "DDD": "strftime({0}, '%j')",
    "DD": "strftime({0}, '%d')",
    "D": "CAST(dayofweek({0}) + 1 AS VARCHAR)",
    "ID": "CAST(isodow({0}) AS VARCHAR)",
    "DAY": "rpad(upper(strftime({0}, '%A')), 9, ' ')",
    "Day": "rpad(strftime({0}, '%A'), 9, ' ')",
    "day": "rpad(lower(strftime({0}, '%A')), 9, ' ')",
    "DY": "upper(strftime({0}, '%a'))",
    "Dy": "strftime({0}, '%a')",
    "dy": "lower(strftime({0}, '%a'))",
    "HH24": "strftime({0}, '%H')",
    "HH12": "strftime({0}, '%I')",
    "HH": "strftime({0}, '%I')",
    "MI": "strftime({0}, '%M')",
    "SS": "strftime({0}, '%S')",
    "MS": "strftime({0}, '%g')",
    "US": "strftime({0}, '%f')",
    "AM": "strftime({0}, '%p')",
    "PM": "strftime({0}, '%p')",
    "am": "lower(strftime({0}, '%p'))",
    "pm": "lower(strftime({0}, '%p'))",
}
# What strptime calls the patterns that TO_DATE and TO_TIMESTAMP read, with any capitals. YY is missing,
# because it means other centuries to strptime.
_STRPTIME = {
    "YYYY": "%Y",
    "MM": "%m",
    "MON": "%b",
    "MONTH": "%B",
    "DD": "%d",
    "DDD": "%j",
    "HH24": "%H",
    "HH12": "%I",
    "HH": "%I",
    "MI": "%M",
    "SS": "%S",
    "MS": "%g",
    "US": "%f",
    "AM": "%p",
    "PM": "%p",
}
_FORMAT_PIECES = re.compile(
    r'"(?P<quoted>[^"]*)"|(?P<pattern>'
    + "|".join(sorted({pattern.upper() for pattern in _TO_CHAR}, key=len, reverse=True))
    + r")|(?P<other>.)",
    re.IGNORECASE | re.DOTALL,
)


def date_part(name: str) -> str:
    """Return a date part by any of its names. Raises NotAsRedshift."""
    part = _DATE_PARTS.get(name.lower())
    if part is None:
        raise NotAsRedshift(f"{name} is no date part that is known here")
    return part


def to_char(moment: str, format_text: str, patterns: Mapping[str, str] = _TO_CHAR) -> str:
    """Return an expression that writes a timestamp as TO_CHAR does. Raises NotAsRedshift.

    moment: the expression of the timestamp. patterns: the expression of each pattern that an engine has.
    """
    texts = []
    for piece in _FORMAT_PIECES.finditer(format_text):
        pattern = piece["pattern"]
        if pattern is None:
            texts.append(_quote(_plain_text(piece, format_text)))
            continue
        expression = patterns.get(pattern if pattern.upper() in _CASE_SENSITIVE else pattern.upper())
        if expression is None:
            raise _unknown(pattern, format_text)
        texts.append(expression.format(moment))
    return f"({' || '.join(texts)})" if texts else "''"


def strptime_format(format_text: str) -> str:
    """Return the format of strptime that reads what TO_DATE or TO_TIMESTAMP reads. Raises NotAsRedshift."""
    directives = []
    for piece in _FORMAT_PIECES.finditer(format_text):
        if piece["pattern"] is None:
            directives.append(_plain_text(piece, format_text).replace("%", "%%"))
        elif directive := _STRPTIME.get(piece["pattern"].upper()):
            directives.append(directive)
        else:
            raise _unknown(piece["pattern"], format_text)
    return "".join(directives)


def _plain_text(piece: re.Match[str], format_text: str) -> str:
    """Return the text of a piece that is no pattern. Raises NotAsRedshift for a letter without quotes.

    The T between date and time needs no quotes.
    """
    if piece["quoted"] is not None:
        return piece["quoted"]
    if piece["other"].isalpha() and piece["other"] != "T":
        raise _unknown(piece["other"], format_text)
    return piece["other"]


def _unknown(pattern: str, format_text: str) -> NotAsRedshift:
    return NotAsRedshift(
        f"{pattern} in the format {format_text!r} is not known to answer here as Redshift does"
    )


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def similar_to_regex(pattern: str, escape: str = "\\") -> str:
    """Return a pattern of SIMILAR TO as a regular expression for the whole text.

    `%` and `_` are the wildcards of SIMILAR TO. `|*+?{}()[]` mean the same in both, and any other character
    stands for itself. In a list such as `[a-c]`, only the backslash needs an escape. A list ends at its first
    `]`.
    """
    regex, is_escaped, is_in_list = [], False, False
    for character in pattern:
        if is_escaped:
            regex.append(re.escape(character))
            is_escaped = False
        elif character == escape:
            is_escaped = True
        elif is_in_list:
            regex.append("\\\\" if character == "\\" else character)
            is_in_list = character != "]"
        elif character in "%_":
            regex.append("(?s:.*)" if character == "%" else "(?s:.)")
        else:
            is_in_list = character == "["
            is_plain = character in "|*+?{}()[]" or character.isalnum()
            regex.append(character if is_plain else re.escape(character))
    return "".join(regex)
