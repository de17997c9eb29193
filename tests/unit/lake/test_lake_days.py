"""Days out of the lake's entries: the same as out of the ledger's, and each change of a stored one is seen."""

from collections.abc import Iterable, Iterator, Mapping
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

from adapters.engagement.account_items import day_attributes
from adapters.platform.items import Item, encode_item
from adapters.platform.objects import FolderObjects
from analytics.lake.arrow import arrow_schema
from analytics.recompute.lake_days import days_between, days_touched
from analytics.reconcile.reconcile_share import DAYS_AT_ONCE, users_of_other_days
from rules.days import EPOCH, stamp
from rules.engagement.account import days_with_entries
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
    expected = [
        day
        for user in "abc"
        for day in days_with_entries({}, [each for each in listed if each.account_id == user]).values()
    ]
    assert list(days_between(objects, date.min, date.max)) == expected
    one, two = BASE + timedelta(days=1), BASE + timedelta(days=2)
    some = [each for each in expected if each.activity_date in (one, two)]
    assert list(days_between(objects, one, two)) == some
    touched, long_ago = days_touched(objects, EPOCH)
    assert (list(touched), long_ago) == (expected, set())


OTHERS: dict[str, Any] = {
    "first_event_id": "a",
    "events_count": 3,
    "points_earned": 6,
    "points_by_cap": {"CHECK_IN": 6},
    "watermark": stamp(EPOCH),
    "created_at": stamp(EPOCH),
    "last_event_id": "z",
    "passive_events": 1,
    "lots": {"2026-04-01": 5},
    "reversed_events": 1,
    "measures": {"CHECK_IN": 1},
}


@pytest.mark.parametrize("name", [each.name for each in fields(Day)][2:])
def test_whatever_else_a_stored_day_says_is_seen(name: str) -> None:
    day = Day("a", BASE, "e", 2, 5, {"CHECK_IN": 5}, "2026", "2026", "f")
    stored = day_attributes(replace(day, **{name: OTHERS[name]}))
    assert users_of_other_days([day], lambda keys: [[encode_item(stored)]]) == {"a"}


def test_a_day_is_right_only_as_it_would_be_written() -> None:
    day = Day("a", BASE, "e", 2, 5, {"CHECK_IN": 5}, "2026", "2026", "f")
    right = encode_item(day_attributes(day))
    assert users_of_other_days([day], lambda keys: [[right]]) == set()
    assert users_of_other_days([day], lambda keys: []) == {"a"}, "it is missing"
    as_text = right | {"points_earned": {"S": "5"}}
    assert users_of_other_days([day], lambda keys: [[as_text]]) == {"a"}
    one_more = right | {"note": {"S": "by hand"}}
    assert users_of_other_days([day], lambda keys: [[one_more]]) == {"a"}


def test_many_days_are_read_in_pages() -> None:
    days = [Day(f"u{n}", BASE, "e", 1, 5, {}, "2026", "2026", "e") for n in range(DAYS_AT_ONCE + 1)]
    asked = []

    def read(keys: Iterable[Mapping[str, str]]) -> Iterator[list[Item]]:
        asked.append(names := {each["user_id"] for each in keys})
        for each in days:
            if each.user_id in names - {"u7", f"u{DAYS_AT_ONCE}"}:
                yield [encode_item(day_attributes(each))]

    assert users_of_other_days(days, read) == {"u7", f"u{DAYS_AT_ONCE}"}
    assert list(map(len, asked)) == [DAYS_AT_ONCE, 1]


def test_dates_before_1970_are_dates_too(tmp_path: Path) -> None:
    old = Entry("a", stamp(EPOCH), 1, 0, Draft(EntryKind.EARN, 5, "e", "CHECK_IN", "1969-12-31"))
    assert [each.activity_date for each in days_between(write(tmp_path, [old]), date.min, date.max)] == [
        date(1969, 12, 31)
    ]
