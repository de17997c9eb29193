"""One night's pass over the lake, which takes out the erased persons who wait to leave it (erasees.py).

The step in analytics/steps/forget_function.py runs it. `Progress` is stored, so a call does what its time
allows, and the next call goes on. The pass has three parts:

1. Each curated file's footer is read. It has the least and the greatest name, and the marks of the erasures
   that have changed the file. If a person is in the file, the file is written again without the person. Then
   the raw objects that the file's bookkeeping names are cleaned. If a call dies between the two, the mark in
   the file tells the next call that its raw objects are still to be cleaned.
2. A file that this night has curated is also searched for persons who have a tombstone.
3. Last come raw lines to which no curated file leads, Firehose's errors, and other objects.
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
from analytics.forgetting.other_objects import NameCounts, OtherObjects
from analytics.forgetting.raw_objects import Finder, RawObjects
from analytics.lake import layout
from analytics.lake.bookkeeping import Bookkeeping, footer_of, read_bookkeeping
from analytics.lake.layout import Place, run_key
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
    entities: list[str] = field(default_factory=list)  # those whose curated files and lines are done
    # The last file that is done, of the entity under way. Files are taken from the last key to the first.
    after: str = ""
    # How many rows or lines were found, by erasure and store
    found: dict[str, dict[str, int]] = field(default_factory=dict)
    # How often objects that stay for a later night name the person, by erasure
    left: dict[str, int] = field(default_factory=dict)
    noted: str = ""  # key and version of the object that is counted, and perhaps not changed yet
    # Partitions whose files have changed: entity, dt, hour ("": a whole day)
    places: list[list[str]] = field(default_factory=list)
    is_done: bool = False  # the lake's files name no erased person any more
    are_phones_done: bool = False  # the rows of phones that are gone are deleted
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

    def note(self, objects: Objects, what: str, store: str, counts: Mapping[str, int]) -> None:
        """Add how many rows or lines of each erasure an object has, before it is changed; and store the sums.

        what: the object's key and version, by which a call that follows a death does not count it again.
        """
        if self.noted == what or not counts:
            return
        self.noted = what
        for erasure_id, number in counts.items():
            of_store = self.found.setdefault(erasure_id, {})
            of_store[store] = of_store.get(store, 0) + number
        self.save(objects)

    def note_change(self, place: Place) -> None:
        """Remember a partition that the warehouse must load anew."""
        key = [place.entity, place.dt, place.hour or ""]
        if key not in self.places:
            self.places.append(key)


def changed_places(objects: Objects, run_id: str) -> list[Place]:
    """Return the partitions that a run's pass has changed; nothing if there was no pass."""
    progress = Progress.read(objects, run_id)
    return [Place(entity, dt, hour or None) for entity, dt, hour in progress.places] if progress else []


