"""Folds later partitions of the lake into what is settled of all users."""

import json
from collections.abc import Collection, Mapping
from datetime import date

import duckdb
import pyarrow as pa

from adapters.platform.objects import Objects
from analytics.lake.duckdb_memory import connect, query, registered
from analytics.recompute.activity_runs import JOINED, STREAK, create_runs, dates_of_users
from analytics.recompute.ledger_totals import PARTS, PROFILE, Grants, Totals
from analytics.recompute.listed_dates import dates_of, opening_of, pauses_of
from analytics.recompute.settled_users import USERS, LakeFiles, SettledUsers, between
from rules.engagement.streak import Cover, Streak, advance, cover_until, fold, is_still_settled, net_freezes

REFOLDED = pa.schema([("user_id", pa.string()), *STREAK])
NOTES = pa.schema([("user_id", pa.string()), ("cover", pa.string()), ("freezes", pa.string())])
ALL = f"""
SELECT user_id, {", ".join(name for name, _ in STREAK)}, cover, {", ".join(name for name, _ in PARTS)},
  freezes, {", ".join(name for name, _ in PROFILE)}
FROM (
  SELECT * FROM joined ANTI JOIN watched USING (user_id) UNION ALL BY NAME SELECT * FROM refolded
) FULL JOIN totals USING (user_id) FULL JOIN settings USING (user_id) LEFT JOIN notes USING (user_id)
ORDER BY user_id
"""  # noqa: S608 (no input)
LISTED = """SELECT user_id, pauses, skipped_dates, opening FROM settings
WHERE pauses > '' OR skipped_dates > '' OR opening > ''"""


def folded(objects: Objects, settled: SettledUsers, files: LakeFiles, until: date | None) -> pa.Table:
    """Return all users (USERS): what is settled, and what partitions after it and up to a date add to it.

    until: None for all that is there; then `cover` is of no use.
    """
    later = {entity: between(some, settled.until, until) for entity, some in files.read.items()}
    db = connect()
    with registered(db, "settled", settled.table):
        totals = Totals(db, _freezes_of(settled.table))
        totals.read(objects, later["ledger"], later["streaks"])
        covers, before = covers_of(totals), _covers_before(settled.table)
        watched = covers.keys() | before.keys()
        dates = create_runs(db, objects, later["daily_activity"], watched)
        db.execute(JOINED)
        states = _states(db, watched)
    unsettled = _unsettled(settled.until, states, before, covers)
    older = dates_of_users(objects, between(files.whole["daily_activity"], None, settled.until), unsettled)
    streaks = {
        user: _advanced(states.get(user), dates.get(user, []), covers.get(user, Cover()))
        if user not in unsettled
        else fold(older[user] + dates.get(user, []), covers.get(user, Cover()))
        for user in watched
    }
    notes = _notes(totals.freezes, covers, until)
    with (
        registered(db, "refolded", _table_of(streaks)),
        registered(db, "watched", pa.table({"user_id": pa.array(list(watched), pa.string())})),
        registered(db, "notes", notes),
    ):
        return query(db, ALL).cast(USERS)


def _unsettled(
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


def _advanced(state: Streak | None, days: list[date], cover: Cover) -> Streak | None:
    if state is None:
        return fold(days, cover)
    for day in days:  # those up to the opening are told by that
        state = advance(state, day, cover)
    return state


def _states(db: duckdb.DuckDBPyConnection, users: Collection[str]) -> dict[str, Streak]:
    """Return the settled streaks of some users."""
    with registered(db, "asked", pa.table({"user_id": pa.array(list(users), pa.string())})):
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
