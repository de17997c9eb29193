"""Rule 6: append-only, a running balance, one active head, strictly increasing under any clock."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.days import stamp, unstamp
from rules.engagement.ledger import (
    CARRIED_MAX,
    OPENED_AT,
    Draft,
    Entry,
    EntryKind,
    Head,
    InsufficientBalance,
    append,
    opening,
    split_carriers,
    unfold,
    with_folded,
)

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


def earn(points: int, number: int = 0) -> Draft:
    return Draft(EntryKind.EARN, points, f"2026-06-01T00:00:00.000000Z#{number}", "CHECK_IN", "2026-06-01")


drafts = st.lists(
    st.one_of(
        st.builds(earn, st.integers(0, 250), st.integers(0, 99)),
        st.builds(Draft, st.just(EntryKind.REDEEM), st.integers(-300, 0), reward_id=st.just("mug")),
        st.builds(Draft, st.just(EntryKind.ADJUST), st.just(0), freeze_date=st.just("2026-06-01")),
    ),
    max_size=40,
)
earns = st.lists(st.builds(earn, st.integers(0, 250), st.integers(0, 99)), min_size=1, max_size=40)
clocks = st.datetimes(datetime(1990, 1, 1), datetime(2035, 12, 31), timezones=st.just(UTC))  # noqa: DTZ001
heads = st.one_of(st.none(), st.builds(Head, clocks.map(stamp), st.integers(0, 10**6), st.integers(0, 10**9)))


def test_an_account_is_opened_with_0_before_anything_else() -> None:
    entries = append("u", None, [earn(10)], NOW)
    assert [(each.draft.kind, each.seq, each.balance) for each in entries] == [
        (EntryKind.OPEN, 0, 0),
        (EntryKind.EARN, 1, 10),
    ]
    assert entries[0] == opening("u")
    assert entries[0].created_at == OPENED_AT


def test_two_openers_collide_at_one_place() -> None:
    assert append("u", None, [], NOW)[0].created_at == append("u", None, [], NOW + timedelta(1))[0].created_at


def test_a_known_account_is_not_opened_again() -> None:
    head = Head(stamp(NOW), 7, 40)
    (entry,) = append("u", head, [earn(2)], NOW + timedelta(seconds=1))
    assert (entry.seq, entry.balance, entry.created_at) == (8, 42, "2026-06-01T12:00:01.000000Z")


def test_a_writer_whose_clock_is_behind_still_comes_after_the_head() -> None:
    head = Head(stamp(NOW), 7, 40)
    first, second = append("u", head, [earn(1), earn(1)], NOW - timedelta(days=400))
    assert first.created_at == "2026-06-01T12:00:00.000001Z"
    assert second.created_at == "2026-06-01T12:00:00.000002Z"


def test_an_entry_is_younger_than_the_event_that_it_applies() -> None:
    arrived = NOW + timedelta(seconds=30)
    entries = append("u", None, [earn(1)], NOW, arrived)
    assert entries[-1].created_at > stamp(arrived)


@pytest.mark.parametrize(("points", "balance"), [(-100, 0), (-99, 1)])
def test_the_whole_balance_can_be_spent(points: int, balance: int) -> None:
    assert append("u", Head(stamp(NOW), 1, 100), [Draft(EntryKind.REDEEM, points)], NOW)[0].balance == balance


def test_more_than_the_balance_cannot_be_spent() -> None:
    with pytest.raises(InsufficientBalance) as refused:
        append("u", Head(stamp(NOW), 1, 100), [Draft(EntryKind.REDEEM, -101)], NOW)
    assert (refused.value.balance, refused.value.wanted) == (100, 101)


def test_points_that_come_later_in_a_batch_do_not_pay_for_what_is_before_them() -> None:
    with pytest.raises(InsufficientBalance):
        append("u", None, [Draft(EntryKind.REDEEM, -1), earn(5)], NOW)


@settings(deadline=None)
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
    entries = append("u", head, affordable, now, after)
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


@settings(deadline=None)
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
            append("u", head, wanted, now)
    else:
        append("u", head, wanted, now)


@settings(deadline=None)
@given(st.lists(st.tuples(clocks, earns), min_size=1, max_size=5))
def test_writers_with_skewed_clocks_make_one_chain(turns: list[tuple[datetime, list[Draft]]]) -> None:
    head: Head | None = None
    chain: list[Entry] = []
    for now, wanted in turns:
        chain += append("u", head, wanted, now)
        head = chain[-1].head
    assert [entry.seq for entry in chain] == list(range(len(chain)))
    places = [entry.created_at for entry in chain]
    assert places == sorted(set(places))


def plain(entry: Entry) -> tuple[str, str, int, int, Draft]:
    return entry.account_id, entry.created_at, entry.seq, entry.balance, entry.draft


def test_seven_events_in_a_row_need_one_carrier() -> None:
    entries = append("u", Head(stamp(NOW), 1, 0), [earn(1, n) for n in range(CARRIED_MAX + 1)], NOW)
    carriers, rest = split_carriers(entries)
    assert [each.seq for each in carriers] == [CARRIED_MAX + 2]
    assert [each.seq for each in rest] == list(range(2, CARRIED_MAX + 2))
    assert [each.active for each in carriers] == [True]


def test_a_long_run_has_a_carrier_for_every_six() -> None:
    carriers, rest = split_carriers(append("u", Head(stamp(NOW), 0, 0), [earn(1, n) for n in range(20)], NOW))
    assert [(each.seq, len(each.folded)) for each in carriers] == [(7, 6), (14, 6), (20, 5)]
    assert len(rest) == 17


def test_a_carried_run_ends_before_an_entry_of_another_kind() -> None:
    wanted = [earn(5, 1), Draft(EntryKind.ADJUST, 0), earn(5, 2), earn(5, 3)]
    carriers, rest = split_carriers(append("u", Head(stamp(NOW), 1, 0), wanted, NOW))
    assert [(each.seq, len(each.folded), each.active) for each in carriers] == [(3, 1, False), (5, 1, True)]
    assert [each.seq for each in rest] == [2, 4]


def test_an_event_id_with_bars_in_it_survives_being_carried() -> None:
    odd = Draft(EntryKind.EARN, 3, "2026|06#a|b", "CHECK_IN", "2026-06-01")
    carriers, rest = split_carriers(append("u", Head(stamp(NOW), 1, 0), [odd, earn(1)], NOW))
    assert [plain(each) for each in unfold(carriers[0])] == [plain(each) for each in rest]


@settings(deadline=None)
@given(heads, drafts, clocks)
def test_carriers_and_the_rest_are_the_appended_entries_each_once(
    head: Head | None, wanted: list[Draft], now: datetime
) -> None:
    rich = Head(head.created_at, head.seq, head.balance + 10**5) if head else None
    affordable = wanted if rich else [draft for draft in wanted if draft.points >= 0]
    entries = append("u", rich, affordable, now)
    carriers, rest = split_carriers(entries)
    assert sorted(map(plain, [*carriers, *rest]), key=lambda each: each[2]) == list(map(plain, entries))
    assert [each.active for each in carriers[:-1]] == [False] * len(carriers[:-1])
    assert not any(each.active for each in rest)
    if entries:
        assert carriers[-1].active
        assert plain(carriers[-1]) == plain(entries[-1])
    assert all(each.draft.kind is EntryKind.EARN for each in rest)
    assert all(len(each.folded) <= CARRIED_MAX for each in carriers)
    assert [plain(each) for carrier in carriers for each in unfold(carrier)] == list(map(plain, rest))


@settings(deadline=None)
@given(drafts, clocks, st.data())
def test_nothing_is_lost_whatever_part_of_the_carried_entries_is_missing(
    wanted: list[Draft], now: datetime, data: st.DataObject
) -> None:
    entries = append("u", Head(stamp(NOW), 5, 10**5), wanted, now)
    carriers, rest = split_carriers(entries)
    flags = data.draw(st.lists(st.booleans(), min_size=len(rest), max_size=len(rest)))
    kept = [each for each, keep in zip(rest, flags, strict=True) if keep]
    stored = data.draw(st.permutations([*carriers, *kept]))
    everything, missing = with_folded(stored)
    assert list(map(plain, everything)) == list(map(plain, entries))
    assert {each.seq for each in missing} == {each.seq for each in rest} - {each.seq for each in kept}
    again, nothing = with_folded([*stored, *missing])
    assert list(map(plain, again)) == list(map(plain, entries))
    assert nothing == []


@settings(deadline=None)
@given(st.lists(earns, min_size=1, max_size=4), st.data())
def test_several_appends_read_back_as_one_chain(batches: list[list[Draft]], data: st.DataObject) -> None:
    head: Head | None = None
    chain: list[Entry] = []
    stored: list[Entry] = []
    for batch in batches:
        entries = append("u", head, batch, NOW)
        carriers, rest = split_carriers(entries)
        stored += [*carriers, *(each for each in rest if data.draw(st.booleans()))]
        chain += entries
        head = entries[-1].head
    everything, _ = with_folded(stored)
    assert list(map(plain, everything)) == list(map(plain, chain))
