"""Shares of users: each user in one, each share in one of half as many."""

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.recompute.settled_users import SHARE
from rules.engagement.reconciliation import SHARES_MAX, enough_shares, share_of, shares_for
from tests.support.examples import examples

DB = duckdb.connect()
counts = st.integers(0, 9).map(lambda power: 2**power)


@given(user=st.text(), shares=counts)
def test_twice_as_many_shares_cut_each_in_two(user: str, shares: int) -> None:
    number = share_of(user, shares)
    assert 0 <= number < shares
    if shares < SHARES_MAX:
        assert share_of(user, 2 * shares) // 2 == number


@settings(max_examples=examples(20))
@given(users=st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1), shares=counts)
def test_sql_gives_the_same_share(users: list[str], shares: int) -> None:
    DB.register("users", pa.table({"name": users}))
    found = DB.execute(f"SELECT {SHARE.format(user='name', shares=shares)} FROM users").fetchall()
    assert [number for (number,) in found] == [share_of(user, shares) for user in users]


@given(parts=st.floats(0, 1000), before=st.none() | counts)
def test_there_are_enough_shares_and_their_number_seldom_changes(parts: float, before: int | None) -> None:
    shares = shares_for(parts, before)
    assert shares in {2**power for power in range(10)}
    assert shares >= min(parts, SHARES_MAX)
    assert shares_for(parts, shares) == shares


@pytest.mark.parametrize(
    ("parts", "before", "shares"),
    [(0, None, 1), (1.0, None, 1), (1.1, None, 2), (5, 16, 16), (4, 16, 4), (17, 16, 32), (10**9, 1, 512)],
)
def test_some_numbers_of_shares(parts: float, before: int | None, shares: int) -> None:
    assert shares_for(parts, before) == shares
    assert enough_shares(parts) <= shares