@dataclass(frozen=True, slots=True)
class LakePass:
    """Takes erased persons out of the lake."""

    objects: ForgettingObjects
    erasees: AllErasees
    progress: Progress  # of this night
    curated_tonight: Collection[Place]  # partitions
    has_time: Callable[[], bool] = lambda: True  # whether to go on in this call

    def run(self, now: datetime) -> None:
        """Do as much of the pass as the call has time for. `progress.is_done` says whether that was all."""
        for entity in sorted(PERSONS):
            if entity in self.progress.entities:
                continue
            if not self._clean_curated(entity):
                return
            if self.progress.due:
                self._clean_other_lines(entity)
            self.progress.entities.append(entity)
            self.progress.after = ""
            self.progress.save(self.objects)
        if self.progress.due:
            self._clean_errors_without_entity()
            self._remove_former_versions(now)
            names = {kind: by_name.keys() for kind, by_name in self.erasees.by_kind.items()}
            other_objects = OtherObjects(self.objects, self.progress.run_id, now, names, self._note_other)
            self.progress.left = dict(self._names_by_erasure(other_objects.clean()))
        self.progress.is_done = True
        self.progress.save(self.objects)

    def _clean_curated(self, entity: str) -> bool:
        """Clean an entity's files, the last one first, at least one; returns whether all are clean."""
        for number, stored in enumerate(self._files(entity)):
            if number and not self.has_time():
                self.progress.save(self.objects)
                return False
            self._clean_newest(entity, stored)
            self.progress.after = stored.key
        # Others may have written files of rows that came during the pass.
        for stored in self._files(entity, since=unstamp(self.progress.began)):
            self._clean_newest(entity, stored)
        return True

    def _files(self, entity: str, since: datetime | None = None) -> list[StoredObject]:
        """Return the files to clean, the last one first. since: only those that others have written since."""
        dates_of_tonight, due = self._dates_of_tonight(entity), self.progress.due
        changed = {tuple(place) for place in self.progress.places}
        files = []
        for stored in self.objects.list(layout.curated_prefix(entity)) if dates_of_tonight or due else ():
            place = layout.curated_place(stored.key)
            if place is None or not (due or place.dt in dates_of_tonight):
                continue
            if since:
                is_waiting = stored.modified >= since and (entity, place.dt, place.hour or "") not in changed
            else:
                is_waiting = not self.progress.after or stored.key < self.progress.after
            if is_waiting:
                files.append(stored)
        return files[::-1]

    def _dates_of_tonight(self, entity: str) -> set[str]:
        return {place.dt for place in self.curated_tonight if place.entity == entity}

    def _clean_newest(self, entity: str, stored: StoredObject) -> None:
        """Clean a file as it is now, and again if somebody writes it meanwhile; raises ObjectChanged."""
        for attempt in pauses(ATTEMPTS_MAX):
            try:
                etag = self.objects.etag(stored.key)
                if etag is not None:
                    self._clean_file(entity, StoredObject(stored.key, stored.size, etag, stored.modified))
                return
            except (NoObject, ObjectChanged):  # somebody else writes the file
                if attempt == ATTEMPTS_MAX - 1:
                    raise

    def _clean_file(self, entity: str, stored: StoredObject) -> None:
        """Take persons out of a file, and out of the raw objects that it is made of. Raises ObjectChanged."""
        place = layout.curated_place(stored.key)
        assert place  # noqa: S101 (none else are listed)
        end = footer_of(self.objects, stored.key)
        bookkeeping, erasees_of_entity = read_bookkeeping(end), self.erasees.in_entity(entity)
        is_of_tonight = place.dt in self._dates_of_tonight(entity)
        persons = FilePersons({}, {})
        if is_of_tonight or may_hold(pq.read_metadata(pa.BufferReader(end)), entity, erasees_of_entity):
            persons = self._rewrite_file(entity, stored, place, bookkeeping, with_tombstones=is_of_tonight)
        # The erasures that have changed the file: now, or in a call that died before it cleaned raw objects.
        erasure_ids = {erasee.erasure_id for erasee in persons.waiting.values()}
        erasure_ids |= self.erasees.with_mark(bookkeeping.erased)
        if erasure_ids or persons.refused:
            names = [name for name, erasee in erasees_of_entity.items() if erasee.erasure_id in erasure_ids]
            self._clean_sources(entity, place, bookkeeping, Finder(entity, names))
            self.objects.forget_former(layout.curated_prefix(entity, place.dt))
        # A line in quarantine has no row in the file, so the file's names do not tell whose line it is.
        if self.progress.due and bookkeeping.counts.quarantined:
            self._clean_sources(entity, place, bookkeeping, Finder(entity, erasees_of_entity))

    def _rewrite_file(
        self,
        entity: str,
        stored: StoredObject,
        place: Place,
        bookkeeping: Bookkeeping,
        *,
        with_tombstones: bool,
    ) -> FilePersons:
        """Take persons out of a file's rows, and return them. with_tombstones: also those who have left."""
        erasees_of_entity = self.erasees.in_entity(entity)
        with TemporaryDirectory() as folder:
            path = Path(folder, "rows.parquet")
            self.objects.save(stored.key, path)
            names = names_in(path, entity)
            waiting = {name: erasees_of_entity[name] for name in names.keys() & erasees_of_entity.keys()}
            refused = {}
            for name in names.keys() - waiting.keys() if with_tombstones else ():
                if tombstone := self.erasees.tombstone_of(entity, name):
                    refused[name] = tombstone
            persons = FilePersons(waiting, refused)
            # Raw lines of the refused go first: once the file is written, no row in it leads to them.
            if refused:
                self._clean_sources(entity, place, bookkeeping, _finder_of_refused(entity, refused))
            if waiting or refused:
                self.progress.note_change(place)
                counts = self._by_erasure(entity, names)
                self.progress.note(self.objects, f"{stored.key} {stored.etag}", entity, counts)
                self.progress.save(self.objects)
                rewrite_for_persons(self.objects, entity, stored, path, persons)
        return persons

    def _clean_sources(self, entity: str, place: Place, bookkeeping: Bookkeeping, finder: Finder) -> None:
        keys = [layout.source_key(place, name) for name in bookkeeping.sources]
        self._raw(entity).clean(keys, finder)

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
        def note(what: str, by_name: Mapping[str, int]) -> None:
            self.progress.note(self.objects, what, LINES, self._by_erasure(entity, by_name))

        return RawObjects(self.objects, note)

    def _by_erasure(self, entity: str, by_name: Mapping[str, int]) -> Counter[str]:
        """Return numbers of lines or rows by erasure. by_name: by the name of the person."""
        counts: Counter[str] = Counter()
        erasees_of_entity = self.erasees.in_entity(entity)
        for name, number in by_name.items():
            if erasee := erasees_of_entity.get(name):
                counts[erasee.erasure_id] += number
        return counts

    def _note_other(self, what: str, name_counts: NameCounts) -> None:
        self.progress.note(self.objects, what, OTHERS, self._names_by_erasure(name_counts))

    def _names_by_erasure(self, name_counts: NameCounts) -> Counter[str]:
        counts: Counter[str] = Counter()
        for (kind, name), number in name_counts.items():
            counts[self.erasees.by_kind[kind][name].erasure_id] += number
        return counts


def _finder_of_refused(entity: str, refused: Mapping[str, Tombstone]) -> Finder:
    return Finder(entity, refused, lambda row: is_refused(entity, row, refused[row[PERSONS[entity]]]))
