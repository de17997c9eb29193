"""What a carrier names is read as it was written, and what would not be is not carried."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.platform.items import encode_item, item_bytes
from rules.book.point_rules import Cap, Period
from rules.days import stamp
from rules.engagement.carriers import CarriedDrafts, carried_drafts, carried_text
from rules.engagement.ledger import Draft, EntryKind, FreezeNote
from tests.support.ledger_strategies import clocks, earn

UNIQUE = "ac815fe5-92f6-5c51-9d3e-0c6a6d0f7f8e"
types = st.text(min_size=1, max_size=40).filter(lambda name: " " not in name)
caps = st.none() | st.builds(Cap, st.integers(0, 10**6), st.sampled_from(Period))


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
        cap=draw(caps),
        is_passive=draw(st.booleans()),
        expires_on=None if lasts is None else (day + timedelta(lasts)).isoformat(),
        measures=draw(st.sampled_from((None, "n", "n,minutes=30500", "n,a=1,b=2"))),
    )


@given(st.lists(earned(), max_size=30), st.integers(0, 700))
def test_what_is_taken_fits_and_is_read_as_it_was(drafts: list[Draft], room: int) -> None:
    carried = CarriedDrafts()
    taken = [each for each in drafts if carried.add_if_fits(each, room)]
    text = carried_text(taken)
    assert carried_drafts(text) == taken
    assert text == {"kinds": carried.kinds, "lines": carried.lines}
    assert item_bytes(encode_item({"folded": text})) - len("folded") <= carried.size
    assert not taken or carried.size <= room


def test_an_operator_can_read_it() -> None:
    one = replace(earn(10, UUID(UNIQUE).int), rules_version=2, cap=Cap(5, Period.DAY), measures="n")
    assert carried_text([one, replace(one, points=0)]) == {
        "kinds": ["CHECK_IN v2 5/day #n"],
        "lines": [f"0 {points} 2026-06-01 2026-06-01T00:00:00.000000Z#{UNIQUE}" for points in (10, 0)],
    }


ids = st.sampled_from(["", "e1", UNIQUE, f"2026-06-01T00:00:00.000000Z#{UNIQUE}", "a b", "a\nb", " ", "é"])
odd_drafts = st.builds(
    Draft,
    st.sampled_from(EntryKind),
    st.sampled_from([-1, 0, 7, 2**16]),
    st.none() | ids,
    st.none() | types | st.sampled_from(["", "X" * 256, "a b", "\n", "v2", "+3", "#n"]),
    st.none() | st.sampled_from(["2026-06-01", "20260601", "2026-06-31", "9999-12-31", "", "0001-01-01"]),
    st.none() | st.just("mug"),
    st.none() | st.just("e"),
    st.none() | st.sampled_from(FreezeNote),
    st.none() | st.just("2026-06-01"),
    expires_on=st.none() | st.sampled_from(["2026-07-01", "20260701", "9999-12-31", "2026-W01-1"]),
    reason=st.none() | st.just("why"),
)


@given(odd_drafts)
def test_what_would_be_read_as_something_else_is_not_carried(draft: Draft) -> None:
    if CarriedDrafts().add_if_fits(draft, 2**20):
        assert carried_drafts(carried_text([draft])) == [draft]
    else:
        with pytest.raises(ValueError, match="no carrier can name"):
            carried_text([draft])


@pytest.mark.parametrize(
    "change",
    [
        {"event_id": "with a space"},
        {"event_type": "WITH SPACE"},
        {"activity_date": "20260601"},
        {"activity_date": "2026-06-31"},
        {"expires_on": "20260601"},
        {"kind": EntryKind.ADJUST},
        {"reward_id": "mug"},
        {"reason": "late"},
        {"freeze": FreezeNote.SPENT},
    ],
)
def test_an_odd_entry_is_not_carried(change: dict[str, object]) -> None:
    assert CarriedDrafts().add_if_fits(earn(5, 1), 2**20)
    assert not CarriedDrafts().add_if_fits(replace(earn(5, 1), **change), 2**20)  # type: ignore[arg-type]  # one field
