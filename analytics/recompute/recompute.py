"""The nightly recompute: the lake's copy of each account, folded by the rules.

The result is one row per user that the lake knows: a file for each share of the users. A row has what was
computed (last_activity_date to digest) and the settings of the newest profile, which cannot be computed from
anything else.

The folds up to a date are kept (SettledUsers): a file for each share, state/users/SHARES/NUMBER.parquet. A
night adds later partitions to them. A user for whom that is not possible is folded from all partitions
(user_fold.py). The kept folds count as long as the files of their partitions are as they were. Otherwise
everything is read anew.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from io import BytesIO
from itertools import groupby
from operator import itemgetter
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from adapters.platform.objects import NoObject, Objects, StoredObject
from analytics.lake.arrow import arrow_schema
from analytics.lake.curated_files import (
    STAMP,
    arrow_table,
    connect,
    etags_digest,
    files_between,
    query,
    tables,
)
from analytics.lake.layout import curated_files
from analytics.recompute.profile_texts import dates_of
from analytics.recompute.user_fold import ENTRY, SETTINGS, AllEntriesNeeded, Row, UserFold, entry_of
from analytics.recompute.user_shares import ALL, UserShare
from rules.days import stamp
from rules.engagement.ledger import Entry
from rules.engagement.streak import Streak
from rules.lake.entities import ENTITIES

RESULT = "streaks.parquet"
FOLDED = {"ledger": "account_id", "streaks": "user_id"}  # entity -> the column that says whose a row is
# After that, hours are compacted to days, and nothing comes but what somebody redrives.
SETTLED_AFTER = timedelta(days=5)
# Streaks are settled only up to so long before: an event of a device that was offline for a fortnight
# (rule 16) must not make a user's whole ledger be read.
OPEN_DATES = timedelta(days=16)
USERS_AT_ONCE = 5_000
ROWS = pa.schema(
    [
        ("user_id", pa.string()),
        ("last_activity_date", pa.date32()),
        *((name, pa.int32()) for name in ("current_streak", "longest_streak", "active_days")),
        ("freezes_spent", pa.string()),
        ("lapses_on", pa.date32()),
        *((name, pa.int64()) for name in ("entries", "total_bestie_points", "points", "balance")),
        ("ledger_head", pa.string()),
        ("ledger_seq", pa.int64()),
        ("sound", pa.bool_()),
        ("digest", pa.uint64()),
        *((name, arrow_schema(ENTITIES["streaks"]).field(name).type) for name in SETTINGS),
    ]
)
STATES = ROWS.append(pa.field("state", pa.string()))
# How SQL reads a column of ENTRY as entry_of takes it, where that is not the column itself.
READ = {
    "created_at": f"strftime(created_at::TIMESTAMP, {STAMP}) AS created_at",
    **{name: f"{name}::VARCHAR AS {name}" for name in ("activity_date", "freeze_date", "expires_on")},
    "freeze": '"freeze"',
}
ENTRIES = f"""SELECT {", ".join(READ.get(name, name) for name in ENTRY)}, is_late FROM ledger
ORDER BY account_id, is_late, ledger.created_at, seq"""  # noqa: S608 (our own)
PROFILES = f"""SELECT user_id, {", ".join(SETTINGS)}, is_late FROM streaks
ORDER BY user_id, is_late, version"""  # noqa: S608 (our own)
KNOWN = """SELECT states.* FROM states
SEMI JOIN (SELECT account_id AS user_id FROM ledger UNION SELECT user_id FROM streaks) USING (user_id)
ORDER BY user_id"""


@dataclass(frozen=True, slots=True)
class RecomputedUsers:
    """The result: one row per user, by user_id."""

    table: pa.Table

    def save(self, objects: Objects, run_id: str, share: UserShare = ALL) -> str:
        """Store the table as the nightly run's result; returns its key."""
        key = share.key(run_id, RESULT)
        objects.put(key, _parquet(self.table))
        return key

    @staticmethod
    def is_there(objects: Objects, run_id: str, share: UserShare) -> bool:
        """Whether a nightly run has a result of a share."""
        return objects.etag(share.key(run_id, RESULT)) is not None

    @classmethod
    def load(cls, objects: Objects, run_id: str, share: UserShare = ALL) -> "RecomputedUsers":
        """Read a nightly run's result. Raises adapters.platform.objects.NoObject if there is none."""
        return cls(pq.read_table(BytesIO(objects.get(share.key(run_id, RESULT)))))


