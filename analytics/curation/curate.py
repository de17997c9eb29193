"""Curation: the raw objects of an hour (or day) of one entity become one curated Parquet file.

The steps of the nightly run call `curate_in_run`. Read it, `curate`, and `_curate_once` first: one attempt
from the listing of raw objects to the last delete. The functions after that are its parts, in their order.

Rows in = curated + duplicates + quarantined. This holds even if rows arrive twice, in pieces, or after a
crash. The order of writes makes it so:
1. The quarantine files of refused lines. They can be written again.
2. The curated file. Its footer names the raw objects that its rows are from, so one put changes data and
   bookkeeping together.
3. Quarantine files of lines that are rows now, and curated files whose rows are in the new one, are deleted.
Memory never holds more than a part of the rows.
"""

import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
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
    Place,
    curated_key,
    curated_place,
    curated_prefix,
    quarantine_key,
    source_name,
)
from analytics.lake.listing import raw_objects_of_place
from rules.lake.entities import ENTITIES

ATTEMPTS_MAX = 8


class BrokenSeal(ValueError):
    """A curated file is not as curation wrote it, so its rows are not used."""


def curate_in_run(
    objects: Objects, run_id: str, place: Place, *, rebuild: bool, arrived: Collection[str] | None
) -> Counts:
    """Do what `curate` does, and note for the run's report what an operator must know."""
    note_lack = partial(run_notes.note_rebuild, objects, run_id, place)
    counts = curate(objects, place, rebuild=rebuild, arrived=arrived, note_lack=note_lack)
    if counts.quarantined:
        for key, reason in unreadable_objects(objects, place):
            run_notes.note_odd_object(objects, run_id, key, reason)
    return counts


def curate(
    objects: Objects,
    place: Place,
    *,
    rebuild: bool = False,
    arrived: Collection[str] | None = None,
    note_lack: Callable[[str], object] = lambda _: None,
) -> Counts:
    """Bring an hour's (or day's) curated file up to date with its raw objects; returns its counts.

    arrived: the dates of arrival (YYYY-MM-DD) under which to look for raw objects; None: all dates; empty:
    only the seal is checked. If the day has a file of its own, an hour is curated into that file.

    Usually only raw objects that the file does not hold yet are read, and added to its rows. In three cases
    the file is made anew from all its raw objects: if rebuild is true (then lines that the schema now allows
    leave the quarantine), if an object that it holds was replaced, or if its seal is broken.

    It is never made anew if the raw objects lack some of its rows: if some are gone, or persons were erased
    from the file. Then a rebuild takes the file's own rows and the lines in quarantine, and note_lack is
    called with the reason.

    Rows that were changed by hand break the seal. It is checked before rows of files are used: if raw objects
    are added, or hours become a day; and also if arrived is None or empty. Raises BrokenSeal if the file
    cannot be made anew, or if arrived is not None.

    A file is replaced on condition that it is the one that was read. If another writer was faster, all is
    done again with the file that it wrote. Raises ObjectChanged or NoObject if that happens too often.
    """
    for attempt in pauses(ATTEMPTS_MAX):
        try:
            return _curate_once(objects, place, rebuild, arrived, note_lack)
        except (NoObject, ObjectChanged):
            if attempt == ATTEMPTS_MAX - 1:
                raise
    raise AssertionError


def _curate_once(
    objects: Objects,
    place: Place,
    rebuild: bool,
    arrived: Collection[str] | None,
    note_lack: Callable[[str], object],
) -> Counts:
    """Do what `curate` does, once. Raises NoObject or ObjectChanged if another writer was faster."""
    # What is there: curated files with their bookkeeping, and raw objects by the names that the latter uses.
    files = _files(objects, place)
    book = merge_bookkeeping(bookkeeping_of(objects, file.key) for file in files.merged)
    raw = {source_name(found.key): found for found in raw_objects_of_place(objects, files.place, arrived)}
    new = {name: found for name, found in raw.items() if book.sources.get(name) != found.etag}
    has_replaced = not new.keys().isdisjoint(book.sources)
    if has_replaced and arrived is not None:  # the file is made anew, for which all raw objects are needed
        return _curate_once(objects, place, rebuild, None, note_lack)

    # Is it made anew?
    missing_names = book.sources.keys() - raw.keys()
    lacks_raw = bool(missing_names or book.erased)
    if rebuild:
        is_anew = not lacks_raw
        if lacks_raw:
            note_lack(_lack_reason(missing_names))
    elif has_replaced and not lacks_raw:
        is_anew = True
    elif new or files.is_compaction or not arrived:
        # All raw objects are there only if none is gone, and if those of all dates of arrival were listed.
        is_anew = _has_broken_seal(objects, files.merged, can_be_remade=not lacks_raw and arrived is None)
    else:
        is_anew = False

    if is_anew:
        rows = FileRows((), Bookkeeping(0, Counts()), raw, is_anew=True)
    else:
        rows = FileRows(files.merged, book, new, RefusedLines() if rebuild else None)
    counts = rows.book.counts
    if rows.raw or (rebuild and files.merged) or files.is_compaction:
        counts = _write_file(objects, files, rows)
        _check_neighbours(objects, files)
    for file in files.superfluous:
        objects.delete_if(file.key, file.etag)
    return counts


