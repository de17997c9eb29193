"""One night's pass over the lake, which takes erased persons out of it.

A person *waits* while the erasure is under way. Afterwards, a *tombstone* refuses rows that still come. If an
erasure is *due*, the night searches the whole lake. Otherwise, it searches the dates that it has curated.

The step in analytics/steps/forget_function.py runs the pass. A call does what its time allows, and the next
call goes on from the stored `Progress`. The pass has three parts:

1. Each curated file's footer is read. It has the least and the greatest name, and the marks of the erasures
   that have changed the file. If a person who waits is in the file, the file is written again without the
   person. Then its *sources* are cleaned, the raw objects that it is made of. If a call dies between the two,
   the mark in the file tells the next call that the sources are still to be cleaned.
2. A file of a date that this night has curated is also searched for rows that tombstones refuse.
3. If an erasure is due, the rest is searched: raw lines to which no curated file leads, the quarantine,
   Firehose's errors, and other objects.
"""

import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq

from adapters.platform.aws import pauses
from adapters.platform.objects import ForgettingObjects, NoObject, ObjectChanged, Objects, StoredObject
from analytics.curation.recover import ERRORS
from analytics.forgetting.curated_rows import FilePersons, is_refused, may_hold, names_in, rewrite_for_persons
from analytics.forgetting.erasees import AllErasees
from analytics.forgetting.named_persons import NameCounts
from analytics.forgetting.other_objects import OtherObjects
from analytics.forgetting.raw_objects import Finder, RawObjects
from analytics.lake import layout
from analytics.lake.bookkeeping import Bookkeeping, footer_of, read_bookkeeping
from analytics.lake.layout import Partition, run_key
from analytics.lake.run_notes import failed_tasks, remembered_tasks
from rules.days import unstamp
from rules.lake.entities import ENTITIES
from rules.lake.residue import PERSONS
from rules.privacy.tombstones import Tombstone

PROGRESS_NAME = "forget.json"  # of a run
LINES, OTHERS = "raw, quarantine, errors", "state, runs, reports"  # names of stores in the counts
ATTEMPTS_MAX = 8
UNFINISHED_FOR = timedelta(days=1)  # Firehose tries a delivery so long; an older upload is abandoned


@dataclass(slots=True)
class Progress:
    """What a night has done so far in the lake and in the warehouse."""

    run_id: str
    began: str  # when the pass over the lake began (a stamp)
    due: list[str]  # ids of the erasures for which the night searches everything
    done_entities: list[str] = field(default_factory=list)  # those whose curated files and lines are clean
    # The key of the file that was cleaned last. Files are taken from the entity's last key to its first.
    last_done_key: str = ""
    # How many rows or lines named the person, by erasure and store
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    # How often objects that stay for a later night name the person, by erasure
    still_named: dict[str, int] = field(default_factory=dict)
    # Key and version of the object that was counted last, and what it has added to the counts of a store, by
    # erasure. Perhaps it is not changed yet.
    last_counted: str = ""
    last_store: str = ""
    last_counts: dict[str, int] = field(default_factory=dict)
    # Partitions whose files have changed: entity, dt, hour ("": a whole day)
    partitions: list[list[str]] = field(default_factory=list)
    is_done: bool = False  # the lake's files name no erased person any more
    are_parts_done: bool = False  # the passes of parts (forget_function.py) are done, or not due
    is_warehouse_done: bool = False  # no table of the warehouse names an erased person any more

    @classmethod
    def read(cls, objects: Objects, run_id: str) -> "Progress | None":
        """Return the progress that an earlier call of the run has stored; None if this is the first call."""
        try:
            return cls(**json.loads(objects.get(run_key(run_id, PROGRESS_NAME))))
        except NoObject:
            return None

    def save(self, objects: Objects) -> None:
        """Store the progress."""
        objects.put(run_key(self.run_id, PROGRESS_NAME), json.dumps(asdict(self)).encode())

    def add_counts(self, objects: Objects, version: str, store: str, counts: Mapping[str, int]) -> None:
        """Add how many rows or lines of each erasure an object has, before it is changed; and store the sums.

        version: the object's key and version, by which `settle_counts` knows whether it was changed; or the
        name of a store without versions. The same version is not counted again.
        """
        if self.last_counted == version:
            return
        self.last_counted, self.last_store, self.last_counts = version, store, dict(counts)
        for erasure_id, number in counts.items():
            by_store = self.counts.setdefault(erasure_id, {})
            by_store[store] = by_store.get(store, 0) + number
        if counts:
            self.save(objects)

    def take_back_counts(self) -> None:
        """Take the last addition back, because what it counts was not removed."""
        for erasure_id, number in self.last_counts.items():
            self.counts[erasure_id][self.last_store] -= number
        self.confirm_counts()

    def confirm_counts(self) -> None:
        """Let the last addition stay, because what it counts was removed."""
        self.last_counted, self.last_counts = "", {}

    def settle_counts(self, objects: Objects) -> None:
        """Take the last addition back, if its call has ended before it changed the object.

        Of a store without versions nobody knows that, so only `confirm_counts` lets an addition stay.
        """
        key, _, etag = self.last_counted.rpartition(" ")
        if not key or objects.etag(key) == etag:
            self.take_back_counts()

    def note_change(self, partition: Partition) -> None:
        """Remember a partition that the warehouse must load anew."""
        key = [partition.entity, partition.dt, partition.hour or ""]
        if key not in self.partitions:
            self.partitions.append(key)

    def changed_partitions(self) -> list[Partition]:
        """Return the partitions whose files have changed."""
        return [Partition(entity, dt, hour or None) for entity, dt, hour in self.partitions]


