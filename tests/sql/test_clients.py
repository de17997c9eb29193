"""redshift_connector and awswrangler, as an analyst uses them, against PostgreSQL."""

from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pytest
import redshift_connector.error

from analytics.warehouse import redshift_client
from analytics.warehouse.ddl import prepare
from tests.sql.conftest import Lake
from tests.support.redshift_wire import filtering


@pytest.fixture
def session(lake: Lake) -> Iterator[Any]:
    prepare(lake.redshift)
    host = lake.dsn.partition("host=")[2]
    name = lake.dsn.partition("@/")[2].partition("?")[0]
    with (
        filtering(f"{host}/.s.PGSQL.5432") as port,
        redshift_client.connect(
            "127.0.0.1", name, port=port, ssl=False, user="postgres", password="x"
        ) as connection,
    ):
        yield connection


def test_a_session_reads_and_writes(session: Any) -> None:
    cursor = session.cursor()
    cursor.execute(
        "INSERT INTO lake.curation VALUES (%s, %s, 'day', 5, 4, 1, 0)", ("events", date(2026, 1, 31))
    )
    session.commit()
    cursor.execute("SELECT entity, dt, rows_in FROM lake.curation")
    assert cursor.fetchall() == (["events", date(2026, 1, 31), 5],)


def test_upsert_replaces_by_key_and_can_be_repeated(session: Any) -> None:
    first = pd.DataFrame({"user_id": ["a", "o'b"], "segment": ["new", "old"], "score": [0.5, 1.5]})
    second = pd.DataFrame({"user_id": ["o'b", "c"], "segment": ["gold", "new"], "score": [2.5, 3.5]})
    for frame in (first, second, second):
        redshift_client.upsert(session, frame, "marts.segments", ["user_id"])
    cursor = session.cursor()
    cursor.execute("SELECT user_id, segment, score FROM marts.segments ORDER BY user_id")
    assert list(cursor.fetchall()) == [["a", "new", 0.5], ["c", "new", 3.5], ["o'b", "gold", 2.5]]


VALUES_OF_PANDAS = {
    "category": pd.Categorical(["new", None]),
    "category of numbers": pd.Categorical([3, 7]),
    "category of dates": pd.Categorical([date(2026, 1, 31), None]),
    "category of instants": pd.Categorical(pd.to_datetime(["2026-01-31 12:00", None], utc=True)),
    "category of truths": pd.Categorical([True, None]),
    "category of decimals": pd.Categorical([Decimal("1.50"), None]),
    "ordered category": pd.Categorical(["b", "a"], categories=["z", "b", "a"], ordered=True),
    "string": pd.array(["x", None], dtype="string"),
    "string view of Arrow": pd.array(["x", None], dtype=pd.ArrowDtype(pa.string_view())),
    "objects": pd.Series([Decimal("1.50"), None], dtype=object),
    "small fractions": pd.array([0.5, None], dtype="Float32"),
    "large whole numbers": pd.array([2**63 - 1, 1], dtype="uint64"),
    "Arrow's dictionary of large strings": pd.array(
        ["x", None], dtype=pd.ArrowDtype(pa.dictionary(pa.int8(), pa.large_string()))
    ),
    "string of Arrow": pd.array(["x", None], dtype="string[pyarrow]"),
    "large string of Arrow": pd.array(["x", None], dtype=pd.ArrowDtype(pa.large_string())),
    "Int64": pd.array([1, None], dtype="Int64"),
    "Float64": pd.array([0.5, None], dtype="Float64"),
    "boolean": pd.array([True, None], dtype="boolean"),
    "datetime": pd.to_datetime(["2026-01-31 12:00", None]),
    "datetime with zone": pd.to_datetime(["2026-01-31 12:00", None], utc=True),
    "datetime elsewhere": pd.to_datetime(["2026-01-31 12:00", None]).tz_localize("Europe/Berlin"),
    "Arrow's date": pd.array([date(2026, 1, 31), None], dtype=pd.ArrowDtype(pa.date32())),
    "Arrow's decimal": pd.array([Decimal("1.50"), None], dtype=pd.ArrowDtype(pa.decimal128(9, 2))),
    "Arrow's dictionary": pd.array(["x", None], dtype=pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))),
    "small whole numbers": pd.array([1, 2], dtype="int8"),
    "no signs": pd.array([1, 2], dtype="uint16"),
}


