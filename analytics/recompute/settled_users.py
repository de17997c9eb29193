"""All users as the lake's older partitions make them. A night starts from there, and reads the later ones.

Stored as state/users.parquet, or a file for each share of the users, with the date up to which partitions are
folded in, and a digest of the ETags of their files. It counts only while all of these files are as they were.
Otherwise, and if one of the statements that made it has changed, everything is recomputed, and stored anew.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import partial
from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq

from adapters.platform.objects import NoObject, Objects, StoredObject
from analytics.lake.bookkeeping import footer_of
from analytics.lake.curated_files import date_of
from analytics.lake.layout import curated_files
from analytics.lake.shares import UserShare
from analytics.recompute import activity_runs, ledger_totals
from rules.book.book import USUAL_OFFLINE

# Events arrive up to 72 hours late, and those of a device that was offline a fortnight (rule 16): one of them
# must not make every night read everything. Files of hours become one of a day within the days that are left.
SETTLED_AFTER = timedelta(days=USUAL_OFFLINE.days_max + 3)
FOLDED = ("daily_activity", "ledger", "streaks")  # never deleted: may_age in rules/lake
Files = Mapping[str, list[StoredObject]]
ALL = UserShare()

USERS = pa.schema(
    [
        ("user_id", pa.string()),
        *activity_runs.STREAK,
        ("cover", pa.string()),
        *ledger_totals.PARTS,
        ("freezes", pa.string()),
        *ledger_totals.PROFILE,
    ]
)


def lake_files(objects: Objects) -> Files:
    """Return the curated files that a recompute reads, by entity."""
    return {entity: curated_files(objects, entity) for entity in FOLDED}


@dataclass(frozen=True, slots=True)
class LakeFiles:
    """The curated files of a recompute, by entity. whole: all. read: those with the rows to fold.

    They are the same for all users at once. A share has files of its own, with its users' rows alone.
    """

    whole: Files
    read: Files

    @classmethod
    def of_all(cls, objects: Objects) -> "LakeFiles":
        """Return the files for a recompute of all users at once."""
        files = lake_files(objects)
        return cls(files, files)


@dataclass(frozen=True, slots=True)
class SettledUsers:
    """until: the date of the last partition that is folded in; None: none is. files: see etags_digest.

    table: see USERS. `cover` is what protected the streak of a user who had any protection, as JSON.
    """

    until: date | None = None
    table: pa.Table = field(default_factory=USERS.empty_table)
    files: str = ""

    @classmethod
    def load(cls, objects: Objects, files: Files, share: UserShare = ALL) -> "SettledUsers":
        """Read what is settled, if it still is what these files make; otherwise start from nothing."""
        try:
            table = pq.read_table(BytesIO(objects.get(share.settled_key)))
        except NoObject:
            return cls()
        until, digest = _held(table.schema.metadata, partial(etags_digest, files))
        return cls(until, table, digest) if until else cls()

    def save(self, objects: Objects, share: UserShare = ALL) -> None:
        """Store what is settled. Raises ValueError if nothing is."""
        if self.until is None:
            raise ValueError("nothing is settled")
        held = {"until": self.until.isoformat(), "files": self.files, "made_by": _made_by()}
        data = BytesIO()
        metadata = {b"settled": json.dumps(held).encode()}
        pq.write_table(self.table.replace_schema_metadata(metadata), data, compression="zstd")
        objects.put(share.settled_key, data.getvalue())


def settled_until(objects: Objects, digest: Callable[[date], str], share: UserShare) -> date | None:
    """Return up to which date a share is settled, by its file's footer alone; None: it is not.

    digest: of the lake's files up to a date (etags_digest).
    """
    try:
        end = footer_of(objects, share.settled_key)
    except NoObject:
        return None
    return _held(pq.read_metadata(pa.BufferReader(end)).metadata, digest)[0]


def _held(metadata: Mapping[bytes, bytes], digest: Callable[[date], str]) -> tuple[date | None, str]:
    """Return the date and the digest that a file names, if the lake and the statements still make it."""
    held = json.loads(metadata[b"settled"])
    until = date.fromisoformat(held["until"])
    if held["made_by"] != _made_by() or held["files"] != digest(until):
        return None, ""
    return until, held["files"]


def between(files: Iterable[StoredObject], after: date | None, until: date | None) -> list[StoredObject]:
    """Return the files of partitions after a date and up to another; None: open on that side."""
    first, last = after.isoformat() if after else "", until.isoformat() if until else "9999-12-31"
    return [each for each in files if first < date_of(each) <= last]


def etags_digest(files: Files, until: date) -> str:
    """Return a digest of the keys and ETags of all entities' files up to a date: other files give another."""
    found = sorted(
        f"{each.key} {each.etag}" for some in files.values() for each in between(some, None, until)
    )
    return hashlib.sha256("\n".join(found).encode()).hexdigest()


def _made_by() -> str:
    """Return a digest of what makes the table: with other statements it would be another."""
    statements = (activity_runs.RUNS, activity_runs.JOINED, ledger_totals.TOTALS, ledger_totals.NEWEST)
    return hashlib.sha256("\0".join([*statements, str(USERS)]).encode()).hexdigest()
