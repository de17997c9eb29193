"""The declaration of a function of Redshift, and a call of one as the function's builder gets it."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from analytics.warehouse.dialect.formats import date_part
from analytics.warehouse.dialect.kinds import DATE, INTERVAL, TIME, TIMESTAMP, TIMESTAMPTZ, Kind
from analytics.warehouse.dialect.parser import NotAsRedshift

MOMENTS = (DATE, TIME, TIMESTAMP, TIMESTAMPTZ)
_TIGHT_DAY = re.compile(r"(\d{4})(\d{2})(\d{2})(?=$|[ T])")  # a date without hyphens
# Zones that mean the same on both engines
_ZONE = re.compile(r"[A-Za-z_]+(/[A-Za-z0-9_+-]+)+|UTC|GMT", re.ASCII)
AnswerKind = Kind | Callable[[Sequence[Kind]], Kind]  # a type, or how it follows from those of the arguments


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
    has_over: bool = False  # whether it may have OVER
    has_nulls: bool = False  # whether it may have IGNORE NULLS


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
