"""The nightly recompute: the lake's copy of each account, folded by the rules.

A night does not read the whole lake. Each user's fold of the older partitions is stored (SettledUsers), in a
file for each share of the users: state/users/SHARES/NUMBER.parquet. The night adds the rows of later
partitions to these folds. If that is not possible for a user (user_fold.py), the user is folded from all
partitions. Stored folds count only while the files of their partitions are unchanged. If one has changed, the
night reads all partitions. A user's rows meet in this order:

    stored fold  +  rows of partitions that get settled tonight  ->  the fold to store
    that fold    +  rows of recent partitions                    ->  tonight's row
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
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
    parquet_bytes,
    query,
    tables,
)
from analytics.lake.layout import curated_files
from analytics.recompute.lake_users import ROWS, LakeUsers
from analytics.recompute.user_fold import ENTRY, SETTINGS, AllEntriesNeeded, Row, UserFold, entry_of
from analytics.recompute.user_shares import ALL, UserShare
from rules.engagement.ledger import Entry
from rules.lake.entities import ENTITIES

USER_COLUMNS = {"ledger": "account_id", "streaks": "user_id"}  # the column with the user, by entity
# Older partitions are compacted to days, and get new rows only if somebody redrives some.
SETTLED_AFTER = timedelta(days=5)
# Streaks are settled so many days less far. Otherwise an event of a device that was offline for a fortnight
# (rule 16) would need the user's whole ledger.
OPEN_DATES = timedelta(days=16)
USERS_AT_ONCE = 5_000  # their rows are Python objects, until they become a table
STATES = ROWS.append(pa.field("state", pa.string()))  # a user's row, and UserFold.state
# A user's row of all partitions, and the row of the settled ones, which is stored for the next night
FOLDED_ROWS = pa.schema([("row", pa.struct(list(ROWS))), ("settled", pa.struct(list(STATES)))])
# The expressions of those columns of ENTRY that entry_of takes in another form than the file has.
READ_AS = {
    "created_at": f"strftime(created_at::TIMESTAMP, {STAMP}) AS created_at",
    **{name: f"{name}::VARCHAR AS {name}" for name in ("activity_date", "freeze_date", "expires_on")},
    "freeze": '"freeze"',
}
# is_recent: whether the row's partition stays unsettled tonight.
ENTRIES = f"""SELECT {", ".join(READ_AS.get(name, name) for name in ENTRY)}, is_recent FROM ledger
ORDER BY account_id, is_recent, ledger.created_at, seq"""  # noqa: S608 (our own)
PROFILES = f"""SELECT user_id, {", ".join(SETTINGS)}, is_recent FROM streaks
ORDER BY user_id, is_recent, version"""  # noqa: S608 (our own)
STATES_OF_READ_USERS = """SELECT states.* FROM states
SEMI JOIN (SELECT account_id AS user_id FROM ledger UNION SELECT user_id FROM streaks) USING (user_id)
ORDER BY user_id"""
Files = Mapping[str, list[StoredObject]]  # curated files by entity


def recompute(objects: Objects, today: date, *, anew: bool = False, share: UserShare = ALL) -> LakeUsers:
    """Recompute the users of a share, and settle partitions that are old enough. today: UTC.

    anew: read all partitions, also those that are settled.
    """
    files = {entity: curated_files(objects, entity) for entity in USER_COLUMNS}
    settled = SettledUsers() if anew else SettledUsers.load(objects, files, share)
    until = max(today - SETTLED_AFTER, settled.until or date.min)
    later_files = {
        entity: files_between(of_entity, settled.until, None) for entity, of_entity in files.items()
    }
    lake_fold = LakeFold(objects, share, until)
    lake_fold.add(later_files, settled.table)
    if lake_fold.needing_all:
        lake_fold.add(files, STATES.empty_table(), lake_fold.needing_all)
    if until != settled.until:
        digest = etags_digest(files, until)
        SettledUsers(until, lake_fold.states(settled.table), digest).save(objects, share)
    return LakeUsers(lake_fold.rows(settled.table))


@dataclass(frozen=True, slots=True)
class SettledUsers:
    """The folds of a share's users from older partitions."""

    until: date | None = None  # the date of the last settled partition; None: none is settled
    table: pa.Table = field(default_factory=STATES.empty_table)  # with the columns STATES
    digest: str = ""  # of all settled files (etags_digest)

    @classmethod
    def load(cls, objects: Objects, files: Files, share: UserShare = ALL) -> "SettledUsers":
        """Read the stored folds. They are empty if none are stored, or if they were made from other files."""
        try:
            table = pq.read_table(BytesIO(objects.get(share.state_key)))
        except NoObject:
            return cls()
        metadata = json.loads(table.schema.metadata[b"settled"])
        until = date.fromisoformat(metadata["until"])
        if (metadata["files"], metadata["form"]) != (etags_digest(files, until), _columns_digest()):
            return cls()
        return cls(until, table, metadata["files"])

    def save(self, objects: Objects, share: UserShare = ALL) -> None:
        """Store the folds. Raises ValueError if no partition is settled."""
        if self.until is None:
            raise ValueError("nothing is settled")
        metadata = {"until": self.until.isoformat(), "files": self.digest, "form": _columns_digest()}
        table = self.table.replace_schema_metadata({b"settled": json.dumps(metadata).encode()})
        objects.put(share.state_key, parquet_bytes(table))


