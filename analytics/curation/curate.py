"""Curation: the raw objects of one entity's hour (or day) become one curated Parquet file.

Rows in = curated + duplicates + quarantined. This holds even if rows arrive twice, in pieces, or after a
crash. The order of writes makes it so:
1. The quarantine files of refused lines. They can be written again.
2. The curated file. Its footer names the raw objects that its rows are from, so one put changes data and
   bookkeeping together.
3. Files that the new one replaces are deleted.
Memory never holds more than a part of the rows.
"""

import tempfile
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from adapters.platform.aws import pauses
from adapters.platform.objects import NoObject, ObjectChanged, Objects, StoredObject
from analytics.curation.intake import Intake, RefusedLines, quarantine_keys, unreadable_objects
from analytics.curation.row_staging import Staging
from analytics.curation.sealed_file import is_broken
from analytics.lake import layout, run_notes
from analytics.lake.bookkeeping import Bookkeeping, Counts, bookkeeping_of, merge_bookkeeping
from analytics.lake.layout import Place
from analytics.lake.listing import raw_objects_of_place
from rules.lake.entities import ENTITIES

ATTEMPTS_MAX = 8
Task = Place  # what one call does: an hour of an entity, or (hour None) a whole day


@dataclass(frozen=True, slots=True)
class EarlierFiles:
    """The curated files whose rows go into the new one."""

    keys: tuple[str, ...]
    book: Bookkeeping  # of all these files together
    refused: RefusedLines | None = None  # reads the refused lines again; None: they stay refused


class BrokenSeal(ValueError):
    """A curated file is not as curation wrote it, so its rows are not used."""


class RawGone(LookupError):
    """A rebuild would lose rows, because raw objects that the file was made from are gone."""


def curate(
    objects: Objects,
    task: Task,
    *,
    rebuild: bool = False,
    without_raw: bool = False,
    arrived: Collection[str] | None = None,
) -> Counts:
    """Bring an hour's (or day's) curated file up to date with its raw objects; returns its counts.

    arrived: the dates of arrival (YYYY-MM-DD) under which to look for raw objects; None: all dates.
    If the day has a file of its own, an hour is curated into that file.

    Usually only raw objects that the file does not hold yet are read. rebuild: make the file anew from all
    raw objects; lines that the schema now allows leave the quarantine. Raises RawGone if rows would be lost.
    without_raw: make the file anew from its own rows and the lines in quarantine instead. If a raw object was
    replaced, the file is made anew, too, unless others are gone. A file from which persons were erased is
    never made anew from raw objects: they lack the rows that stay of the erased persons.

    Seals are checked before the rows of files are used: if raw objects are added, or hours become a day. They
    are also checked if arrived is None or empty. Rows that were changed by hand break the seal. Then the file
    is made anew from its raw objects, if arrived is None and none of them is gone. Otherwise BrokenSeal is
    raised.

    A file is replaced on condition that it is the one that was read. If another writer was faster, the whole
    task is done again with the file that it wrote. Raises ObjectChanged or NoObject if that happens too
    often.
    """
    for attempt in pauses(ATTEMPTS_MAX):
        try:
            return _curate_task(objects, task, rebuild, without_raw, arrived)
        except (NoObject, ObjectChanged):
            if attempt == ATTEMPTS_MAX - 1:
                raise
    raise AssertionError


def _curate_task(
    objects: Objects, task: Task, rebuild: bool, without_raw: bool, arrived: Collection[str] | None
) -> Counts:
    """Do what `curate` does, once. Raises NoObject or ObjectChanged if another writer was faster."""
    task, files, superfluous = _files(objects, task)
    raw = raw_objects_of_place(objects, task, arrived)
    names = [layout.source_name(raw_object.key) for raw_object in raw]
    book = merge_bookkeeping(bookkeeping_of(objects, file.key) for file in files)
    to_read = [
        stored for stored, name in zip(raw, names, strict=True) if book.sources.get(name) != stored.etag
    ]
    is_replaced = any(layout.source_name(raw_object.key) in book.sources for raw_object in to_read)
    if is_replaced and arrived is not None:  # the file is made anew, for which all raw objects are needed
        return _curate_task(objects, task, rebuild, without_raw, None)
    missing_names = book.sources.keys() - set(names)
    lacks_raw = bool(missing_names or book.erased)  # the raw objects lack rows that the files have
    if lacks_raw and rebuild and not without_raw:
        raise RawGone(_reason(missing_names))
    is_anew = not lacks_raw and (rebuild or is_replaced)
    key = layout.curated_key(task)
    is_compaction = [file.key for file in files] not in ([], [key])  # the rows are in other files
    if not (is_anew or without_raw) and (to_read or is_compaction or not arrived):
        # All raw objects are there only if none is gone, and if those of all dates of arrival were listed.
        is_anew = _has_broken_seal(objects, files, can_be_remade=not lacks_raw and arrived is None)
    if is_anew:
        book, to_read = Bookkeeping(0, Counts()), raw
    counts, etags = book.counts, {file.key: file.etag for file in files}
    if to_read or (rebuild and files) or is_compaction:
        refused_lines = RefusedLines() if rebuild and lacks_raw else None
        earlier = EarlierFiles(() if is_anew else tuple(etags), book, refused_lines)
        counts, refused_keys = _replace_file(objects, task, earlier, to_read, etags.get(key))
        if is_anew:
            _clear_quarantine(objects, task, refused_keys)
        elif refused_lines:
            refused_lines.store(objects)
        _check_neighbours(objects, task, superfluous)
    for file in superfluous:
        objects.delete_if(file.key, file.etag)
    return counts


