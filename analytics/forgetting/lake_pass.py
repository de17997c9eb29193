"""One night's pass over the lake, which takes out all erased persons who wait. A call that dies is repeated.

1. Each curated file's footer is read. It has the least and the greatest name, and the marks of the erasures
   that have changed the file. If a person is in the file, the file is written again without the person. Then
   the raw objects that its bookkeeping names are cleaned. After a crash the mark says that they still wait.
2. A file that this night has curated is also searched for everybody who has a tombstone.
3. At last come raw lines to which no curated file leads, Firehose's errors, and other objects.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq

from adapters.platform.aws import pauses
from adapters.platform.objects import ForgettingObjects, NoObject, ObjectChanged, StoredObject
from analytics.curation.recover import ERRORS
from analytics.forgetting.curated_rows import FilePersons, is_refused, may_hold, names_in, write_anew
from analytics.forgetting.erasees import AllErasees
from analytics.forgetting.other_objects import Named, OtherObjects
from analytics.forgetting.person_lines import Finder
from analytics.forgetting.progress import Progress
from analytics.forgetting.raw_objects import RawObjects
from analytics.lake import layout
from analytics.lake.bookkeeping import Bookkeeping, footer_of, read_bookkeeping
from analytics.lake.layout import Place
from analytics.lake.run_notes import failed_tasks, remembered_tasks
from rules.days import unstamp
from rules.lake.entities import ENTITIES
from rules.lake.residue import PERSONS
from rules.privacy.tombstones import Tombstone

LINES, OTHERS = "raw, quarantine, errors", "state, runs, reports"
ATTEMPTS_MAX = 8
UNFINISHED_FOR = timedelta(days=1)  # after that an upload is given up: Firehose tries a delivery so long


@dataclass(frozen=True, slots=True)
class LakePass:
    """Takes erased persons out of the lake."""

    objects: ForgettingObjects
    everybody: AllErasees
    progress: Progress  # of this night
    fresh: Collection[Place]  # the partitions that this night has curated
    has_time: Callable[[], bool] = lambda: True  # whether to go on in this call

    def run(self, now: datetime) -> bool:
        """Go on; returns whether all is done."""
        for entity in sorted(PERSONS):
            if entity in self.progress.entities:
                continue
            if not self._clean_curated(entity):
                return False
            if self.progress.due:
                self._clean_other_lines(entity)
            self.progress.entities.append(entity)
            self.progress.after = ""
            self.progress.save(self.objects)
        if self.progress.due:
            self._clean_errors_without_entity()
            self._forget_former(now)
            names = {kind: by_name.keys() for kind, by_name in self.everybody.by_kind.items()}
            others = OtherObjects(self.objects, self.progress.run_id, now, names, self._note_other)
            self.progress.left = dict(self._of_others(others.clean()))
        self.progress.is_done = True
        self.progress.save(self.objects)
        return True

    def _clean_curated(self, entity: str) -> bool:
        """Clean an entity's files, the last one first; returns whether there was time for all.

        At least one file is cleaned, so that each call gets on.
        """
        for number, stored in enumerate(self._files(entity)):
            if number and not self.has_time():
                self.progress.save(self.objects)
                return False
            self._clean_newest(entity, stored)
            self.progress.after = stored.key
        for stored in self._files(entity, since=unstamp(self.progress.began)):
            self._clean_newest(entity, stored)
        return True

    def _files(self, entity: str, since: datetime | None = None) -> list[StoredObject]:
        """Return the files to clean, the last one first. since: only those that others have written since."""
        fresh = self._fresh_days(entity)
        changed = {tuple(place) for place in self.progress.places}
        files = []
        for stored in self.objects.list(layout.curated_prefix(entity)) if fresh or self.progress.due else ():
            place = layout.curated_place(stored.key)
            if place is None or not (self.progress.due or place.dt in fresh):
                continue
            if since:
                is_waiting = stored.modified >= since and (entity, place.dt, place.hour or "") not in changed
            else:
                is_waiting = not self.progress.after or stored.key < self.progress.after
            if is_waiting:
                files.append(stored)
        return files[::-1]

    def _fresh_days(self, entity: str) -> set[str]:
        """Return the dates of the entity's partitions that this night has curated."""
        return {place.dt for place in self.fresh if place.entity == entity}

    def _clean_newest(self, entity: str, stored: StoredObject) -> None:
        """Clean a file as it is now, and again if somebody writes it meanwhile; raises ObjectChanged."""
        for attempt in pauses(ATTEMPTS_MAX):
            try:
                etag = self.objects.etag(stored.key)
                if etag is not None:
                    self._clean_file(entity, StoredObject(stored.key, stored.size, etag, stored.modified))
                return
            except (NoObject, ObjectChanged):  # somebody curates it
                if attempt == ATTEMPTS_MAX - 1:
                    raise

    def _clean_file(self, entity: str, stored: StoredObject) -> None:
        """Take persons out of a file, and out of the raw objects that it is made of. Raises ObjectChanged."""
        place = layout.curated_place(stored.key)
        assert place  # noqa: S101 (none else are listed)
        end = footer_of(self.objects, stored.key)
        metadata, book = pq.read_metadata(pa.BufferReader(end)), read_bookkeeping(end)
        everyone = self.everybody.in_entity(entity)
        uncleaned = self.everybody.with_mark(book.erased)
        is_fresh = place.dt in self._fresh_days(entity)
        with TemporaryDirectory() as folder:
            path, names = Path(folder, "rows.parquet"), dict[str, int]()
            if is_fresh or may_hold(metadata, entity, everyone):
                self.objects.save(stored.key, path)
                names = names_in(path, entity)
            waiting = {name: everyone[name] for name in names.keys() & everyone.keys()}
            refused = self._tombstones_of(entity, names.keys() - everyone.keys()) if is_fresh else {}
            # No row of them stays in the file. So nothing would lead to their raw lines after it is written.
            if refused:
                self._clean_sources(entity, place, book, _finder(entity, refused))
            if waiting or refused:
                self.progress.note_change(place)
                counts = self._by_erasure(entity, names)
                self.progress.note(self.objects, f"{stored.key} {stored.etag}", entity, counts)
                self.progress.save(self.objects)
                write_anew(self.objects, entity, stored, path, FilePersons(waiting, refused))
        if waiting or refused or uncleaned:
            ids = {erasee.erasure_id for erasee in waiting.values()} | uncleaned
            persons = [name for name, erasee in everyone.items() if erasee.erasure_id in ids]
            self._clean_sources(entity, place, book, Finder(entity, persons))
            self.objects.forget_former(layout.curated_prefix(entity, place.dt))
        # A refused line is in no row, so the names in the file do not tell whose it is.
        if self.progress.due and book.counts.quarantined:
            self._clean_sources(entity, place, book, Finder(entity, everyone))

    def _tombstones_of(self, entity: str, names: Collection[str]) -> Mapping[str, Tombstone]:
        tombstones = {name: self.everybody.tombstone_of(entity, name) for name in names}
        return {name: tombstone for name, tombstone in tombstones.items() if tombstone}

    def _clean_sources(self, entity: str, place: Place, book: Bookkeeping, finder: Finder) -> None:
        """Clean the raw objects that a file's bookkeeping names."""
        keys = [layout.source_key(place, name) for name in book.sources]
        self._raw(entity).clean(keys, finder)

    def _clean_other_lines(self, entity: str) -> None:
        """Clean the raw objects, refused lines and errors of an entity to which no curated file leads."""
        finder, raw = Finder(entity, self.everybody.in_entity(entity)), self._raw(entity)
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
                finder = Finder(entity, self.everybody.in_entity(entity))
                self._raw(entity).clean_errors(prefix, finder)

    def _forget_former(self, now: datetime) -> None:
        """Remove former versions and unfinished uploads, which may name somebody.

        Former versions of the raw and curated objects that this pass has changed are gone already.
        """
        for folder in (layout.RAW, layout.CURATED):
            self.objects.forget_former(folder, of_deleted=True)
        for folder in (layout.QUARANTINE, ERRORS):
            self.objects.forget_former(folder)
        self.objects.forget_unfinished(now - UNFINISHED_FOR)

    def _raw(self, entity: str) -> RawObjects:
        def note(what: str, gone: Mapping[str, int]) -> None:
            self.progress.note(self.objects, what, LINES, self._by_erasure(entity, gone))

        return RawObjects(self.objects, note)

    def _by_erasure(self, entity: str, gone: Mapping[str, int]) -> Counter[str]:
        """Return by erasure how many lines or rows there were. gone: how many each name had."""
        counts: Counter[str] = Counter()
        everyone = self.everybody.in_entity(entity)
        for name, number in gone.items():
            if erasee := everyone.get(name):
                counts[erasee.erasure_id] += number
        return counts

    def _note_other(self, what: str, gone: Named) -> None:
        self.progress.note(self.objects, what, OTHERS, self._of_others(gone))

    def _of_others(self, named: Named) -> Counter[str]:
        counts: Counter[str] = Counter()
        for (kind, name), number in named.items():
            counts[self.everybody.by_kind[kind][name].erasure_id] += number
        return counts


def _finder(entity: str, refused: Mapping[str, Tombstone]) -> Finder:
    return Finder(entity, refused, lambda row: is_refused(entity, row, refused[row[PERSONS[entity]]]))
