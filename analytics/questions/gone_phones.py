"""Removes rows of phones that are gone from the lake: a token must not outlive its phone there (rule 22).

A person who unsubscribes is not erased, and keeps all other rows. So this is a pass of its own, once a week:

1. It reads all files of table_items, and finds the phones that have been gone for long enough.
2. It cleans the lines that curation or Firehose could not place.
3. It writes the files that have earlier rows of these phones anew, without them.

The row that says that a phone is gone stays. It has only an id, by which the next pass finds an earlier row
that arrives late.
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
from rules.lake.table_items import TABLE_ITEMS, item_of
from rules.questions.phone_items import PHONES, TOKEN

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
GoneVersions = Mapping[str, str]  # the key of a phone's item -> the newest version that says that it is gone


def ends_phone(text: str) -> bool:
    """Whether a row's item says that a phone is gone: it was removed, or its token is dead."""
    return TOKEN not in item_of(text)


@dataclass(frozen=True, slots=True)
class GonePhones:
    """One weekly pass."""

    objects: ForgettingObjects
    has_time: Callable[[], bool] = lambda: True  # whether to write another file in this call

    def is_due(self, now: datetime) -> bool:
        """Whether the last pass that came to its end is a week ago."""
        try:
            return now - unstamp(json.loads(self.objects.get(LAST_PASS))["ended"]) >= PASS_INTERVAL
        except NoObject:
            return True

    def run(self, now: datetime) -> tuple[bool, int]:
        """Do as much as the call has time for; returns whether it is done, and how many rows were removed.

        False: files are left for another call. It is safe to repeat. If somebody else writes a file
        meanwhile, the pass does not count, so the next night makes another one.
        """
        files = layout.curated_files(self.objects, ENTITY)
        with ThreadPoolExecutor(READERS) as pool:
            phone_rows_of_files = list(pool.map(self._phone_rows, files))
        gone = _gone_versions(phone_rows_of_files, now)
        if gone:
            self._raw.clean_quarantine(ENTITY, _finder(gone))
            self._raw.clean_errors(f"{ERRORS}{ENTITY}/", _finder(gone))
        removed, is_whole = 0, True
        for stored, phone_rows in zip(files, phone_rows_of_files, strict=True):
            outdated = pc.sum(_outdated_rows(phone_rows, gone)).as_py()
            if not outdated:
                continue
            if removed and not self.has_time():
                return False, removed
            try:
                self._rewrite_without_outdated(stored, gone)
                removed += outdated
            except (NoObject, ObjectChanged):
                is_whole = False
        if is_whole:
            self.objects.put(LAST_PASS, json.dumps({"ended": stamp(now)}).encode())
        return True, removed

    def _phone_rows(self, stored: StoredObject) -> pa.Table:
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

    def _rewrite_without_outdated(self, stored: StoredObject, gone: GoneVersions) -> None:
        """Write a file without earlier rows of gone phones. Raw lines go first: the rows lead to them."""
        place = layout.curated_partition(stored.key)
        assert place  # noqa: S101 (none else are listed)
        sources = bookkeeping_of(self.objects, stored.key).sources
        self._raw.clean([layout.source_key(place, name) for name in sources], _finder(gone))
        with TemporaryDirectory() as temporary:
            path = Path(temporary, "rows.parquet")
            self.objects.save(stored.key, path)
            rewrite_without_rows(self.objects, ENTITY, stored, path, lambda rows: _outdated_rows(rows, gone))
        self.objects.forget_former(layout.curated_prefix(ENTITY, place.dt))

    @property
    def _raw(self) -> RawObjects:
        """What cleans raw objects. Nobody asks how many lines it removes."""
        return RawObjects(self.objects, note=lambda _what, _counts: None)


def _gone_versions(phone_rows_of_files: Iterable[pa.Table], now: datetime) -> GoneVersions:
    """Return the phones that have been gone for long enough."""
    gone: dict[str, str] = {}
    for rows in phone_rows_of_files:
        is_gone = pc.less_equal(rows["ended_at"], pa.scalar(now - GONE_PHONES_STAY))
        for row in rows.filter(is_gone).to_pylist():
            gone[row["place"]] = max(row["version"], gone.get(row["place"], ""))
    return gone


def _outdated_rows(rows: pa.Table, gone: GoneVersions) -> pa.Array:
    """Return for each row whether it is from before its phone was gone.

    Rows of a table without the column `store` are all of phones.
    """
    is_of_gone = pc.is_in(rows["place"], pa.array(list(gone), pa.string()))
    if "store" in rows.schema.names:
        is_of_gone = pc.and_(is_of_gone, pc.equal(rows["store"], PHONES))
    flags = np.array(is_of_gone, dtype=bool)
    for number in np.flatnonzero(flags):
        place, version = rows["place"][number].as_py(), rows["version"][number].as_py()
        flags[number] = version < gone[place]
    return pa.array(flags)


def _finder(gone: GoneVersions) -> Finder:
    """Return a finder of the lines that are to go."""
    return Finder(ENTITY, gone, partial(_is_outdated, gone), column="place")


def _is_outdated(gone: GoneVersions, row: Mapping[str, Any]) -> bool:
    """Whether a row is from before its phone was gone. A row whose version cannot be read counts as one."""
    version = row.get("version")
    is_before = not isinstance(version, str) or version < gone[row["place"]]
    return row.get("store") == PHONES and is_before