def _has_broken_seal(objects: Objects, files: Sequence[StoredObject], *, can_be_remade: bool) -> bool:
    """Whether the rows of any file were changed by hand. Raises BrokenSeal if so and it cannot be remade."""
    broken_keys = [file.key for file in files if is_broken(objects, file.key)]
    if broken_keys and not can_be_remade:
        raise BrokenSeal(f"rows were changed since they were curated: {', '.join(broken_keys)}")
    return bool(broken_keys)


def _reason(missing_names: Collection[str]) -> str:
    """Return why a file cannot be made from raw objects."""
    if not missing_names:
        return "persons were erased"
    return f"{len(missing_names)} raw objects are gone, {min(missing_names)} first"


def _check_neighbours(objects: Objects, task: Task, superfluous: Sequence[StoredObject]) -> None:
    """Raise ObjectChanged if another writer has made a file of the same day, or of an hour of it, meanwhile.

    Neither writer may have seen the other's file. Readers of a day take its day's file alone, so rows of the
    hours would be missing.
    """
    if task.hour is not None:
        has_new_file = objects.etag(layout.curated_key(replace(task, hour=None))) is not None
    else:
        _, _, hours = _files(objects, task)
        merged = {(file.key, file.etag) for file in superfluous}
        has_new_file = not {(file.key, file.etag) for file in hours} <= merged
    if has_new_file:
        raise ObjectChanged(layout.curated_key(task))


def _files(objects: Objects, task: Task) -> tuple[Task, list[StoredObject], list[StoredObject]]:
    """Return the task, the curated files whose rows are merged, and those that are deleted afterwards.

    An hour's task becomes that of its day, if the day has a file.
    """
    listed = objects.list(layout.curated_prefix(task.entity, task.dt))
    files = {place: file for file in listed if (place := layout.curated_place(file.key))}
    day = replace(task, hour=None)
    if day in files:
        hours = [file for place, file in files.items() if place != day]
        return day, [files[day]], hours
    if task.hour is None:
        hours = list(files.values())
        return task, hours, hours
    return task, [files[task]] if task in files else [], []


def _replace_file(
    objects: Objects, task: Task, earlier: EarlierFiles, new: Sequence[StoredObject], etag: str | None
) -> tuple[Counts, list[str]]:
    """Write a task's file, with the rows of earlier files and of new raw objects.

    etag: of the file that it replaces; None: there is none. Refused lines are stored before the file.
    Returns the file's counts, and the keys of the raw objects of which lines were refused.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.parquet")
        counts, refused_keys = _merge_rows(objects, task, earlier, new, path)
        objects.put_if(layout.curated_key(task), path, etag)
        return counts, refused_keys


def _merge_rows(
    objects: Objects, task: Task, earlier: EarlierFiles, new: Sequence[StoredObject], path: Path
) -> tuple[Counts, list[str]]:
    """Make a task's file at a path. Rows that memory cannot hold are in the same folder meanwhile.

    Returns what _replace_file returns.
    """
    entity = ENTITIES[task.entity]
    staging = Staging(entity, path.with_name("spill"))
    for key in earlier.keys:
        objects.save(key, path)
        staging.add_curated(path)
        path.unlink()
    fresh = {layout.source_name(raw_object.key): raw_object.etag for raw_object in new}
    before = earlier.book.counts
    if earlier.refused:
        before = earlier.refused.take(objects, task, earlier.book, fresh, staging)
    intake = Intake(objects, staging)
    intake.take(new)
    rows = before.in_ + intake.lines_read
    quarantined = before.quarantined + intake.quarantined
    sources = {**earlier.book.sources, **fresh}

    def book(curated: int) -> Bookkeeping:
        counts = Counts(rows, curated, rows - curated - quarantined, quarantined)
        return Bookkeeping(len(entity.fields), counts, sources, earlier.book.erased)

    return staging.write(path, book).counts, intake.refused


def _clear_quarantine(objects: Objects, task: Task, refused: Iterable[str]) -> None:
    """Remove the quarantine files of a partition, but for those of raw objects with refused lines."""
    current = {layout.quarantine_key(key) for key in refused}
    objects.delete([key for key in quarantine_keys(objects, task) if key not in current])


def rebuild(
    objects: Objects, task: Task, say: Callable[[str], object], arrived: Collection[str] | None = None
) -> Counts:
    """Make a partition's file anew from its raw objects; returns its counts. arrived: see `curate`.

    If some of these are gone, it is made from its own rows and from the quarantine, and `say` is called with
    the reason.
    """
    try:
        return curate(objects, task, rebuild=True, arrived=arrived)
    except RawGone as gone:
        say(str(gone))
        return curate(objects, task, rebuild=True, without_raw=True, arrived=arrived)


def curate_in_run(
    objects: Objects, run_id: str, task: Task, *, is_rebuild: bool, arrived: Collection[str] | None
) -> Counts:
    """Bring a partition up to date in a nightly run, or make it anew; returns its counts."""
    if is_rebuild:
        counts = rebuild(objects, task, partial(run_notes.note_rebuild, objects, run_id, task), arrived)
    else:
        counts = curate(objects, task, arrived=arrived)
    for key, reason in unreadable_objects(objects, task) if counts.quarantined else ():
        run_notes.note_odd_object(objects, run_id, key, reason)
    return counts