def changed_partitions(objects: Objects, run_id: str) -> list[Partition]:
    """Return the partitions that a run's pass has changed; nothing if there was no pass."""
    progress = Progress.read(objects, run_id)
    return progress.changed_partitions() if progress else []


@dataclass(frozen=True, slots=True)
class LakePass:
    """Takes erased persons out of the lake."""

    objects: ForgettingObjects
    erasees: AllErasees
    progress: Progress  # of this night
    curated_tonight: Collection[Partition]
    has_time: Callable[[], bool] = lambda: True  # whether to go on in this call

    def run(self, now: datetime) -> None:
        """Do as much of the pass as the call has time for. `progress.is_done` says whether that was all."""
        for entity in sorted(PERSONS):
            if entity in self.progress.done_entities:
                continue
            if not self._clean_curated(entity):
                return
            if self.progress.due:
                self._clean_other_lines(entity)
            self.progress.done_entities.append(entity)
            self.progress.last_done_key = ""
            self.progress.save(self.objects)
        if self.progress.due:
            self._clean_errors_without_entity()
            self._remove_former_versions(now)
            names = {kind: by_name.keys() for kind, by_name in self.erasees.by_kind.items()}
            other_objects = OtherObjects(self.objects, self.progress.run_id, now, names, self._count_other)
            self.progress.still_named = dict(self._names_by_erasure(other_objects.clean()))
        self.progress.confirm_counts()
        self.progress.is_done = True
        self.progress.save(self.objects)

    def _clean_curated(self, entity: str) -> bool:
        """Clean an entity's curated files, at least one in a call; returns whether all are clean."""
        for number, stored in enumerate(self._files_not_done(entity)):
            if number and not self.has_time():
                self.progress.save(self.objects)
                return False
            self._clean_newest(stored)
            self.progress.last_done_key = stored.key
        for stored in self._files_written_by_others(entity):
            self._clean_newest(stored)
        return True

    def _files_not_done(self, entity: str) -> list[StoredObject]:
        """Return the files that no call of this night has cleaned yet, the last key first."""
        last_key, files = self.progress.last_done_key, self._files_to_search(entity)
        return [stored for stored in files if not last_key or stored.key < last_key]

    def _files_written_by_others(self, entity: str) -> list[StoredObject]:
        """Return the files that others have written during the pass, with rows that came meanwhile."""
        began, changed_by_us = unstamp(self.progress.began), {*self.progress.changed_partitions()}
        newer_files = [stored for stored in self._files_to_search(entity) if stored.modified >= began]
        return [stored for stored in newer_files if layout.curated_partition(stored.key) not in changed_by_us]

    def _files_to_search(self, entity: str) -> list[StoredObject]:
        """Return all files if an erasure is due, otherwise those of tonight's dates; the last key first."""
        dates_of_tonight, due = self._dates_of_tonight(entity), self.progress.due
        if not (due or dates_of_tonight):
            return []
        files = []
        for stored in self.objects.list(layout.curated_prefix(entity)):
            partition = layout.curated_partition(stored.key)
            if partition and (due or partition.dt in dates_of_tonight):
                files.append(stored)
        return files[::-1]

    def _dates_of_tonight(self, entity: str) -> set[str]:
        partitions = (partition for partition in self.curated_tonight if partition.entity == entity)
        return {dt for partition in partitions for dt in (partition.dt, partition.month.dt)}

    def _clean_newest(self, stored: StoredObject) -> None:
        """Clean a file as it is now, and again if somebody writes it meanwhile; raises ObjectChanged."""
        for attempt in pauses(ATTEMPTS_MAX):
            try:
                etag = self.objects.etag(stored.key)
                if etag is not None:
                    self._clean_file(StoredObject(stored.key, stored.size, etag, stored.modified))
                return
            except (NoObject, ObjectChanged):  # somebody else writes the file
                if attempt == ATTEMPTS_MAX - 1:
                    raise

    def _clean_file(self, stored: StoredObject) -> None:
        """Take persons out of a file, and out of its sources. Raises ObjectChanged."""
        partition = layout.curated_partition(stored.key)
        assert partition  # noqa: S101 (none else are listed)
        entity, footer = partition.entity, footer_of(self.objects, stored.key)
        bookkeeping, metadata = read_bookkeeping(footer), pq.read_metadata(pa.BufferReader(footer))
        is_of_tonight = partition.dt in self._dates_of_tonight(entity)
        persons = FilePersons({}, {})
        if is_of_tonight or may_hold(metadata, entity, self.erasees.in_entity(entity)):
            persons = self._rewrite_file(stored, partition, bookkeeping, with_tombstones=is_of_tonight)
        self._clean_sources_of_changed(partition, bookkeeping, persons)
        self._clean_sources_of_quarantined(partition, bookkeeping)

    def _rewrite_file(
        self, stored: StoredObject, partition: Partition, bookkeeping: Bookkeeping, *, with_tombstones: bool
    ) -> FilePersons:
        """Take persons who wait out of a file's rows, and return them. with_tombstones: refused rows, too."""
        entity, erasees_of_entity = partition.entity, self.erasees.in_entity(partition.entity)
        with TemporaryDirectory() as folder:
            path = Path(folder, "rows.parquet")
            self.objects.save(stored.key, path)
            names = names_in(path, entity)
            waiting = {name: erasees_of_entity[name] for name in names.keys() & erasees_of_entity.keys()}
            tombstones = {}
            if with_tombstones:
                for name in names.keys() - waiting.keys():
                    if tombstone := self.erasees.tombstone_of(entity, name):
                        tombstones[name] = tombstone
            persons = FilePersons(waiting, tombstones)
            # Lines that tombstones refuse go first: once the file is written, no row or mark leads to them.
            if tombstones:
                self._clean_sources(partition, bookkeeping, _finder_of_refused(entity, tombstones))
            if waiting or tombstones:
                self.progress.note_change(partition)
                counts = self._by_erasure(entity, names)
                self.progress.add_counts(self.objects, f"{stored.key} {stored.etag}", entity, counts)
                self.progress.save(self.objects)
                try:
                    rewrite_for_persons(self.objects, entity, stored, path, persons)
                except (NoObject, ObjectChanged):
                    self.progress.take_back_counts()
                    self.progress.save(self.objects)
                    raise
        return persons

    def _clean_sources_of_changed(
        self, partition: Partition, bookkeeping: Bookkeeping, persons: FilePersons
    ) -> None:
        """Clean the sources of a file that was changed now, or by a call that died before it came to them."""
        erasure_ids = {erasee.erasure_id for erasee in persons.waiting.values()}
        erasure_ids |= self.erasees.erasures_of_marks(bookkeeping.erased)
        if not (erasure_ids or persons.tombstones):
            return
        erasees_of_entity = self.erasees.in_entity(partition.entity)
        names = [name for name, erasee in erasees_of_entity.items() if erasee.erasure_id in erasure_ids]
        self._clean_sources(partition, bookkeeping, Finder(partition.entity, names))
        self.objects.forget_former(layout.curated_prefix(partition.entity, partition.dt))

    def _clean_sources_of_quarantined(self, partition: Partition, bookkeeping: Bookkeeping) -> None:
        """Clean the sources of lines that curation has refused, of everyone who waits.

        Such a line has no row in the file. So the file's names do not tell whose line it is.
        """
        if self.progress.due and bookkeeping.counts.quarantined:
            finder = Finder(partition.entity, self.erasees.in_entity(partition.entity))
            self._clean_sources(partition, bookkeeping, finder)

    def _clean_sources(self, partition: Partition, bookkeeping: Bookkeeping, finder: Finder) -> None:
        keys = [layout.source_key(partition, name) for name in bookkeeping.sources]
        self._raw(partition.entity).clean(keys, finder)

    def _clean_other_lines(self, entity: str) -> None:
        finder, raw = Finder(entity, self.erasees.in_entity(entity)), self._raw(entity)
        failed = {*remembered_tasks(self.objects), *failed_tasks(self.objects, self.progress.run_id)}
        raw.clean_loose(entity, finder, {task for task in failed if task.entity == entity})
        raw.clean_quarantine(entity, finder)
        raw.clean_errors(f"{ERRORS}{entity}/", finder)

    def _clean_errors_without_entity(self) -> None:
        """Clean errors below no entity's folder. Each column that may name a person is searched once."""
        entity_of_column = {column: entity for entity, column in PERSONS.items()}
        for prefix in self.objects.below(ERRORS):
            if prefix.split("/")[1] in ENTITIES:
                continue
            for entity in entity_of_column.values():
                finder = Finder(entity, self.erasees.in_entity(entity))
                self._raw(entity).clean_errors(prefix, finder)

    def _remove_former_versions(self, now: datetime) -> None:
        """Remove unfinished uploads and former versions, but for those of what this pass has changed."""
        for folder in (layout.RAW, layout.CURATED):
            self.objects.forget_former(folder, of_deleted=True)
        for folder in (layout.QUARANTINE, ERRORS):
            self.objects.forget_former(folder)
        self.objects.forget_unfinished(now - UNFINISHED_FOR)

    def _raw(self, entity: str) -> RawObjects:
        def add_counts(version: str, by_name: Mapping[str, int]) -> None:
            self.progress.add_counts(self.objects, version, LINES, self._by_erasure(entity, by_name))

        return RawObjects(self.objects, add_counts)

    def _by_erasure(self, entity: str, by_name: Mapping[str, int]) -> Counter[str]:
        """Return numbers of lines or rows by erasure. by_name: by the name of the person."""
        counts: Counter[str] = Counter()
        erasees_of_entity = self.erasees.in_entity(entity)
        for name, number in by_name.items():
            if erasee := erasees_of_entity.get(name):
                counts[erasee.erasure_id] += number
        return counts

    def _count_other(self, version: str, name_counts: NameCounts) -> None:
        self.progress.add_counts(self.objects, version, OTHERS, self._names_by_erasure(name_counts))

    def _names_by_erasure(self, name_counts: NameCounts) -> Counter[str]:
        counts: Counter[str] = Counter()
        for (kind, name), number in name_counts.items():
            counts[self.erasees.by_kind[kind][name].erasure_id] += number
        return counts


def _finder_of_refused(entity: str, tombstones: Mapping[str, Tombstone]) -> Finder:
    """Return a finder of the lines that tombstones refuse. tombstones: by the name of the person."""
    return Finder(entity, tombstones, lambda row: is_refused(entity, row, tombstones[row[PERSONS[entity]]]))
