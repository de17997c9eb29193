"""Writes curated files again without the rows of erased persons, or with residues of these rows.

A person *waits* while the erasure is under way: the rows become residues (rules/lake/residue.py). Afterwards,
a *tombstone* refuses rows that still come, except those that it allows.

A file is changed as a whole. It is downloaded, staged batch by batch, and written. It is put in place only if
nobody has written it meanwhile.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from adapters.platform.objects import Objects, StoredObject
from analytics.curation.row_staging import Staging, curated_rows, table_of_rows
from analytics.curation.sealed_file import is_broken_copy
from analytics.forgetting.erasees import Erasee
from analytics.lake import curated_files, layout
from analytics.lake.bookkeeping import Bookkeeping, Counts, bookkeeping_of
from rules.days import stamp
from rules.lake.entities import ENTITIES, Entity
from rules.lake.residue import PERSONS, RESIDUES, residue_of
from rules.privacy.tombstones import Tombstone

# Columns that say when a row was made, where the time that places it does not: a day's is the day's date, and
# servers may say since when a pair is.
MADE_AT = {"daily_activity": "created_at", "friendships": "changed_at"}


@dataclass(frozen=True, slots=True)
class FilePersons:
    """The erased persons of whom a file has rows, by their names in it."""

    waiting: Mapping[str, Erasee]  # persons who are to leave the lake
    tombstones: Mapping[str, Tombstone]  # of persons who have left it, and of whom new rows have come


def names_in(path: Path, entity: str) -> dict[str, int]:
    """Return the persons of a curated file's rows, and how many rows each has."""
    file = pq.ParquetFile(path)
    column = PERSONS[entity]
    if column not in file.schema_arrow.names:
        return {}
    counts = file.read([column])[column].value_counts()
    return {row["values"]: row["counts"] for row in counts.to_pylist() if row["values"] is not None}


def may_hold(metadata: pq.FileMetaData, entity: str, names: Collection[str]) -> bool:
    """Whether a file may have rows of some persons, by the least and greatest name of each row group."""
    for number in range(metadata.num_row_groups):
        bounds = curated_files.column_bounds(metadata.row_group(number), PERSONS[entity])
        if any(bounds is None or bounds.least <= name <= bounds.greatest for name in names):
            return True
    return False


def is_refused(entity: str, row: Mapping[str, Any], tombstone: Tombstone) -> bool:
    """Whether a tombstone refuses a row, as a file or a line has it: by the time when the row was made."""
    made_at = row.get(MADE_AT.get(entity, ENTITIES[entity].occurred))
    if isinstance(made_at, datetime):
        return tombstone.forbids(stamp(made_at))
    return tombstone.forbids(made_at.isoformat() if isinstance(made_at, date) else str(made_at))


def rewrite_for_persons(
    objects: Objects, entity: str, stored: StoredObject, path: Path, persons: FilePersons
) -> None:
    """Write a file with the residues of those who wait, and without the rows that tombstones refuse.

    path: of a copy of the file. Raises ObjectChanged if somebody has written the file meanwhile.
    """
    erasure_tags = {erasee.names.tag() for erasee in persons.waiting.values()}
    shared_words = _shared_words(path, entity, persons)

    def stage_batch(staging: Staging, rows: pa.Table) -> None:
        _stage_persons_batch(staging, objects, rows, persons, shared_words)

    _replace(objects, entity, stored, path, stage_batch, erasure_tags)


def rewrite_without_rows(
    objects: Objects, entity: str, stored: StoredObject, path: Path, must_go: Callable[[pa.Table], pa.Array]
) -> None:
    """Write a file without the rows that `must_go` flags. path, errors: as for rewrite_for_persons."""

    def stage_batch(staging: Staging, rows: pa.Table) -> None:
        staging.add_earlier(rows.filter(pc.invert(must_go(rows))))

    _replace(objects, entity, stored, path, stage_batch, ())


