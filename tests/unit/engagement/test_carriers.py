"""Several earned entries are stored in one carrier item, and none is lost or counted twice."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.engagement.account_items import entry_from, entry_item
from adapters.platform.items import item_bytes
from rules.book.point_rules import Cap, Period
from rules.days import stamp
from rules.engagement.carriers import (
    WRITE_UNIT_BYTES,
    carried_drafts,
    carried_text,
    split_carriers,
    unfold_carrier,
    with_carried,
)
from rules.engagement.ledger import Draft, Entry, EntryKind, Head, append_drafts
from tests.support.ledger_strategies import clocks, drafts, earn, earns, heads, types

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
UNIQUE = "ac815fe5-92f6-5c51-9d3e-0c6a6d0f7f8e"


def plain(entry: Entry) -> tuple[str, str, int, int, Draft]:
    return entry.account_id, entry.created_at, entry.seq, entry.balance, entry.draft


def test_twenty_events_of_five_types_need_three_carriers() -> None:
    types = ["LESSON_COMPLETED", "CHECK_IN", "WORKOUT_COMPLETED", "APP_OPENED", "CHALLENGE_COMPLETED"]
    cap = Cap(200, Period.DAY)
    points = [10 if number < 15 else 0 for number in range(20)]  # and so beyond the cap
    wanted = [
        replace(earn(each, n, types[n % 5]), rules_version=12, cap=cap) for n, each in enumerate(points)
    ]
    carriers, rest = split_carriers(append_drafts("u" * 36, Head(stamp(NOW), 1, 0), wanted, NOW))
    assert [(each.seq, len(each.carried), each.active) for each in carriers] == [
        *((8, 6, False), (15, 6, False), (21, 5, True)),
    ]
    assert [each.seq for each in rest] == [each for each in range(2, 21) if each not in (8, 15)]


def test_a_long_run_has_as_many_carriers_as_it_takes() -> None:
    carriers, rest = split_carriers(
        append_drafts("u", Head(stamp(NOW), 0, 0), [earn(1, n) for n in range(60)], NOW)
    )
    assert [(each.seq, len(each.carried)) for each in carriers] == [
        *((last, 9) for last in range(10, 61, 10)),
    ]
    assert len(rest) == 54


@pytest.mark.parametrize("count", [100, 199, 1_000])
@pytest.mark.parametrize("event_type", ["T", "T" * 64])
def test_a_transaction_holds_all_carriers(count: int, event_type: str) -> None:
    """DynamoDB takes 100 actions; one takes the head's mark away, and one may be a claim's."""
    wanted = [replace(earn(1, n, event_type), measures=f"n,minutes={n:_>150}") for n in range(count)]
    entries = append_drafts("u" * 128, Head(stamp(NOW), 0, 0), wanted, NOW)
    assert len(split_carriers(entries)[0]) <= 90


def test_a_long_account_id_leaves_less_room() -> None:
    entries = append_drafts("u" * 128, Head(stamp(NOW), 0, 0), [earn(1, n) for n in range(40)], NOW)
    assert [len(each.carried) for each in split_carriers(entries)[0]] == [7, 7, 7, 7, 7]


def test_a_carried_run_ends_before_an_entry_of_another_kind() -> None:
    wanted = [earn(5, 1), Draft(EntryKind.ADJUST, 0), earn(5, 2), earn(5, 3)]
    carriers, rest = split_carriers(append_drafts("u", Head(stamp(NOW), 1, 0), wanted, NOW))
    assert [(each.seq, len(each.carried), each.active) for each in carriers] == [(3, 1, False), (5, 1, True)]
    assert [each.seq for each in rest] == [2, 4]


@given(heads, drafts, clocks)
def test_carriers_and_the_rest_are_the_appended_entries_each_once(
    head: Head | None, wanted: list[Draft], now: datetime
) -> None:
    rich = Head(head.created_at, head.seq, head.balance + 10**5) if head else None
    affordable = wanted if rich else [draft for draft in wanted if draft.points >= 0]
    entries = append_drafts("u", rich, affordable, now)
    carriers, rest = split_carriers(entries)
    assert sorted(map(plain, [*carriers, *rest]), key=lambda each: each[2]) == list(map(plain, entries))
    assert [each.active for each in carriers[:-1]] == [False] * len(carriers[:-1])
    assert not any(each.active for each in rest)
    if entries:
        assert carriers[-1].active
        assert plain(carriers[-1]) == plain(entries[-1])
    assert all(each.draft.kind is EntryKind.EARN for each in rest)
    for each in carriers:
        whole = replace(each, applied_through=f"2026-03-01T00:00:00.000/{10**20}")
        assert item_bytes(entry_item(whole)) <= WRITE_UNIT_BYTES
    assert [plain(each) for carrier in carriers for each in unfold_carrier(carrier)] == list(map(plain, rest))


@given(drafts, clocks, st.data())
def test_nothing_is_lost_whatever_part_of_the_carried_entries_is_missing(
    wanted: list[Draft], now: datetime, data: st.DataObject
) -> None:
    entries = append_drafts("u", Head(stamp(NOW), 5, 10**5), wanted, now)
    carriers, rest = split_carriers(entries)
    flags = data.draw(st.lists(st.booleans(), min_size=len(rest), max_size=len(rest)))
    kept = [each for each, keep in zip(rest, flags, strict=True) if keep]
    stored = data.draw(st.permutations([*carriers, *kept]))
    everything, missing = with_carried(stored)
    assert list(map(plain, everything)) == list(map(plain, entries))
    assert {each.seq for each in missing} == {each.seq for each in rest} - {each.seq for each in kept}
    again, nothing = with_carried([*stored, *missing])
    assert list(map(plain, again)) == list(map(plain, entries))
    assert nothing == []


@given(st.lists(earns, min_size=1, max_size=4), st.data())
def test_several_appends_read_back_as_one_chain(batches: list[list[Draft]], data: st.DataObject) -> None:
    head: Head | None = None
    chain: list[Entry] = []
    stored: list[Entry] = []
    for batch in batches:
        entries = append_drafts("u", head, batch, NOW)
        carriers, rest = split_carriers(entries)
        stored += [*carriers, *(each for each in rest if data.draw(st.booleans()))]
        chain += entries
        head = entries[-1].head
    everything, _ = with_carried(stored)
    assert list(map(plain, everything)) == list(map(plain, chain))


@st.composite
def earned(draw: st.DrawFn) -> Draft:
    moment = draw(clocks)
    day = moment.date() + timedelta(draw(st.integers(-400, 400)))
    lasts = draw(st.none() | st.integers(-3, 4_000))
    return Draft(
        EntryKind.EARN,
        draw(st.integers(-(2**40), 2**40)),
        f"{stamp(moment)}#{draw(st.uuids())}",
        draw(types),
        day.isoformat(),
        rules_version=draw(st.none() | st.integers(1, 999)),
        cap=draw(st.none() | st.builds(Cap, st.integers(0, 10**6), st.sampled_from(Period))),
        is_passive=draw(st.booleans()),
        expires_on=None if lasts is None else (day + timedelta(lasts)).isoformat(),
        measures=draw(st.sampled_from((None, "n", "n,minutes=30500", "n,a=1,b=2"))),
    )


@given(st.lists(earned(), max_size=30))
def test_what_is_carried_is_read_as_it_was(wanted: list[Draft]) -> None:
    assert carried_drafts(carried_text(wanted)) == wanted


def test_an_operator_can_read_it() -> None:
    one = replace(earn(10, UUID(UNIQUE).int), rules_version=2, cap=Cap(5, Period.DAY), measures="n")
    assert carried_text([one, replace(one, points=0)]) == {
        "kinds": ["CHECK_IN v2 5/day #n"],
        "lines": [f"0 {points} 2026-06-01 2026-06-01T00:00:00Z#{UNIQUE}" for points in (10, 0)],
    }


judgements = st.fixed_dictionaries(
    {
        "rules_version": st.none() | st.integers(1, 999),
        "cap": st.none() | st.builds(Cap, st.integers(0, 10**4), st.sampled_from(Period)),
        "is_passive": st.booleans(),
        "expires_on": st.none() | st.just("2027-06-01"),
        "measures": st.sampled_from((None, "n", "n,minutes=30500", "n,a=1,b=2")),
        "timezone": st.sampled_from((None, "+05:45", "America/Argentina/Buenos_Aires")),
    }
)


@given(st.integers(1, 128), st.lists(st.tuples(types, judgements), min_size=1))
def test_a_carrier_takes_one_write_unit(length: int, kinds: list[tuple[str, dict[str, Any]]]) -> None:
    drafts = [
        replace(earn(65_535, number, kind), **judged)
        for number in range(60)
        for kind, judged in [kinds[number % len(kinds)]]
    ]
    entries = append_drafts("u" * length, Head(stamp(NOW), 99_999_900, 10**9), drafts, NOW)
    carriers, rest = split_carriers(entries)
    for carrier in carriers:
        through = "2026-03-01T00:00:00.000/300000000000000499659"
        stored = entry_item(replace(carrier, applied_through=through))
        assert item_bytes(stored) <= WRITE_UNIT_BYTES
        assert entry_from(stored).carried == carrier.carried
    assert len(rest) + len(carriers) == len(entries)
