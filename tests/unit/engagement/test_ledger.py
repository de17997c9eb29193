"""Rule 6: the ledger is append-only, with a running balance, one active head and increasing times."""

from datetime import UTC, datetime

import pytest
from hypothesis import given

from rules.days import stamp, unstamp
from rules.engagement.ledger import (
    OPENED_AT,
    Draft,
    EntryKind,
    Head,
    InsufficientBalance,
    append_drafts,
)
from tests.support.ledger_strategies import clocks, drafts, earn, heads

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


def test_an_account_is_opened_with_0_before_anything_else() -> None:
    entries = append_drafts("u", None, [earn(10)], NOW)
    assert [(each.account_id, each.seq, each.balance, each.draft) for each in entries] == [
        ("u", 0, 0, Draft(EntryKind.OPEN, 0)),
        ("u", 1, 10, earn(10)),
    ]
    assert entries[0].created_at == OPENED_AT


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
