"""The lake's tables are those that rules.lake.entities declares, also after it has grown."""

from decimal import Decimal

import pytest

from analytics.warehouse import ddl
from analytics.warehouse.ddl import Column, Table, declared_tables, prepare
from tests.sql.conftest import Lake


def test_prepared_twice_changes_nothing(lake: Lake) -> None:
    for warehouse in lake.warehouses:
        prepare(warehouse)
        assert prepare(warehouse) == []


def test_missing_columns_are_added_and_narrow_ones_widened(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = "CREATE TABLE IF NOT EXISTS lake.t (a BIGINT NOT NULL ENCODE AZ64, b BIGINT, c VARCHAR(4))"
    grown = Table(
        "t",
        (Column("a", "BIGINT"), Column("b", "VARCHAR(64)"), Column("c", "VARCHAR(64)"), Column("d", "DATE")),
        "CREATE TABLE IF NOT EXISTS lake.t (a BIGINT, b VARCHAR(64), c VARCHAR(64), d DATE)",
    )
    builds = ddl.declared_tables()["builds"]
    monkeypatch.setattr(ddl, "declared_tables", lambda *_: {"t": grown, "builds": builds})
    for warehouse in lake.warehouses:
        warehouse.run(["CREATE SCHEMA lake", small, "INSERT INTO lake.t VALUES (1, 2, 'é')"])
        changes = prepare(warehouse)
        assert changes[0].startswith("CREATE TABLE lake.t__wide")
        assert warehouse.rows("SELECT a, b, c, d FROM lake.t") == [{"a": 1, "b": "2", "c": "é", "d": None}]
        assert prepare(warehouse) == []


def test_decimals_keep_their_digits_in_a_table_that_is_made_anew(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = (Column("a", "VARCHAR(64)"), Column("b", "DECIMAL(18, 2)"))
    grown = Table("t", columns, "CREATE TABLE IF NOT EXISTS lake.t (a VARCHAR(64), b DECIMAL(18, 2))")
    builds = ddl.declared_tables()["builds"]
    monkeypatch.setattr(ddl, "declared_tables", lambda *_: {"t": grown, "builds": builds})
    for warehouse in lake.warehouses:
        old = "CREATE TABLE lake.t (a BIGINT, b DECIMAL(18, 2), former DECIMAL(10, 4))"
        warehouse.run(["CREATE SCHEMA lake", old, "INSERT INTO lake.t VALUES (1, 2.25, 3.1234)"])
        assert prepare(warehouse)[0].startswith("CREATE TABLE lake.t__wide")
        (row,) = warehouse.rows("SELECT a, b, former FROM lake.t")
        assert (row["a"], row["b"], row["former"]) == ("1", Decimal("2.25"), Decimal("3.1234"))
        assert prepare(warehouse) == []


@pytest.mark.parametrize("wide", ["DECIMAL(20, 2)", "DECIMAL(19, 3)"])
def test_a_decimal_column_is_widened_before_and_behind_the_point_and_never_narrowed(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, wide: str
) -> None:
    builds = ddl.declared_tables()["builds"]
    for warehouse in lake.warehouses:
        warehouse.run(["CREATE SCHEMA lake", "CREATE TABLE lake.t (a DECIMAL(18, 2))"])
        for declared, is_changed in ((wide, True), ("DECIMAL(9, 2)", False)):
            grown = Table("t", (Column("a", declared),), f"CREATE TABLE IF NOT EXISTS lake.t (a {declared})")
            monkeypatch.setattr(
                ddl, "declared_tables", lambda *_, grown=grown: {"t": grown, "builds": builds}
            )
            assert bool(prepare(warehouse)) is is_changed
            assert prepare(warehouse) == []


@pytest.mark.parametrize("other", ["BIGINT", "VARCHAR(64)"])
def test_no_digit_behind_the_point_is_lost_where_a_column_is_declared_with_fewer(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    """Also where another column's new type makes the table anew."""
    columns = (Column("a", "DECIMAL(18)"), Column("b", "DECIMAL(16, 2)"), Column("c", other))
    listed = ", ".join(f"{column.name} {column.type}" for column in columns)
    narrow = Table("t", columns, f"CREATE TABLE IF NOT EXISTS lake.t ({listed})")
    builds = ddl.declared_tables()["builds"]
    monkeypatch.setattr(ddl, "declared_tables", lambda *_: {"t": narrow, "builds": builds})
    for warehouse in lake.warehouses:
        old = "CREATE TABLE lake.t (a DECIMAL(18, 0), b DECIMAL(18, 4), c BIGINT)"
        warehouse.run(["CREATE SCHEMA lake", old, "INSERT INTO lake.t VALUES (1, 2.2525, 3)"])
        assert bool(prepare(warehouse)) is (other != "BIGINT")
        (row,) = warehouse.rows("SELECT a, b FROM lake.t")
        assert (row["a"], row["b"]) == (Decimal(1), Decimal("2.2525"))
        assert prepare(warehouse) == []


@pytest.mark.parametrize("former", ["DECIMAL(18, 0)", "DECIMAL(38, 0)"])
def test_a_decimal_column_that_is_declared_with_more_behind_the_point_and_fewer_before_it_keeps_both(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, former: str
) -> None:
    columns = (Column("a", "DECIMAL(18, 2)"),)
    crossed = Table("t", columns, "CREATE TABLE IF NOT EXISTS lake.t (a DECIMAL(18, 2))")
    builds = ddl.declared_tables()["builds"]
    monkeypatch.setattr(ddl, "declared_tables", lambda *_: {"t": crossed, "builds": builds})
    largest = Decimal(10**18 - 1)
    for warehouse in lake.warehouses:
        old = f"CREATE TABLE lake.t (a {former})"
        warehouse.run(["CREATE SCHEMA lake", old, f"INSERT INTO lake.t VALUES ({largest})"])
        prepare(warehouse)
        warehouse.run(["INSERT INTO lake.t VALUES (1.25)"])
        rows = warehouse.rows("SELECT a FROM lake.t ORDER BY a")
        assert [row["a"] for row in rows] == [Decimal("1.25"), largest]
        assert prepare(warehouse) == []


def test_more_changes_than_one_transaction_takes(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three columns are new, and 41 tables."""
    columns = tuple(Column(f"a{number}", "VARCHAR(64)") for number in range(4))
    listed = ", ".join(f"{each.name} {each.type}" for each in columns)
    tables = {"t": Table("t", columns, f"CREATE TABLE IF NOT EXISTS lake.t ({listed})")}
    tables |= {
        f"t{number}": Table("t", (), f"CREATE TABLE IF NOT EXISTS lake.t{number} (a INT)")
        for number in range(40)
    }
    monkeypatch.setattr(ddl, "declared_tables", lambda *_: tables | {"builds": declared_tables()["builds"]})
    for warehouse in lake.warehouses:
        small = "CREATE TABLE lake.t (a0 VARCHAR(64))"
        warehouse.run(["CREATE SCHEMA lake", small, "INSERT INTO lake.t VALUES ('kept')"])
        assert len(prepare(warehouse)) == 3
        (row,) = warehouse.rows("SELECT * FROM lake.t")
        assert (row["a0"], row["a3"]) == ("kept", None)
        assert prepare(warehouse) == []


def test_a_column_is_widened_by_making_the_table_anew(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Redshift does not drop a column that it spreads or sorts by; the stand-in refuses it as Redshift does."""
    old = "CREATE TABLE lake.t (a VARCHAR(4) NOT NULL, b BIGINT, former VARCHAR(8)) DISTSTYLE KEY DISTKEY (a)"
    sql = """CREATE TABLE IF NOT EXISTS lake.t (a VARCHAR(64) NOT NULL ENCODE ZSTD, b BIGINT ENCODE AZ64,
    c DATE NOT NULL ENCODE AZ64, PRIMARY KEY (a)) DISTSTYLE KEY DISTKEY (a) COMPOUND SORTKEY (b)"""
    columns = (Column("a", "VARCHAR(64)"), Column("b", "BIGINT"), Column("c", "DATE"))
    monkeypatch.setattr(ddl, "declared_tables", lambda *_: {"t": Table("t", columns, sql)})
    for warehouse in lake.warehouses:
        warehouse.run(
            [
                "CREATE SCHEMA lake",
                "CREATE TABLE lake.builds (model VARCHAR(8))",
                old,
                "INSERT INTO lake.t VALUES ('é', 2, 'kept')",
            ]
        )
        if warehouse is lake.duck:  # its texts have no length
            found = ddl._COLUMNS.replace("character_maximum_length", "CASE column_name WHEN 'a' THEN 4 END")
            monkeypatch.setattr(ddl, "_COLUMNS", found)
        changes = prepare(warehouse)
        assert changes[0].startswith("CREATE TABLE lake.t__wide")
        assert "DISTKEY" in changes[0] and "ENCODE ZSTD" in changes[0]
        assert warehouse.rows("SELECT a, b, c, former FROM lake.t") == [
            {"a": "é", "b": 2, "c": None, "former": "kept"}
        ]
        monkeypatch.undo()
        monkeypatch.setattr(ddl, "declared_tables", lambda *_: {"t": Table("t", columns, sql)})
        assert prepare(warehouse) == []
