"""A curated file is written again: of persons who were erased it keeps residues, or nothing."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from adapters.platform.objects import Objects, StoredObject
from analytics.curation.kept_rows import ROW_GROUP_ROWS
from analytics.curation.row_staging import Staging, with_todays_columns
from analytics.forgetting.erasees import Erasee, moment_of
from analytics.lake import curated_files, layout
from analytics.lake.arrow import arrow_schema
from analytics.lake.bookkeeping import Bookkeeping, Counts, bookkeeping_of
from rules.days import stamp
from rules.lake.entities import ENTITIES
from rules.lake.residue import PERSONS, RESIDUES, SeqOf, residue_of
from rules.privacy.tombstones import Tombstone


@dataclass(frozen=True, slots=True)
class FoundPersons:
    """Whom a file has rows of, by their names in it: those who wait, and those whom tombstones refuse."""

    waiting: Mapping[str, Erasee]
    refused: Mapping[str, Tombstone]


def names_in(path: Path, entity: str) -> dict[str, int]:
    """Return the persons of a curated file's rows, and how many rows each has."""
    file = pq.ParquetFile(path)
    column = PERSONS[entity]
    if column not in file.schema_arrow.names:
        return {}
    counts = file.read([column])[column].value_counts()
    return {each["values"]: each["counts"] for each in counts.to_pylist() if each["values"] is not None}


def may_hold(metadata: pq.FileMetaData, entity: str, names: Collection[str]) -> bool:
    """Whether a file may have rows of some persons, by the least and greatest name of each row group."""
    column = PERSONS[entity]
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for index in range(group.num_columns):
            chunk = group.column(index)
            if chunk.path_in_schema != column:
                continue
            statistics = chunk.statistics
            if statistics is None or not statistics.has_min_max:
                return bool(names)
            if any(statistics.min <= each <= statistics.max for each in names):
                return True
    return False


def is_refused(entity: str, row: Mapping[str, Any], tombstone: Tombstone) -> bool:
    """Whether a tombstone refuses a row, as a file or a line has it."""
    at = row.get(moment_of(entity))
    if isinstance(at, datetime):
        return tombstone.forbids(stamp(at))
    return tombstone.forbids(at.isoformat() if isinstance(at, date) else str(at))


def write_anew(
    objects: Objects, entity: str, stored: StoredObject, path: Path, persons: FoundPersons
) -> None:
    """Write a file with the residues of those who wait, and without the rows that tombstones refuse.

    path: of its copy. Raises ObjectChanged if it is another file by now.
    """
    marks = {each.names.tag() for each in persons.waiting.values()}
    others = _shared_words(path, entity, persons)
    _Replacement(objects, entity, stored, path).write(
        lambda staging, rows: _stage(staging, objects, rows, persons, others), marks
    )


def write_without(
    objects: Objects, entity: str, stored: StoredObject, path: Path, goes_of: Callable[[pa.Table], pa.Array]
) -> None:
    """Write a file without some of its rows. goes_of: returns for each row whether it goes.

    path: of its copy. Raises ObjectChanged if it is another file by now.
    """

    def stage(staging: Staging, rows: pa.Table) -> None:
        staging.add_earlier_table(rows.filter(pc.invert(goes_of(rows))))

    _Replacement(objects, entity, stored, path).write(stage)


@dataclass(frozen=True, slots=True)
class _Replacement:
    """A file that is put in the place of another one."""

    objects: Objects
    entity: str
    stored: StoredObject
    path: Path  # of a copy of that

    def write(self, stage: Callable[[Staging, pa.Table], None], marks: Collection[str] = ()) -> None:
        """Write what `stage` takes of its rows; raises ObjectChanged. marks: of erasures."""
        declared = ENTITIES[self.entity]
        made_at, rows = self.path.with_name("anew.parquet"), pq.read_metadata(self.path).num_rows
        book = bookkeeping_of(self.objects, self.stored.key)
        staging = Staging(declared, self.path.with_name("spill"))
        for batch in _batches(self.path, self.entity):
            stage(staging, batch)

        def made(kept: int) -> Bookkeeping:
            before = book.counts
            counts = Counts(before.in_ - rows + kept, kept, before.duplicates, before.quarantined)
            return Bookkeeping(len(declared.fields), counts, book.sources, (*{*book.erased, *marks},))

        staging.write(made_at, made)
        self.objects.put_if(self.stored.key, made_at, self.stored.etag)


def _batches(path: Path, entity: str) -> Iterator[pa.Table]:
    file = pq.ParquetFile(path)
    there = set(file.schema_arrow.names)
    names = [name for name in arrow_schema(ENTITIES[entity]).names if name in there]
    for batch in file.iter_batches(ROW_GROUP_ROWS, columns=names):
        yield with_todays_columns(batch, ENTITIES[entity])


def _shared_words(path: Path, entity: str, persons: FoundPersons) -> dict[str, set[str]]:
    """Return what others' rows have in the columns that may be shared."""
    asked = list(RESIDUES[entity].shared) if entity in RESIDUES else []
    there = set(pq.read_schema(path).names)
    if not (known := [name for name in asked if name in there]):
        return {}
    rows = pq.read_table(path, columns=[PERSONS[entity], *known])
    rows = rows.filter(pc.invert(_is_of(rows, entity, persons)))
    return {name: set(rows[name].unique().to_pylist()) - {None} for name in known}


def _is_of(rows: pa.Table, entity: str, persons: FoundPersons) -> pa.ChunkedArray:
    names = pa.array([*persons.waiting, *persons.refused], pa.string())
    return pc.is_in(rows[PERSONS[entity]], value_set=names)


def _stage(
    staging: Staging, objects: Objects, rows: pa.Table, persons: FoundPersons, others: Mapping[str, set[str]]
) -> None:
    entity = staging.entity.name
    column = PERSONS[entity]
    of_them = _is_of(rows, entity, persons)
    staging.add_earlier_table(rows.filter(pc.invert(of_them)))
    changed = []
    for row in rows.filter(of_them).to_pylist():
        person = row[column]
        if each := persons.waiting.get(person):
            stays = residue_of(entity, row, each.names, seq_of(objects, person), others)
        else:
            stays = None if is_refused(entity, row, persons.refused[person]) else row
        changed += [stays] if stays else []
    staging.add_earlier(changed)


def seq_of(objects: Objects, account_id: str) -> SeqOf:
    """Return what finds a ledger entry of an account by its place, as long as it is under that name.

    A reversal comes after what it reverses, and files are written anew from the last to the first.
    """

    def find(at: datetime) -> int | None:
        day = f"{at:%Y-%m-%d}"
        for each in layout.curated_files(objects, "ledger", day, day):
            found = curated_files.read_file(objects, "ledger", each, ["account_id", "created_at", "seq"])
            is_it = pc.and_(pc.equal(found["account_id"], account_id), pc.equal(found["created_at"], at))
            for seq in found.filter(is_it)["seq"].to_pylist():
                return int(seq)
        return None

    return find
