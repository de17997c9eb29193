"""Literals that DuckDB writes otherwise: formats of dates, names of date parts, and patterns."""

import re

from analytics.warehouse.dialect.parser import NotAsRedshift

# https://docs.aws.amazon.com/redshift/latest/dg/r_Dateparts_for_datetime_functions.html
_PARTS = {
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
PARTS = {name: part for part, names in _PARTS.items() for name in names.split()}
_NAMES = frozenset(["MONTH", "MON", "DAY", "DY", "AM", "PM"])  # whose capitals decide how they are written
# https://docs.aws.amazon.com/redshift/latest/dg/r_FORMAT_strings.html, each as an expression of a timestamp.
# The capitals of a name are those of its text. Whole names are nine characters wide.
_WRITTEN = {
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
# The same parts as strptime reads them. YY is missing, as it means other centuries there.
_READ = {
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
_PIECES = re.compile(
    r'"(?P<quoted>[^"]*)"|(?P<known>'
    + "|".join(sorted({part.upper() for part in _WRITTEN}, key=len, reverse=True))
    + r")|(?P<other>.)",
    re.IGNORECASE | re.DOTALL,
)


def part_of(name: str) -> str:
    """Return a date part by any of its names. Raises NotAsRedshift."""
    part = PARTS.get(name.lower())
    if part is None:
        raise NotAsRedshift(f"{name} is no date part that is known here")
    return part


def format_moment(text: str, moment: str) -> str:
    """Return an expression that writes a moment in a format of TO_CHAR. Raises NotAsRedshift."""
    parts = []
    for piece in _PIECES.finditer(text):
        known = piece["known"]
        if known is None:
            parts.append(_quote(_plain_text(piece, text)))
            continue
        form = _WRITTEN.get(known if known.upper() in _NAMES else known.upper())
        if form is None:
            raise _unknown(known, text)
        parts.append(form.format(moment))
    return f"({' || '.join(parts)})" if parts else "''"


def read_format(text: str) -> str:
    """Return a format of TO_DATE or TO_TIMESTAMP as strptime reads it. Raises NotAsRedshift."""
    parts = []
    for piece in _PIECES.finditer(text):
        if piece["known"] is None:
            parts.append(_plain_text(piece, text).replace("%", "%%"))
        elif form := _READ.get(piece["known"].upper()):
            parts.append(form)
        else:
            raise _unknown(piece["known"], text)
    return "".join(parts)


def _plain_text(piece: re.Match[str], text: str) -> str:
    """Return the text of a piece that is no date part. Raises NotAsRedshift for an unquoted letter."""
    if piece["quoted"] is not None:
        return piece["quoted"]
    if piece["other"].isalpha() and piece["other"] != "T":  # between date and time
        raise _unknown(piece["other"], text)
    return piece["other"]


def _unknown(part: str, text: str) -> NotAsRedshift:
    return NotAsRedshift(f"{part} in the format {text!r} is not known to answer here as Redshift does")


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def similar_to_regex(pattern: str, escape: str = "\\") -> str:
    """Return a pattern of SIMILAR TO as a regular expression for the whole text."""
    parts, is_escaped, is_in_list = [], False, False
    for character in pattern:
        if is_escaped:
            parts.append(re.escape(character))
            is_escaped = False
        elif character == escape:
            is_escaped = True
        elif is_in_list:
            parts.append("\\\\" if character == "\\" else character)
            is_in_list = character != "]"
        elif character in "%_":
            parts.append("(?s:.*)" if character == "%" else "(?s:.)")
        else:
            is_in_list = character == "["
            is_plain = character in "|*+?{}()[]" or character.isalnum()
            parts.append(character if is_plain else re.escape(character))
    return "".join(parts)
