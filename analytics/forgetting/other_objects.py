"""Objects that name a person and are no rows: state, results of runs, reports, answers to questions."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from adapters.platform.objects import ForgettingObjects, NoObject, StoredObject, objects_of_entry
from adapters.what_if_jobs import PREFIX as WHAT_IFS
from analytics.curation.plan import read_strays
from analytics.curation.recover import ERRORS
from analytics.forgetting.named_persons import ATHENA, Name, NameCounts, count_names
from analytics.lake import run_notes
from analytics.lake.layout import CURATED, QUARANTINE, RAW, RUNS, report_key, run_of
from rules.lake.entities import ENTITIES

HEADS = "state/heads"  # digests, which name no person; without them nothing is proven (rule 19)
FOLDERS = ("state/", RUNS, "reports/", ATHENA, WHAT_IFS)
LINE_FOLDERS = (RAW, CURATED, QUARANTINE)  # below these, and in errors/, LakePass removes single lines
OWN_FOLDERS = (*FOLDERS, *LINE_FOLDERS, ERRORS, "jobs/")
# A run takes at most six hours. Only the run reads its files, and its report is the last file that it writes.
RUN_OVER_AFTER = timedelta(hours=7)
FOREIGN = "it names somebody who is to be forgotten, and is none of ours"
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
        remaining: Counter[Name] = Counter()
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
    ) -> Iterator[tuple[StoredObject, Counter[Name]]]:
        """Yield the objects that name a person, each with how often it has which name."""
        for stored in candidates:
            if stored.key.startswith(HEADS):
                continue
            with suppress(NoObject):
                if counts := count_names(stored.key, self.objects.get(stored.key), self.names):
                    yield stored, counts

    def _foreign_objects(self) -> Iterator[StoredObject]:
        """Yield the objects that are nobody's: in no folder of ours, in none of its entities, strays."""
        entries = [entry for entry in self.objects.below("") if not entry.startswith(OWN_FOLDERS)]
        for folder in LINE_FOLDERS:
            folders_of_entities = {f"{folder}{entity}/" for entity in ENTITIES}
            entries += [entry for entry in self.objects.below(folder) if entry not in folders_of_entities]
        for entry in [*entries, *read_strays(self.objects, self.run_id)]:
            yield from objects_of_entry(self.objects, entry)

    def _may_be_in_use(self, stored: StoredObject) -> bool:
        """Whether a file's run may still read it: it is this run, or a young one without a report."""
        run_id = run_of(stored.key)
        if run_id == self.run_id:
            return True
        return (
            self.now - stored.modified < RUN_OVER_AFTER
            and self.objects.etag(report_key(run_id, "json")) is None
        )
