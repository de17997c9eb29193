"""The nightly recompute: what the lake's copy of each account comes to, folded by the rules.

The result is one row per user that the lake knows: a file for each share of the users. A row has what was
computed (last_activity_date to digest) and the settings of the newest profile, which cannot be computed from
anything else.

What older partitions come to is kept, a file for each share: state/users/OF/NUMBER.parquet. A night counts
the later ones in, and folds a user whom that does not do from all partitions (user_fold.py). The file counts
as long as all files of these partitions are as they were; otherwise everything is read anew.
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
FOLDED = {"ledger": "account_id", "streaks": "user_id"}  # and whose their rows are
# By then hours are compacted to days, and nothing comes any more but what somebody redrives.
SETTLED_AFTER = timedelta(days=5)
# Events arrive up to 72 hours late, and those of a device that was offline a fortnight (rule 16): such a date
# must not make a user's whole ledger be read.
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
    """Recompute the users of a share. today: UTC; what is old enough by then is settled for the next time.

    anew: from all partitions, whatever is settled.
    """
    files = {entity: curated_files(objects, entity) for entity in FOLDED}
    before = SettledUsers() if anew else SettledUsers.load(objects, files, share)
    until = max(today - SETTLED_AFTER, before.until or date.min)
    after = before.until
    later = {entity: files_between(some, after, None) for entity, some in files.items()}
    night = Night(objects, share, until)
    night.fold(later, before.table)
    if night.again:
        night.fold(files, STATES.empty_table(), night.again)
    if until != after:
        SettledUsers(until, night.states(before.table), etags_digest(files, until)).save(objects, share)
    return RecomputedUsers(night.rows(before.table))


@dataclass(frozen=True, slots=True)
class SettledUsers:
    """until: the date of the last partition that is counted in; None: none is. files: see etags_digest."""

    until: date | None = None
    table: pa.Table = field(default_factory=STATES.empty_table)
    files: str = ""

    @classmethod
    def load(
        cls, objects: Objects, files: Mapping[str, list[StoredObject]], share: UserShare = ALL
    ) -> "SettledUsers":
        """Read what is settled, if it still is what these files make; otherwise start from nothing."""
        try:
            table = pq.read_table(BytesIO(objects.get(share.state_key)))
        except NoObject:
            return cls()
        held = json.loads(table.schema.metadata[b"settled"])
        until = date.fromisoformat(held["until"])
        if (held["files"], held["form"]) != (etags_digest(files, until), _form()):
            return cls()
        return cls(until, table, held["files"])

    def save(self, objects: Objects, share: UserShare = ALL) -> None:
        """Store what is settled. Raises ValueError if nothing is."""
        if self.until is None:
            raise ValueError("nothing is settled")
        held = {"until": self.until.isoformat(), "files": self.files, "form": _form()}
        table = self.table.replace_schema_metadata({b"settled": json.dumps(held).encode()})
        objects.put(share.state_key, _parquet(table))


def _form() -> str:
    return hashlib.sha256(str(STATES).encode()).hexdigest()


def _parquet(table: pa.Table) -> bytes:
    data = BytesIO()
    pq.write_table(table, data, compression="zstd")
    return data.getvalue()


@dataclass(slots=True)
class Night:
    """Counts rows of the lake into what is settled. until: the last date of which partitions get settled.

    again: users who have to be folded from all rows.
    """

    objects: Objects
    share: UserShare
    until: date
    again: set[str] = field(default_factory=set)
    _made: list[pa.Table] = field(default_factory=list)

    def fold(
        self, files: Mapping[str, list[StoredObject]], known: pa.Table, users: Collection[str] = ()
    ) -> None:
        """Count the rows of some files in. users: these alone; none: all of the share."""
        db = connect()
        for entity, user in FOLDED.items():
            with arrow_table(db, "read", self._read(entity, user, files[entity], users)):
                db.execute(f"CREATE TABLE {entity} AS FROM read")
        with arrow_table(db, "states", known):
            folds = {row["user_id"]: UserFold.of(row) for row in query(db, KNOWN).to_pylist()}
        made: list[dict[str, Any]] = []
        for user_id, entries, profiles in _by_user(db):
            try:
                made.append(self._row(folds.get(user_id) or UserFold(user_id), entries, profiles))
            except AllEntriesNeeded:
                self.again.add(user_id)
            if len(made) >= USERS_AT_ONCE:
                self._made.append(pa.Table.from_pylist(made, MADE))
                made = []
        self._made.append(pa.Table.from_pylist(made, MADE))

    def _row(self, fold: UserFold, entries: list[tuple[Entry, bool]], profiles: list[Row]) -> dict[str, Any]:
        """Return what a user comes to, and what is settled of that."""
        fold.add_entries(entry for entry, is_late in entries if not is_late)
        fold.add_profiles(row for row in profiles if not row["is_late"])
        is_settled = bool(fold.head or fold.settings)
        settled = fold.settled_up_to(self.until - OPEN_DATES)
        told = {**fold.row(), "state": settled.state} if is_settled else None
        fold.add_entries(entry for entry, is_late in entries if is_late)
        fold.add_profiles(row for row in profiles if row["is_late"])
        return {"row": fold.row(), "settled": told}

    def _read(
        self, entity: str, user: str, files: Iterable[StoredObject], users: Collection[str]
    ) -> pa.RecordBatchReader:
        names = ENTRY if entity == "ledger" else ("user_id", *SETTINGS)
        schema = pa.schema([arrow_schema(ENTITIES[entity]).field(name) for name in names])
        keep, wanted = self.share.rows_of(user), pa.array(list(users), pa.string())

        def batches() -> Iterator[pa.RecordBatch]:
            for day, whole in tables(self.objects, entity, files, names):
                rows = whole.filter(pc.is_in(whole[user], wanted)) if users else keep(whole)
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
        db = connect()
        with arrow_table(db, "states", before), arrow_table(db, "made", pa.concat_tables(self._made)):
            return query(
                db,
                f"""SELECT * FROM (
                  SELECT states.* FROM states
                  ANTI JOIN (SELECT "row".user_id AS user_id FROM made) USING (user_id)
                  UNION ALL BY NAME SELECT unnest("{part}") FROM made WHERE "{part}" IS NOT NULL
                ) ORDER BY user_id""",  # noqa: S608 (our own)
            )


MADE = pa.schema([("row", pa.struct(list(ROWS))), ("settled", pa.struct(list(STATES)))])


def _by_user(
    db: duckdb.DuckDBPyConnection,
) -> Iterator[tuple[str, list[tuple[Entry, bool]], list[Row]]]:
    """Yield each user of the tables `ledger` and `streaks`, with the rows of both in order."""
    entries = ((entry_of(values[:-1]), values[-1]) for values in values_of(db.cursor(), ENTRIES))
    names = ("user_id", *SETTINGS, "is_late")
    profiles = (dict(zip(names, values, strict=True)) for values in values_of(db.cursor(), PROFILES))
    by_entry = groupby(entries, key=lambda each: each[0].account_id)
    by_profile = groupby(profiles, key=itemgetter("user_id"))
    one, other = next(by_entry, None), next(by_profile, None)
    while one or other:
        user = min(each[0] for each in (one, other) if each)
        mine = list(one[1]) if one and one[0] == user else []
        told: list[Row] = list(other[1]) if other and other[0] == user else []
        if one and one[0] == user:
            one = next(by_entry, None)
        if other and other[0] == user:
            other = next(by_profile, None)
        yield user, mine, told


def values_of(db: duckdb.DuckDBPyConnection, sql: str) -> Iterator[tuple[Any, ...]]:
    """Yield a query's rows."""
    for batch in db.sql(sql).to_arrow_reader(10_000):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


