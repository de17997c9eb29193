"""Signatures of days: from the lake's entries by SQL, from an item by Python."""

from datetime import date, timedelta
from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.platform.objects import FolderObjects
from analytics.lake.arrow_schema import arrow_schema
from analytics.recompute.lake_days import LakeDays, signature
from rules.days import EPOCH, stamp
from rules.engagement.absorbing import absorb_days
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
    tmp_path_factory: pytest.TempPathFactory, drawn: list[tuple[str, str, int, int]]
) -> None:
    listed = [
        Entry(
            user,
            stamp(EPOCH + timedelta(microseconds=seq)),
            seq,
            0,
            Draft(EntryKind.EARN, points, f"{points}#{seq}", kind, str(BASE + timedelta(days=day))),
        )
        for seq, (user, kind, day, points) in enumerate(drawn, 1)
    ]
    objects = write(tmp_path_factory.mktemp("days"), listed)
    lake = LakeDays.read(objects)
    seen = lake.unseen()
    for user in "abc":
        for when, day in absorb_days({}, [each for each in listed if each.account_id == user]).items():
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
    assert some.users(some.unseen()) == {user for user, _, day, _ in drawn if day in (1, 2)}


def test_dates_before_1970_have_keys_too(tmp_path: Path) -> None:
    old = Entry("a", stamp(EPOCH), 1, 0, Draft(EntryKind.EARN, 5, "e", "CHECK_IN", "1969-12-31"))
    lake = LakeDays.read(write(tmp_path, [old]))
    assert lake.place("a", "1969-12-31") == 0
    assert list(lake.table_keys()) == [{"user_id": "a", "activity_date": "1969-12-31"}]
