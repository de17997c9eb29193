"""Nights that forget: raw objects of a story, erasures that wait, and what a byte scan of a lake finds."""

import base64
import json
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow.parquet as pq

from adapters.platform.objects import FolderObjects, Objects
from analytics.curation.curate import curate
from analytics.lake.layout import Partition
from analytics.steps.forget_function import ForgetSteps
from analytics.steps.warehouse_function import WarehouseSteps
from analytics.warehouse.warehouse import NoWarehouse
from rules.days import stamp
from rules.privacy.erasures import LEADS, PHONES, SEALS, USERS, Erasure, PersonKind, hand_to_lake, with_names
from rules.privacy.erasures import PERSONS as PEOPLE
from tests.support.lake_sample import Sample
from tests.support.raw_lake import ARRIVED, put_raw


class MemoryJobs:
    """Stands for adapters.privacy.erasure_jobs.ErasureJobs."""

    def __init__(self) -> None:
        self.all: dict[str, Erasure] = {}

    def opened(self) -> Iterator[Erasure]:
        return iter(list(self.all.values()))

    def get(self, erasure_id: str) -> Erasure | None:
        return self.all.get(erasure_id)

    def save(self, erasure: Erasure) -> Erasure:
        self.all[erasure.erasure_id] = replace(erasure, version=erasure.version + 1)
        return self.all[erasure.erasure_id]

    def add(
        self,
        erasure_id: str,
        at: datetime,
        kind: PersonKind = PersonKind.USER,
        **names: str | tuple[str, ...],
    ) -> None:
        """An erasure whose online stores are done. names: user, lead, person, phone."""
        known = {"user": USERS, "lead": LEADS, "person": PEOPLE, "phone": PHONES, "seals": SEALS}
        erasure = Erasure(erasure_id, kind, "somebody", f"digest {erasure_id}", stamp(at))
        for name, value in names.items():
            erasure = with_names(erasure, known[name], [value] if isinstance(value, str) else value)
        self.all[erasure_id] = hand_to_lake(erasure, f"salt of {erasure_id}")


def _told(value: Any) -> Any:
    if isinstance(value, datetime):
        return stamp(value)
    return value.isoformat() if isinstance(value, date) else value


def write_raw(
    sample: Sample, objects: Objects, name: str, arrived: str = ARRIVED, *, by_month: bool = False
) -> list[Partition]:
    """Store what a story has touched as raw objects, and curate that; returns the places."""
    by_place: dict[Partition, list[Any]] = {place: [] for place in sorted(sample.touched, key=str)}
    sample.touched.clear()
    for entity, rows in sample.rows.items():
        for row in rows.values():
            if (place := sample.place(entity, row)) in by_place:
                told = {key: _told(value) for key, value in row.items() if key != "extra"}
                by_place[place].append(told | {"dt": place.dt, "hour": place.hour})
    for place, rows_of in by_place.items():
        put_raw(objects, name, rows_of, place, packed=3, arrived=arrived)
        curate(objects, place.month if by_month else place)
    return list(by_place)


def readings(data: bytes) -> Iterator[bytes]:
    """Yield what anybody can read in an object: as it is, unzipped as far as that goes, and out of base64."""
    texts = [data]
    for found in re.finditer(re.escape(b"\x1f\x8b\x08"), data):
        stream, found_text = zlib.decompressobj(31), bytearray()
        with suppress(zlib.error):
            for at in range(found.start(), len(data), 64):
                found_text += stream.decompress(data[at : at + 64])
        texts.append(bytes(found_text))
    for text in texts:
        yield text
        for run in re.findall(rb"[A-Za-z0-9+/]{16,}", text.replace(b"\\/", b"/")):
            yield from (base64.b64decode(run[start:][: (len(run) - start) // 4 * 4]) for start in range(4))


def having(root: Path, names: Iterable[str]) -> set[str]:
    """Return the files below a folder that have one of the names: where anybody can read it, or in a column."""
    wanted = [each.encode() for each in names]
    found = set()
    for path in sorted(each for each in root.rglob("*") if each.is_file()):
        data = path.read_bytes()
        texts = [data]
        if data.startswith(b"PAR1"):
            texts.append(
                json.dumps(pq.read_table(path).to_pydict(), default=str, ensure_ascii=False).encode()
            )
        elif path.suffix != ".duckdb":
            texts += readings(data)
        if any(each in text for each in wanted for text in texts):
            found.add(path.relative_to(root).as_posix())
    return found


def two_nights(jobs: Any, at: datetime) -> None:
    """Let two nights go through an empty lake without a warehouse, when nothing is on its way any more."""
    with TemporaryDirectory() as folder:
        objects = FolderObjects(Path(folder))
        steps = ForgetSteps(objects, jobs, None, timedelta(0))
        for run_id in ("one", "two"):
            objects.put(f"runs/{run_id}/tasks.json", b"[]")
            event = {"run_id": f"{run_id} {at}", "tasks_key": f"runs/{run_id}/tasks.json"}
            steps.forget(event, at)
            WarehouseSteps(NoWarehouse(), objects, folder, "").work(event, at)
            steps.finish(event)
