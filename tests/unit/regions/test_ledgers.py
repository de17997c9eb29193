"""A standby's ledger: in whatever order entries come, it is always a beginning of the writer's, and in the end all."""

import random
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.engagement.carriers import split_carriers, with_carried
from rules.engagement.ledger import Draft, Entry, EntryKind, FreezeNote, Head, append_drafts
from rules.engagement.reconciliation import ledger_faults
from rules.engagement.repairs import Repair, return_of
from rules.regions.changes import days_needed
from rules.regions.standby import (
    LedgerContradiction,
    UnseenFate,
    follow_entry,
    unseen_entries,
)

NOW = datetime(2026, 3, 20, 12, tzinfo=UTC)
SALT = b"0123456789abcdef"
batches = st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=30), min_size=1, max_size=6)


def ledger(batched: list[list[int]]) -> list[Entry]:
    """The stored items of a ledger that was written in some batches: carriers and carried entries."""
    stored: dict[str, Entry] = {}
    head: Head | None = None
    for number, points in enumerate(batched):
        drafts = [
            Draft(
                EntryKind.EARN, each, f"2026-03-20T10:{number:02d}:{at:02d}.000000Z#e", "READ", "2026-03-20"
            )
            for at, each in enumerate(points)
        ]
        made = append_drafts("ann", head, drafts, NOW + timedelta(minutes=number))
        carriers, carried = split_carriers([replace(made[0], salt=b"" if head else SALT), *made[1:]])
        stored |= {each.created_at: each for each in (*carriers, *carried)}
        head = carriers[-1].head
    return list(stored.values())


