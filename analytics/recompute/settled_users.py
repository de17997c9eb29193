"""All users as the lake's older partitions make them. A night starts from there, and reads the later ones.

Stored as a file for each share of the users, with the date up to which partitions are
folded in, and a digest of the ETags of their files. It counts only while all of these files are as they were.
Otherwise, and if one of the statements that made it has changed, everything is recomputed, and stored anew.
"""

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from io import BytesIO

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from adapters.platform.objects import NoObject, Objects, StoredObject
from analytics.lake.curated_files import arrow_table, connect, date_of, query
from analytics.lake.layout import curated_files, run_key
from analytics.recompute import activity_runs, ledger_totals
from analytics.recompute.activity_runs import (
    JOINED,
    STREAK,
    create_runs,
    dates_of,
    dates_of_users,
    opening_of,
    pauses_of,
)
from analytics.recompute.ledger_totals import PARTS, PROFILE, Grants, Totals
from rules.book.book import USUAL_OFFLINE
from rules.engagement.reconciliation import HASH_DIGITS, HASHES, share_of
from rules.engagement.streak import Cover, Streak, advance, cover_until, fold, is_still_settled, net_freezes

# A share of all users: where a night keeps what it knows of it, and how SQL tells who is in it.


# Twin of rules.engagement.reconciliation.share_of. user: a column of ids; shares: how many there are.
SHARE = f"(('0x' || substr(md5({{user}}), 1, {HASH_DIGITS}))::INT * {{shares}} // {HASHES})"
FOLDER = "shares/"


@dataclass(frozen=True, slots=True)
class UserShare:
    """One of so many shares of all users (rules/engagement/reconciliation.py). Alone it is all users."""

    number: int = 0
    of: int = 1

    def key(self, run_id: str, name: str = "") -> str:
        """Return the key of a file that a run keeps for this share."""
        return run_key(run_id, f"{FOLDER}{self.number:04}/{name}")

    @property
    def settled_key(self) -> str:
        """Return where the share's users are, as older partitions make them."""
        return f"state/users/{self.of}/{self.number:04}.parquet"

    def has(self, user_id: str) -> bool:
        """Whether a user is of this share."""
        return share_of(user_id, self.of) == self.number

    def rows_of(self, user: str) -> Callable[[pa.Table], pa.Table]:
        """Return a function that returns those of some rows that are of this share's users.

        user: the column with the user's id.
        """
        if self.of == 1:
            return lambda rows: rows
        db, share = connect(), SHARE.format(user=user, shares=self.of)

        def keep(rows: pa.Table) -> pa.Table:
            with arrow_table(db, "rows", rows.select([user])):
                is_mine = query(db, f"SELECT {share} = {self.number} AS mine FROM rows")  # noqa: S608 (our own)
            return rows.filter(is_mine["mine"])

        return keep


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
        held = json.loads(table.schema.metadata[b"settled"])
        until = date.fromisoformat(held["until"])
        if held["made_by"] != _made_by() or held["files"] != etags_digest(files, until):
            return cls()
        return cls(until, table, held["files"])

    def save(self, objects: Objects, share: UserShare = ALL) -> None:
        """Store what is settled. Raises ValueError if nothing is."""
        if self.until is None:
            raise ValueError("nothing is settled")
        held = {"until": self.until.isoformat(), "files": self.files, "made_by": _made_by()}
        data = BytesIO()
        metadata = {b"settled": json.dumps(held).encode()}
        pq.write_table(self.table.replace_schema_metadata(metadata), data, compression="zstd")
        objects.put(share.settled_key, data.getvalue())


def files_between(
    files: Iterable[StoredObject], after: date | None, until: date | None
) -> list[StoredObject]:
    """Return the files of partitions after a date and up to another; None: open on that side."""
    first, last = after.isoformat() if after else "", until.isoformat() if until else "9999-12-31"
    return [each for each in files if first < date_of(each) <= last]


def etags_digest(files: Files, until: date) -> str:
    """Return a digest of the keys and ETags of all entities' files up to a date: other files give another."""
    found = sorted(
        f"{each.key} {each.etag}" for some in files.values() for each in files_between(some, None, until)
    )
    return hashlib.sha256("\n".join(found).encode()).hexdigest()


def _made_by() -> str:
    """Return a digest of what makes the table: with other statements it would be another."""
    statements = (activity_runs.RUNS, activity_runs.JOINED, ledger_totals.TOTALS, ledger_totals.NEWEST)
    return hashlib.sha256("\0".join([*statements, str(USERS)]).encode()).hexdigest()


# Folds later partitions of the lake into what is settled of all users.


REFOLDED = pa.schema([("user_id", pa.string()), *STREAK])
NOTES = pa.schema([("user_id", pa.string()), ("cover", pa.string()), ("freezes", pa.string())])
ALL_COVERS = f"""
SELECT user_id, {", ".join(name for name, _ in STREAK)}, cover, {", ".join(name for name, _ in PARTS)},
  freezes, {", ".join(name for name, _ in PROFILE)}
FROM (
  SELECT * FROM joined ANTI JOIN watched USING (user_id) UNION ALL BY NAME SELECT * FROM refolded
) FULL JOIN totals USING (user_id) FULL JOIN settings USING (user_id) LEFT JOIN notes USING (user_id)
ORDER BY user_id
"""  # noqa: S608 (no input)
LISTED = """SELECT user_id, pauses, skipped_dates, opening FROM settings
WHERE pauses > '' OR skipped_dates > '' OR opening > ''"""


