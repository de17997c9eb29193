"""Objects that name a person and are no rows: state, results of runs, reports, answers to questions."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq

from adapters.platform.objects import ForgettingObjects, NoObject, StoredObject
from adapters.what_if_jobs import PREFIX as WHAT_IFS
from analytics.curation.raw_lines import readable_text
from analytics.curation.recover import ERRORS
from analytics.forgetting.erasees import KIND_OF_COLUMN
from analytics.lake import run_notes
from analytics.lake.layout import CURATED, QUARANTINE, RAW, RUNS, report_key, run_of
from rules.lake.entities import ENTITIES

HEADS = "state/heads"  # digests, which name no person; without them nothing is proven (rule 19)
FOLDERS = ("state/", RUNS, "reports/", "athena/", WHAT_IFS)
LINE_FOLDERS = (RAW, CURATED, QUARANTINE)  # below these, and in errors/, LakePass removes single lines
OWN_FOLDERS = (*FOLDERS, *LINE_FOLDERS, ERRORS, "jobs/")
# A run takes at most six hours. Only the run reads its files, and its report is the last file that it writes.
RUN_OVER_AFTER = timedelta(hours=7)
PARQUET = b"PAR1"
FOREIGN = "it names somebody who is to be forgotten, and is none of ours"
# Only a whole name counts: `ann-2`, `ann@example.com` and `mary.ann` are not `ann`. But a sentence may end
# with a name, and a file of a person has an ending. Any other point or @ with something behind it belongs to
# a longer name.
_ENDINGS = rb"\.(?:csv|gz|html|json|md|parquet|pdf|txt|zip)\b"
_NAME_BEGINS, _NAME_ENDS = rb"(?<![\w-])(?<![\w-][.@])", rb"(?:(?=" + _ENDINGS + rb")|(?![\w-]|[.@][\w-]))"
NameCounts = Mapping[tuple[str, str], int]  # (kind of name, name) -> how often
Note = Callable[[str, NameCounts], None]


@dataclass(frozen=True, slots=True)
class OtherObjects:
    """Deletes objects that name a person. The next night writes those that it needs again."""

    objects: ForgettingObjects
    run_id: str
    now: datetime
    names: Mapping[str, Collection[str]]  # of those who wait, by kind
    note: Note  # is called before each deletion

    def clean(self) -> NameCounts:
        """Delete the objects that name a person, and their former versions.

        Returns the names in objects that stay. These are files of a run that may still be under way, which a
        later night deletes; and objects that this system has not written, which an operator must look at.
        """
        remaining: Counter[tuple[str, str]] = Counter()
        for folder in FOLDERS:
            for stored, counts in self._objects_with_names(list(self.objects.list(folder))):
                if folder == RUNS and self._may_be_in_use(stored):
                    remaining += counts
                else:
                    self.note(f"{stored.key} {stored.etag}", counts)
                    self.objects.delete([stored.key])
            self.objects.forget_former(folder)
        for stored, counts in self._objects_with_names(self._foreign_objects()):
            run_notes.note_odd_object(self.objects, self.run_id, stored.key, FOREIGN)
            remaining += counts
        return remaining

    def _objects_with_names(
        self, candidates: Iterable[StoredObject]
    ) -> Iterator[tuple[StoredObject, Counter[tuple[str, str]]]]:
        """Yield the objects that name a person, each with how often it has which name."""
        for stored in candidates:
            if stored.key.startswith(HEADS):
                continue
            with suppress(NoObject):
                if counts := self._count_names(self.objects.get(stored.key)):
                    yield stored, counts

    def _foreign_objects(self) -> Iterator[StoredObject]:
        """Yield the objects that are nobody's: in no folder of this system, or in none of its entities."""
        prefixes = [prefix for prefix in self.objects.below("") if not prefix.startswith(OWN_FOLDERS)]
        for folder in LINE_FOLDERS:
            below_folder = self.objects.below(folder)
            prefixes += [prefix for prefix in below_folder if prefix.split("/")[1] not in ENTITIES]
        for prefix in prefixes:
            yield from self.objects.list(prefix)

    def _may_be_in_use(self, stored: StoredObject) -> bool:
        """Whether a file's run may still read it: it is this run, or a young one without a report."""
        run_id = run_of(stored.key)
        if run_id == self.run_id:
            return True
        return (
            self.now - stored.modified < RUN_OVER_AFTER
            and self.objects.etag(report_key(run_id, "json")) is None
        )

    def _count_names(self, data: bytes) -> Counter[tuple[str, str]]:
        if data.startswith(PARQUET):
            return self._count_in_rows(data)
        text = readable_text(data)
        counts: Counter[tuple[str, str]] = Counter()
        for kind, names in self.names.items():
            for name in names:
                if number := len(re.findall(_NAME_BEGINS + re.escape(name.encode()) + _NAME_ENDS, text)):
                    counts[kind, name] += number
        return counts

    def _count_in_rows(self, data: bytes) -> Counter[tuple[str, str]]:
        file = pq.ParquetFile(pa.BufferReader(data))
        counts: Counter[tuple[str, str]] = Counter()
        for column in KIND_OF_COLUMN.keys() & set(file.schema_arrow.names):
            names = self.names[KIND_OF_COLUMN[column]]
            values = file.read([column])[column].to_pylist()
            counts.update((KIND_OF_COLUMN[column], value) for value in values if value in names)
        return counts
