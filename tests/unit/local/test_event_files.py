"""CSV files as spreadsheets write them are replayed; what is wrong is told by place and column."""

import re
from pathlib import Path

import pytest

from local.event_sources import BadRow, from_csv
from local.verify import local_date

EVENTS = 'user_id,occurred_at,idempotency_key,properties\nj\u00fcrgen,2026-06-01T12:00:00Z,k1,"{""a"": 1}"\n'
MARKED = ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"]


def written(path: Path, text: str, encoding: str = "utf-8") -> Path:
    mark = "\ufeff" if encoding in ("utf-16-le", "utf-16-be") else ""
    path.write_bytes((mark + text).encode(encoding))
    return path


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("encoding", MARKED)
def test_a_file_is_read_with_a_byte_order_mark_and_without(tmp_path: Path, encoding: str, ends: str) -> None:
    path = written(tmp_path / "a.csv", EVENTS.replace("\n", ends), encoding)
    (event,) = from_csv(path)
    assert (event["user_id"], event["properties"]) == ("j\u00fcrgen", {"a": 1})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the header lacks user_id, occurred_at, idempotency_key: it has nothing"),
        (
            "user,occurred_at,idempotency_key\n",
            "the header lacks user_id: it has user, occurred_at, idempotency_key",
        ),
        (
            "user_id;occurred_at;idempotency_key\n",
            "the header lacks user_id, occurred_at, idempotency_key: it has user_id;",
        ),
        ("user_id,occurred_at,idempotency_key\nu,,k\n", ":2: occurred_at is empty"),
        (
            "user_id,occurred_at,idempotency_key,properties\nu,t,k,{\n",
            ":2: properties is not JSON: expecting property name",
        ),
    ],
    ids=range(5),
)
def test_what_is_wrong_with_events_is_told_by_place_and_column(
    tmp_path: Path, text: str, reason: str
) -> None:
    with pytest.raises(BadRow, match=re.escape(reason)) as bad:
        list(from_csv(written(tmp_path / "a.csv", text)))
    assert "a.csv" in str(bad.value)


def test_bytes_of_another_encoding_are_told_by_place_and_column(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", EVENTS, "latin-1")
    with pytest.raises(BadRow, match=":2: user_id is no Unicode"):
        list(from_csv(path))


def test_a_value_that_json_could_not_hold_is_left_to_the_door_which_refuses_it_alone(tmp_path: Path) -> None:
    row = 'u,2026-06-01T12:00:00Z,k2,"{""a"": ""\\ud83d""}"\n'
    first, second = from_csv(written(tmp_path / "a.csv", EVENTS + row))
    assert (first["properties"], second["properties"]) == ({"a": 1}, {"a": "\ud83d"})


@pytest.mark.parametrize(
    ("zone", "day"),
    [
        ("", 1),
        ("GMT-3", 31),
        ("-03:00", 31),
        ("right/America/Sao_Paulo", 31),
        ("asia/tokyo", 1),
        ("SystemV/PST8", 31),
        ("PST", 1),
        ("W. Europe Standard Time", 1),
    ],
)
def test_the_independent_calculation_knows_a_zone_as_devices_spell_it(zone: str, day: int) -> None:
    body = {"occurred_at": "2026-06-01T01:00:00Z"} | ({"timezone": zone} if zone else {})
    assert local_date(body).day == day
