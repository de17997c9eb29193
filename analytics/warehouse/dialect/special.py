"""Builders of the functions whose translation for DuckDB depends on a unit, a format or a type.

A builder gets a `Call` and returns SQL of DuckDB. `SPECIAL`, at the end, has the builder of each function.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from analytics.warehouse.dialect import kinds
from analytics.warehouse.dialect.formats import date_part, strptime_format, to_char
from analytics.warehouse.dialect.kinds import (
    DATE,
    FLOAT,
    INT4,
    INT8,
    INTERVAL,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    Kind,
)
from analytics.warehouse.dialect.parser import DUCKDB, NotAsRedshift

MOMENTS = (DATE, TIME, TIMESTAMP, TIMESTAMPTZ)
_TIGHT_DAY = re.compile(r"(\d{4})(\d{2})(\d{2})(?=$|[ T])")  # a date without hyphens
# Zones that mean the same on both engines
_ZONE = re.compile(r"[A-Za-z_]+(/[A-Za-z0-9_+-]+)+|UTC|GMT", re.ASCII)
AnswerKind = Kind | Callable[[Sequence[Kind]], Kind]  # a type, or how it follows from those of the arguments
_A_SUNDAY = "TIMESTAMP '0001-01-07'"  # weeks of DATEDIFF are counted from it
# The unit of DuckDB in which a date part is added, and how many of them it has.
_STEPS = {
    "year": ("years", 1),
    "quarter": ("months", 3),
    "month": ("months", 1),
    "week": ("days", 7),
    "day": ("days", 1),
    "dow": ("days", 1),
    "doy": ("days", 1),
    "hour": ("hours", 1),
    "minute": ("minutes", 1),
    "second": ("seconds", 1),
    "millisecond": ("milliseconds", 1),
    "microsecond": ("microseconds", 1),
}


@dataclass(frozen=True)
class Call:
    """A call of a function, as its builder gets it."""

    name: str
    nodes: Sequence[Any]  # the arguments, as nodes of sqlglot
    texts: Sequence[str]  # the arguments, as SQL of DuckDB
    kinds: Sequence[Kind]  # the arguments' types
    over: str = ""  # the window, as SQL
    nulls: str = ""  # " IGNORE NULLS", or nothing
    order: exp.Order | None = None  # the expressions and order of WITHIN GROUP

    def literal(self, at: int, meaning: str) -> str:
        """Return the text of an argument that must be one in quotes. Raises NotAsRedshift."""
        node = self.nodes[at]
        if not (isinstance(node, exp.Literal) and node.is_string):
            raise NotAsRedshift(f"{self.name}: {meaning} is translated only if it is a text in quotes")
        return str(node.name)

    def unit(self, at: int = 0) -> str:
        """Return an argument that is a date part, in quotes or not. Raises NotAsRedshift."""
        return date_part(self.nodes[at].name)

    def whole(self, at: int, meaning: str) -> int:
        """Return an argument that must be written as a whole number. Raises NotAsRedshift."""
        node = self.nodes[at]
        if not (isinstance(node, exp.Literal) and not node.is_string and node.name.isdecimal()):
            raise NotAsRedshift(f"{self.name}: {meaning} is translated only if it is a number as it stands")
        return int(node.name)

    def moment(self, at: int) -> str:
        """Return an argument as an instant; a time of day stays one."""
        return moment(self.nodes[at], self.texts[at], self.kinds[at])


@dataclass(frozen=True)
class Function:
    """What is known of a function of Redshift."""

    kind: AnswerKind  # of its answer
    counts: Sequence[int]  # how many arguments it takes; (): any number
    build: Callable[[Call], str]  # writes a call in DuckDB's SQL


def moment(node: Any, text: str, kind: Kind) -> str:
    """Return an expression as a TIMESTAMP. A zone stays, and so does a time of day or an interval."""
    if isinstance(node, exp.Literal) and node.is_string:
        return f"CAST('{with_hyphens(node.name)}' AS TIMESTAMP)"
    return text if kind in (TIMESTAMP, TIMESTAMPTZ, TIME, INTERVAL) else f"CAST({text} AS TIMESTAMP)"


def with_hyphens(text: str) -> str:
    """Return a literal's text for a statement, with YYYY-MM-DD in place of YYYYMMDD."""
    return _TIGHT_DAY.sub(r"\1-\2-\3", text.strip(), count=1).replace("'", "''")


