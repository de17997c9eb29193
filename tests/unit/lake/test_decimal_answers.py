"""The types of decimal numbers in answers of AWS's engines: as declared, else wide enough for all pages."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import awswrangler
import pyarrow as pa
import pytest

from local.analyst import aws_engines
from local.analyst.output import Answer, decimal_type


def paginator(pages: Iterable[Any]) -> Any:
    return SimpleNamespace(paginate=lambda **_: pages)


def by_data_api(
    pages: Iterable[Sequence[str | None]], digits: int, scale: int
) -> AbstractContextManager[Answer]:
    column = {"name": "a", "typeName": "numeric", "precision": digits, "scale": scale}
    answers = (
        {
            "ColumnMetadata": [column],
            "Records": [[{"isNull": True} if value is None else {"stringValue": value}] for value in page],
        }
        for page in pages
    )
    client = SimpleNamespace(
        execute_statement=lambda **_: {"Id": "1"},
        describe_statement=lambda **_: {"Status": "FINISHED"},
        get_paginator=lambda _: paginator(answers),
    )
    return aws_engines.by_data_api(client, "workgroup", "dev", "SELECT", print)


def by_laptops_athena(
    pages: Iterable[Sequence[str | None]], monkeypatch: pytest.MonkeyPatch
) -> AbstractContextManager[Answer]:
    """The laptop's Athena calls every decimal number DECIMAL(38, 0)."""
    column = {"Name": "a", "Type": "decimal", "Precision": 38, "Scale": 0}
    rows = [
        [{"Data": [{} if value is None else {"VarCharValue": value}]} for value in page] for page in pages
    ]
    rows[0].insert(0, {"Data": [{"VarCharValue": "a"}]})
    metadata = {"ColumnInfo": [column]}
    answers = [{"ResultSet": {"ResultSetMetadata": metadata, "Rows": page}} for page in rows]
    stack = SimpleNamespace(
        is_laptop=True,
        endpoint_url="http://127.0.0.1:1",
        region="us-east-1",
        output=lambda name, _: name,
        client=lambda _: SimpleNamespace(get_paginator=lambda _: paginator(answers)),
    )
    athena = awswrangler.athena
    monkeypatch.setattr(athena, "start_query_execution", lambda *_, **__: "1")
    monkeypatch.setattr(athena, "get_query_execution", lambda *_, **__: {"Status": {"State": "SUCCEEDED"}})
    return aws_engines.by_athena(stack, "SELECT", print)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("digits", "scale", "values", "wanted"),
    [
        (12, 2, ["1.50", None], pa.decimal128(12, 2)),
        (12, 2, [], pa.decimal128(12, 2)),
        (0, 0, [None, "1.5", "-20.125"], pa.decimal128(38, 3)),
        (0, 0, ["1E-7"], pa.decimal128(38, 7)),
        (0, 0, [Decimal("1.5E-7")], pa.decimal128(38, 8)),
        (0, 0, ["0E-10", "1E+3"], pa.decimal128(38, 10)),
        (0, 0, ["1E+3", Decimal("NaN")], pa.decimal128(38, 0)),
        (4, 0, ["0.123456"], pa.decimal128(38, 6)),
    ],
)
def test_a_type_is_as_declared_unless_a_value_needs_more(
    digits: int, scale: int, values: list[Any], wanted: pa.DataType
) -> None:
    assert decimal_type(digits, scale, values) == wanted


PAGES: list[list[str | None]] = [["1", None], ["0.5"], ["1E-7", "-3.25"]]
VALUES = [Decimal(1), None, Decimal("0.5"), Decimal("1E-7"), Decimal("-3.25")]


def test_a_later_page_with_more_decimals_widens_a_type_that_is_not_declared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for way in (by_data_api(PAGES, 0, 0), by_laptops_athena(PAGES, monkeypatch)):
        with way as answer:
            assert answer.table().column("a").to_pylist() == VALUES
            assert answer.schema.field("a").type == pa.decimal128(38, 7)


def test_a_page_of_a_declared_type_does_not_wait_for_the_next() -> None:
    def pages() -> Iterator[list[str | None]]:
        yield ["1.50"]
        raise AssertionError("the second page was read")

    with by_data_api(pages(), 12, 2) as answer:
        assert answer.schema.field("a").type == pa.decimal128(12, 2)
        assert next(answer.batches).column("a").to_pylist() == [Decimal("1.50")]
