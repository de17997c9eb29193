"""Rule 6: the ledger is append-only, with a running balance, one active head and increasing times."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.days import stamp, unstamp
from rules.engagement.ledger import (
    OPENED_AT,
    Draft,
    Entry,
    EntryKind,
    Head,
    InsufficientBalance,
    append_drafts,
)
from tests.support.ledger_strategies import clocks, drafts, earn, earns, heads

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


def test_an_account_is_opened_with_0_before_anything_else() -> None:
    entries = append_drafts("u", None, [earn(10)], NOW)
    assert [(each.account_id, each.seq, each.balance, each.draft) for each in entries] == [
        ("u", 0, 0, Draft(EntryKind.OPEN, 0)),
        ("u", 1, 10, earn(10)),
    ]
    assert entries[0].created_at == OPENED_AT


def test_a_known_account_is_not_opened_again() -> None:
    head = Head(stamp(NOW), 7, 40)
    (entry,) = append_drafts("u", head, [earn(2)], NOW + timedelta(seconds=1))
    assert (entry.seq, entry.balance, entry.created_at) == (8, 42, "2026-06-01T12:00:01.000000Z")


def test_a_writer_whose_clock_is_behind_still_comes_after_the_head() -> None:
    head = Head(stamp(NOW), 7, 40)
    first, second = append_drafts("u", head, [earn(1), earn(1)], NOW - timedelta(days=400))
    assert first.created_at == "2026-06-01T12:00:00.000001Z"
    assert second.created_at == "2026-06-01T12:00:00.000002Z"


@pytest.mark.parametrize(("points", "balance"), [(-100, 0), (-99, 1)])
def test_the_whole_balance_can_be_spent(points: int, balance: int) -> None:
    assert (
        append_drafts("u", Head(stamp(NOW), 1, 100), [Draft(EntryKind.REDEEM, points)], NOW)[0].balance
        == balance
    )


def test_more_than_the_balance_cannot_be_spent() -> None:
    with pytest.raises(InsufficientBalance) as refused:
        append_drafts("u", Head(stamp(NOW), 1, 100), [Draft(EntryKind.REDEEM, -101)], NOW)
    assert (refused.value.balance, refused.value.wanted) == (100, 101)


@given(heads, drafts, clocks, clocks)
def test_the_chain_runs_without_a_gap_whatever_the_clocks_say(
    head: Head | None, wanted: list[Draft], now: datetime, after: datetime
) -> None:
    running = head.balance if head else 0
    affordable = []
    for draft in wanted:
        if running + draft.points >= 0:
            affordable.append(draft)
            running += draft.points
    entries = append_drafts("u", head, affordable, now, after)
    place = head
    for entry in entries:
        if place is not None:
            assert entry.created_at > place.created_at
            assert entry.seq == place.seq + 1
            assert entry.balance == place.balance + entry.draft.points
        assert entry.balance >= 0
        assert stamp(unstamp(entry.created_at)) == entry.created_at
        place = entry.head
    written = [entry for entry in entries if entry.draft.kind is not EntryKind.OPEN]
    assert [entry.draft for entry in written] == affordable
    assert all(entry.created_at > stamp(after) and entry.created_at >= stamp(now) for entry in written)
    assert (place.balance if place else 0) == running


@given(heads, drafts, clocks)
def test_a_balance_below_0_is_refused_and_nothing_else_is(
    head: Head | None, wanted: list[Draft], now: datetime
) -> None:
    balance, lowest = (head.balance if head else 0), 0
    for draft in wanted:
        balance += draft.points
        lowest = min(lowest, balance)
    if lowest < 0:
        with pytest.raises(InsufficientBalance):
            append_drafts("u", head, wanted, now)
    else:
        append_drafts("u", head, wanted, now)


@given(st.lists(st.tuples(clocks, earns), min_size=1, max_size=5))
def test_writers_with_skewed_clocks_make_one_chain(turns: list[tuple[datetime, list[Draft]]]) -> None:
    head: Head | None = None
    chain: list[Entry] = []
    for now, wanted in turns:
        chain += append_drafts("u", head, wanted, now)
        head = chain[-1].head
    assert [entry.seq for entry in chain] == list(range(len(chain)))
    places = [entry.created_at for entry in chain]
    assert places == sorted(set(places))