def zone(node: Any, text: str) -> str:
    """Return a zone. Raises NotAsRedshift for an abbreviation or an offset: DuckDB reads others."""
    if isinstance(node, exp.Literal) and not _ZONE.fullmatch(node.name):
        raise NotAsRedshift(
            f"the zone {node.name} is not known to be the same here: name it Region/City, or UTC"
        )
    return text


def extract_part(part: str, text: str, kind: Kind, *, is_date_part: bool = False) -> str:
    """Return a date part of a timestamp, as EXTRACT gives it. Raises NotAsRedshift.

    is_date_part: as DATE_PART gives it instead, which has fractions of seconds.
    """
    if part == "epoch":
        return (
            f"epoch({text})"
            if is_date_part or kind == TIMESTAMPTZ
            else f"CAST(floor(epoch({text})) AS BIGINT)"
        )
    if part == "second" and is_date_part:
        return f"(second({text}) + microsecond({text}) % 1000000 / 1e6)"
    if part == "millisecond":
        if is_date_part:
            raise NotAsRedshift(
                "DATE_PART of milliseconds: the manual says two things of it; EXTRACT(ms FROM ...)"
            )
        return f"CAST(millisecond({text}) % 1000 AS INTEGER)"
    if part == "microsecond":
        return f"CAST(microsecond({text}) % 1000000 AS INTEGER)"
    return f"CAST(date_part('{part}', {text}) AS INTEGER)"


def _date_part(call: Call) -> str:
    return extract_part(call.unit(), call.moment(1), call.kinds[1], is_date_part=True)


def _dateadd(call: Call) -> str:
    part, start = call.unit(), call.moment(2)
    if part not in _STEPS:
        raise NotAsRedshift(f"{call.name} of {part}")
    unit, times = _STEPS[part]
    size = "INTEGER" if unit in ("years", "months", "days") else "BIGINT"
    steps = f"to_{unit}(CAST({call.texts[1]} * {times} AS {size}))"
    # Redshift: 29 February plus years is 1 March in a year without that day; plus months it is 28 February.
    if unit == "years":
        is_later = f"CAST(day({start}) = 29 AND day({start} + {steps}) = 28 AS INTEGER)"
        return f"({start} + {steps} + to_days({is_later}))"
    return f"({start} + {steps})"


def _datediff(call: Call) -> str:
    part, start, end = call.unit(), call.moment(1), call.moment(2)
    if part in ("dow", "doy", "epoch"):
        raise NotAsRedshift(f"{call.name} of {part}")
    if part == "week":  # weeks begin on Sundays
        first, last = (f"(date_diff('day', {_A_SUNDAY}, {instant}) // 7)" for instant in (start, end))
        return f"({last} - {first})"
    return f"date_diff('{part}', {start}, {end})"


def _date_trunc(call: Call) -> str:
    part, start = date_part(call.literal(0, "the date part")), call.moment(1)
    if part in ("dow", "doy", "epoch"):
        raise NotAsRedshift(f"DATE_TRUNC to {part}")
    return f"date_trunc('{part}', {start})"


def _add_months(call: Call) -> str:
    start = call.moment(0)
    end = f"({start} + to_months(CAST({call.texts[1]} AS INTEGER)))"
    last = f"(CAST(last_day({end}) AS TIMESTAMP) + ({start} - date_trunc('day', {start})))"
    return f"CASE WHEN last_day({start}) = CAST({start} AS DATE) THEN {last} ELSE {end} END"


def _to_char(call: Call) -> str:
    form = call.literal(1, "the format")
    if call.kinds[0] not in (DATE, TIMESTAMP, TIMESTAMPTZ):
        raise NotAsRedshift("TO_CHAR is translated for dates and timestamps: CAST it if it is one")
    start = call.moment(0)
    return f"CASE WHEN {call.texts[0]} IS NOT NULL THEN {to_char(start, form)} END"


def _to_date(call: Call) -> str:
    return f"CAST({_strptime(call)} AS DATE)"


def _to_timestamp(call: Call) -> str:
    return f"({_strptime(call)} AT TIME ZONE 'UTC')"