def _columns_digest() -> str:
    """Return a digest of the columns. A file with another digest is of another version of this code."""
    return hashlib.sha256(str(STATES).encode()).hexdigest()


@dataclass(slots=True)
class LakeFold:
    """Folds rows of the lake, user by user."""

    objects: Objects
    share: UserShare
    until: date  # the partitions up to this date get settled
    needing_all: set[str] = field(default_factory=set)  # users who have to be folded from all rows
    _folded: list[pa.Table] = field(default_factory=list)  # with the columns FOLDED_ROWS

    def add(self, files: Files, settled: pa.Table, users: Collection[str] = ()) -> None:
        """Fold the rows of some files into settled folds.

        settled: the folds, with the columns STATES. users: fold only these; (): all of the share.
        """
        db = connect()
        for entity, user_column in USER_COLUMNS.items():
            with arrow_table(db, "read", self._read(entity, user_column, files[entity], users)):
                db.execute(f"CREATE TABLE {entity} AS FROM read")
        with arrow_table(db, "states", settled):
            folds = {row["user_id"]: UserFold.of(row) for row in query(db, STATES_OF_READ_USERS).to_pylist()}
        folded_rows: list[dict[str, Any]] = []
        for rows in _rows_by_user(db):
            try:
                folded_rows.append(self._fold(folds.get(rows.user_id) or UserFold(rows.user_id), rows))
            except AllEntriesNeeded:
                self.needing_all.add(rows.user_id)
            if len(folded_rows) >= USERS_AT_ONCE:
                self._folded.append(pa.Table.from_pylist(folded_rows, FOLDED_ROWS))
                folded_rows = []
        self._folded.append(pa.Table.from_pylist(folded_rows, FOLDED_ROWS))

    def rows(self, settled: pa.Table) -> pa.Table:
        """Return the rows of all users of the share, by user_id. settled: as for `add`."""
        return self._with_unchanged_users(settled, "row").select(ROWS.names).cast(ROWS)

    def states(self, settled: pa.Table) -> pa.Table:
        """Return the new settled folds of all users of the share, by user_id. settled: as for `add`."""
        return self._with_unchanged_users(settled, "settled").cast(STATES)

    def _read(
        self, entity: str, user_column: str, files: Iterable[StoredObject], users: Collection[str]
    ) -> pa.RecordBatchReader:
        """Return rows of an entity's files, with the column is_recent."""
        names = ENTRY if entity == "ledger" else ("user_id", *SETTINGS)
        schema = pa.schema([arrow_schema(ENTITIES[entity]).field(name) for name in names])
        schema = schema.append(pa.field("is_recent", pa.bool_()))
        day_tables = tables(self.objects, entity, files, names)
        return pa.RecordBatchReader.from_batches(schema, self._batches(day_tables, user_column, users))

    def _batches(
        self, day_tables: Iterable[tuple[date, pa.Table]], user_column: str, users: Collection[str]
    ) -> Iterator[pa.RecordBatch]:
        rows_of_share, wanted = self.share.rows_of(user_column), pa.array(list(users), pa.string())
        for day, table in day_tables:
            rows = table.filter(pc.is_in(table[user_column], wanted)) if users else rows_of_share(table)
            is_recent = pa.repeat(pa.scalar(day > self.until), rows.num_rows)
            yield from rows.append_column("is_recent", is_recent).to_batches()

    def _fold(self, fold: UserFold, rows: "UserRows") -> dict[str, Any]:
        """Return a user's rows of all and of settled partitions (FOLDED_ROWS). Raises AllEntriesNeeded."""
        fold.add_entries(entry for entry, is_recent in rows.entries if not is_recent)
        fold.add_profiles(row for row in rows.profiles if not row["is_recent"])
        state = fold.settled_up_to(self.until - OPEN_DATES).state
        settled = {**fold.row(), "state": state} if fold.head or fold.settings else None
        fold.add_entries(entry for entry, is_recent in rows.entries if is_recent)
        fold.add_profiles(row for row in rows.profiles if row["is_recent"])
        return {"row": fold.row(), "settled": settled}

    def _with_unchanged_users(self, settled: pa.Table, column: str) -> pa.Table:
        """Return a column of FOLDED_ROWS, and the settled rows of the users without new rows."""
        db = connect()
        with arrow_table(db, "states", settled), arrow_table(db, "folded", pa.concat_tables(self._folded)):
            return query(
                db,
                f"""SELECT * FROM (
                  SELECT states.* FROM states
                  ANTI JOIN (SELECT "row".user_id AS user_id FROM folded) USING (user_id)
                  UNION ALL BY NAME SELECT unnest("{column}") FROM folded WHERE "{column}" IS NOT NULL
                ) ORDER BY user_id""",  # noqa: S608 (our own)
            )


