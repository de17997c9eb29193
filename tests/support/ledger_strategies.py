"""Drafts, heads and clocks of the ledger, for property tests."""

from datetime import UTC, datetime
from uuid import UUID

from hypothesis import strategies as st

from rules.book.book import TYPE_NAME
from rules.days import stamp
from rules.engagement.ledger import Draft, EntryKind, Head


def earn(points: int, number: int = 0, event_type: str = "CHECK_IN") -> Draft:
    event_id = f"2026-06-01T00:00:00Z#{UUID(int=number)}"
    return Draft(EntryKind.EARN, points, event_id, event_type, "2026-06-01")


types = st.from_regex(TYPE_NAME, fullmatch=True)
drafts = st.lists(
    st.one_of(
        st.builds(earn, st.integers(0, 250), st.integers(0, 99)),
        st.builds(earn, st.integers(0, 250), st.integers(0, 99), types),
        st.builds(Draft, st.just(EntryKind.REDEEM), st.integers(-300, 0), reward_id=st.just("mug")),
        st.builds(
            Draft,
            st.just(EntryKind.REDEEM),
            st.integers(-300, -1),
            reward_id=st.just("tea"),
            rules_version=st.integers(1, 3),
            brand=st.sampled_from(["acme", "b"]),
        ),
        st.builds(Draft, st.just(EntryKind.ADJUST), st.just(0), freeze_date=st.just("2026-06-01")),
    ),
    max_size=40,
)
earns = st.lists(st.builds(earn, st.integers(0, 250), st.integers(0, 99)), min_size=1, max_size=40)
clocks = st.datetimes(datetime(1990, 1, 1), datetime(2035, 12, 31), timezones=st.just(UTC))  # noqa: DTZ001
heads = st.one_of(st.none(), st.builds(Head, clocks.map(stamp), st.integers(0, 10**6), st.integers(0, 10**9)))
