"""A day of raw events as Firehose leaves it: 100 gzip files with duplicates and bad lines, made once.

There are two of it with the same rows: as plain lines, which the rivals read, and as packed records.
"""

import json
import os
import random
import uuid
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from isal import igzip

from rules.lake.packed_records import frame_record, record_header

FILES = 100
HOURS = 24
EVENTS = int(os.environ.get("BENCH_CURATION_EVENTS", "5000000"))
DUPLICATES = 0.01
MALFORMED = 0.001
DT = "2026-03-01"
RECORD_ROWS_MAX = 200
FOLDER = Path(os.environ.get("BENCH_FOLDER", ".local/bench"))


def raw_day_folder(*, packed: bool = False) -> Path:
    """Return the folder of a lake whose raw/ is filled."""
    folder = FOLDER / (f"lake-{EVENTS}" + "-packed" * packed)
    if not (folder / "complete").exists():
        with ProcessPoolExecutor() as pool:
            list(pool.map(_write_file, [folder] * FILES, range(FILES), [packed] * FILES))
        (folder / "complete").touch()
    return folder


def _write_file(folder: Path, number: int, packed: bool) -> None:
    hour = f"{number * HOURS // FILES:02}"
    path = folder / "raw/events" / f"dt={DT}" / f"hour={hour}" / f"part-{number:03}.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = _lines(number, hour)
    text = _packed(lines, number, hour) if packed else b"\n".join(lines) + b"\n"
    path.write_bytes(igzip.compress(text, 2))


def _packed(lines: list[bytes], number: int, hour: str) -> bytes:
    """Return lines as records of up to RECORD_ROWS_MAX rows, the bad lines among them."""
    chance, records, at = random.Random(number), [], 0
    while at < len(lines):
        size = chance.randint(1, RECORD_ROWS_MAX)
        records.append(frame_record(record_header(DT, hour), lines[at : at + size]))
        at += size
    return b"".join(records)


def _lines(number: int, hour: str) -> list[bytes]:
    chance = random.Random(number)
    lines: list[bytes] = []
    events: list[dict[str, object]] = []
    while len(lines) < EVENTS // FILES:
        draw = chance.random()
        if events and draw < DUPLICATES:
            again = dict(chance.choice(events))
            if draw < DUPLICATES / 2:  # a second version: a daily cap cut its points
                again |= {"points_awarded": 0, "version": "1"}
            lines.append(_json(again))
            continue
        event = _event(chance, hour)
        if draw > 1 - MALFORMED:
            lines.append(_spoiled(chance, event))
            continue
        events.append(event)
        lines.append(_json(event))
    return lines


def _json(event: dict[str, object]) -> bytes:
    return json.dumps(event, separators=(",", ":")).encode()


def _event(chance: random.Random, hour: str) -> dict[str, object]:
    minute, micros = divmod(chance.randrange(3_600_000_000), 60_000_000)
    clock = f"{hour}:{minute:02}:{micros // 1_000_000:02}.{micros % 1_000_000:06}"
    user, key = chance.randrange(200_000), chance.getrandbits(128)
    return {
        "event_id": f"{DT}T{clock}Z#{uuid.UUID(int=key)}",
        "user_id": f"u{user:06}",
        "idempotency_key": f"{key & 0xFFFFFFFF:08x}",
        "event_type": chance.choice(("CHECK_IN", "LESSON", "SHARE")),
        "occurred_at": f"{DT}T{clock}Z",
        "occurred_local": f"{DT}T{clock[:8]}Z",
        "activity_date": DT,
        "zone": "UTC",
        "points_awarded": chance.choice((0, 5, 10, 25)),
        "source": "app",
        "created_at": f"{DT}T{clock[:-2]}99Z",
        "version": "0",
        "dt": DT,
        "hour": hour,
    }


def _spoiled(chance: random.Random, event: dict[str, object]) -> bytes:
    """Return a line with one of the usual faults: cut off, a wrong type, a missing field, no such date."""
    match chance.randrange(7):
        case 0:
            return _json(event)[: chance.randrange(20, 200)]
        case 1:
            return _json(event | {"points_awarded": "ten"})
        case 2:
            return _json(event | {"points_awarded": "5"})
        case 3:
            del event["user_id"]
            return _json(event)
        case 4:
            return _json(event | {"activity_date": "2026-02-30"})
        case 5:
            return _json(event | {"source": 5})
        case _:
            return b"null"
