"""The driver and the Data API give the same answers and the same errors to the same work."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from adapters.postgresql.postgres import database
from adapters.postgresql.sql import Database, PostgresRefused, PostgresUnavailable
from tests.support.identity_server import WAYS, Server
from tests.support.rds_data_api import OWNER_SECRET, RdsDataApi

pytestmark = pytest.mark.xdist_group("identity")
NASTY = [
    "",
    " ",
    "a'b",
    'c"d',
    "{e,f}",
    "\\",
    '\\"',
    ":p0",
    "%s",
    "$1",
    "NULL",
    "\u00e9\U0001f600",
    "a\nb;--",
]


@pytest.fixture(params=WAYS)
def owned(request: pytest.FixtureRequest, empty: str) -> Iterator[Database]:
    url = empty
    if request.param == "data_api":
        api: RdsDataApi = request.getfixturevalue("data_api")
        url = api.url(empty.rpartition("/")[2], OWNER_SECRET)
    found = database(url)
    yield found
    found.close()


def ask(owned: Database, statement: str, *values: Any) -> Any:
    return owned.run(lambda each: each.execute(statement, list(values)).fetchone())


def test_text_comes_back_as_it_went(owned: Database) -> None:
    assert [ask(owned, "SELECT %s::text", text) for text in NASTY] == [(text,) for text in NASTY]


def test_lists_json_and_times_come_back_as_they_went(owned: Database) -> None:
    at = datetime(2026, 3, 10, 12, 0, 0, 123456, tzinfo=UTC)
    found = ask(
        owned,
        "SELECT to_jsonb(%s::text[]), to_jsonb(%s::bigint[]), %s::jsonb, to_jsonb(%s::timestamptz), %s::text",
        *(NASTY, [2**40, 0, -1], '{"a": [1, "b", null]}', at, None),
    )
    assert found == (NASTY, [2**40, 0, -1], {"a": [1, "b", None]}, "2026-03-10T12:00:00.123456+00:00", None)


def test_values_have_their_types(owned: Database) -> None:
    found = ask(owned, "SELECT %s::int, %s::bigint, %s::bool, %s::float8, 'x'::text", 7, 2**40, True, 1.5)
    assert found == (7, 2**40, True, 1.5, "x")
    assert ask(owned, "SELECT '{a,b}'::text[], '{1,2}'::bigint[]") == (["a", "b"], [1, 2])


def test_rows_come_one_by_one_or_all(owned: Database) -> None:
    rows = owned.run(lambda each: each.execute("SELECT n FROM generate_series(1, 3) AS n"))
    assert rows.fetchone() == (1,)
    assert rows.fetchall() == [(2,), (3,)]
    assert rows.fetchone() is None


def test_a_transaction_is_kept_whole_or_not_at_all(owned: Database) -> None:
    def work(connection: Any, fails: bool) -> None:
        with connection.transaction():
            connection.execute("CREATE TABLE made (n int)")
            connection.execute("INSERT INTO made VALUES (%s::int)", [1])
            if fails:
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        owned.run(lambda each: work(each, fails=True))
    assert ask(owned, "SELECT to_regclass('made')::text") == (None,)
    owned.run(lambda each: work(each, fails=False))
    assert ask(owned, "SELECT n FROM made") == (1,)


RAISE = "DO $$ BEGIN RAISE EXCEPTION '%%', 'why; not' USING ERRCODE = '{}'; END $$"


@pytest.mark.parametrize("state", ["P0002", "55000", "55UND", "22012", "23514", "42501"])
def test_what_is_refused_says_why_and_by_which_code(owned: Database, state: str) -> None:
    calls: list[int] = []

    def work(connection: Any) -> None:
        calls.append(1)
        connection.execute(RAISE.replace("%%", "%").format(state))

    with pytest.raises(PostgresRefused) as refused:
        owned.run(work)
    assert (refused.value.sqlstate, refused.value.text, len(calls)) == (state, "why; not", 1)


@pytest.mark.parametrize(
    ("state", "count"),
    [("40001", 3), ("40P01", 3), ("53300", 1), ("57014", 1), ("55P03", 1), ("28000", 1), ("58030", 1)],
)
def test_what_may_pass_is_repeated_if_a_race_was_lost(owned: Database, state: str, count: int) -> None:
    calls: list[int] = []

    def work(connection: Any) -> None:
        calls.append(1)
        with connection.transaction():
            connection.execute(RAISE.replace("%%", "%").format(state))

    with pytest.raises(PostgresUnavailable, match="why; not"):
        owned.run(work, attempts=3)
    assert len(calls) == count


def test_work_that_wins_the_second_time_is_done(owned: Database) -> None:
    calls: list[int] = []

    def work(connection: Any) -> Any:
        calls.append(1)
        with connection.transaction():
            if len(calls) == 1:
                connection.execute(RAISE.replace("%%", "%").format("40001"))
            return connection.execute("SELECT 1").fetchone()

    assert owned.run(work) == (1,)


def test_a_password_that_is_not_right_yet_may_pass(
    identity_server: Server, empty: str, data_api: RdsDataApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = empty.rpartition("/")[2]
    monkeypatch.setitem(data_api.secrets, "arn:of-a-wrong-one", ("postgres", "wrong"))
    for url in (
        data_api.url(name, "arn:of-a-wrong-one"),
        data_api.url(name, "arn:no-such-secret"),
        empty.replace(identity_server.passwords["owner"], "wrong"),
    ):
        with pytest.raises(PostgresUnavailable):
            ask(database(url), "SELECT 1")