@pytest.mark.parametrize("kind", VALUES_OF_PANDAS)
def test_each_type_of_pandas_is_upserted_again_as_the_first_time(session: Any, kind: str) -> None:
    frame = pd.DataFrame({"user_id": ["a", "b"], "value": VALUES_OF_PANDAS[kind]})
    stored = []
    for _ in range(2):
        redshift_client.upsert(session, frame, "marts.kinds", ["user_id"])
        cursor = session.cursor()
        cursor.execute("SELECT user_id, value FROM marts.kinds ORDER BY user_id")
        stored.append(cursor.fetchall())
    assert stored[0] == stored[1]
    assert [user for user, _ in stored[0]] == ["a", "b"]
    assert [value is None for _, value in stored[0]] == list(frame["value"].isna())
    if "elsewhere" in kind:
        assert stored[0][0][1].isoformat().startswith("2026-01-31T11:00:00")


@pytest.mark.parametrize(
    "values",
    [
        pd.period_range("2026-01", periods=2, freq="M"),
        pd.interval_range(0, 2),
        pd.to_timedelta(["1 day", "2 days"]),
    ],
)
def test_a_type_that_no_column_has_is_refused_the_first_time_too(session: Any, values: Any) -> None:
    frame = pd.DataFrame({"user_id": ["a", "b"], "value": values})
    with pytest.raises(ValueError, match=r"value: .*no column of Redshift"):
        redshift_client.upsert(session, frame, "marts.kinds", ["user_id"])


def test_a_key_that_stands_twice_is_refused(session: Any) -> None:
    frame = pd.DataFrame({"user_id": ["a", "a"], "score": [1, 2]})
    with pytest.raises(ValueError, match="user_id stand twice"):
        redshift_client.upsert(session, frame, "marts.segments", ["user_id"])


def orders(**columns: Any) -> Any:
    return pd.DataFrame(
        {"user_id": ["a", "b"], "orders": [3, 4], "returns": [1, 0], "note": ["x", None]} | columns
    )


def told(session: Any) -> list[Any]:
    cursor = session.cursor()
    cursor.execute("SELECT user_id, orders, returns, note FROM marts.orders ORDER BY user_id")
    return list(cursor.fetchall())


BEFORE = [["a", 3, 1, "x"], ["b", 4, 0, None]]


def test_columns_go_by_their_names(session: Any) -> None:
    redshift_client.upsert(session, orders(), "marts.orders", ["user_id"])
    turned = orders(orders=[5, 6], returns=[2, 7])[["note", "returns", "user_id", "orders"]]
    redshift_client.upsert(session, turned, "marts.orders", ["user_id"])
    assert told(session) == [["a", 5, 2, "x"], ["b", 6, 7, None]]
    loud = turned.rename(columns=str.upper)
    redshift_client.upsert(session, loud, "marts.orders", ["USER_ID"])
    assert told(session) == [["a", 5, 2, "x"], ["b", 6, 7, None]]


def test_a_table_goes_by_its_name_in_any_case(session: Any) -> None:
    """Redshift writes every name in small letters, also a quoted one. So no other table has this name."""
    redshift_client.upsert(session, orders(), "marts.orders", ["user_id"])
    redshift_client.upsert(session, orders(orders=[5, 6]), "MARTS.Orders", ["user_id"])
    assert told(session) == [["a", 5, 1, "x"], ["b", 6, 0, None]]
    for name in ('marts."Orders"', '"marts.orders"', "orders", "db.marts.orders", ".orders", "marts."):
        with pytest.raises(ValueError, match=r"is no schema\.table"):
            redshift_client.upsert(session, orders(), name, ["user_id"])


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (orders().drop(columns="returns"), "returns: the frame has no such column"),
        (orders(more=[1, 2]), "more: the table has no such column"),
        (orders(orders=[1.5, 2.0]), "orders: .* the column is bigint"),
        (orders(orders=[2.0**63, 2.0]), "orders: .* the column is bigint"),
        (orders(orders=["many", "few"]), "orders: .* the column is bigint"),
        (orders(orders=[1, "few"]), "orders: its values are of several types"),
        (orders(note=["x" * 257, "y"]), "note: a text has 257 bytes, and the column takes 256"),
        (orders(note=["é" * 129, "y"]), "note: a text has 258 bytes"),
        (orders(note=[1, 2]), "note: these are int64, and the column has texts"),
        (orders(user_id=["a", None]), "user_id: a key is empty"),
        (pd.concat([orders(), orders()[["note"]]], axis=1), "note: a column of this name stands twice"),
    ],
)
def test_what_would_change_a_value_is_told_and_nothing_is_written(
    session: Any, frame: Any, said: str
) -> None:
    redshift_client.upsert(session, orders(), "marts.orders", ["user_id"])
    with pytest.raises(ValueError, match=said):
        redshift_client.upsert(session, frame, "marts.orders", ["user_id"])
    assert told(session) == BEFORE


