"""Any lines of raw events: valid, odd, broken."""

import json
from typing import Any

from hypothesis import strategies as st

from tests.support.raw_lake import DT, event, line

NUMBERS = (5, -0, 1.5, 1e2, 2**63, -(2**63), True, None)
TEXTS = ("5", "", "x\0", '\u00e9"\\', DT, "2026-02-30", "2024-02-29")
TIMES = tuple(f"{DT}{rest}" for rest in ("T05:59:59.999999Z", "T05:00:60Z", "T07:00:00+02:00", " 05:00:00Z"))
ODD: st.SearchStrategy[Any] = st.sampled_from([*NUMBERS, *TEXTS, *TIMES, [], {}, {"a": [1]}, ...])
FIELD = st.sampled_from([*event(), "timezone", "properties", "mood", "user_id ", "Version"])
# Few keys and equal rows for equal versions: then nothing but the version decides which row stays.
PLAIN = st.builds(
    lambda number, version: event(number, version=f"{version}", points_awarded=version * 7 % 10),
    st.integers(0, 5),
    st.integers(0, 3),
)


def changed(row: dict[str, Any], name: str, value: Any) -> dict[str, Any]:
    """A row with one field changed, under a key of its own."""
    unique = "user_id" if name == "event_id" else "event_id"
    row = row | {unique: f"{name}={value!r} of {row}"} | {name: value}
    return {name: value for name, value in row.items() if value is not ...}


def torn(number: int, version: int, at: int, inserted: bytes) -> bytes:
    """A line with bytes inserted, under a key of its own."""
    whole = line(event(number, version=f"{version}", user_id=f"{at} {inserted.hex()} {version}"))
    return (whole[:at] + inserted + whole[at:]).replace(b"\n", b"")


NUMBER, VERSION = st.integers(0, 5), st.integers(0, 3)
CHANGED = st.builds(changed, PLAIN, FIELD, ODD)
BROKEN = st.one_of(
    st.binary(max_size=12).filter(lambda data: b"\n" not in data and not data.startswith(b"\x1f\x8b")),
    st.builds(torn, NUMBER, VERSION, st.integers(0, 330), st.binary(max_size=2)),
    st.builds(lambda row, size: line(row)[:size], PLAIN, st.integers(0, 330)),
)
WRITTEN = st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", " : ")])
LINE = st.one_of(
    PLAIN.map(line),
    st.tuples(CHANGED, WRITTEN, st.booleans()).map(
        lambda parts: json.dumps(parts[0], separators=parts[1], ensure_ascii=parts[2]).encode(
            errors="replace"
        )
    ),
    BROKEN,
)
