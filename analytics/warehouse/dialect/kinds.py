"""Types as Redshift has them: of columns, of literals, and of expressions of these. A type is a `Kind`.

DuckDB divides, averages and adds with types of its own. So a translation has to know the type that an
expression has on Redshift. Source of the rules:
https://docs.aws.amazon.com/redshift/latest/dg/r_numeric_computations201.html
"""

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any, NamedTuple

from sqlglot import exp

DIGITS_MAX = 38
SUM_OF_BIGINTS = (38, 0)
# The types of whole numbers, and the digits of the DECIMAL that each becomes beside one
_DIGITS = {"int2": 5, "int4": 10, "int8": 19}
_INT4_MAX, _INT8_MAX = 2**31 - 1, 2**63 - 1


class Kind(NamedTuple):
    """A type."""

    name: str
    precision: int = 0  # precision, scale: of a DECIMAL, in digits
    scale: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether it is a SMALLINT, an INTEGER or a BIGINT."""
        return self.name in _DIGITS

    @property
    def is_exact(self) -> bool:
        """Whether it is a whole or a decimal number."""
        return self.is_whole or self.name == "decimal"

    @property
    def is_number(self) -> bool:
        """Whether it is any number."""
        return self.is_exact or self.name == "float"

    def as_decimal(self) -> "Kind":
        """Return the DECIMAL that a whole number becomes beside one."""
        return decimal(_DIGITS[self.name], 0) if self.is_whole else self


INT2, INT4, INT8, FLOAT = Kind("int2"), Kind("int4"), Kind("int8"), Kind("float")
TEXT, BOOLEAN, SUPER = Kind("text"), Kind("boolean"), Kind("super")
DATE, TIME, INTERVAL = Kind("date"), Kind("time"), Kind("interval")
TIMESTAMP, TIMESTAMPTZ = Kind("timestamp"), Kind("timestamptz")
NOTHING, UNKNOWN = Kind("null"), Kind("unknown")  # a NULL; what is not known
_TYPES = {
    "SMALLINT": INT2,
    "INT": INT4,
    "BIGINT": INT8,
    "INT128": Kind("decimal", 38, 0),  # DuckDB's own, of a sum
    "FLOAT": FLOAT,
    "DOUBLE": FLOAT,
    "VARCHAR": TEXT,
    "TEXT": TEXT,
    "NVARCHAR": TEXT,
    "BOOLEAN": BOOLEAN,
    "DATE": DATE,
    "TIME": TIME,
    "TIMESTAMP": TIMESTAMP,
    "DATETIME": TIMESTAMP,
    "TIMESTAMPNTZ": TIMESTAMP,  # as DuckDB's is read
    "TIMESTAMPTZ": TIMESTAMPTZ,
    "INTERVAL": INTERVAL,
    "SUPER": SUPER,
    "JSON": SUPER,
}


def kind_of(node: Any) -> Kind:
    """Return the type that inference.py has noted for an expression, also after it was rewritten."""
    kind = node.meta.get("kind", UNKNOWN)
    return kind if isinstance(kind, Kind) else UNKNOWN


def set_kind(node: exp.Expr, kind: Kind) -> None:
    """Note the type of an expression."""
    node.meta["kind"] = kind


def decimal(precision: int, scale: int) -> Kind:
    """Return a DECIMAL."""
    return Kind("decimal", min(precision, DIGITS_MAX), scale)


def of_type(type_: exp.DataType) -> Kind:
    """Return the kind of a type as it is written. DECIMAL alone is DECIMAL(18, 0)."""
    name = type_.this.value if isinstance(type_.this, exp.DType) else str(type_.this)
    if name == "DECIMAL":
        sizes = [int(expression.name) for expression in type_.expressions]
        return decimal(*(sizes + [18, 0][len(sizes) :]))
    return _TYPES.get(name, UNKNOWN)


def of_literal(literal: exp.Literal) -> Kind:
    """Return the kind of a number or a text in a query."""
    if literal.is_string:
        return TEXT
    text = literal.name
    if "e" in text.lower():
        return FLOAT
    whole, _, fraction = text.partition(".")
    if "." in text:
        return decimal(len(whole.lstrip("0")) + len(fraction) or 1, len(fraction))
    if int(text) <= _INT4_MAX:
        return INT4
    return INT8 if int(text) <= _INT8_MAX else decimal(len(text), 0)


def common(kinds: Iterable[Kind]) -> Kind:
    """Return the kind that holds all of these: of a CASE, a COALESCE, a UNION."""
    typed = [kind for kind in kinds if kind != NOTHING]
    return reduce(_wider, typed) if typed else NOTHING


def _wider(one: Kind, other: Kind) -> Kind:  # noqa: PLR0911 (a rule each)
    """Return the kind that holds both; UNKNOWN if nobody can tell."""
    if one.name == other.name and one.name != "decimal":
        return one
    if one.is_number and other.is_number:
        if FLOAT in (one, other):
            return FLOAT
        if one.is_whole and other.is_whole:
            return max(one, other, key=lambda kind: _DIGITS[kind.name])
        a, b = one.as_decimal(), other.as_decimal()
        scale = max(a.scale, b.scale)
        return decimal(max(a.precision - a.scale, b.precision - b.scale) + scale, scale)
    moments = {DATE: 0, TIMESTAMP: 1, TIMESTAMPTZ: 2}
    if one in moments and other in moments:
        return max(one, other, key=lambda kind: moments[kind])
    if TEXT in (one, other):  # a text in quotes takes the other's type
        return other if one == TEXT else one
    return UNKNOWN


def arithmetic(operator: type[exp.Expr], one: Kind, other: Kind) -> Kind:  # noqa: PLR0911 (a rule each)
    """Return the kind of a sum, a difference, a product, a quotient or a remainder."""
    if not (one.is_number and other.is_number):
        return _of_moments(operator, one, other)
    if FLOAT in (one, other):
        return FLOAT
    if one.is_whole and other.is_whole:
        return common((one, other))
    a, b = one.as_decimal(), other.as_decimal()
    if operator is exp.Mul:
        return decimal(a.precision + b.precision + 1, a.scale + b.scale)
    if operator is exp.Div:
        return quotient(a, b)
    if operator is exp.Mod:
        return common((a, b))
    scale = max(a.scale, b.scale)
    return decimal(max(a.precision - a.scale, b.precision - b.scale) + 1 + scale, scale)


def quotient(one: Kind, other: Kind) -> Kind:
    """Return the kind of a quotient of two DECIMALs."""
    scale = max(4, one.scale + other.precision - other.scale + 1)
    precision = one.precision - one.scale + other.scale + scale
    if precision > DIGITS_MAX:
        scale = max(DIGITS_MAX + scale - precision, 4)
    return decimal(precision, scale)


def _of_moments(operator: type[exp.Expr], one: Kind, other: Kind) -> Kind:
    moments = (DATE, TIMESTAMP, TIMESTAMPTZ)
    if operator is exp.Sub and one in moments and other in moments:
        return INT8 if (one, other) == (DATE, DATE) else INTERVAL
    if one in moments and (other.is_whole or other == INTERVAL):
        return TIMESTAMP if (one, other) == (DATE, INTERVAL) else one
    if operator is exp.Add and other in moments and one not in moments:
        return _of_moments(operator, other, one)
    if NOTHING in (one, other):
        return common((one, other))
    if INTERVAL in (one, other):
        return INTERVAL
    return UNKNOWN


def of_sum(kind: Kind) -> Kind:
    """Return the kind of a SUM."""
    if kind in (INT2, INT4):
        return INT8
    if kind == INT8:
        return decimal(*SUM_OF_BIGINTS)
    return decimal(DIGITS_MAX, kind.scale) if kind.name == "decimal" else kind


def of_average(kind: Kind) -> Kind:
    """Return the kind of an AVG: of whole numbers it is one."""
    if kind.is_whole:
        return INT8
    return decimal(DIGITS_MAX, kind.scale) if kind.name == "decimal" else kind


def first(kinds: Sequence[Kind]) -> Kind:
    """Return the first of some kinds; UNKNOWN if there is none."""
    return kinds[0] if kinds else UNKNOWN
