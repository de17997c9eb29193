"""What Redshift refuses, or does otherwise than DuckDB and PostgreSQL: a list, each with AWS's page about it.

No engine of the tests would refuse these statements, so the stand-in for the Data API does (data_api.py): each
statement that any test sends is held against the list. Where telling apart would need Redshift's planner, the
rule is stricter than Redshift. `planted` are statements that break the rule, for the test of the list itself.
"""

from collections.abc import Iterator
from functools import lru_cache

from tests.support import redshift_queries, redshift_tables, redshift_terms
from tests.support.redshift_statement import RULES, Statement

__all__ = [
    "RULES",
    "found",
    "problems",
    "redshift_queries",
    "redshift_tables",
    "redshift_terms",
]  # each of the three adds its rules


@lru_cache(maxsize=4096)
def found(sql: str) -> tuple[str, ...]:
    """What of the list a statement breaks: the rule's name and the place."""
    statement = Statement(sql)
    return tuple(f"{each.name}: {place}" for each in RULES for place in each.find(statement))


def problems(sql: str) -> Iterator[str]:
    return iter(found(sql))