def _strptime(call: Call) -> str:
    form = strptime_format(call.literal(1, "the format")).replace("'", "''")
    return f"strptime(CAST({call.texts[0]} AS VARCHAR), '{form}')"


def _convert_timezone(call: Call) -> str:
    *zones, start = range(len(call.texts))
    *before, target = [zone(call.nodes[at], call.texts[at]) for at in zones]
    source = before[0] if before else "'UTC'"
    return f"((CAST({call.moment(start)} AS TIMESTAMP) AT TIME ZONE {source}) AT TIME ZONE {target})"


def _trunc(call: Call) -> str:
    kind = call.kinds[0]
    if kind.is_number:
        return f"trunc({', '.join(call.texts)})"
    if kind in (DATE, TIMESTAMP, TIMESTAMPTZ) and len(call.texts) == 1:
        return f"CAST({call.texts[0]} AS DATE)"
    raise NotAsRedshift("TRUNC: whether this is a number or a timestamp is not known here: CAST it")


def _sum(call: Call) -> str:
    kind = call.kinds[0]
    if kind == kinds.BOOLEAN or (
        not kind.is_number and kind not in (kinds.UNKNOWN, kinds.NOTHING, kinds.INTERVAL)
    ):
        raise NotAsRedshift(f"SUM of a {kind.name}: Redshift has none")
    total = f"sum({call.texts[0]}){call.over}"
    if not kind.is_exact:
        return total
    return f"CAST({total} AS {'BIGINT' if kinds.of_sum(kind) == INT8 else f'DECIMAL(38, {kind.scale})'})"


def _avg(call: Call) -> str:
    kind, (text,) = call.kinds[0], call.texts
    total, count = f"sum({text}){call.over}", f"count({text}){call.over}"
    if kind == FLOAT:
        return f"avg({text}){call.over}"
    if kind.is_whole:
        return f"CAST(CASE WHEN {count} > 0 THEN {total} // {count} END AS BIGINT)"
    if kind.is_exact:
        average = decimal_quotient(total, kinds.of_sum(kind), count, INT8, kind.scale)
        return f"CASE WHEN {count} > 0 THEN {average} END"
    raise NotAsRedshift(
        "AVG: of whole numbers it is a whole number, and this type is not known here: CAST it"
    )


def decimal_quotient(left: str, left_kind: Kind, right: str, right_kind: Kind, scale: int) -> str:
    """Return the exact quotient of two decimals. It is cut off after `scale` digits behind the point.

    DuckDB would divide floating-point numbers. The manual leaves open whether Redshift cuts off or rounds.
    """
    shift = scale - left_kind.scale + right_kind.scale
    dividend, divisor = _as_whole(left, left_kind.scale), _as_whole(right, right_kind.scale)
    if shift >= 0:
        dividend = f"{dividend} * CAST({10**shift} AS HUGEINT)"
    else:
        divisor = f"{divisor} * CAST({10**-shift} AS HUGEINT)"
    unit = "1" if scale == 0 else f"0.{'0' * (scale - 1)}1"
    return f"CAST(CAST(({dividend}) // ({divisor}) AS DECIMAL(38, 0)) * {unit} AS DECIMAL(38, {scale}))"


def not_zero(divisor: str) -> str:
    """Return a floating-point divisor that may not be 0. DuckDB would give infinity, or NaN."""
    return f"(CASE WHEN {divisor} = 0 THEN error('division by zero') ELSE {divisor} END)"


def remainder(left: str, right: str, of_kinds: Sequence[Kind]) -> str:
    """Return a remainder. of_kinds: the types of both numbers."""
    is_exact = all(kind.is_exact for kind in of_kinds)
    return f"({left} % {right if is_exact else not_zero(right)})"


def check_ascii(name: str, pattern: Any) -> None:
    """Refuse a pattern for capitals and small letters alike that has other letters than those of ASCII.

    DuckDB knows the capitals of all, and of Redshift the manual says it of none.
    """
    if not (isinstance(pattern, exp.Literal) and pattern.is_string and pattern.name.isascii()):
        raise NotAsRedshift(f"{name} without regard to capitals: the pattern is a text in quotes, of ASCII")


def _as_whole(text: str, scale: int) -> str:
    if scale == 0:
        return f"CAST({text} AS HUGEINT)"
    return f"CAST(CAST({text} AS DECIMAL(38, {scale})) * {10**scale} AS HUGEINT)"