def recompute(
    objects: Objects, today: date, *, anew: bool = False, share: UserShare = ALL
) -> RecomputedUsers:
    """Recompute the users of a share, and settle what is old enough. today: UTC.

    anew: from all partitions, whatever is settled.
    """
    files = {entity: curated_files(objects, entity) for entity in FOLDED}
    before = SettledUsers() if anew else SettledUsers.load(objects, files, share)
    until = max(today - SETTLED_AFTER, before.until or date.min)
    later = {entity: files_between(of_entity, before.until, None) for entity, of_entity in files.items()}
    night = Night(objects, share, until)
    night.fold(later, before.table)
    if night.again:
        night.fold(files, STATES.empty_table(), night.again)
    if until != before.until:
        SettledUsers(until, night.states(before.table), etags_digest(files, until)).save(objects, share)
    return RecomputedUsers(night.rows(before.table))


@dataclass(frozen=True, slots=True)
class SettledUsers:
    """The folds of a share's users from older partitions."""

    until: date | None = None  # the date of the last partition that is counted in; None: none is
    table: pa.Table = field(default_factory=STATES.empty_table)  # with the columns STATES
    files: str = ""  # the digest of all files that are counted in (etags_digest)

    @classmethod
    def load(
        cls, objects: Objects, files: Mapping[str, list[StoredObject]], share: UserShare = ALL
    ) -> "SettledUsers":
        """Read what is settled, if it still is what these files make; otherwise start from nothing."""
        try:
            table = pq.read_table(BytesIO(objects.get(share.state_key)))
        except NoObject:
            return cls()
        metadata = json.loads(table.schema.metadata[b"settled"])
        until = date.fromisoformat(metadata["until"])
        if (metadata["files"], metadata["form"]) != (etags_digest(files, until), _form()):
            return cls()
        return cls(until, table, metadata["files"])

    def save(self, objects: Objects, share: UserShare = ALL) -> None:
        """Store what is settled. Raises ValueError if nothing is."""
        if self.until is None:
            raise ValueError("nothing is settled")
        metadata = {"until": self.until.isoformat(), "files": self.files, "form": _form()}
        table = self.table.replace_schema_metadata({b"settled": json.dumps(metadata).encode()})
        objects.put(share.state_key, _parquet(table))


def _form() -> str:
    """Return a digest of the columns. A file with others is of another version of this code."""
    return hashlib.sha256(str(STATES).encode()).hexdigest()


def _parquet(table: pa.Table) -> bytes:
    data = BytesIO()
    pq.write_table(table, data, compression="zstd")
    return data.getvalue()


