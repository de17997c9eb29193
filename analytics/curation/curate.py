"""Curation: the raw objects of an hour (or day, or month) of one entity become one curated Parquet file.

The steps of the nightly run call `curate_in_run`. Read it, `curate`, and `_curate_once` first: one attempt
from the listing of raw objects to the last delete. The functions after that are its parts, in their order.

Rows in = curated + duplicates + quarantined. This holds even if rows arrive twice, in pieces, or after a
crash. The order of writes makes it so:
1. The quarantine files of refused lines. They can be written again.
2. The curated file. Its footer names the raw objects that its rows are from, so one put changes data and
   bookkeeping together.
3. Quarantine files of lines that are rows now, and curated files whose rows are in the new one, are deleted.
Rows beyond MEMORY_BYTES_MAX go to disk (row_staging.py).
"""

import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from adapters.platform.aws import pauses
from adapters.platform.objects import NoObject, ObjectChanged, Objects, StoredObject
from analytics.curation.intake import Intake, RefusedLines, quarantine_keys, unreadable_objects
from analytics.curation.row_staging import Staging
from analytics.curation.sealed_file import is_broken
from analytics.lake import run_notes
from analytics.lake.bookkeeping import Bookkeeping, Counts, bookkeeping_of, merge_bookkeeping
from analytics.lake.layout import (
    Partition,
    curated_key,
    curated_partition,
    month_prefix,
    quarantine_key,
    source_key,
    source_name,
    without_parts,
)
from analytics.lake.listing import raw_objects_of_partition
from rules.lake.entities import ENTITIES

ATTEMPTS_MAX = 8


class BrokenSeal(ValueError):
    """A curated file is not as curation wrote it, so its rows are not used."""


def curate_in_run(
    objects: Objects, run_id: str, partition: Partition, *, rebuild: bool, arrived: Collection[str] | None
) -> Counts:
    """Do what `curate` does, and note for the run's report what an operator must know."""
    note_lack = partial(run_notes.note_rebuild, objects, run_id, partition)
    counts = curate(objects, partition, rebuild=rebuild, arrived=arrived, note_lack=note_lack)
    if counts.quarantined:
        for key, reason in unreadable_objects(objects, partition):
            run_notes.note_odd_object(objects, run_id, key, reason)
    return counts


def curate(
    objects: Objects,
    partition: Partition,
    *,
    rebuild: bool = False,
    arrived: Collection[str] | None = None,
    note_lack: Callable[[str], object] = lambda _: None,
) -> Counts:
    """Bring an hour's (day's, month's) curated file up to date with its raw objects; returns its counts.

    arrived: the dates of arrival (YYYY-MM-DD) under which to look for raw objects; None: all dates; empty:
    only the seal is checked. If the day or the month has a file of its own, an hour is curated into that.

    Usually only raw objects that the file does not hold yet are read, and added to its rows. `_is_made_anew`
    says when all of them are read, and when BrokenSeal is raised. A rebuild also takes the lines out of
    quarantine that the schema now allows. If raw objects lack some of the file's rows, a rebuild keeps its
    rows, and note_lack is called with the reason.

    A file is replaced on condition that it is the one that was read. If another writer was faster, all is
    done again with the file that it wrote. Raises ObjectChanged or NoObject if that happens too often.
    """
    for attempt in pauses(ATTEMPTS_MAX):
        try:
            return _curate_once(objects, partition, rebuild, arrived, note_lack)
        except (NoObject, ObjectChanged):
            if attempt == ATTEMPTS_MAX - 1:
                raise
    raise AssertionError


def _curate_once(
    objects: Objects,
    partition: Partition,
    rebuild: bool,
    arrived: Collection[str] | None,
    note_lack: Callable[[str], object],
) -> Counts:
    """Do what `curate` does, once. Raises NoObject or ObjectChanged if another writer was faster."""
    files = _files(objects, partition)
    bookkeeping = merge_bookkeeping(
        _bookkeeping_for(objects, file, files.partition) for file in files.sources_of_rows
    )
    raw = _raw_objects(objects, files.partition, bookkeeping, arrived)
    if raw.has_replaced and arrived is not None:  # all raw objects are needed: it may be made anew
        return _curate_once(objects, partition, rebuild, None, note_lack)

    if rebuild and raw.lack:
        note_lack(raw.lack)
    if _is_made_anew(objects, files, raw, rebuild, arrived):
        rows = FileRows((), Bookkeeping(0, Counts()), raw.listed, is_anew=True)
    else:
        rows = FileRows(files.sources_of_rows, bookkeeping, raw.new, RefusedLines() if rebuild else None)
    counts = rows.bookkeeping.counts
    if rows.raw or (rebuild and files.sources_of_rows) or files.is_compaction:
        counts = _write_file(objects, files, rows)
        _check_neighbours(objects, files)
    for file in files.parts.values():
        objects.delete_if(file.key, file.etag)
    return counts


@dataclass(frozen=True, slots=True)
class Files:
    """The curated files of a partition, before curation writes its file."""

    partition: Partition  # of the file to write. It is the month, or the day, if that has a file
    to_replace: StoredObject | None
    # The files of hours and days within it. The file to write has all their rows; at the end they are deleted
    parts: Mapping[Partition, StoredObject] = field(default_factory=dict)

    @property
    def is_compaction(self) -> bool:
        """Whether the rows of its parts become one file."""
        return self.to_replace is None and bool(self.parts)

    @property
    def sources_of_rows(self) -> Sequence[StoredObject]:
        """The files whose rows the file to write gets. The file that it replaces has those of the parts."""
        return [self.to_replace] if self.to_replace else list(without_parts(self.parts).values())