def _as_float(text: str, kind: Kind) -> str:
    return f"CAST({text} AS DOUBLE)" if kind.is_exact else text


def _percentile_cont(call: Call) -> str:
    if call.order is None or len(call.order.expressions) != 1:
        raise NotAsRedshift(f"{call.name} needs WITHIN GROUP (ORDER BY one expression)")
    (ordered,) = call.order.expressions
    text = f"({ordered.this.sql(dialect=DUCKDB)})"
    share = f"1 - {call.texts[0]}" if ordered.args.get("desc") else call.texts[0]
    return f"quantile_cont({_as_float(text, kinds.kind_of(ordered.this))}, {share}){call.over}"


def _median(call: Call) -> str:
    return f"quantile_cont({_as_float(call.texts[0], call.kinds[0])}, 0.5){call.over}"


def _listagg(call: Call) -> str:
    nodes = call.nodes[0].expressions if isinstance(call.nodes[0], exp.Distinct) else call.nodes
    distinct = "DISTINCT " if isinstance(call.nodes[0], exp.Distinct) else ""
    text, *rest = [f"({node.sql(dialect=DUCKDB)})" for node in nodes]
    separator, order = rest[0] if rest else "''", ""
    if call.order is not None:
        order = f" {call.order.sql(dialect=DUCKDB).strip()}"
        if distinct and [ordered.this for ordered in call.order.expressions] != [nodes[0]]:
            raise NotAsRedshift("LISTAGG (DISTINCT ...): it is ordered by what it lists")
    if distinct:  # DuckDB orders distinct values only by what it aggregates: numbers before they are texts
        values = f"array_agg(DISTINCT {text}{order}) FILTER (WHERE {text} IS NOT NULL){call.over}"
        return f"array_to_string(list_transform({values}, lambda value: CAST(value AS VARCHAR)), {separator})"
    return f"string_agg(CAST({text} AS VARCHAR), {separator}{order}){call.over}"


def _strtol(call: Call) -> str:
    base, text = call.whole(1, "the base"), call.texts[0]
    if base == 10:
        return f"CAST({text} AS BIGINT)"
    if base == 16:
        return f"CAST(('0x' || regexp_replace({text}, '^0[xX]', '')) AS BIGINT)"
    raise NotAsRedshift(f"STRTOL of base {base} is answered by Redshift alone: here of 10 and 16")


def _sha2(call: Call) -> str:
    if call.whole(1, "the number of bits") not in (0, 256):
        raise NotAsRedshift("SHA2 of other than 256 bits is not computed here")
    return f"sha256({call.texts[0]})"


def substring(text: str, start: str, length: str | None) -> str:
    """Return a part of a text. A start below 1 lies to the left of the first character, which is at 1."""
    if length is None:
        return f"CASE WHEN {start} >= 1 THEN substring({text}, {start}) WHEN {start} < 1 THEN {text} END"
    from_first = f"substring({text}, 1, greatest({start} + {length} - 1, 0))"
    from_start = f"substring({text}, {start}, {length})"
    cases = f"WHEN {start} >= 1 THEN {from_start} WHEN {start} < 1 AND {length} >= 0 THEN {from_first}"
    refusal = "error('SUBSTRING takes no negative length')"
    return f"CASE WHEN {length} < 0 THEN {refusal} ELSE CASE {cases} END END"


def _substr(call: Call) -> str:
    return substring(call.texts[0], call.texts[1], call.texts[2] if len(call.texts) == 3 else None)


def _pattern(call: Call, flags_at: int, allowed: str) -> tuple[str, str]:
    """Return a pattern in RE2's syntax, and the call's flags. allowed: flags beside i and c.

    Raises NotAsRedshift.
    """
    flags = call.literal(flags_at, "the parameters") if len(call.texts) > flags_at else ""
    if "p" in flags:
        raise NotAsRedshift(f"{call.name}: Perl's patterns (p) are not those of the engine here")
    if unknown := set(flags) - set(allowed + "ci"):
        raise NotAsRedshift(f"{call.name}: the parameter {min(unknown)} is not known")
    if "i" in flags:
        check_ascii(call.name, call.nodes[1])
        return f"('(?i)' || {call.texts[1]})", flags
    return call.texts[1], flags


