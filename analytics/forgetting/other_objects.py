"""Objects that name a person and are no rows: state, results of runs, reports, answers to questions."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq

from adapters.platform.objects import ForgettingObjects, NoObject, StoredObject
from adapters.what_if_jobs import PREFIX as WHAT_IFS
from analytics.curation.raw_lines import readable_text
from analytics.curation.recover import ERRORS
from analytics.forgetting.erasees import KINDS
from analytics.lake import run_notes
from analytics.lake.layout import CURATED, QUARANTINE, RAW, RUNS, report_key, run_of
from rules.lake.entities import ENTITIES

HEADS = "state/heads"  # digests alone, which name nobody; without them nothing is proven (rule 19)
FOLDERS = ("state/", RUNS, "reports/", "athena/", WHAT_IFS)
LINE_FOLDERS = (RAW, CURATED, QUARANTINE)  # below these, and in errors/, lines of persons go
OWN_FOLDERS = (*FOLDERS, *LINE_FOLDERS, ERRORS, "jobs/")
# A run may take six hours, and its files are read by nobody else. Its report is the last that it writes.
OVER = timedelta(hours=7)
PARQUET = b"PAR1"
NAMES_SOMEBODY = "it names somebody who is to be forgotten, and is none of ours"
Named = Mapping[tuple[str, str], int]  # (kind of name, name) -> how often
Note = Callable[[str, Named], None]


@dataclass(frozen=True, slots=True)
class OtherObjects:
    """Deletes objects that name a person. The next night makes anew what it needs."""

    objects: ForgettingObjects
    run_id: str
    now: datetime
    names: Mapping[str, Collection[str]]  # of those who wait, by kind
    note: Note  # is called before each deletion

    def clean(self) -> Named:
        """Delete the objects that name a person, and their former versions.

        Returns who is named by objects that stay: files of a run that may still go on, which a later night
        deletes; and objects that this system has not written, which an operator must look at.
        """
        left: Counter[tuple[str, str]] = Counter()
        for folder in FOLDERS:
            for stored in list(self.objects.list(folder)):
                if stored.key.startswith(HEADS):
                    continue
                try:
                    named = self._count_names(self.objects.get(stored.key))
                except NoObject:
                    continue
                if named and folder == RUNS and self._may_go_on(stored):
                    left += named
                elif named:
                    self.note(f"{stored.key} {stored.etag}", named)
                    self.objects.delete([stored.key])
            self.objects.forget_former(folder)
        for stored in self._foreign_objects():
            with suppress(NoObject):
                if named := self._count_names(self.objects.get(stored.key)):
                    run_notes.note_odd_object(self.objects, self.run_id, stored.key, NAMES_SOMEBODY)
                    left += named
        return left

    def _foreign_objects(self) -> Iterator[StoredObject]:
        """Yield the objects that this system has not written."""
        prefixes = [each for each in self.objects.below("") if not each.startswith(OWN_FOLDERS)]
        for folder in LINE_FOLDERS:
            prefixes += [each for each in self.objects.below(folder) if each.split("/")[1] not in ENTITIES]
        for prefix in prefixes:
            yield from self.objects.list(prefix)

    def _may_go_on(self, stored: StoredObject) -> bool:
        """Whether a file's run may still read it: it is this one, or young and has no report yet."""
        run_id = run_of(stored.key)
        if run_id == self.run_id:
            return True
        return self.now - stored.modified < OVER and self.objects.etag(report_key(run_id, "json")) is None

    def _count_names(self, data: bytes) -> Counter[tuple[str, str]]:
        """Return whom an object's bytes name, and how often."""
        if data.startswith(PARQUET):
            return self._in_rows(data)
        text = readable_text(data)
        counts: Counter[tuple[str, str]] = Counter()
        for kind, names in self.names.items():
            for name in names:
                if number := len(re.findall(rb"(?<![\w-])" + re.escape(name.encode()) + rb"(?![\w-])", text)):
                    counts[kind, name] += number
        return counts

    def _in_rows(self, data: bytes) -> Counter[tuple[str, str]]:
        """Return whom the rows of a Parquet file name, and how often."""
        file = pq.ParquetFile(pa.BufferReader(data))
        counts: Counter[tuple[str, str]] = Counter()
        for column in KINDS.keys() & set(file.schema_arrow.names):
            names = self.names[KINDS[column]]
            values = file.read([column])[column].to_pylist()
            counts.update((KINDS[column], value) for value in values if value in names)
        return counts