@dataclass(slots=True)
class Night:
    """Counts rows of the lake into what is settled."""

    objects: Objects
    share: UserShare
    until: date  # the last date of which partitions get settled
    again: set[str] = field(default_factory=set)  # users who have to be folded from all rows
    _folded: list[pa.Table] = field(default_factory=list)  # with the columns FOLDED_ROWS

    def fold(
        self, files: Mapping[str, list[StoredObject]], known: pa.Table, users: Collection[str] = ()
    ) -> None:
        """Count in the rows of some files. known: the folds before. users: only these; (): the share's."""
        db = connect()
        for entity, user in FOLDED.items():
            with arrow_table(db, "read", self._read(entity, user, files[entity], users)):
                db.execute(f"CREATE TABLE {entity} AS FROM read")
        with arrow_table(db, "states", known):
            folds = {row["user_id"]: UserFold.of(row) for row in query(db, KNOWN).to_pylist()}
        rows: list[dict[str, Any]] = []
        for user_id, entries, profiles in _by_user(db):
            try:
                rows.append(self._row(folds.get(user_id) or UserFold(user_id), entries, profiles))
            except AllEntriesNeeded:
                self.again.add(user_id)
            if len(rows) >= USERS_AT_ONCE:
                self._folded.append(pa.Table.from_pylist(rows, FOLDED_ROWS))
                rows = []
        self._folded.append(pa.Table.from_pylist(rows, FOLDED_ROWS))

    def _row(self, fold: UserFold, entries: list[tuple[Entry, bool]], profiles: list[Row]) -> dict[str, Any]:
        """Return a user's row, and the row that is settled: without entries and profiles that are late."""
        fold.add_entries(entry for entry, is_late in entries if not is_late)
        fold.add_profiles(row for row in profiles if not row["is_late"])
        state = fold.settled_up_to(self.until - OPEN_DATES).state
        settled = {**fold.row(), "state": state} if fold.head or fold.settings else None
        fold.add_entries(entry for entry, is_late in entries if is_late)
        fold.add_profiles(row for row in profiles if row["is_late"])
        return {"row": fold.row(), "settled": settled}

    def _read(
        self, entity: str, user: str, files: Iterable[StoredObject], users: Collection[str]
    ) -> pa.RecordBatchReader:
        """Return rows of an entity's files. `is_late` says which partitions do not get settled."""
        names = ENTRY if entity == "ledger" else ("user_id", *SETTINGS)
        schema = pa.schema([arrow_schema(ENTITIES[entity]).field(name) for name in names])
        rows_of_share, wanted = self.share.rows_of(user), pa.array(list(users), pa.string())

        def batches() -> Iterator[pa.RecordBatch]:
            for day, table in tables(self.objects, entity, files, names):
                rows = table.filter(pc.is_in(table[user], wanted)) if users else rows_of_share(table)
                is_late = pa.repeat(pa.scalar(day > self.until), rows.num_rows)
                yield from rows.append_column("is_late", is_late).to_batches()

        return pa.RecordBatchReader.from_batches(schema.append(pa.field("is_late", pa.bool_())), batches())

    def rows(self, before: pa.Table) -> pa.Table:
        """Return the rows of all users of the share, by user_id."""
        return self._joined(before, "row").select(ROWS.names).cast(ROWS)

    def states(self, before: pa.Table) -> pa.Table:
        """Return what is settled of all users of the share, by user_id."""
        return self._joined(before, "settled").cast(STATES)

    def _joined(self, before: pa.Table, part: str) -> pa.Table:
        """Return the rows of before, with those of users who were folded in their place."""
        db = connect()
        with arrow_table(db, "states", before), arrow_table(db, "folded", pa.concat_tables(self._folded)):
            return query(
                db,
                f"""SELECT * FROM (
                  SELECT states.* FROM states
                  ANTI JOIN (SELECT "row".user_id AS user_id FROM folded) USING (user_id)
                  UNION ALL BY NAME SELECT unnest("{part}") FROM folded WHERE "{part}" IS NOT NULL
                ) ORDER BY user_id""",  # noqa: S608 (our own)
            )


FOLDED_ROWS = pa.schema([("row", pa.struct(list(ROWS))), ("settled", pa.struct(list(STATES)))])