@dataclass(slots=True)
class UserRows:
    """One user's rows of the lake. Rows of partitions that get settled come first."""

    user_id: str
    entries: list[tuple[Entry, bool]] = field(default_factory=list)  # (entry, whether it is recent)
    profiles: list[Row] = field(default_factory=list)  # in the order of versions


def _rows_by_user(db: duckdb.DuckDBPyConnection) -> Iterator[UserRows]:
    """Yield each user's rows of the tables `ledger` and `streaks`. Both are read in the order of users."""
    entries = ((entry_of(values[:-1]), values[-1]) for values in values_of(db.cursor(), ENTRIES))
    names = ("user_id", *SETTINGS, "is_recent")
    profiles = (dict(zip(names, values, strict=True)) for values in values_of(db.cursor(), PROFILES))
    entries_by_user = groupby(entries, key=lambda entry: entry[0].account_id)
    profiles_by_user = groupby(profiles, key=itemgetter("user_id"))
    next_entries, next_profiles = next(entries_by_user, None), next(profiles_by_user, None)
    while next_entries or next_profiles:
        rows = UserRows(min(group[0] for group in (next_entries, next_profiles) if group))
        if next_entries and next_entries[0] == rows.user_id:
            rows.entries = list(next_entries[1])
            next_entries = next(entries_by_user, None)
        if next_profiles and next_profiles[0] == rows.user_id:
            rows.profiles = list(next_profiles[1])
            next_profiles = next(profiles_by_user, None)
        yield rows


def values_of(db: duckdb.DuckDBPyConnection, sql: str) -> Iterator[tuple[Any, ...]]:
    """Yield a query's rows."""
    for batch in db.sql(sql).to_arrow_reader(10_000):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
