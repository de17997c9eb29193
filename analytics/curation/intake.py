"""Raw lines into the staging: those that are surely rows at once, the others one by one."""

import base64
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import groupby, islice
from typing import Any

import pyarrow as pa

from adapters.platform.objects import Objects, StoredObject
from analytics.curation.raw_lines import Batch, Unreadable, batches, unpacked
from analytics.curation.row_staging import Staging
from analytics.curation.small_staging import FewStaging
from analytics.curation.strict_reader import Refused, read_row
from analytics.lake.arrow_schema import arrow_schema
from analytics.lake.layout import Place, raw_place

FETCHED_AT_ONCE = 16


@dataclass(slots=True)
class Intake:
    """What came of raw objects. rows: read, blank lines apart; refused: raw key -> its entries."""

    staging: Staging | FewStaging
    rows: int = 0
    refused: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    _place: int = 0

    @property
    def quarantined(self) -> int:
        """How many rows were refused."""
        return sum(map(len, self.refused.values()))

    def take(self, objects: Objects, raw: Sequence[StoredObject]) -> None:
        """Read raw objects, in the order of their keys."""
        for place, some in groupby(raw, lambda each: raw_place(each.key)):
            if place:
                texts = self._texts(objects, [each.key for each in some])
                for batch in batches(texts):
                    self._take_batch(batch, place)
                    del batch

    def _texts(self, objects: Objects, keys: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        for key, data in _fetched(objects, keys):
            try:
                yield key, unpacked(data)
            except Unreadable as error:
                self.rows += 1
                self._refuse(key, {"line": 0, "reason": f"unreadable object: {error}"})

    def _take_batch(self, batch: Batch, place: Place) -> None:
        count, first = len(batch.lines), self._place
        self._place += count
        self.rows += count
        again = self.staging.add_lines(batch, place, first)
        self._take_singly(batch, place, first, sorted(number - first for number in again))

    def _take_singly(self, batch: Batch, place: Place, first: int, indices: Iterable[int]) -> None:
        rows = []
        for index in indices:
            line = batch.lines[index].as_py()
            if not line.strip():
                self.rows -= 1
                continue
            try:
                rows.append(read_row(line, place) | {"n": first + index})
            except Refused as error:
                key, number = batch.origin(index)
                self._refuse(key, {"line": number, "reason": str(error)} | _raw(line))
        if rows:
            schema = arrow_schema(self.staging.entity).append(pa.field("n", pa.int64()))
            self.staging.add_rows(pa.Table.from_pylist(rows, schema))

    def _refuse(self, key: str, entry: dict[str, Any]) -> None:
        self.refused.setdefault(key, []).append({"source": key} | entry)


def _fetched(objects: Objects, keys: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """Fetch objects side by side, a few ahead of what is needed."""
    if len(keys) == 1:
        yield keys[0], objects.get(keys[0])
        return
    rest = iter(keys)
    with ThreadPoolExecutor(FETCHED_AT_ONCE) as pool:
        while some := list(islice(rest, FETCHED_AT_ONCE)):
            yield from zip(some, pool.map(objects.get, some), strict=True)


def _raw(line: bytes) -> dict[str, str]:
    """The refused line itself, without its end."""
    line = line.rstrip(b"\r\n")
    try:
        return {"raw": line.decode()}
    except UnicodeDecodeError:
        return {"raw_base64": base64.b64encode(line).decode()}
