"""What a carrier names is read as it was packed, and what would not be is not packed."""

from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.book.point_rules import Cap, Period
from rules.days import stamp
from rules.engagement.ledger import (
    RECORD_BYTES,
    Draft,
    DraftPack,
    EntryKind,
    FreezeNote,
    pack_drafts,
    unpack_drafts,
)
from tests.support.ledger_strategies import clocks, earn

UNIQUE = "ac815fe5-92f6-5c51-9d3e-0c6a6d0f7f8e"
types = st.text(min_size=1, max_size=40).filter(lambda name: " " not in name)
caps = st.none() | st.builds(Cap, st.integers(0, 10**6), st.sampled_from(Period))


BEGAN = datetime(2026, 3, 1, tzinfo=UTC)


@st.composite
def earned(draw: st.DrawFn, when: st.SearchStrategy[datetime] = clocks) -> Draft:
    moment = draw(when)
    day = moment.date() + timedelta(draw(st.integers(-128, 127)))
    event_id = f"{stamp(moment)}#{draw(st.uuids())}"
    return Draft(
        *(EntryKind.EARN, draw(st.integers(0, 2**16 - 1)), event_id, draw(types), day.isoformat()),
        rules_version=draw(st.none() | st.integers(1, 999)),
        cap=draw(caps),
        is_passive=draw(st.booleans()),
        measures=draw(st.sampled_from((None, "n", "n,minutes=30500", "n,a=1,b=2"))),
    )


together = st.lists(
    earned(st.integers(0, 12 * 86_400 * 10**6).map(lambda micros: BEGAN + timedelta(microseconds=micros))),
    max_size=30,
)


@given(together)
def test_what_is_packed_is_read_as_it_was(drafts: list[Draft]) -> None:
    packing = DraftPack()
    assert all(packing.takes(each, 2**20) for each in drafts)
    assert pack_drafts(drafts) == packing.packed()
    assert unpack_drafts(packing.packed()) == drafts
    assert len(packing.packed()) == packing.size


@given(st.lists(earned(), max_size=30), st.integers(0, 700))
def test_what_is_taken_fits_and_is_read_as_it_was(drafts: list[Draft], room: int) -> None:
    packing = DraftPack()
    taken = [each for each in drafts if packing.takes(each, room)]
    assert unpack_drafts(packing.packed()) == taken
    assert len(packing.packed()) == packing.size
    assert not taken or packing.size <= room


def test_moments_that_are_weeks_apart_are_not_packed_together() -> None:
    far, near, late = (
        replace(earn(5, 1), event_id=f"2026-05-{day}T00:00:00.000000Z#{UNIQUE}") for day in (17, 20, 31)
    )
    assert unpack_drafts(pack_drafts([late, near])) == [late, near]
    for apart in ([late, near, far], [far, near, late]):
        with pytest.raises(ValueError, match="not packable"):
            pack_drafts(apart)


ids = st.sampled_from(
    [
        "",
        "e1",
        UNIQUE,
        f"2026-06-01T00:00:00.000000Z#{UNIQUE}",
        f"2026-06-01T00:00:00.000000Z#{UNIQUE.upper()}",
        f"2026-06-01T00:00:00.000000Z#{UNIQUE.replace('-', '')}",
        f"2026-06-01T00:00:00.000000Z#{{{UNIQUE}}}",
        f"2026-06-01T00:00:00.000000Z|{UNIQUE}",
        f"2026-06-01T00:00:00.000000Z{UNIQUE}",
        f"2026-06-01T00:00:00.0000000Z#{UNIQUE}",
        f"2026-06-01T00:00:00.000000+#{UNIQUE}",
        f"2026-06-31T00:00:00.000000Z#{UNIQUE}",
        f"1969-06-01T00:00:00.000000Z#{UNIQUE}",
        f"9999-12-31T23:59:59.999999Z#{UNIQUE}",
    ]
)
odd_drafts = st.builds(
    Draft,
    st.sampled_from(EntryKind),
    st.sampled_from([-1, 0, 7, 2**16 - 1, 2**16]),
    st.none() | ids,
    st.none() | types | st.just("") | st.just("X" * 256),
    st.none() | st.sampled_from(["2026-06-01", "20260601", "2026-10-07", "2020-01-01", "9999-12-31", ""]),
    st.none() | st.just("mug"),
    st.none() | st.just("e"),
    st.none() | st.sampled_from(FreezeNote),
    st.none() | st.just("2026-06-01"),
)


@given(odd_drafts)
def test_what_would_be_read_as_something_else_is_not_packed(draft: Draft) -> None:
    if DraftPack().takes(draft, 2**20):
        assert unpack_drafts(pack_drafts([draft])) == [draft]
    else:
        with pytest.raises(ValueError, match="not packable"):
            pack_drafts([draft])


@pytest.mark.parametrize(
    "change",
    [
        {"event_id": f"2026-06-01T00:00:00.000000Z#{UNIQUE.upper()}"},
        {"event_id": f"2026-06-01T00:00:00Z#{UNIQUE}"},
        {"event_id": f"1969-12-31T00:00:00.000000Z#{UNIQUE}"},
        {"activity_date": "2026-12-01"},
        {"activity_date": "20260601"},
        {"points": 2**16},
        {"points": -1},
        {"event_type": "X" * 256},
        {"kind": EntryKind.ADJUST},
        {"reward_id": "mug"},
        {"freeze": FreezeNote.SPENT},
    ],
)
def test_an_odd_entry_is_not_packable(change: dict[str, object]) -> None:
    assert DraftPack().takes(earn(5, UUID(UNIQUE).int), 2**20)
    assert not DraftPack().takes(replace(earn(5, UUID(UNIQUE).int), **change), 2**20)  # type: ignore[arg-type]  # one field


@given(st.lists(earned(st.just(BEGAN)), min_size=1, max_size=3), st.data())
def test_what_is_cut_off_is_told(drafts: list[Draft], data: st.DataObject) -> None:
    packed = pack_drafts(drafts)
    cut = packed[: data.draw(st.integers(0, len(packed) - 1))]
    with suppress(ValueError, IndexError):
        assert unpack_drafts(cut) == drafts[: (len(cut) - len(packed)) // RECORD_BYTES]


def test_a_form_of_a_later_version_is_told() -> None:
    with pytest.raises(ValueError, match="form 3, which this version does not know"):
        unpack_drafts(b"\x03\x00")
