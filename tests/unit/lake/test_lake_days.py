"""Signatures of days: from the lake's entries by SQL, from an item by Python."""

from dataclasses import fields, replace
from datetime import date, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.platform.objects import FolderObjects
from analytics.lake.arrow import arrow_schema
from analytics.recompute.lake_days import LakeDays, signature
from rules.days import EPOCH, stamp
from rules.engagement.account import apply_to_days
from rules.engagement.account_state import Day
from rules.engagement.ledger import Draft, Entry, EntryKind
from rules.lake.entities import LEDGER
from tests.support.examples import examples

BASE = date(2026, 3, 1)
entries = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.sampled_from(("CHECK_IN", "CONTRIBUTION")),
        st.integers(0, 3),
        st.integers(0, 9),
        st.none() | st.integers(5, 7),  # days until the points expire
        st.sampled_from((None, "n", "n,pages=500", "n,minutes=1,pages=2000")),
        st.booleans(),  # whether it keeps no streak
    ),
    max_size=30,
)


def write(folder: Path, listed: list[Entry]) -> FolderObjects:
    rows = [
        {
            "account_id": each.account_id,
            "created_at": EPOCH + timedelta(microseconds=each.seq),
            "seq": each.seq,
            "kind": each.draft.kind.value,
            "points": each.draft.points,
            "balance": 0,
            "event_id": each.draft.event_id,
            "event_type": each.draft.event_type,
            "activity_date": date.fromisoformat(each.draft.activity_date or ""),
            "expires_on": date.fromisoformat(each.draft.expires_on) if each.draft.expires_on else None,
            "measures": each.draft.measures,
            "is_passive": each.draft.is_passive or None,
        }
        for each in listed
    ]
    file = BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, arrow_schema(LEDGER)), file)
    objects = FolderObjects(folder)
    objects.put("curated/ledger/dt=2026-03-01/hour-00.parquet", file.getvalue())
    return objects


@settings(max_examples=examples(25))
@given(drawn=entries)
def test_the_lake_and_the_rule_count_days_alike(
    tmp_path_factory: pytest.TempPathFactory,
    drawn: list[tuple[str, str, int, int, int | None, str | None, bool]],
) -> None:
    listed = [
        Entry(
            user,
            stamp(EPOCH + timedelta(microseconds=seq)),
            seq,
            0,
            Draft(
                *(EntryKind.EARN, points, f"{points}#{seq}", kind, str(BASE + timedelta(days=day))),
                expires_on=str(BASE + timedelta(days=lasts)) if lasts else None,
                measures=measures,
                is_passive=is_passive,
            ),
        )
        for seq, (user, kind, day, points, lasts, measures, is_passive) in enumerate(drawn, 1)
    ]
    objects = write(tmp_path_factory.mktemp("days"), listed)
    lake = LakeDays.read(objects)
    seen = lake.unseen()
    for user in "abc":
        for when, day in apply_to_days({}, [each for each in listed if each.account_id == user]).items():
            place = lake.place(user, str(when))
            assert place is not None
            assert lake.signature(place) == signature(day)
            seen[place] = False
    assert not seen.any()
    assert lake.place("a", "2027-01-01") is None
    assert lake.place("d", str(BASE)) is None
    assert lake.place("a", "no date") is None
    some = LakeDays.read(objects, BASE + timedelta(days=1), BASE + timedelta(days=2))
    assert {each["activity_date"] for each in some.table_keys()} <= {"2026-03-02", "2026-03-03"}
    assert some.users(some.unseen()) == {user for user, _, day, *_ in drawn if day in (1, 2)}


OTHERS: dict[str, Any] = {
    "first_event_id": "a",
    "events_count": 3,
    "points_earned": 6,
    "points_by_cap": {"CHECK_IN": 6},
    "ledger_head": stamp(EPOCH),
    "created_at": stamp(EPOCH),
    "last_event_id": "z",
    "passive_events": 1,
    "lots": {"2026-04-01": 5},
    "reversed_events": 1,
    "measures": {"CHECK_IN": 1},
}


@pytest.mark.parametrize("name", [each.name for each in fields(Day)][2:])
def test_whatever_else_a_day_says_is_another_signature(name: str) -> None:
    day = Day("a", BASE, "e", 2, 5, {"CHECK_IN": 5}, "2026", "2026", "f")
    assert signature(replace(day, **{name: OTHERS[name]})) != signature(day)


def test_dates_before_1970_have_keys_too(tmp_path: Path) -> None:
    old = Entry("a", stamp(EPOCH), 1, 0, Draft(EntryKind.EARN, 5, "e", "CHECK_IN", "1969-12-31"))
    lake = LakeDays.read(write(tmp_path, [old]))
    assert lake.place("a", "1969-12-31") == 0
    assert list(lake.table_keys()) == [{"user_id": "a", "activity_date": "1969-12-31"}]