def fold_users(
    objects: Objects, settled: SettledUsers, files: Files, until: date | None, share: UserShare = ALL
) -> pa.Table:
    """Return a share's users (USERS): what is settled, and what partitions after it up to a date add.

    until: None for all that is there; then `cover` is of no use.
    """
    later = {entity: files_between(some, settled.until, until) for entity, some in files.items()}
    db = connect()
    with arrow_table(db, "settled", settled.table):
        totals = Totals(db, _freezes_of(settled.table))
        totals.read(objects, later["ledger"], later["streaks"], share.rows_of)
        covers, before = covers_of(totals), _covers_before(settled.table)
        watched = covers.keys() | before.keys()
        dates = create_runs(db, objects, later["daily_activity"], watched, share.rows_of("user_id"))
        db.execute(JOINED)
        states = _states(db, watched)
    unsettled = _users_to_refold(settled.until, states, before, covers)
    older = dates_of_users(objects, files_between(files["daily_activity"], None, settled.until), unsettled)
    streaks = {
        user: _advance_streak(states.get(user), dates.get(user, []), covers.get(user, Cover()))
        if user not in unsettled
        else fold(older[user] + dates.get(user, []), covers.get(user, Cover()))
        for user in watched
    }
    notes = _notes(totals.freezes, covers, until)
    with (
        arrow_table(db, "refolded", _table_of(streaks)),
        arrow_table(db, "watched", pa.table({"user_id": pa.array(list(watched), pa.string())})),
        arrow_table(db, "notes", notes),
    ):
        return query(db, ALL_COVERS).cast(USERS)


def _users_to_refold(
    until: date | None, states: Mapping[str, Streak], before: Mapping[str, Cover], covers: Mapping[str, Cover]
) -> set[str]:
    """Return the users whose cover has changed so that all of their dates are to be folded anew."""
    if until is None:
        return set()
    return {
        user
        for user in covers.keys() | before.keys()
        if not is_still_settled(
            states.get(user), before.get(user, Cover()), cover_until(covers.get(user, Cover()), until)
        )
    }


def covers_of(totals: Totals) -> dict[str, Cover]:
    """Return the cover of every user who has or had one."""
    covers = {user: Cover(freezes=net_freezes(changes)) for user, changes in totals.freezes.items()}
    for user, paused, skipped, opening in totals.db.execute(LISTED).fetchall():
        freezes = covers.get(user, Cover()).freezes
        told = opening_of(opening)
        covers[user] = Cover(freezes, pauses_of(paused), frozenset(dates_of(skipped)), opening=told)
    return covers


def _advance_streak(state: Streak | None, days: list[date], cover: Cover) -> Streak | None:
    if state is None:
        return fold(days, cover)
    for day in days:  # those up to the opening are told by that
        state = advance(state, day, cover)
    return state


def _states(db: duckdb.DuckDBPyConnection, users: Collection[str]) -> dict[str, Streak]:
    """Return the settled streaks of some users."""
    with arrow_table(db, "asked", pa.table({"user_id": pa.array(list(users), pa.string())})):
        names = ", ".join(name for name, _ in STREAK)
        asked = f"SELECT user_id, {names} FROM settled SEMI JOIN asked USING (user_id)"  # noqa: S608 (no input)
        rows = db.execute(f"{asked} WHERE last_activity_date IS NOT NULL").fetchall()
    return {
        user: Streak(last, length, longest, active_days, dates_of(spent))
        for user, last, length, longest, active_days, spent in rows
    }


def _table_of(streaks: Mapping[str, Streak | None]) -> pa.Table:
    """Return a row for each user with a streak."""
    rows = [
        {
            "user_id": user,
            "last_activity_date": streak.last,
            "current_streak": streak.length,
            "longest_streak": streak.longest,
            "active_days": streak.active_days,
            "freezes_spent": ",".join(day.isoformat() for day in streak.spent) or None,
        }
        for user, streak in streaks.items()
        if streak
    ]
    return pa.Table.from_pylist(rows, REFOLDED)


def _notes(freezes: Grants, covers: Mapping[str, Cover], until: date | None) -> pa.Table:
    """Return what the next fold has to know of the users who have or had cover."""
    rows = []
    for user in freezes.keys() | covers.keys():
        cover = cover_until(covers[user], until) if until and user in covers else None
        changes = [[day.isoformat(), change] for day, change in net_freezes(freezes.get(user, []))]
        rows.append(
            {
                "user_id": user,
                "cover": _cover_text(cover),
                "freezes": json.dumps(changes) if changes else None,
            }
        )
    return pa.Table.from_pylist(rows, NOTES)


def _freezes_of(table: pa.Table) -> Grants:
    some = table.filter(table["freezes"].is_valid()).select(["user_id", "freezes"]).to_pylist()
    return {
        row["user_id"]: [(date.fromisoformat(day), change) for day, change in json.loads(row["freezes"])]
        for row in some
    }


def _cover_text(cover: Cover | None) -> str | None:
    if cover is None or cover == Cover():
        return None
    opening = cover.opening and cover.opening.text
    return json.dumps([cover.freezes, cover.pauses, sorted(cover.skipped), opening], default=date.isoformat)


def _covers_before(table: pa.Table) -> dict[str, Cover]:
    """Return the cover that has made the settled streak, of the users who had any."""
    some = table.filter(table["cover"].is_valid()).select(["user_id", "cover"]).to_pylist()
    return {row["user_id"]: _cover_from(*json.loads(row["cover"])) for row in some}


def _cover_from(
    freezes: list[tuple[str, int]],
    pauses: list[tuple[str, str]],
    skipped: list[str],
    opening: str | None = None,
) -> Cover:
    day = date.fromisoformat
    return Cover(
        tuple((day(when), change) for when, change in freezes),
        tuple((day(first), day(last)) for first, last in pauses),
        frozenset(map(day, skipped)),
        opening=opening_of(opening),
    )