@given(batches, st.randoms(use_true_random=False))
def test_any_order_of_arrival_gives_the_writer_s_ledger(
    batched: list[list[int]], chance: random.Random
) -> None:
    stored = ledger(batched)
    whole, _ = with_carried(stored)
    arriving = stored + chance.sample(stored, k=len(stored) // 2)  # some come twice
    chance.shuffle(arriving)
    head: Head | None = None
    there: dict[str, Entry] = {}
    while arriving:
        waiting = []
        for entry in arriving:
            what = follow_entry(head, entry)
            if what is None:
                waiting.append(entry)
                continue
            if what.carrier:
                if head:
                    there[head.created_at] = replace(there[head.created_at], active=False)
                there[what.carrier.created_at] = what.carrier
                head = what.carrier.head
            for each in what.carried:
                there.setdefault(each.created_at, each)
            entries, _ = with_carried(there.values())
            assert not ledger_faults(entries)
            assert not unseen_entries(entries, whole, {})
        assert len(waiting) < len(arriving), "nothing moves"
        arriving = waiting
    entries, missing = with_carried(there.values())
    assert not missing
    assert entries == whole or [each.draft for each in entries] == [each.draft for each in whole]
    assert head == max(stored, key=lambda each: each.seq).head
    assert entries[0].salt == SALT, "a proof is made in either region"


@given(batches)
def test_an_entry_that_does_not_follow_from_its_predecessors_is_a_fault(batched: list[list[int]]) -> None:
    stored = sorted(ledger(batched), key=lambda each: each.seq)
    first = next(each for each in stored if each.seq == 0)
    entry = next(each for each in stored if each.seq > 0 and each.seq - len(each.carried) == 1)
    head = first.head
    with pytest.raises(LedgerContradiction, match="balance"):
        follow_entry(replace(head, balance=1), entry)


def test_a_place_in_the_writer_s_stream_is_left_out() -> None:
    entry = replace(ledger([[5]])[-1], applied_through="2026/7")
    (opening, *_) = ledger([[5]])
    found = follow_entry(opening.head, entry)
    assert found is not None
    assert found.carrier is not None
    assert (found.carrier.applied_through, found.carrier.active) == ("", True)


def test_the_days_of_entries_and_their_newest_places() -> None:
    entries, _ = with_carried(ledger([[1, 2], [3]]))
    assert days_needed(entries) == {"2026-03-20": entries[-1].created_at}
    assert days_needed([entries[0]]) == {}


def entries_with(*drafts: Draft) -> list[Entry]:
    return append_drafts("ann", None, [Draft(EntryKind.EARN, 100, "e1", "READ", "2026-03-20"), *drafts], NOW)


def test_what_is_unseen_has_a_fate() -> None:
    seen = entries_with()
    redeem = Draft(EntryKind.REDEEM, -10, reward_id="mug")
    theirs = entries_with(redeem, replace(redeem, reward_id="cap"), Draft(EntryKind.EXPIRE, -5))
    mug = theirs[2].created_at
    theirs = append_drafts(
        "ann",
        theirs[-1].head,
        [
            Draft(EntryKind.REVERSE, 10, reverses=mug),
            Draft(EntryKind.REVERSE, 10, reverses=seen[-1].created_at),
            Draft(EntryKind.EARN, 5, "e2", "READ", "2026-03-20"),
            Draft(EntryKind.CLAWBACK, -5, "e2", "READ", "2026-03-20", reverses="somewhere"),
            Draft(EntryKind.REDEEM, -3, held_at="2026"),
            Draft(EntryKind.REDEEM, -2, freeze=FreezeNote.GRANTED),
        ],
        NOW,
    )
    theirs = [*entries_with(redeem, replace(redeem, reward_id="cap"), Draft(EntryKind.EXPIRE, -5)), *theirs]
    found = unseen_entries(theirs, seen, {theirs[3].created_at: "redeem:k"})
    assert [(each.entry.seq, each.fate.value, each.key) for each in found] == [
        (2, UnseenFate.UNDONE, ""),
        (3, UnseenFate.REDEEM, "redeem:k"),
        (4, UnseenFate.FOLLOWS, ""),
        (5, UnseenFate.UNDONE, ""),
        (6, UnseenFate.REVERSE, ""),
        (7, UnseenFate.EVENT, ""),
        (8, UnseenFate.LISTED, ""),
        (9, UnseenFate.LISTED, ""),
        (10, UnseenFate.LISTED, ""),
    ]
    reasons = [each.reason.partition(":")[0] for each in found if each.fate is UnseenFate.LISTED]
    assert reasons == ["CLAWBACK", "a captured hold", "a freeze"]


@given(batches, st.integers(0, 40))
def test_nothing_is_unseen_of_a_ledger_that_the_writer_has(batched: list[list[int]], cut: int) -> None:
    whole, _ = with_carried(ledger(batched))
    assert unseen_entries(whole[:cut], whole, {}) == []
    assert [each.entry for each in unseen_entries(whole, whole[:cut], {})] == whole[cut:]


def test_an_unseen_repair_is_listed_and_what_gives_it_back_follows_from_its_event() -> None:
    bought = Draft(
        EntryKind.REDEEM,
        -20,
        reward_id="streak_repair",
        freeze=FreezeNote.GRANTED,
        freeze_date="2026-03-18",
        rules_version=2,
    )
    seen = entries_with(bought)
    late = Draft(EntryKind.EARN, 5, "e2", "READ", "2026-03-18")
    back = return_of(Repair(date(2026, 3, 18), 20, seen[-1].created_at))
    with_event = append_drafts("ann", seen[-1].head, [late, back], NOW)
    alone = append_drafts("ann", seen[-1].head, [back], NOW)
    fates = [each.fate for each in unseen_entries([*seen, *with_event], seen, {})]
    assert fates == [UnseenFate.EVENT, UnseenFate.FOLLOWS]
    assert [each.fate for each in unseen_entries([*seen, *alone], seen, {})] == [UnseenFate.REVERSE]
    (repair,) = unseen_entries(seen, entries_with(), {})
    assert (repair.fate, repair.reason[:8]) == (UnseenFate.LISTED, "a repair")