def _files(objects: Objects, partition: Partition) -> Files:
    """List the curated files of a partition."""
    listed = objects.list(month_prefix(partition))
    files = {found: file for file in listed if (found := curated_partition(file.key))}
    written = next((each for each in partition.wider if each in files), partition)
    return Files(
        written,
        files.get(written),
        {found: file for found, file in files.items() if written in found.wider},
    )


def _bookkeeping_for(objects: Objects, file: StoredObject, partition: Partition) -> Bookkeeping:
    """Return the bookkeeping of a curated file, with the names of its sources in a partition's file."""
    bookkeeping, earlier = bookkeeping_of(objects, file.key), curated_partition(file.key)
    if not partition.is_month or earlier is None or earlier.is_month:
        return bookkeeping
    names = {
        source_name(source_key(earlier, name), partition): etag for name, etag in bookkeeping.sources.items()
    }
    return replace(bookkeeping, sources=names)


@dataclass(frozen=True, slots=True)
class RawObjects:
    """The raw objects of a partition, by the names that bookkeeping has for them (source_name)."""

    listed: Mapping[str, StoredObject]
    new: Mapping[str, StoredObject]  # those that the curated files do not hold, or hold as they were before
    has_replaced: bool  # whether a curated file holds one as it was before
    lack: str  # why they lack rows that the curated files have; "": they lack none


def _raw_objects(
    objects: Objects, partition: Partition, bookkeeping: Bookkeeping, arrived: Collection[str] | None
) -> RawObjects:
    listed = {
        source_name(found.key, partition): found
        for found in raw_objects_of_partition(objects, partition, arrived)
    }
    new = {name: found for name, found in listed.items() if bookkeeping.sources.get(name) != found.etag}
    lack = "persons were erased" if bookkeeping.erased else ""
    if missing_names := bookkeeping.sources.keys() - listed.keys():
        lack = f"{len(missing_names)} raw objects are gone, {min(missing_names)} first"
    return RawObjects(listed, new, not new.keys().isdisjoint(bookkeeping.sources), lack)


def _is_made_anew(
    objects: Objects, files: Files, raw: RawObjects, rebuild: bool, arrived: Collection[str] | None
) -> bool:
    """Whether a file is made from all raw objects. The first case that holds decides.

    | case | raw objects have all rows | they lack some |
    |---|---|---|
    | rebuild | True | False |
    | a raw object was replaced | True | by the seal |
    | raw objects are added, parts become one file, or arrived is None or empty | by the seal | by the seal |
    | else | False | False |

    By the seal: rows that were changed by hand break it. Then the file is made anew, if raw objects have all
    rows and arrived is None; otherwise BrokenSeal is raised. A rebuild that keeps rows does not check it.
    """
    if rebuild or (raw.has_replaced and not raw.lack):
        return not raw.lack
    if not (raw.new or files.is_compaction or arrived is None or len(arrived) == 0):
        return False
    broken_keys = [file.key for file in files.sources_of_rows if is_broken(objects, file.key)]
    if broken_keys and (raw.lack or arrived is not None):
        raise BrokenSeal(f"rows were changed since they were curated: {', '.join(broken_keys)}")
    return bool(broken_keys)


@dataclass(frozen=True, slots=True)
class FileRows:
    """What the rows of a new file are made of."""

    earlier: Sequence[StoredObject]  # curated files
    bookkeeping: Bookkeeping  # of all these files together
    raw: Mapping[str, StoredObject]  # raw objects that are read, by source_name
    refused: RefusedLines | None = None  # reads the refused lines again; None: they stay refused
    is_anew: bool = False  # whether these are all raw objects of the partition


def _write_file(objects: Objects, files: Files, rows: FileRows) -> Counts:
    """Store refused lines, write a partition's file, and clear its quarantine; returns the file's counts."""
    partition, entity = files.partition, ENTITIES[files.partition.entity]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.parquet")
        staging = Staging(entity, path.with_name("spill"))
        for file in rows.earlier:
            objects.save(file.key, path)
            staging.add_curated(path)
            path.unlink()
        before = rows.bookkeeping.counts
        if rows.refused:
            before = rows.refused.take(objects, partition, rows.bookkeeping, rows.raw, staging)
        intake = Intake(objects, staging)
        intake.take(list(rows.raw.values()))
        lines_read = before.in_ + intake.lines_read
        quarantined = before.quarantined + intake.quarantined
        sources = {**rows.bookkeeping.sources, **{name: found.etag for name, found in rows.raw.items()}}

        def bookkeeping_with(curated: int) -> Bookkeeping:
            counts = Counts(lines_read, curated, lines_read - curated - quarantined, quarantined)
            return Bookkeeping(len(entity.fields), counts, sources, rows.bookkeeping.erased)

        counts = staging.write(path, bookkeeping_with).counts
        objects.put_if(curated_key(partition), path, files.to_replace.etag if files.to_replace else None)
    if rows.is_anew:  # lines that were not refused this time are rows now
        refused_keys = set(map(quarantine_key, intake.refused))
        objects.delete([key for key in quarantine_keys(objects, partition) if key not in refused_keys])
    elif rows.refused:
        rows.refused.store(objects)
    return counts


def _check_neighbours(objects: Objects, files: Files) -> None:
    """Raise ObjectChanged if another writer has made a file of a wider partition, or of a part, meanwhile.

    Neither writer may have seen the other's file. Readers of a day take its day's file alone, and readers of
    a month its month's. So rows of the others would be missing.
    """
    seen = {(file.key, file.etag) for file in files.parts.values()}
    now = _files(objects, files.partition)
    if now.partition != files.partition or any(
        (file.key, file.etag) not in seen for file in now.parts.values()
    ):
        raise ObjectChanged(curated_key(files.partition))
