"""The raw objects of one entity's hour (or day) become one curated Parquet file. Nothing else writes it.

Rows in = curated + duplicates + quarantined. This holds whatever arrives twice, in pieces, or after a crash:
the file's footer names the raw objects that its rows are from, so one put changes data and bookkeeping
together. The quarantine files are written before it, and writing them again gives the same. What the new
file makes superfluous is deleted after it. Memory holds a part of the rows at a time, whatever there is.
"""

import tempfile
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from adapters.platform.aws import pauses
from adapters.platform.objects import NoObject, ObjectChanged, Objects, StoredObject
from analytics.curation.intake import Intake
from analytics.curation.refused_lines import (
    RefusedLines,
    quarantine_keys,
    unreadable_objects,
)
from analytics.curation.row_staging import Staging
from analytics.curation.seals import check_seals
from analytics.lake import layout, run_notes
from analytics.lake.bookkeeping import Bookkeeping, Counts, bookkeeping_of, merge_bookkeeping
from analytics.lake.layout import Place
from analytics.lake.listing import raw_objects_of_place
from rules.lake.entities import ENTITIES

ATTEMPTS_MAX = 8
Task = Place  # what one call does: an hour of an entity, or (hour None) a whole day


@dataclass(frozen=True, slots=True)
class EarlierFiles:
    """What was curated before: the keys of its files, and the bookkeeping of all of them together."""

    keys: tuple[str, ...]
    book: Bookkeeping
    refused: RefusedLines | None = None  # takes the lines that were refused, if they are to be read again


class RawGone(LookupError):
    """A rebuild would lose rows: raw objects that the file was made from are no longer there."""


def curate(
    objects: Objects,
    task: Task,
    *,
    rebuild: bool = False,
    without_raw: bool = False,
    arrived: Collection[str] | None = None,
) -> Counts:
    """Bring an hour's (or day's) curated file up to date with its raw objects; returns its counts.

    arrived: dates of arrival (YYYY-MM-DD) under which to look for raw objects; None: under all.
    Raw objects that the file holds already are not read again. With rebuild they are: the file is made
    anew from all of them, and lines that the schema now allows leave the quarantine. Raises RawGone if
    that would lose rows. With without_raw it is made from the file's own rows instead, and from the lines in
    quarantine. A raw object that was replaced is a reason to make the file anew by itself, as far
    as the others are there. If the day has a file of its own, its hours are curated into that file. A file
    from which persons were erased is never made anew from raw objects, which lack what stays of them.

    Seals are checked before the file's rows are used: if raw objects are added to it, and also if arrived is
    None or empty. Rows that were changed by hand break the seal. Then the file is made anew from its raw
    objects, if arrived is None and all of them are there; otherwise it raises BrokenSeal.

    A file is replaced on condition that it is the one that was read. If another writer was first, what it
    wrote is read, and all is done again; raises ObjectChanged or NoObject if that never ends.
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
    task, held, left_over = _files(objects, task)
    raw = raw_objects_of_place(objects, task, arrived)
    before = merge_bookkeeping(bookkeeping_of(objects, each.key) for each in held)
    etags = {name: etag for each in raw if (etag := before.sources.get(name := layout.source_name(each.key)))}
    new = [each for each in raw if etags.get(layout.source_name(each.key)) != each.etag]
    is_replaced = any(layout.source_name(each.key) in etags for each in new)
    if is_replaced and arrived is not None:
        return _curate_task(objects, task, rebuild, without_raw, None)
    gone = before.sources.keys() - {layout.source_name(each.key) for each in raw}
    if (lacks_raw := bool(gone or before.erased)) and rebuild and not without_raw:
        raise RawGone(_reason(gone))
    is_anew = not lacks_raw and (rebuild or is_replaced)
    if not (is_anew or without_raw) and (new or not arrived):
        is_anew = check_seals(objects, held, lacks_raw or arrived is not None)
    if is_anew:
        before, new = Bookkeeping(0, Counts()), raw
    counts, there = before.counts, {each.key: each.etag for each in held}
    key = layout.curated_key(task)
    if new or (rebuild and held) or list(there) not in ([], [key]):
        again = RefusedLines() if rebuild and lacks_raw else None
        earlier = EarlierFiles(() if is_anew else tuple(there), before, again)
        counts, refused = _replace_file(objects, task, earlier, new, there.get(key))
        if is_anew:
            _clear_quarantine(objects, task, refused)
        elif again:
            again.store(objects)
        _check_neighbours(objects, task, left_over)
    for each in left_over:
        objects.delete_if(each.key, each.etag)
    return counts


def _reason(gone: Collection[str]) -> str:
    return f"{len(gone)} raw objects are gone, {min(gone)} first" if gone else "persons were erased"


def _check_neighbours(objects: Objects, task: Task, left_over: Sequence[StoredObject]) -> None:
    """Raise ObjectChanged if another writer has made a file of the same day, or of an hour of it, meanwhile.

    It may not have seen what was written here, nor was its file seen. Readers take a day's file alone.
    """
    if task.hour is not None:
        is_new = objects.etag(layout.curated_key(replace(task, hour=None))) is not None
    else:
        _, _, hours = _files(objects, task)
        is_new = not {(each.key, each.etag) for each in hours} <= {
            (each.key, each.etag) for each in left_over
        }
    if is_new:
        raise ObjectChanged(layout.curated_key(task))


def _files(objects: Objects, task: Task) -> tuple[Task, list[StoredObject], list[StoredObject]]:
    """Return the task, its existing curated files to merge, and those to delete afterwards."""
    listed = objects.list(layout.curated_prefix(task.entity, task.dt))
    files = {place: each for each in listed if (place := layout.curated_place(each.key))}
    day = replace(task, hour=None)
    if day in files:
        hours = [each for place, each in files.items() if place != day]
        return day, [files[day]], hours
    if task.hour is None:
        hours = list(files.values())
        return task, hours, hours
    return task, [files[task]] if task in files else [], []


def _replace_file(
    objects: Objects, task: Task, earlier: EarlierFiles, new: Sequence[StoredObject], etag: str | None
) -> tuple[Counts, list[str]]:
    """Replace the file of an ETag (None: there is none) by one with new raw objects too.

    Returns the file's counts, and the raw objects of which lines were refused. These are stored before.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.parquet")
        found = _merge_rows(objects, task, earlier, new, path)
        objects.put_if(layout.curated_key(task), path, etag)
        return found


