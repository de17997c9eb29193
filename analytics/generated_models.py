"""Writes every file under sql/ that follows from a declaration in rules/. `make models` runs it.

Example: sql/models/dimensions/event_types.sql follows from rules/book/shipped.json. `make check` fails
while one of these files is stale.
"""

from collections.abc import Iterator
from pathlib import Path

from adapters.book.shipped import shipped_version
from analytics.features.feature_sql import GENERATED
from analytics.warehouse.ddl import SQL
from analytics.warehouse.staging_sql import STAGING, model_sql, model_yml

MODELS = SQL / "models"
_EVENT_TYPES = """-- Generated from rules/book/shipped.json by `make models`.
-- Each event type of the rule table, and each that left the table but that older events still carry.
WITH rules AS (
    {rules}
),
seen AS (
    SELECT DISTINCT event_type FROM facts.event_totals
)
SELECT
    COALESCE(rules.event_type, seen.event_type) AS event_type,
    rules.points,
    rules.daily_cap,
    CASE WHEN rules.event_type IS NULL THEN FALSE ELSE TRUE END AS is_current
FROM rules
FULL OUTER JOIN seen ON seen.event_type = rules.event_type
"""


def event_types_sql() -> str:
    """Return the SQL of the dimension of event types, with the table of points written into it as rows."""
    types = sorted(shipped_version().book.event_types.items())
    rows = [f"'{name}', {rule.points}, {rule.cap_points}" for name, rule in types]
    name, points, daily_cap = rows[0].split(", ")
    first = f"SELECT {name} AS event_type, {points} AS points, {daily_cap} AS daily_cap"
    return _EVENT_TYPES.format(rules="\n    UNION ALL SELECT ".join([first, *rows[1:]]))


def generated() -> Iterator[tuple[Path, str]]:
    """Yield each file that follows from a declaration, with the text that it must have."""
    yield MODELS / "dimensions" / "event_types.sql", event_types_sql()
    for name, staging in STAGING.items():
        about = MODELS / "staging" / f"{name}.yml"
        yield about.with_suffix(".sql"), model_sql(staging)
        yield about, model_yml(staging, about.read_text(encoding="utf-8"))
    for name, text in GENERATED.items():
        yield MODELS / "marts" / f"{name}.sql", text()


def main() -> None:
    """Write all generated files."""
    for path, text in generated():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
