"""Each way to a warehouse, as an analyst's query takes it; and queries that are no queries."""

from contextlib import AbstractContextManager
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from analytics.warehouse import redshift_client
from local.analyst import aws_engines
from local.analyst import sql as on_laptop
from local.analyst.output import Answer

if TYPE_CHECKING:
    from tests.sql.conftest import Lake

TYPED = """SELECT CAST(1 AS SMALLINT) AS small, CAST(2147483648 AS BIGINT) AS big, CAST(NULL AS INTEGER) AS nothing,
CAST('12.50' AS DECIMAL(12, 2)) AS money, CAST(0.5 AS DOUBLE PRECISION) AS ratio, TRUE AS yes, CAST('' AS VARCHAR(5)) AS empty,
CAST(NULL AS VARCHAR(5)) AS absent, DATE '2026-01-31' AS day, TIMESTAMP '2026-01-31 23:59:59.123456' AS at, 'é|"x' AS text"""
WANTED = {
    "small": 1,
    "big": 2147483648,
    "nothing": None,
    "money": Decimal("12.50"),
    "ratio": 0.5,
    "yes": True,
    "empty": "",
    "absent": None,
    "day": date(2026, 1, 31),
    "at": datetime(2026, 1, 31, 23, 59, 59, 123456),  # noqa: DTZ001 (UTC, as all timestamps of the warehouse)
    "text": 'é|"x',
}


def silent(_: str) -> None:
    pass


class Engines:
    """Each way to the warehouse, over one story."""

    def __init__(self, lake: "Lake", file: Path, port: int) -> None:
        self.lake, self.file, self.port = lake, file, port
        self.database = lake.dsn.partition("@/")[2].partition("?")[0]

    def duckdb(self, sql: str) -> AbstractContextManager[Answer]:
        return on_laptop.laptop_answer(self.file, sql)

    def data_api(self, sql: str) -> AbstractContextManager[Answer]:
        return aws_engines.by_data_api(self.lake.redshift.data_api, "workgroup", "dev", sql, silent)

    def connected(self) -> AbstractContextManager[Any]:
        return redshift_client.connect(
            "127.0.0.1", self.database, port=self.port, ssl=False, user="postgres", password="x"
        )

    def ways(self) -> dict[str, Any]:
        def driver(sql: str) -> pa.Table:
            with self.connected() as connection, aws_engines.by_driver(connection, sql) as answer:
                return answer.table()

        def reading(way: Any) -> Any:
            def read(sql: str) -> pa.Table:
                with way(sql) as answer:
                    return answer.table()

            return read

        return {"DuckDB": reading(self.duckdb), "Data API": reading(self.data_api), "driver": driver}


def plain(table: pa.Table) -> list[dict[str, Any]]:
    return [
        {name: float(value) if isinstance(value, Decimal) else value for name, value in row.items()}
        for row in table.to_pylist()
    ]


WRITES = [
    "DELETE FROM marts.daily_actives",
    "INSERT INTO lake.builds (model) VALUES ('a')",
    "UPDATE lake.builds SET model = 'a'",
    "MERGE INTO lake.builds USING lake.builds AS b ON lake.builds.model = b.model WHEN MATCHED THEN DELETE",
    "DROP TABLE lake.builds",
    "TRUNCATE lake.builds",
    "CREATE TABLE marts.mine AS SELECT 1 AS a",
    "SELECT model INTO marts.mine FROM lake.builds",
    "WITH gone AS (DELETE FROM lake.builds RETURNING model) SELECT * FROM gone",
    "SELECT 1; DELETE FROM lake.builds",
    "GRANT SELECT ON lake.builds TO PUBLIC",
    "COPY lake.builds FROM 's3://x' IAM_ROLE 'y'",
    "UNLOAD ('SELECT 1') TO 's3://x' IAM_ROLE 'y'",
    "CALL something()",
    "SET search_path TO marts",
    "BEGIN",
    "VACUUM lake.builds",
    "",
]
