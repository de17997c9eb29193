"""The nightly recompute: the lake's copy of each account, folded by the rules.

A night does not read the whole lake. Each user's fold of the older partitions is stored, in a file for each
share of the users (SettledFile: state/users/SHARES/NUMBER.parquet). A user's rows meet in this order:

    stored fold  +  rows of partitions that get settled tonight  ->  the fold to store
    that fold    +  rows of recent partitions                    ->  tonight's result row

    partitions:  up to settled.until: in the stored fold | up to until: settled tonight | up to today: recent

If that is not possible for a user (user_fold.py says when), a second pass folds this user from all
partitions. `recompute` is the night; LakeFold makes the passes.
"""

import hashlib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from adapters.platform.objects import Objects
from analytics.lake.arrow import arrow_schema
from analytics.lake.curated_files import STAMP, arrow_table, connect, cursor, files_between, query, tables
from analytics.lake.layout import curated_files
from analytics.lake.user_rows import Values, rows_of_users
from analytics.recompute.lake_books import lake_books
from analytics.recompute.lake_users import ROWS, LakeUsers
from analytics.recompute.settled_table import Files, SettledFile
from analytics.recompute.user_fold import ENTRY, AllEntriesNeeded, UserFold, entry_of
from analytics.recompute.user_shares import ALL, UserShare
from rules.book.daily import DailyTerms
from rules.engagement.ledger import Entry
from rules.lake.entities import ENTITIES


def recompute(objects: Objects, today: date, *, anew: bool = False, share: UserShare = ALL) -> LakeUsers:
    """Recompute the users of a share, and settle partitions that are old enough. today: UTC.

    anew: read all partitions, also those that are settled.
    """
    files = {LEDGER: curated_files(objects, LEDGER)}
    fold_file = stored_fold_file(objects, share)
    settled = fold_file.empty() if anew else fold_file.load(files)
    until = max(today - SETTLED_AFTER, settled.until or date.min)
    later_files = {LEDGER: files_between(files[LEDGER], settled.until, None)}
    lake_fold = LakeFold(objects, share, until, settled.rows, lake_books(objects).daily_terms)
    users = lake_fold.continue_stored_folds(later_files)
    if users:
        lake_fold.fold_from_beginning(files, users)
    if until != settled.until:
        fold_file.save(lake_fold.folds_to_store(), files, until)
    return LakeUsers(lake_fold.result_rows())


def stored_fold_file(objects: Objects, share: UserShare = ALL) -> SettledFile:
    """Return the file with the stored folds of a share's users (STORED_FOLDS)."""
    columns_digest = hashlib.sha256(str(STORED_FOLDS).encode()).hexdigest()
    return SettledFile(objects, share.state_key, STORED_FOLDS, {"form": columns_digest})