def _check_begins_at_start(call: Call, at: int) -> None:
    """Refuse a call whose argument, the position from which it searches, is beyond the first character."""
    if len(call.texts) > at and call.whole(at, "the position") > 1:
        raise NotAsRedshift(f"{call.name} from a later position: use SUBSTRING before it")


def _regexp_replace(call: Call) -> str:
    pattern, _ = _pattern(call, 4, "")
    _check_begins_at_start(call, 3)
    if len(call.texts) == 2:
        return f"regexp_replace({call.texts[0]}, {pattern}, '', 'g')"
    replacement = call.nodes[2]
    if isinstance(replacement, exp.Literal) and (set(replacement.name) & set("$\\")):
        raise NotAsRedshift("REGEXP_REPLACE: what $ and \\ mean in a replacement is not translated")
    return f"regexp_replace({call.texts[0]}, {pattern}, replace({call.texts[2]}, '\\', '\\\\'), 'g')"


def _regexp_count(call: Call) -> str:
    pattern, _ = _pattern(call, 3, "")
    _check_begins_at_start(call, 2)
    return f"CAST(len(regexp_extract_all({call.texts[0]}, {pattern})) AS INTEGER)"


def _regexp_substr(call: Call) -> str:
    pattern, flags = _pattern(call, 4, "e")
    _check_begins_at_start(call, 2)
    group = ", 1" if "e" in flags else ""
    if group and "(" not in call.literal(1, "the pattern"):
        group = ""
    occurrence = call.texts[3] if len(call.texts) > 3 else "1"
    match = f"regexp_extract_all({call.texts[0]}, {pattern}{group})[{occurrence}]"
    is_valid = f"{occurrence} >= 1 AND {call.texts[0]} IS NOT NULL AND {call.texts[1]} IS NOT NULL"
    return f"CASE WHEN {is_valid} THEN coalesce({match}, '') END"


SPECIAL: dict[str, Function] = {
    "ADD_MONTHS": Function(TIMESTAMP, (2,), _add_months),
    "AVG": Function(lambda given: kinds.of_average(kinds.first(given)), (1,), _avg),
    "CONVERT_TIMEZONE": Function(TIMESTAMP, (2, 3), _convert_timezone),
    **dict.fromkeys(
        ("DATEADD", "DATE_ADD"),
        Function(lambda given: given[2] if given[2] in (TIME, TIMESTAMPTZ) else TIMESTAMP, (3,), _dateadd),
    ),
    **dict.fromkeys(("DATEDIFF", "DATE_DIFF"), Function(INT8, (3,), _datediff)),
    **dict.fromkeys(("DATE_PART", "PGDATE_PART"), Function(FLOAT, (2,), _date_part)),
    "DATE_TRUNC": Function(
        lambda given: given[1] if given[1] == TIMESTAMPTZ else TIMESTAMP, (2,), _date_trunc
    ),
    "LISTAGG": Function(TEXT, (1, 2), _listagg),
    "MEDIAN": Function(lambda given: FLOAT if given[0].is_exact else given[0], (1,), _median),
    "PERCENTILE_CONT": Function(FLOAT, (1,), _percentile_cont),
    "MOD": Function(kinds.common, (2,), lambda call: remainder(call.texts[0], call.texts[1], call.kinds)),
    "REGEXP_COUNT": Function(INT4, (2, 3, 4), _regexp_count),
    "REGEXP_REPLACE": Function(TEXT, (2, 3, 4, 5), _regexp_replace),
    "REGEXP_SUBSTR": Function(TEXT, (2, 3, 4, 5), _regexp_substr),
    "SHA2": Function(TEXT, (2,), _sha2),
    "STRTOL": Function(INT8, (2,), _strtol),
    "SUBSTR": Function(TEXT, (2, 3), _substr),
    "SUM": Function(lambda given: kinds.of_sum(kinds.first(given)), (1,), _sum),
    "TO_CHAR": Function(TEXT, (2,), _to_char),
    "TO_DATE": Function(DATE, (2,), _to_date),
    "TO_TIMESTAMP": Function(TIMESTAMPTZ, (2,), _to_timestamp),
    "TRUNC": Function(lambda given: given[0] if given[0].is_number else DATE, (1, 2), _trunc),
}
