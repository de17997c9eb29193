"""Entries told from rows of the lake: with their marks, up to the first gap; and together with a table's."""

from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.engagement.account_items import entry_item
from adapters.platform.items import decode_item
from rules.days import unstamp
from rules.engagement.lake_entries import entries_of, merged_entries
from rules.engagement.ledger import Draft, Entry, EntryKind, append_drafts
from rules.engagement.proof import chain_of, link_of, own_faults
from rules.engagement.reconciliation import ledger_faults
from rules.lake.entities import LEDGER, row_of
from tests.support.examples import examples

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
SALT = b"s" * 32


def written(count: int) -> list[Entry]:
    """An account's entries as the code writes them, all at once."""
    earned = [
        Draft(EntryKind.EARN, 10, f"2026-03-02T11:00:00.{n:06}Z#e", "CHECK_IN", "2026-03-02", rules_version=1)
        for n in range(count)
    ]
    entries = append_drafts("u", None, earned, NOW)
    redeemed = append_drafts("u", entries[-1].head, [Draft(EntryKind.REDEEM, -5, reward_id="mug")], NOW)
    back = Draft(EntryKind.REVERSE, 5, reverses=redeemed[0].created_at)
    entries[0] = replace(entries[0], salt=SALT)
    return [*entries, *redeemed, *append_drafts("u", redeemed[0].head, [back], NOW)]


def rows_of(entries: list[Entry]) -> list[dict[str, Any]]:
    """The rows of entries, as they are curated."""
    found = []
    for each in entries:
        row = row_of(LEDGER, decode_item(entry_item(each)), NOW)
        told: dict[str, Any] = {field.name: row.get(field.name) for field in LEDGER.fields}
        told["created_at"] = unstamp(told["created_at"])
        for name in ("activity_date", "freeze_date", "expires_on"):
            told[name] = date.fromisoformat(told[name]) if told[name] else None
        found.append(told)
    return found


@settings(max_examples=examples(20))
@given(st.randoms(use_true_random=False), st.integers(1, 9))
def test_rows_in_any_order_and_twice_tell_all_entries(chance: Any, count: int) -> None:
    entries = written(count)
    rows = rows_of(entries) * 2
    chance.shuffle(rows)
    told, lack = entries_of(rows)
    assert (lack, [each.draft for each in told]) == ("", [each.draft for each in entries])
    links = [link_of(each) for each in told]
    assert (ledger_faults(told), own_faults(links)) == ([], [])
    assert chain_of("u", links) == chain_of("u", [link_of(each) for each in entries])


def test_it_ends_before_what_is_lacking() -> None:
    rows = rows_of(written(4))
    told, lack = entries_of([each for each in rows if each["seq"] != 2])
    assert ([each.seq for each in told], lack) == ([0, 1], "the lake lacks seq 2")
    assert ledger_faults(told) == []
    rows[3]["points"] += 1
    told, lack = entries_of(rows)
    assert ([each.seq for each in told], lack[:20]) == ([0, 1, 2], "the balance of seq 3")


def test_a_table_and_a_lake_make_one_account() -> None:
    rows = rows_of(written(5))
    every, _ = entries_of(rows)
    for lake in range(len(rows) + 1):
        told, _ = entries_of(rows[:lake])
        for there in (every[:3], every[4:], every, []):
            both, wrong = merged_entries(told, there)
            known = {each.seq for each in (*told, *there)}
            if known == set(range(len(known))):
                assert (wrong, both) == ("", entries_of(rows[: len(known)])[0])
            else:
                assert (wrong, both) == ("neither lake nor table has all entries", there)


def test_another_entry_in_its_place_is_no_entry_of_the_account() -> None:
    told, _ = entries_of(rows_of(written(3)))
    other, _ = entries_of(
        [{**each, "reason": "x"} if each["seq"] == 1 else each for each in rows_of(written(3))]
    )
    assert merged_entries(told, other) == (other, "seq 1 is another one in the lake")
