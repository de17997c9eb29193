"""Persons' lines are found in texts of any kind, and nobody else's."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.forgetting.raw_objects import Finder
from rules.lake.packed_records import row_line

IDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)


@given(st.lists(st.tuples(IDS, IDS), max_size=8), st.sets(IDS, max_size=3), st.booleans())
def test_a_line_goes_if_and_only_if_its_row_is_of_them(
    rows: list[tuple[str, str]], gone: set[str], is_ascii: bool
) -> None:
    lines = [
        json.dumps({"user_id": user, "note": note}, ensure_ascii=is_ascii).encode() + b",\n"
        for user, note in rows
    ]
    text, counts = Finder("events", gone).remove_lines(b"".join(lines))
    kept = [line for line, (user, _) in zip(lines, rows, strict=True) if user not in gone]
    assert text == b"".join(kept)
    assert counts.total() == len(lines) - len(kept)


@pytest.mark.parametrize("name", ["ann", "ann-1", "events"])
def test_a_line_that_is_no_row_goes_if_it_has_the_name(name: str) -> None:
    finder, other = Finder("events", [name]), Finder("events", [name[:-1]])
    for form in ('{"user_id":"NAME","no', '["NAME"]', '{"user_id":7,"x":"NAME"}', 'not JSON: "NAME"\r'):
        line = form.replace("NAME", name).encode()
        assert finder.remove_lines(line) == (b"", {name: 1})
        assert other.remove_lines(line) == (line, {})


@pytest.mark.parametrize("name", ["7", "2026-03-01", "raw/events", "x.json"])
def test_a_number_a_date_or_a_key_in_a_line_that_is_no_row_names_a_person_in_a_persons_field_alone(
    name: str,
) -> None:
    finder = Finder("events", [name])
    for line in (f'["{name}"]', f'{{"user_id":7,"x":"{name}"}}', f'not JSON: "{name}"'):
        assert finder.remove_lines(line.encode()) == (line.encode(), {})
    assert finder.remove_lines(f'{{"user_id": "{name}","no'.encode()) == (b"", {name: 1})


@pytest.mark.parametrize(
    "line", [b'{"events":1,"no', b'{"event_type":"events","no', b'{"source" : "events","no']
)
def test_a_field_s_name_and_a_field_without_ids_name_nobody(line: bytes) -> None:
    assert Finder("events", ["events"]).remove_lines(line) == (line, {})


def test_frames_stay_and_rows_may_be_asked_one_by_one() -> None:
    rows = [{"user_id": "ann", "number": each, "dt": "2026-03-01", "hour": "05"} for each in range(3)]
    made = [row_line(row) for row in rows]
    text = made[0].head + b"".join(each.text + b",\n" for each in made) + b"null]}\n"
    kept, gone = Finder("events", ["ann"], lambda row: row["number"] > 0).remove_lines(text)
    assert kept == made[0].head + made[0].text + b",\n" + b"null]}\n"
    assert gone == {"ann": 2}