def _by_user(
    db: duckdb.DuckDBPyConnection,
) -> Iterator[tuple[str, list[tuple[Entry, bool]], list[Row]]]:
    """Yield each user of the tables `ledger` and `streaks`, with the rows of both in order."""
    entries = ((entry_of(values[:-1]), values[-1]) for values in values_of(db.cursor(), ENTRIES))
    names = ("user_id", *SETTINGS, "is_late")
    profiles = (dict(zip(names, values, strict=True)) for values in values_of(db.cursor(), PROFILES))
    by_entry = groupby(entries, key=lambda entry: entry[0].account_id)
    by_profile = groupby(profiles, key=itemgetter("user_id"))
    next_entries, next_profiles = next(by_entry, None), next(by_profile, None)
    while next_entries or next_profiles:
        user = min(head[0] for head in (next_entries, next_profiles) if head)
        of_ledger: list[tuple[Entry, bool]] = []
        of_streaks: list[Row] = []
        if next_entries and next_entries[0] == user:
            of_ledger = list(next_entries[1])
            next_entries = next(by_entry, None)
        if next_profiles and next_profiles[0] == user:
            of_streaks = list(next_profiles[1])
            next_profiles = next(by_profile, None)
        yield user, of_ledger, of_streaks


def values_of(db: duckdb.DuckDBPyConnection, sql: str) -> Iterator[tuple[Any, ...]]:
    """Yield a query's rows."""
    for batch in db.sql(sql).to_arrow_reader(10_000):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


@dataclass(frozen=True, slots=True)
class LakeUser:
    """What the lake says of one user."""

    streak: Streak | None
    total_points: int  # ever earned
    balance: int
    head: str | None  # head, seq: of the newest ledger entry; None if the lake has no entry
    seq: int | None
    entries: int  # how many the ledger has; of all of them: points, digest
    points: int
    digest: int
    is_sound: bool  # the entries are complete, and their points add up to the balance
    version: int | None  # of the newest profile, as all below; None if the lake has no profile
    zone: str | None
    chosen: str | None
    pauses: str | None
    skipped: str | None
    review: bool
    updated_at: datetime | None
    opening: str | None = None


class Snapshot:
    """All users of one recompute, looked up by id."""

    def __init__(self, table: pa.Table) -> None:
        self._columns = {name: table[name].combine_chunks() for name in table.column_names}
        self.ids: list[str] = self._columns["user_id"].to_pylist()
        self.row_of = {user: index for index, user in enumerate(self.ids)}

    def touched(self, since: datetime) -> set[str]:
        """Return the users with a ledger entry or a profile of that instant or later."""
        entry = pc.greater_equal(self._columns["ledger_head"], stamp(since))
        profile = pc.greater_equal(self._columns["updated_at"], since)
        return set(self._columns["user_id"].filter(pc.or_kleene(entry, profile)).to_pylist())

    def lapsing(self, first: date, last: date) -> set[str]:
        """Return the users whose streak becomes 0 on one of these dates (both included) as it is now."""
        lapses_on = self._columns["lapses_on"]
        is_lapsing = pc.and_(pc.greater_equal(lapses_on, first), pc.less_equal(lapses_on, last))
        return set(self._columns["user_id"].filter(is_lapsing).to_pylist())

    def user(self, user_id: str) -> LakeUser | None:
        """Return a user, or None if the lake does not know the user."""
        index = self.row_of.get(user_id)
        if index is None:
            return None
        row: dict[str, Any] = {name: column[index].as_py() for name, column in self._columns.items()}
        return LakeUser(
            _streak(row) if row["last_activity_date"] else None,
            row["total_bestie_points"] or 0,
            row["balance"] or 0,
            row["ledger_head"],
            row["ledger_seq"],
            row["entries"] or 0,
            row["points"] or 0,
            row["digest"] or 0,
            row["sound"] is not False,
            row["version"],
            row["timezone"],
            row["timezone_chosen"],
            row["pauses"] or None,
            row["skipped_dates"] or None,
            bool(row["tz_review"]),
            row["updated_at"],
            row["opening"] or None,
        )


def _streak(row: dict[str, Any]) -> Streak:
    return Streak(
        row["last_activity_date"],
        row["current_streak"],
        row["longest_streak"],
        row["active_days"],
        dates_of(row["freezes_spent"]),
    )
