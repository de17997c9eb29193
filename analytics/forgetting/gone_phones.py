"""Removes rows of phones that are gone from the lake: a token must not outlive its phone there (rule 22).

A person who unsubscribes is not erased, and keeps all other rows. So this is a pass of its own, once a week.
It finds the phones that have been gone for long enough in all files of table_items. Then it cleans the lines
that curation or Firehose could not place, and writes the files that have earlier rows of these phones without
them. The row that says that a phone is gone stays. It has only an id, by which the next pass finds an earlier
row that arrives late.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from adapters.platform.objects import ForgettingObjects, NoObject, ObjectChanged, StoredObject
from analytics.curation.recover import ERRORS
from analytics.forgetting.curated_rows import rewrite_without_rows
from analytics.forgetting.raw_objects import Finder, RawObjects
from analytics.lake import layout
from analytics.lake.bookkeeping import bookkeeping_of
from analytics.lake.curated_files import RangedFile
from analytics.lake.layout import run_key
from rules.days import stamp, unstamp
from rules.lake.table_items import PHONES, TABLE_ITEMS, ends_phone

ENTITY = TABLE_ITEMS.name
# If somebody empties the table of phones by mistake, it can be restored for so long, and until that week's
# pass (rule 21).
GONE_PHONES_STAY = timedelta(days=7)
ITEM_COLUMNS = ["store", "place", "version", "changed_at", "item"]
PHONE_ROWS = pa.schema({"place": pa.string(), "version": pa.string(), "ended_at": pa.timestamp("us", "UTC")})
READERS = 16  # threads, because reading a file is mostly waiting
# A pass opens every file, and there is one more each day. So it is not made each night, but once a week:
# half a day less, because some nights begin earlier than others.
PASS_INTERVAL = timedelta(days=6, hours=12)
LAST_PASS = run_key("gone_phones", "last.json")
Ends = Mapping[str, str]  # the key of a phone's item -> the version by which the phone was gone


@dataclass(frozen=True, slots=True)
class GonePhones:
    """One night's pass."""

    objects: ForgettingObjects
    has_time: Callable[[], bool] = lambda: True  # whether to write another file in this call

    def is_due(self, now: datetime) -> bool:
        """Whether the last pass that came to its end is a week ago."""
        try:
            return now - unstamp(json.loads(self.objects.get(LAST_PASS))["ended"]) >= PASS_INTERVAL
        except NoObject:
            return True

    def run(self, now: datetime) -> tuple[bool, int]:
        """Do as much as the call has time for; returns whether all is done, and how many rows were removed.

        It is safe to repeat. If somebody else writes a file meanwhile, the next night makes another pass.
        """
        files = layout.curated_files(self.objects, ENTITY)
        with ThreadPoolExecutor(READERS) as pool:
            phones_of_files = list(pool.map(self._phones, files))
        ends = _ends(phones_of_files, now)
        if ends:
            self._raw.clean_quarantine(ENTITY, _finder(ends))
            self._raw.clean_errors(f"{ERRORS}{ENTITY}/", _finder(ends))
        total, is_whole = 0, True
        for stored, phones in zip(files, phones_of_files, strict=True):
            gone_count = pc.sum(_gone_flags(phones, ends)).as_py()
            if not gone_count:
                continue
            if total and not self.has_time():
                return False, total
            try:
                self._rewrite_without_phones(stored, ends)
                total += gone_count
            except (NoObject, ObjectChanged):
                is_whole = False
        if is_whole:
            self.objects.put(LAST_PASS, json.dumps({"ended": stamp(now)}).encode())
        return True, total

    def _phones(self, stored: StoredObject) -> pa.Table:
        """Return a file's rows of phones (PHONE_ROWS). ended_at: when the phone was gone; null: it is not."""
        try:
            source = pa.PythonFile(RangedFile(self.objects, stored), mode="r")
            # Row groups whose least and greatest names leave no room for phones are not read.
            rows = pq.read_table(
                source, columns=ITEM_COLUMNS, filters=[("store", "=", PHONES)], use_threads=False
            )
        except NoObject:
            return PHONE_ROWS.empty_table()
        times, items = rows["changed_at"].to_pylist(), rows["item"].to_pylist()
        ended = [at if ends_phone(text) else None for at, text in zip(times, items, strict=True)]
        return pa.table(
            [rows["place"], rows["version"], pa.array(ended, PHONE_ROWS.field("ended_at").type)],
            schema=PHONE_ROWS,
        )

    def _rewrite_without_phones(self, stored: StoredObject, ends: Ends) -> None:
        """Write a file without earlier rows of gone phones. Raw lines go first: the rows lead to them."""
        place = layout.curated_place(stored.key)
        assert place  # noqa: S101 (none else are listed)
        sources = bookkeeping_of(self.objects, stored.key).sources
        self._raw.clean([layout.source_key(place, name) for name in sources], _finder(ends))
        with TemporaryDirectory() as temporary:
            path = Path(temporary, "rows.parquet")
            self.objects.save(stored.key, path)
            rewrite_without_rows(self.objects, ENTITY, stored, path, lambda rows: _gone_flags(rows, ends))
        self.objects.forget_former(layout.curated_prefix(ENTITY, place.dt))

    @property
    def _raw(self) -> RawObjects:
        """What cleans raw objects. Nobody asks how many lines it removes."""
        return RawObjects(self.objects, note=lambda _what, _counts: None)


def _ends(tables: Iterable[pa.Table], now: datetime) -> Ends:
    """Return the phones that have been gone for long enough, and the newest version that says so."""
    ends: dict[str, str] = {}
    for rows in tables:
        is_end = pc.less_equal(rows["ended_at"], pa.scalar(now - GONE_PHONES_STAY))
        for row in rows.filter(is_end).to_pylist():
            ends[row["place"]] = max(row["version"], ends.get(row["place"], ""))
    return ends


def _gone_flags(rows: pa.Table, ends: Ends) -> pa.Array:
    """Return for each row whether it is from before its phone was gone.

    Rows of a table without the column `store` are all of phones.
    """
    is_gone = pc.is_in(rows["place"], pa.array(list(ends), pa.string()))
    if "store" in rows.schema.names:
        is_gone = pc.and_(is_gone, pc.equal(rows["store"], PHONES))
    flags = np.array(is_gone, dtype=bool)
    for number in np.flatnonzero(flags):
        place, version = rows["place"][number].as_py(), rows["version"][number].as_py()
        flags[number] = version < ends[place]
    return pa.array(flags)


def _finder(ends: Ends) -> Finder:
    """Return a finder of the lines that are to go."""
    return Finder(ENTITY, ends, partial(_is_before_end, ends), column="place")


def _is_before_end(ends: Ends, row: Mapping[str, Any]) -> bool:
    """Whether a row is from before its phone was gone. A row whose version cannot be read counts as one."""
    version = row.get("version")
    is_before = not isinstance(version, str) or version < ends[row["place"]]
    return row.get("store") == PHONES and is_before
