"""Writes every file under sql/ that follows from a declaration in rules/. `make models` runs it.

Example: sql/models/staging/rule_book.sql follows from rules/book/shipped.json, and the page sql/lake.md,
which lists every entity of the lake with its columns for analysts, from rules/lake. `make check` fails while
one of these files is stale.
"""

from collections.abc import Iterator
from pathlib import Path

from analytics.features.feature_models import GENERATED
from analytics.warehouse.ddl import SQL
from analytics.warehouse.lake_page import lake_page
from analytics.warehouse.rule_book_model import rule_book_sql

MODELS = SQL / "models"


def generated_files() -> Iterator[tuple[Path, str]]:
    """Yield each file that follows from a declaration, with the text that it must have."""
    yield MODELS / "staging" / "rule_book.sql", rule_book_sql()
    page = SQL / "lake.md"
    yield page, lake_page(page.read_text(encoding="utf-8"))
    for name, text in GENERATED.items():
        yield MODELS / "marts" / f"{name}.sql", text()


def main() -> None:
    """Write all generated files."""
    for path, text in generated_files():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