@dataclass(slots=True)
class LakeFold:
    """Folds a share's rows of the lake, user by user."""

    objects: Objects
    share: UserShare
    until: date  # the partitions up to this date get settled
    stored_folds: pa.Table  # of the share's users, from an earlier night (STORED_FOLDS)
    daily_terms: DailyTerms  # what the books say of dates
    _pass_results: list[pa.Table] = field(default_factory=list)  # each has other users (PASS_RESULTS)

    def continue_stored_folds(self, files: Files) -> set[str]:
        """Make the first pass: add the rows of these files to the stored folds.

        Returns the users for whom this is not possible.
        """
        return self._fold_users(files, self.stored_folds)

    def fold_from_beginning(self, files: Files, users: Collection[str]) -> None:
        """Make the second pass: fold these users without their stored folds. files: all of the lake."""
        if self._fold_users(files, STORED_FOLDS.empty_table(), users):
            raise AssertionError("a fold that begins with the first entry needs no others")

    def result_rows(self) -> pa.Table:
        """Return the result rows of all users of the share, by user_id (ROWS)."""
        return self._result("result_row").select(ROWS.names).cast(ROWS)

    def folds_to_store(self) -> pa.Table:
        """Return the new stored folds of all users of the share, by user_id (STORED_FOLDS)."""
        return self._result("fold_to_store").cast(STORED_FOLDS)

    def _fold_users(self, files: Files, stored_folds: pa.Table, users: Collection[str] = ()) -> set[str]:
        """Fold the users of some files; returns those who need all their entries.

        users: fold only these; (): all of the share.
        """
        db = connect()
        with arrow_table(db, "read", self._read(files, users)):
            db.execute(f"CREATE TABLE {LEDGER} AS FROM read")
        with arrow_table(db, "stored_folds", stored_folds):
            folds = {
                row["user_id"]: UserFold.of(row, self.daily_terms)
                for row in query(db, FOLDS_OF_READ_USERS).to_pylist()
            }
        results: list[dict[str, Any]] = []
        needing_all: set[str] = set()
        for user_id, rows in rows_of_users(db.cursor(), ENTRIES, _ledger_row):
            try:
                fold = folds.get(user_id) or UserFold(user_id, daily_terms=self.daily_terms)
                results.append(self._fold_user(fold, rows))
            except AllEntriesNeeded:
                needing_all.add(user_id)
            if len(results) >= USERS_AT_ONCE:
                self._pass_results.append(pa.Table.from_pylist(results, PASS_RESULTS))
                results = []
        self._pass_results.append(pa.Table.from_pylist(results, PASS_RESULTS))
        return needing_all

    def _read(self, files: Files, users: Collection[str]) -> pa.RecordBatchReader:
        """Return the rows of the ledger's files, with the column is_recent."""
        schema = pa.schema([arrow_schema(ENTITIES[LEDGER]).field(name) for name in ENTRY])
        schema = schema.append(pa.field("is_recent", pa.bool_()))
        day_tables = tables(self.objects, LEDGER, files[LEDGER], ENTRY)
        return pa.RecordBatchReader.from_batches(schema, self._batches(day_tables, users))

    def _batches(
        self, day_tables: Iterable[tuple[date, pa.Table]], users: Collection[str]
    ) -> Iterator[pa.RecordBatch]:
        rows_of_share, wanted = self.share.rows_of("account_id"), pa.array(list(users), pa.string())
        for day, table in day_tables:
            rows = table.filter(pc.is_in(table["account_id"], wanted)) if users else rows_of_share(table)
            is_recent = pa.repeat(pa.scalar(day > self.until), rows.num_rows)
            yield from rows.append_column("is_recent", is_recent).to_batches()

    def _fold_user(self, fold: UserFold, rows: Iterable["LedgerRow"]) -> dict[str, Any]:
        """Add a user's rows to a fold; returns a row of PASS_RESULTS. Raises AllEntriesNeeded."""
        rows = list(rows)
        fold.add_entries(row.entry for row in rows if not row.is_recent)
        state = fold.settled_up_to(self.until - OPEN_DATES).state
        fold_to_store = {**fold.row(), "state": state} if fold.profile.head else None
        fold.add_entries(row.entry for row in rows if row.is_recent)
        return {"result_row": fold.row(), "fold_to_store": fold_to_store}

    def _result(self, column: str) -> pa.Table:
        """Return a column of PASS_RESULTS, for all users of the share.

        A user whom no pass has folded has no new rows. Then the stored fold is also the result.
        """
        db = cursor()
        with (
            arrow_table(db, "stored_folds", self.stored_folds),
            arrow_table(db, "pass_results", pa.concat_tables(self._pass_results)),
        ):
            return query(
                db,
                f"""SELECT * FROM (
                  SELECT stored_folds.* FROM stored_folds
                  ANTI JOIN (SELECT result_row.user_id AS user_id FROM pass_results) USING (user_id)
                  UNION ALL BY NAME SELECT unnest({column}) FROM pass_results WHERE {column} IS NOT NULL
                ) ORDER BY user_id""",  # noqa: S608 (our own)
            )


LEDGER = "ledger"  # the entity that is read, and no other
# Older partitions are compacted to days, and get new rows only if somebody redrives some.
SETTLED_AFTER = timedelta(days=5)
# Streaks are settled so many days less far. Otherwise an event of a device that was offline for a fortnight
# (rule 16) would need the user's whole ledger.
OPEN_DATES = timedelta(days=16)
USERS_AT_ONCE = 5_000  # their rows are Python objects, until they become a table
STORED_FOLDS = ROWS.append(pa.field("state", pa.string()))  # UserFold.row and UserFold.state
# result_row: of all partitions. fold_to_store: of the settled ones; NULL: these have no row of the user.
PASS_RESULTS = pa.schema(
    [("result_row", pa.struct(list(ROWS))), ("fold_to_store", pa.struct(list(STORED_FOLDS)))]
)
FOLDS_OF_READ_USERS = """SELECT stored_folds.* FROM stored_folds
SEMI JOIN (SELECT account_id AS user_id FROM ledger) USING (user_id) ORDER BY user_id"""
# The expressions of those columns of ENTRY that entry_of takes in another form than the file has.
READ_AS = {
    "created_at": f"strftime(created_at::TIMESTAMP, {STAMP}) AS created_at",
    **{name: f"{name}::VARCHAR AS {name}" for name in ("activity_date", "freeze_date", "expires_on")},
    "freeze": '"freeze"',
}
# is_recent: whether the row's partition stays unsettled tonight.
ENTRIES = f"""SELECT {", ".join(READ_AS.get(name, name) for name in ENTRY)}, is_recent FROM ledger
ORDER BY account_id, is_recent, ledger.created_at, seq"""  # noqa: S608 (our own)


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """An entry, as a row of the lake has it."""

    entry: Entry
    is_recent: bool  # whether the row's partition stays unsettled tonight


def _ledger_row(values: Values) -> LedgerRow:
    *entry_values, is_recent = values
    return LedgerRow(entry_of(entry_values), is_recent)
