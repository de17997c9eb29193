"""Whether a ledger and the lake's copy of it are one journal: what is on its way agrees, and nothing else."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from rules.engagement.account import profile_with_entries
from rules.engagement.account_state import Profile
from rules.engagement.ledger import Draft, Entry, EntryKind, FreezeNote, append_drafts
from rules.engagement.reconciliation import (
    LAKE_LAG,
    LAKE_LOST,
    Doubt,
    LakeFigures,
    digest_of,
    disagreements,
    doubt_of,
    is_systemic,
)
from rules.turns import NIGHTS, slice_of, slices_due
from tests.support.drafts import NOW, OLD, SMALL, YOUNG, drafts, journal


def figures(entries: Sequence[Entry]) -> LakeFigures:
    """What a whole copy of a journal comes to."""
    if not entries:
        return LakeFigures()
    points = [each.draft.points for each in entries]
    gained = profile_with_entries(Profile("ann"), entries).total_points  # as the recompute adds them up
    last = entries[-1]
    sums = (len(entries), sum(points), gained)
    return LakeFigures(last.created_at, *sums, last.seq, last.balance, digest_of(entries))


@SMALL
@given(drafts, drafts, st.data())
def test_a_copy_that_is_on_its_way_agrees(old: list[Draft], young: list[Draft], data: st.DataObject) -> None:
    """All entries older than the lag are in the lake, and of the younger ones as many as have arrived."""
    settled = journal(old)
    entries = settled + append_drafts("ann", settled[-1].head, young, YOUNG)
    arrived = data.draw(st.integers(len(settled), len(entries)))
    lake = figures(entries[:arrived])
    assert disagreements(entries, lake, NOW) == []
    assert doubt_of((), entries, lake, NOW) is Doubt.NONE
    whole = figures(entries)
    cut = data.draw(st.integers(0, len(entries) - 1))
    assert doubt_of((), entries[:cut] + entries[cut + 1 :], whole, NOW) is Doubt.CONTRADICTED
    held = len(entries) - 1
    told = [f"the lake has {len(entries) - held} entries that the table lacks"]
    assert disagreements(entries[:cut] + entries[cut + 1 :], whole, NOW) == told


@SMALL
@given(drafts, st.data())
def test_entries_that_never_came_into_the_lake_are_told(made: list[Draft], data: st.DataObject) -> None:
    entries = journal(made)
    kept = data.draw(st.integers(0, len(entries) - 1))
    # The opening entry is written before any event, at a fixed place: the lake may not have it yet.
    missing = sum(each.draft.kind is not EntryKind.OPEN for each in entries[kept:])
    assert disagreements(entries, figures(entries[:kept]), NOW) == [f"the lake lacks {missing} entries"]
    assert disagreements(entries, figures(entries[:kept]), OLD + timedelta(seconds=1)) == []
    late = Doubt.LATE if missing else Doubt.NONE
    assert doubt_of((), entries, figures(entries[:kept]), NOW) is late
    assert doubt_of((), entries, figures(entries[:kept]), NOW + LAKE_LOST) is (late and Doubt.LACKING)
    middle = figures(entries)
    gap = replace(middle, entries=middle.entries - 1)
    assert disagreements(entries, gap, NOW) == ["the lake lacks 1 entries"]


@SMALL
@given(drafts, st.sampled_from(("points", "earned", "seq", "balance")))
def test_other_figures_are_told(made: list[Draft], name: str) -> None:
    entries = journal(made)
    lake = figures(entries)
    other: dict[str, Any] = {name: getattr(lake, name) + 1}
    (told,) = disagreements(entries, replace(lake, **other), NOW)
    assert ("earned" in told) == (name in ("points", "earned"))
    assert (lake.place in told) == (name in ("seq", "balance"))


def test_an_account_that_neither_knows_agrees() -> None:
    assert disagreements([], LakeFigures(), NOW) == []
    assert doubt_of((), [], LakeFigures(), NOW) is Doubt.NONE
    assert doubt_of((), journal([Draft(EntryKind.ADJUST, 1)], YOUNG), LakeFigures(), NOW) is Doubt.NONE


def test_a_young_entry_may_arrive_after_a_younger_one() -> None:
    entries = journal([Draft(EntryKind.ADJUST, 1), Draft(EntryKind.ADJUST, 2)], YOUNG)
    lake = replace(figures(entries), entries=2)
    assert disagreements(entries, lake, NOW) == []
    assert disagreements(entries, lake, NOW + LAKE_LAG) == ["the lake lacks 1 entries"]


@SMALL
@given(drafts, st.data())
def test_any_change_of_an_entry_contradicts_the_lake(made: list[Draft], data: st.DataObject) -> None:
    """Also one that leaves all sums as they were."""
    entries = journal(made)
    at = data.draw(st.integers(1, len(entries) - 1))
    entry, draft = entries[at], entries[at].draft
    changed = data.draw(
        st.sampled_from(
            [
                replace(entry, balance=entry.balance + 1000),
                replace(entry, seq=entry.seq + 1),
                replace(entry, draft=replace(draft, points=draft.points + 1000)),
                replace(entry, draft=replace(draft, kind=EntryKind.EXPIRE)),
                replace(entry, draft=replace(draft, event_id="another")),
                replace(entry, draft=replace(draft, event_type="CONTRIBUTION")),
                replace(entry, draft=replace(draft, activity_date="2026-03-09")),
                replace(entry, draft=replace(draft, reward_id="car")),
                replace(entry, draft=replace(draft, reverses=entries[0].created_at)),
                replace(entry, draft=replace(draft, freeze=FreezeNote.GRANTED)),
                replace(entry, draft=replace(draft, freeze_date="2026-03-09")),
            ]
        )
    )
    forged = [*entries[:at], changed, *entries[at + 1 :]]
    assert doubt_of((), forged, figures(entries), NOW) is Doubt.CONTRADICTED
    assert disagreements(forged, figures(entries), NOW)


@SMALL
@given(drafts, st.integers(1, 500))
def test_the_order_of_reading_is_no_difference_and_places_are(made: list[Draft], later: int) -> None:
    entries = journal(made)
    assert digest_of(entries[::-1]) == digest_of(entries)
    assert digest_of(journal(made, OLD + timedelta(microseconds=later))) != digest_of(entries)


@given(st.dates(), st.lists(st.integers(1, 40), min_size=1, max_size=40), st.text())
def test_every_account_has_its_turn_within_28_nights(first: date, gaps: list[int], user: str) -> None:
    """gaps: how many days lie between two runs. A night that was left out is made good."""
    assert slices_due(None, first) == frozenset(range(NIGHTS))
    assert slices_due(first, first) == frozenset()
    assume(first.year < 9990)
    last, seen, today = None, [], first
    for gap in gaps:
        if slice_of(user) in slices_due(last, today):
            seen.append(today)
        last, today = today, today + timedelta(days=gap)
    runs = [first + timedelta(days=sum(gaps[:count])) for count in range(len(gaps))]
    for run, following in zip(seen, [*seen[1:], runs[-1]], strict=True):
        skipped = [each for each in runs if run < each < following]
        assert not skipped or (skipped[-1] - run).days < NIGHTS


def test_a_lake_that_lacks_very_much_is_at_fault_itself() -> None:
    entries = journal([Draft(EntryKind.ADJUST, 1)], YOUNG)
    assert doubt_of((), entries, LakeFigures(), NOW, ["a chain"]) is Doubt.UNPROVEN
    assert doubt_of(["a fault"], entries, LakeFigures(), NOW, ["a chain"]) is Doubt.CONTRADICTED
    assert [is_systemic(lacking, 100) for lacking in (0, 20, 21)] == [False, False, True]
    assert [is_systemic(lacking, 10**6) for lacking in (10**4, 10**4 + 1)] == [False, True]