@dataclass(frozen=True, slots=True)
class Files:
    """The curated files of a place, before curation writes its file."""

    place: Place  # of the file to write. It is the day if the day has a file
    own: StoredObject | None  # the file that is replaced
    # Files of the day's hours, which are deleted at the end: the file to write has all of their rows
    superfluous: Sequence[StoredObject] = ()

    @property
    def is_compaction(self) -> bool:
        """Whether the rows of the hours' files become a day's file."""
        return self.own is None and bool(self.superfluous)

    @property
    def merged(self) -> Sequence[StoredObject]:
        """The files whose rows the file to write gets. If the day has a file, it has the hours' rows."""
        return [self.own] if self.own else self.superfluous


def _files(objects: Objects, place: Place) -> Files:
    """List the curated files of a place."""
    listed = objects.list(curated_prefix(place.entity, place.dt))
    files = {found: file for file in listed if (found := curated_place(file.key))}
    day = replace(place, hour=None)
    day_file = files.pop(day, None)
    if day_file or place == day:
        return Files(day, day_file, list(files.values()))
    return Files(place, files.get(place))


def _lack_reason(missing_names: Collection[str]) -> str:
    """Return why a file cannot be made from raw objects."""
    if not missing_names:
        return "persons were erased"
    return f"{len(missing_names)} raw objects are gone, {min(missing_names)} first"


def _has_broken_seal(objects: Objects, files: Sequence[StoredObject], *, can_be_remade: bool) -> bool:
    """Whether the rows of any file were changed by hand. Raises BrokenSeal if so and it cannot be remade."""
    broken_keys = [file.key for file in files if is_broken(objects, file.key)]
    if broken_keys and not can_be_remade:
        raise BrokenSeal(f"rows were changed since they were curated: {', '.join(broken_keys)}")
    return bool(broken_keys)


@dataclass(frozen=True, slots=True)
class FileRows:
    """What the rows of a new file are made of."""

    earlier: Sequence[StoredObject]  # curated files
    book: Bookkeeping  # of all these files together
    raw: Mapping[str, StoredObject]  # raw objects that are read, by source_name
    refused: RefusedLines | None = None  # reads the refused lines again; None: they stay refused
    is_anew: bool = False  # whether these are all raw objects of the place


def _write_file(objects: Objects, files: Files, rows: FileRows) -> Counts:
    """Store refused lines, write a place's file, and clear its quarantine; returns the file's counts."""
    place, entity = files.place, ENTITIES[files.place.entity]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.parquet")
        staging = Staging(entity, path.with_name("spill"))
        for file in rows.earlier:
            objects.save(file.key, path)
            staging.add_curated(path)
            path.unlink()
        before = rows.book.counts
        if rows.refused:
            before = rows.refused.take(objects, place, rows.book, rows.raw, staging)
        intake = Intake(objects, staging)
        intake.take(list(rows.raw.values()))
        lines_read = before.in_ + intake.lines_read
        quarantined = before.quarantined + intake.quarantined
        sources = {**rows.book.sources, **{name: found.etag for name, found in rows.raw.items()}}

        def bookkeeping(curated: int) -> Bookkeeping:
            counts = Counts(lines_read, curated, lines_read - curated - quarantined, quarantined)
            return Bookkeeping(len(entity.fields), counts, sources, rows.book.erased)

        counts = staging.write(path, bookkeeping).counts
        objects.put_if(curated_key(place), path, files.own.etag if files.own else None)
    if rows.is_anew:  # lines that were not refused this time are rows now
        refused_keys = set(map(quarantine_key, intake.refused))
        objects.delete([key for key in quarantine_keys(objects, place) if key not in refused_keys])
    elif rows.refused:
        rows.refused.store(objects)
    return counts


def _check_neighbours(objects: Objects, files: Files) -> None:
    """Raise ObjectChanged if another writer has made a file of the same day, or of an hour of it, meanwhile.

    Neither writer may have seen the other's file. Readers of a day take its day's file alone, so rows of the
    hours would be missing.
    """
    place = files.place
    if place.hour is not None:
        has_new_file = objects.etag(curated_key(replace(place, hour=None))) is not None
    else:
        seen = {(file.key, file.etag) for file in files.superfluous}
        hours = _files(objects, place).superfluous
        has_new_file = any((file.key, file.etag) not in seen for file in hours)
    if has_new_file:
        raise ObjectChanged(curated_key(place))