def _merge_rows(
    objects: Objects, task: Task, earlier: EarlierFiles, new: Sequence[StoredObject], path: Path
) -> tuple[Counts, list[str]]:
    """Make a file at a path; the files that its rows wait in on the way are in the same folder."""
    entity = ENTITIES[task.entity]
    staging = Staging(entity, path.with_name("spill"))
    for key in earlier.keys:
        objects.save(key, path)
        staging.add_curated(path)
        path.unlink()
    fresh = {layout.source_name(each.key): each.etag for each in new}
    before = earlier.book.counts
    if earlier.refused:
        before = earlier.refused.take(objects, task, earlier.book, fresh, staging)
    intake = Intake(objects, staging)
    intake.take(new)
    rows = before.in_ + intake.rows
    quarantined = before.quarantined + intake.quarantined
    sources = {**earlier.book.sources, **fresh}

    def book(kept: int) -> Bookkeeping:
        counts = Counts(rows, kept, rows - kept - quarantined, quarantined)
        return Bookkeeping(len(entity.fields), counts, sources, earlier.book.erased)

    return staging.write(path, book).counts, intake.refused


def _clear_quarantine(objects: Objects, task: Task, refused: Iterable[str]) -> None:
    """Remove the quarantine files of objects in which a rebuild found nothing to refuse."""
    wanted = {layout.quarantine_key(key) for key in refused}
    objects.delete([key for key in quarantine_keys(objects, task) if key not in wanted])


def rebuild(
    objects: Objects, task: Task, say: Callable[[str], object], arrived: Collection[str] | None = None
) -> Counts:
    """Make a partition's file anew from its raw objects; returns its counts. arrived: see `curate`.

    If some of these are gone, it is made from its own rows and from the quarantine, and `say` gets the
    reason.
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