def test_a_date_keeps_no_time_of_day(session: Any) -> None:
    redshift_client.upsert(session, orders(since=[date(2026, 3, 1)] * 2), "marts.orders", ["user_id"])
    timed = orders(since=[datetime(2026, 3, 1, 13, 5)] * 2)  # noqa: DTZ001 (UTC, as all of the warehouse)
    with pytest.raises(ValueError, match="since: the column, date, would change a value"):
        redshift_client.upsert(session, timed, "marts.orders", ["user_id"])
    midnight = orders(since=[datetime(2026, 3, 2)] * 2)  # noqa: DTZ001
    redshift_client.upsert(session, midnight, "marts.orders", ["user_id"])
    cursor = session.cursor()
    cursor.execute("SELECT DISTINCT since FROM marts.orders")
    assert list(cursor.fetchall()) == [[date(2026, 3, 2)]]


def test_what_fits_is_written(session: Any) -> None:
    redshift_client.upsert(session, orders(), "marts.orders", ["user_id"])
    holes = orders(orders=[3.0, None], note=[None, None])
    redshift_client.upsert(session, holes, "marts.orders", ["user_id"])
    assert told(session) == [["a", 3, 1, None], ["b", None, 0, None]]


def test_long_texts_and_empty_columns_of_a_new_table(session: Any) -> None:
    long = orders(note=["x" * 3000, None], since=[None, None])
    with pytest.raises(ValueError, match="note: a text has 3000 bytes, over 256: text_bytes=3000"):
        redshift_client.upsert(session, long, "marts.orders", ["user_id"], types={"since": "DATE"})
    with pytest.raises(ValueError, match="since: it holds nothing"):
        redshift_client.upsert(session, long, "marts.orders", ["user_id"], text_bytes=3000)
    for _ in range(2):
        redshift_client.upsert(
            session, long, "marts.orders", ["user_id"], text_bytes=3000, types={"since": "DATE"}
        )
    assert [len(row[3] or "") for row in told(session)] == [3000, 0]


def test_decimals_keep_their_digits(session: Any) -> None:
    session.cursor().execute("CREATE TABLE marts.money (user_id VARCHAR(9), amount DECIMAL(9, 2))")
    session.commit()
    for amount in (Decimal("1.25"), 0.1, 7):
        frame = pd.DataFrame({"user_id": ["a"], "amount": [amount]})
        redshift_client.upsert(session, frame, "marts.money", ["user_id"])
        cursor = session.cursor()
        cursor.execute("SELECT amount FROM marts.money")
        assert cursor.fetchall() == ([Decimal(str(amount)).quantize(Decimal("0.01"))],)
    for amount in (Decimal("1.255"), 1.005, 10.0**9):
        frame = pd.DataFrame({"user_id": ["a"], "amount": [amount]})
        with pytest.raises(ValueError, match="amount: "):
            redshift_client.upsert(session, frame, "marts.money", ["user_id"])


def test_what_is_not_committed_is_gone(lake: Lake, session: Any) -> None:
    session.cursor().execute("INSERT INTO lake.curation VALUES ('events', '2026-01-31', 'day', 5, 4, 1, 0)")
    session.rollback()
    assert lake.redshift.rows("SELECT 1 AS a FROM lake.curation") == []


def test_identity_comes_from_aws(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}

    def refuse(**options: Any) -> Any:
        asked.update(options)
        raise redshift_connector.error.InterfaceError("no network here")

    monkeypatch.setattr(redshift_connector, "connect", refuse)
    host = "wg.123456789012.eu-west-1.redshift-serverless.amazonaws.com"
    with (
        pytest.raises(redshift_connector.error.InterfaceError),
        redshift_client.connect(host, "dev", workgroup="wg", region="eu-west-1"),
    ):
        pass
    assert asked["iam"] is asked["is_serverless"] is asked["ssl"] is True
    assert (asked["serverless_work_group"], asked["port"]) == ("wg", 5439)
