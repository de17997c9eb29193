"""Objects that nights have left: state, results of runs, reports, answers to analysts."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq

from adapters.platform.objects import ForgettingObjects, NoObject, StoredObject
from rules.privacy.erasures import PERSONS, USERS

HEADS = "state/heads"  # digests alone, which name nobody; without them nothing is proven (rule 19)
FOLDERS = ("state/", "runs/", "reports/", "athena/")
# A run may take six hours, and its files are read by nobody else.
OVER = timedelta(hours=7)
COLUMNS = {"user_id": USERS, "account_id": USERS, "person": PERSONS}
PARQUET = b"PAR1"
Note = Callable[[str, Mapping[tuple[str, str], int]], None]


@dataclass(frozen=True, slots=True)
class OtherObjects:
    """An object that names a person is deleted; the next night makes anew what it needs.

    names: of those who wait, by kind. note: is told before each deletion.
    """

    objects: ForgettingObjects
    run_id: str
    now: datetime
    names: Mapping[str, Collection[str]]
    note: Note

    def clean(self) -> None:
        """Delete what names them, and what it was before. Runs that may go on are left to a later night."""
        for folder in FOLDERS:
            for stored in list(self.objects.list(folder)):
                if stored.key.startswith(HEADS) or (folder == "runs/" and self._may_go_on(stored)):
                    continue
                try:
                    gone = self._named(self.objects.get(stored.key))
                except NoObject:
                    continue
                if gone:
                    self.note(f"{stored.key} {stored.etag}", gone)
                    self.objects.delete([stored.key])
            self.objects.forget_former(folder)

    def _may_go_on(self, stored: StoredObject) -> bool:
        is_own = stored.key.startswith(f"runs/{self.run_id}/")
        return is_own or self.now - stored.modified < OVER

    def _named(self, data: bytes) -> Counter[tuple[str, str]]:
        """Return who is named, and how often."""
        if data.startswith(PARQUET):
            return self._in_rows(data)
        found: Counter[tuple[str, str]] = Counter()
        for kind, names in self.names.items():
            for each in names:
                if number := len(re.findall(rb"(?<![\w-])" + re.escape(each.encode()) + rb"(?![\w-])", data)):
                    found[kind, each] += number
        return found

    def _in_rows(self, data: bytes) -> Counter[tuple[str, str]]:
        file = pq.ParquetFile(pa.BufferReader(data))
        found: Counter[tuple[str, str]] = Counter()
        for column in COLUMNS.keys() & set(file.schema_arrow.names):
            names = self.names[COLUMNS[column]]
            rows = file.read([column])[column].to_pylist()
            found.update((COLUMNS[column], each) for each in rows if each in names)
        return found
