"""The raw objects of one entity's hour (or day) become one curated Parquet file. Nothing else writes it.

Rows in = curated + duplicates + quarantined. This holds whatever arrives twice, in pieces, or after a crash:
the file's footer names the raw objects that its rows are from, so one put changes data and bookkeeping
together. The quarantine files are written before it, and writing them again gives the same. What the new
file makes superfluous is deleted after it.
"""

import json
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from adapters.platform.objects import Objects, StoredObject
from analytics.curation.intake import Intake
from analytics.curation.row_staging import Staging
from analytics.lake import layout
from analytics.lake.bookkeeping import Bookkeeping, Counts, bookkeeping, merged_bookkeeping
from analytics.lake.layout import Place
from rules.lake.entities import ENTITIES

Task = Place  # what one call does: an hour of an entity, or (hour None) a whole day


class RawGone(LookupError):
    """A rebuild would lose rows: raw objects that the file was made from are no longer there."""


def curate(objects: Objects, task: Task, *, rebuild: bool = False) -> Counts:
    """Bring an hour's (or day's) curated file up to date with its raw objects; returns its counts.

    Raw objects that the file holds already are not read again. With rebuild they are: the file is made
    anew from all of them, and lines that the schema now allows leave the quarantine. Raises RawGone if
    that would lose rows. If the day has a file of its own, its hours are curated into that file.
    """
    task, held, left_over = _files(objects, task)
    raw = list(objects.list(layout.raw_prefix(task.entity, task.dt, task.hour)))
    raw = [each for each in raw if layout.raw_place(each.key)]
    before = merged_bookkeeping(bookkeeping(objects, key) for key in held)
    new = [each for each in raw if before.sources.get(layout.source_name(each.key)) != each.etag]
    if rebuild:
        _check_complete(before, raw)
        before, held, new = Bookkeeping(0, Counts()), [], raw
    counts = before.counts
    if new or held not in ([], [layout.curated_key(task)]):
        counts, refused = _merge(objects, task, held, before, new)
        if rebuild:
            _clear_quarantine(objects, task, refused)
    objects.delete(left_over)
    return counts


def _files(objects: Objects, task: Task) -> tuple[Task, list[str], list[str]]:
    """Return the task, its existing curated files to merge, and those to delete afterwards."""
    listed = objects.list(layout.curated_prefix(task.entity, task.dt))
    files = {place: each.key for each in listed if (place := layout.curated_place(each.key))}
    day = replace(task, hour=None)
    if day in files:
        hours = [key for place, key in files.items() if place != day]
        return day, [files[day]], hours
    if task.hour is None:
        hours = list(files.values())
        return task, hours, hours
    return task, [files[task]] if task in files else [], []


def _check_complete(before: Bookkeeping, raw: Iterable[StoredObject]) -> None:
    gone = before.sources.keys() - {layout.source_name(each.key) for each in raw}
    if gone:
        raise RawGone(f"{len(gone)} raw objects are gone, {min(gone)} first")


def _merge(
    objects: Objects, task: Task, held: Sequence[str], before: Bookkeeping, new: Sequence[StoredObject]
) -> tuple[Counts, list[str]]:
    """Write the file of what was curated before and of new raw objects.

    Returns the file's counts, and the raw objects of which lines were refused.
    """
    entity = ENTITIES[task.entity]
    with tempfile.TemporaryDirectory() as folder, closing(Staging(entity, Path(folder, "spill"))) as staging:
        for key in held:
            staging.add_curated(objects.get(key))
        intake = Intake(staging)
        intake.take(objects, new)
        rows = before.counts.in_ + intake.rows
        quarantined = before.counts.quarantined + intake.quarantined
        kept = staging.rows() - staging.drop_duplicates()
        counts = Counts(rows, kept, rows - kept - quarantined, quarantined)
        sources = {layout.source_name(each.key): each.etag for each in new}
        book = Bookkeeping(len(entity.fields), counts, {**before.sources, **sources})
        path = Path(folder, "rows.parquet")
        staging.write(path, book)
        for key, entries in sorted(intake.refused.items()):
            objects.put(layout.quarantine_key(key), _ndjson(entries))
        objects.put(layout.curated_key(task), path.read_bytes())
    return counts, list(intake.refused)


def _ndjson(entries: Iterable[dict[str, object]]) -> bytes:
    return b"".join(json.dumps(entry, ensure_ascii=False).encode() + b"\n" for entry in entries)


def _clear_quarantine(objects: Objects, task: Task, refused: Iterable[str]) -> None:
    """Remove the quarantine files of objects in which a rebuild found nothing to refuse."""
    prefix = layout.raw_prefix(task.entity, task.dt, task.hour)
    wanted = {layout.quarantine_key(key) for key in refused}
    prefix = layout.QUARANTINE + prefix.removeprefix(layout.RAW)
    objects.delete([each.key for each in objects.list(prefix) if each.key not in wanted])