@dataclass(frozen=True, slots=True)
class LakeUser:
    """What the lake says of one user.

    head, seq: of the newest ledger entry, None if the lake has no entry. entries, points, digest: of the
    ledger, 0 then.
    is_sound: whether the entries are complete and their points add up to the balance.
    version to updated_at: of the newest profile; version is None if the lake has no profile.
    """

    streak: Streak | None
    total_points: int
    balance: int
    head: str | None
    seq: int | None
    entries: int
    points: int
    digest: int
    is_sound: bool
    version: int | None
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
        self.places = {user: place for place, user in enumerate(self.ids)}

    def touched(self, since: datetime) -> set[str]:
        """Return the users with a ledger entry or a profile of that instant or later."""
        entry = pc.greater_equal(self._columns["ledger_head"], stamp(since))
        profile = pc.greater_equal(self._columns["updated_at"], since)
        return set(self._columns["user_id"].filter(pc.or_kleene(entry, profile)).to_pylist())

    def lapsing(self, first: date, last: date) -> set[str]:
        """Return the users whose streak becomes 0 on one of these dates, both included, as things stand."""
        on = self._columns["lapses_on"]
        meant = pc.and_(pc.greater_equal(on, first), pc.less_equal(on, last))
        return set(self._columns["user_id"].filter(meant).to_pylist())

    def user(self, user_id: str) -> LakeUser | None:
        """Return a user, or None if the lake does not know the user."""
        place = self.places.get(user_id)
        if place is None:
            return None
        row: dict[str, Any] = {name: column[place].as_py() for name, column in self._columns.items()}
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
