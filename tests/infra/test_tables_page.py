"""docs/tables.md has each table of the template, with its keys, its indexes and what these project."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.template import resources

PAGE = Path(__file__).parents[2] / "docs" / "tables.md"


def keys_of(schema: Any) -> str:
    return ", ".join(f"`{key['AttributeName']}`" for key in schema)


def projection_of(index: Any) -> str:
    projection = index["Projection"]
    more = projection.get("NonKeyAttributes")
    return ", ".join(f"`{name}`" for name in more) if more else projection["ProjectionType"]


def rows() -> Iterator[list[str]]:
    """Yield the rows of the page's table: table, index, key, what an index projects, and what ends items."""
    for name, table in resources("AWS::DynamoDB::Table").items():
        properties = table["Properties"]
        ttl = properties.get("TimeToLiveSpecification", {}).get("AttributeName")
        yield [name, "", keys_of(properties["KeySchema"]), "", f"`{ttl}`" if ttl else ""]
        indexes = properties.get("GlobalSecondaryIndexes", [])
        if isinstance(indexes, dict):  # IdempotencyIndex, which a parameter asks for
            indexes = indexes["Fn::If"][1]
        for index in indexes:
            yield ["", index["IndexName"], keys_of(index["KeySchema"]), projection_of(index), ""]


def test_the_page_has_the_tables_of_the_template() -> None:
    lines = PAGE.read_text(encoding="utf-8").partition("|---|---|---|---|---|\n")[2].partition("\n\n")[0]
    assert [[cell.strip() for cell in line.strip("|").split("|")] for line in lines.splitlines()] == list(
        rows()
    )
