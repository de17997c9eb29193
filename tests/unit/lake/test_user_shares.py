"""Shares of users: each user is in one, by Python and by SQL."""

import duckdb
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.recompute.user_shares import SHARE
from rules.turns import share_of
from tests.support.examples import examples

DB = duckdb.connect()
counts = st.integers(0, 9).map(lambda power: 2**power)


@given(user=st.text(), shares=counts)
def test_twice_as_many_shares_cut_each_in_two(user: str, shares: int) -> None:
    number = share_of(user, shares)
    assert 0 <= number < shares
    assert share_of(user, 2 * shares) // 2 == number


@settings(max_examples=examples(20))
@given(users=st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1), shares=counts)
def test_sql_gives_the_same_share(users: list[str], shares: int) -> None:
    DB.register("users", pa.table({"name": users}))
    found = DB.execute(f"SELECT {SHARE.format(user='name', shares=shares)} FROM users").fetchall()
    assert [number for (number,) in found] == [share_of(user, shares) for user in users]
