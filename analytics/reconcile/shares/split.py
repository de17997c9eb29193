"""Splits curated files, and scans of the live tables, among the shares of a night.

Each file and each item is read once, whatever the number of shares. Pieces lie in the run's own folder, under
the names of their partitions, so that a share reads them as it would read the lake.
"""

import gzip
import json
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from adapters.engagement.projections import Projections
from adapters.platform.items import Item
from adapters.platform.objects import Objects
from adapters.platform.tables import chunks
from analytics.lake import curated_files, layout
from analytics.lake.curated_files import arrow_table, connect, query
from analytics.recompute.activity_runs import ACTIVE_COLUMNS
from analytics.recompute.ledger_totals import ENTRY_COLUMNS, SETTINGS
from analytics.recompute.settled_users import SHARE, UserShare
from analytics.reconcile.candidates import SEGMENTS
from analytics.reconcile.shares.night_plan import NightPlan
from rules.engagement.reconciliation import share_of

COLUMNS = {
    "daily_activity": ACTIVE_COLUMNS,
    "ledger": ENTRY_COLUMNS,
    "streaks": ("user_id", *SETTINGS),
}
ROWS_AT_ONCE = 500_000
PAGE = 1000  # items
FASTEST = 1
Pages = Iterator[list[Item]]


def split_files(objects: Objects, plan: NightPlan, entity: str, keys: Sequence[str]) -> int:
    """Write each share's rows of some curated files, where it needs them; returns how many pieces."""
    pieces = 0
    for key in keys:
        place = layout.curated_place(key)
        if place is None:
            raise ValueError(f"{key} is no curated file")
        wanted = {number for number, after in enumerate(plan.after[entity]) if place.dt > after}
        pieces += _split_file(objects, plan, entity, key, wanted)
    return pieces


def _split_file(objects: Objects, plan: NightPlan, entity: str, key: str, wanted: Collection[int]) -> int:
    writers: dict[int, pq.ParquetWriter] = {}
    with tempfile.TemporaryDirectory() as name, ExitStack() as opened:
        folder = Path(name)
        objects.save(key, folder / "whole")
        for number, rows in _by_share(folder / "whole", entity, plan.shares):
            if number in wanted:
                if number not in writers:
                    writers[number] = opened.enter_context(
                        pq.ParquetWriter(folder / str(number), rows.schema, compression="zstd")
                    )
                writers[number].write_table(rows)
        opened.close()
        for number in writers:
            piece = UserShare(number, plan.shares).key(plan.run_id, key)
            objects.put(piece, (folder / str(number)).read_bytes())
    return len(writers)


def _by_share(path: Path, entity: str, shares: int) -> Iterator[tuple[int, pa.Table]]:
    """Yield a file's rows share by share, some hundred thousand rows at once."""
    names = COLUMNS[entity]
    with pq.ParquetFile(path) as file:
        known = [each for each in names if each in file.schema_arrow.names]
        for batch in file.iter_batches(ROWS_AT_ONCE, columns=known):
            rows = curated_files.as_declared(pa.Table.from_batches([batch]), entity, names)
            yield from _rows_by_share(rows, names[0], shares)


def _rows_by_share(rows: pa.Table, user: str, shares: int) -> Iterator[tuple[int, pa.Table]]:
    """Yield the rows of each share that has any. user: the column with the user's id."""
    sql = f"SELECT {SHARE.format(user=user, shares=shares)} AS share FROM rows"  # noqa: S608 (our own)
    with arrow_table(db := connect(), "rows", rows):
        numbers = query(db, sql)["share"].to_numpy()
    order = np.argsort(numbers, kind="stable")
    ends = np.searchsorted(numbers[order], np.arange(shares + 1))
    by_share = rows.take(order)
    for number in np.unique(numbers).tolist():
        yield number, by_share.slice(ends[number], ends[number + 1] - ends[number])


@dataclass(frozen=True, slots=True)
class TableScans:
    """Scans of the live tables: `profiles` or `days`."""

    objects: Objects
    plan: NightPlan
    projections: Projections

    def split(self, table: str, segment: int, segments: int) -> int:
        """Scan a segment of a table, and write each share's items; returns how many items."""
        files: dict[int, Any] = {}
        items = 0
        piece = f"{table}/{segment:04}.ndjson.gz"
        with tempfile.TemporaryDirectory() as name, ExitStack() as opened:
            for page in self._scan(table)(segment, segments):
                items += len(page)
                for each in page:
                    number = share_of(each["user_id"]["S"], self.plan.shares)
                    if number not in files:
                        path = Path(name) / str(number)
                        files[number] = opened.enter_context(gzip.open(path, "wt", FASTEST, encoding="utf-8"))
                    files[number].write(json.dumps(each, default=_bytes) + "\n")
            opened.close()
            for number in files:
                key = UserShare(number, self.plan.shares).key(self.plan.run_id, piece)
                self.objects.put(key, (Path(name) / str(number)).read_bytes())
        return items

    def of(self, table: str, share: UserShare) -> list[Callable[[], Pages]]:
        """Return the scans that find all of a share's items: of the table itself, if there is one share."""
        if share.of == 1:
            return [partial(self._scan(table), segment, SEGMENTS) for segment in range(SEGMENTS)]
        pieces = self.objects.list(share.key(self.plan.run_id, f"{table}/"))
        return [partial(_pages, self.objects, each.key) for each in pieces]

    def _scan(self, table: str) -> Callable[[int, int], Pages]:
        return self.projections.scan_profiles if table == "profiles" else self.projections.scan_days


def _bytes(value: bytes) -> str:
    """Write bytes, which no item of ours has, as text: so the item looks wrong, and is read again."""
    return value.hex()


def _pages(objects: Objects, key: str) -> Pages:
    lines: Iterable[bytes] = gzip.decompress(objects.get(key)).splitlines()
    for some in chunks(lines, PAGE):
        yield [json.loads(line) for line in some]
