"""The ledger's store on moto: conditions, head, repair."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from adapters.engagement.account_items import entry_key
from adapters.engagement.ledger_store import HeadMoved, LedgerStore
from adapters.platform.items import encode_item
from rules.engagement.carriers import split_carriers
from rules.engagement.ledger import Draft, EntryKind, append_drafts

NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
def ledger(dynamodb: Any) -> LedgerStore:
    return LedgerStore(dynamodb, "RewardsLedger")


def earn(number: int) -> Draft:
    event_id = f"2026-03-01T00:00:00Z#{UUID(int=number)}"
    return Draft(EntryKind.EARN, 10, event_id, "CONTRIBUTION", "2026-03-01")


def test_a_new_account_is_opened_once(ledger: LedgerStore) -> None:
    first = append_drafts("a", None, [earn(1)], NOW)
    ledger.append(None, first)
    with pytest.raises(HeadMoved):
        ledger.append(None, append_drafts("a", None, [earn(2)], NOW + timedelta(seconds=1)))
    newest = ledger.newest("a")
    assert newest and newest.created_at == first[-1].created_at


def test_of_two_writers_on_one_head_one_is_told(ledger: LedgerStore) -> None:
    opened = append_drafts("a", None, [earn(1)], NOW)
    ledger.append(None, opened)
    head = opened[-1].head
    ledger.append(head, append_drafts("a", head, [earn(2)], NOW))
    with pytest.raises(HeadMoved):
        ledger.append(head, append_drafts("a", head, [earn(3)], NOW + timedelta(seconds=1)))
    entries, missing = ledger.after("a", "0")
    assert [entry.balance for entry in entries] == [0, 10, 20]
    assert missing == []
    assert [entry.active for entry in entries] == [False, False, True]


def test_carried_entries_are_known_before_they_are_stored(dynamodb: Any, ledger: LedgerStore) -> None:
    entries = append_drafts("a", None, [earn(number) for number in range(20)], NOW)
    _, rest = split_carriers(entries)
    assert len(rest) > 10
    ledger.append(None, entries)
    for entry in rest:
        key = encode_item(entry_key("a", entry.created_at))
        dynamodb.delete_item(TableName="RewardsLedger", Key=key)
    known, missing = ledger.after("a", "0")
    assert [entry.seq for entry in known] == list(range(21))
    assert missing == rest
    ledger.store(missing)
    assert ledger.after("a", "0") == (known, [])
    page = ledger.page("a", "0", "9", 8)
    assert [entry.balance for entry in page] == [200, 190, 180, 170, 160, 150, 140, 130]


def test_an_entry_is_reversed_once_also_when_it_is_the_head(ledger: LedgerStore) -> None:
    opened = append_drafts("a", None, [earn(1), Draft(EntryKind.REDEEM, -10, reward_id="mug")], NOW)
    ledger.append(None, opened)
    redemption = opened[-1]
    undo = append_drafts(
        "a", redemption.head, [Draft(EntryKind.REVERSE, 10, reverses=redemption.created_at)], NOW
    )
    ledger.append(redemption.head, undo)
    stored = ledger.get("a", redemption.created_at)
    assert stored and stored.reversed_by == undo[0].created_at and not stored.active
    again = append_drafts(
        "a", undo[0].head, [Draft(EntryKind.REVERSE, 10, reverses=redemption.created_at)], NOW
    )
    with pytest.raises(HeadMoved):
        ledger.append(undo[0].head, again)


def test_an_empty_account_has_no_head(ledger: LedgerStore) -> None:
    assert ledger.newest("nobody") is None