def _replace(  # noqa: PLR0913, PLR0917 (the file, its copy, and what becomes of it)
    objects: Objects,
    entity: str,
    stored: StoredObject,
    path: Path,
    stage_batch: Callable[[Staging, pa.Table], None],
    erasure_tags: Collection[str],
) -> None:
    """Write the rows that `stage_batch` adds to a staging in place of a file, and note the erasures."""
    declared = ENTITIES[entity]
    new_path = path.with_name("anew.parquet")
    rows_before = pq.read_metadata(path).num_rows
    bookkeeping = bookkeeping_of(objects, stored.key)
    staging = Staging(declared, path.with_name("spill"))
    # Of a large file, only a part of the rows is in memory at any time.
    for batch in curated_rows(path, declared):
        stage_batch(staging, batch)
    book = partial(_new_bookkeeping, declared, bookkeeping, rows_before, erasure_tags)
    staging.write(new_path, book, is_sealed=not is_broken_copy(path))
    objects.put_if(stored.key, new_path, stored.etag)


def _new_bookkeeping(
    declared: Entity, bookkeeping: Bookkeeping, rows_before: int, erasure_tags: Collection[str], rows: int
) -> Bookkeeping:
    before = bookkeeping.counts
    # in_ must stay the sum of the other three counts. So rows that leave are subtracted from it, too.
    counts = Counts(before.in_ - rows_before + rows, rows, before.duplicates, before.quarantined)
    erased = (*{*bookkeeping.erased, *erasure_tags},)
    return Bookkeeping(len(declared.fields), counts, bookkeeping.sources, erased)


def _shared_words(path: Path, entity: str, persons: FilePersons) -> dict[str, set[str]]:
    """Return the words of others' rows, by column. A residue keeps a word only if others have it, too."""
    if entity not in RESIDUES:
        return {}
    stored_names = set(pq.read_schema(path).names)
    columns = [name for name in RESIDUES[entity].words if name in stored_names]
    if not columns:
        return {}
    rows = pq.read_table(path, columns=[PERSONS[entity], *columns])
    rows = rows.filter(pc.invert(_are_of_persons(rows, entity, persons)))
    return {name: set(rows[name].unique().to_pylist()) - {None} for name in columns}


def _are_of_persons(rows: pa.Table, entity: str, persons: FilePersons) -> pa.ChunkedArray:
    names = pa.array([*persons.waiting, *persons.tombstones], pa.string())
    return pc.is_in(rows[PERSONS[entity]], value_set=names)


def _stage_persons_batch(
    staging: Staging,
    objects: Objects,
    rows: pa.Table,
    persons: FilePersons,
    shared_words: Mapping[str, set[str]],
) -> None:
    """Stage others' rows, residues of persons who wait, and of those who have left what tombstones allow."""
    entity = staging.entity.name
    is_erased = _are_of_persons(rows, entity, persons)
    # Others' rows stay as they are.
    staging.add_earlier(rows.filter(pc.invert(is_erased)))
    rows_to_stay = []
    for row in rows.filter(is_erased).to_pylist():
        person = row[PERSONS[entity]]
        # Of a person who waits: what stays of the row, if anything does.
        if erasee := persons.waiting.get(person):
            seq_of = partial(_ledger_seq, objects, person)
            if residue := residue_of(entity, row, erasee.names, seq_of, shared_words):
                rows_to_stay.append(residue)
        # Of a person who has left: only rows that the tombstone allows.
        elif not is_refused(entity, row, persons.tombstones[person]):
            rows_to_stay.append(row)
    staging.add_earlier(table_of_rows(staging.entity, rows_to_stay))


def _ledger_seq(objects: Objects, account_id: str, at: datetime) -> int | None:
    """Return the seq of the entry that an account created at an instant; None if it is not found.

    A residue of a reversal names the reversed entry by its new created_at, which follows from its seq. The
    reversed entry still has its account_id: files are written anew from the last one to the first.
    """
    day = f"{at:%Y-%m-%d}"
    for file in layout.curated_files(objects, "ledger", day, day):
        rows = curated_files.read_file(objects, "ledger", file, ["account_id", "created_at", "seq"])
        is_entry = pc.and_(pc.equal(rows["account_id"], account_id), pc.equal(rows["created_at"], at))
        seqs = rows.filter(is_entry)["seq"].to_pylist()
        if seqs:
            return int(seqs[0])
    return None
