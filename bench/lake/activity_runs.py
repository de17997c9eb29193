"""All users' runs of active dates, by one statement: a bit a date, so that a run of dates is a run of ones.

Without freezes, pauses and skipped dates a missed date always ends a run. For the users who have such cover
the dates themselves are handed on, and the rule folds them (rules.engagement.streak).
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import date

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from adapters.platform.objects import Objects, StoredObject
from analytics.lake import curated_files
from analytics.lake.curated_files import arrow_table, query

READERS = 2
BATCH_ROWS_MIN = 100_000
PLACES = pa.schema([("date", pa.date32()), ("place", pa.int32())])
ACTIVE_COLUMNS = ("user_id", "events_count")
ACTIVITY = pa.schema([("user_id", pa.string()), ("place", pa.int32())])
COVERED = pa.schema([("user_id", pa.string())])
STREAK = (
    ("last_activity_date", pa.date32()),
    ("current_streak", pa.int32()),
    ("longest_streak", pa.int32()),
    ("active_days", pa.int32()),
    ("freezes_spent", pa.string()),
)

RUNS = """
CREATE TABLE runs AS
WITH activity_bits AS (
  SELECT user_id, min(place) AS first, max(place) AS last, bitstring_agg(place, 0, {last_place}) AS bits
  FROM activity GROUP BY user_id
), activity_runs AS (
  SELECT user_id, first, last, bits, regexp_extract_all(bits::VARCHAR, '1+') AS runs FROM activity_bits
)
SELECT user_id, first_place.date AS first_date, length(runs[1])::INTEGER AS first_run,
  last_place.date AS last_activity_date, length(runs[-1])::INTEGER AS last_run, len(runs) = 1 AS is_one_run,
  list_max(list_transform(runs, lambda run: length(run)))::INTEGER AS longest_run,
  bit_count(bits)::INTEGER AS active_days,
  CASE WHEN covered.user_id IS NOT NULL THEN bits::VARCHAR END AS bits
FROM activity_runs
  JOIN places AS first_place ON first_place.place = first
  JOIN places AS last_place ON last_place.place = last
  LEFT JOIN covered USING (user_id)
"""
# The dates of `runs` are after those that are settled. So the first run may go on where the settled one ends.
JOINED = """
CREATE TABLE joined AS
SELECT user_id, coalesce(r.last_activity_date, s.last_activity_date) AS last_activity_date,
  (CASE WHEN is_one_run THEN joined_run ELSE coalesce(last_run, s.current_streak) END)::INTEGER
    AS current_streak,
  greatest(s.longest_streak, joined_run, longest_run)::INTEGER AS longest_streak,
  (coalesce(r.active_days, 0) + coalesce(s.active_days, 0))::INTEGER AS active_days, s.freezes_spent
FROM (
  SELECT runs.*, first_run + CASE WHEN before.last_activity_date + 1 = first_date
    THEN before.current_streak ELSE 0 END AS joined_run
  FROM runs LEFT JOIN settled AS before USING (user_id)
) AS r FULL JOIN (SELECT * FROM settled WHERE last_activity_date IS NOT NULL) AS s USING (user_id)
"""


def create_runs(
    db: duckdb.DuckDBPyConnection,
    objects: Objects,
    files: Collection[StoredObject],
    covered: Collection[str],
    keep: Callable[[pa.Table], pa.Table] = lambda rows: rows,
) -> dict[str, list[date]]:
    """Create the table `runs`: a row for each user with activity in some files, as if nobody had cover.

    covered: users who have cover; returns the active dates of those who have any, ascending. A row's date is
    that of its partition (see analytics.lake.layout). keep: returns those of a file's rows that are meant.
    """
    places = places_of(date.fromisoformat(curated_files.date_of(each)) for each in files)
    known = pa.table([pa.array(list(places)), pa.array(list(places.values()))], schema=PLACES)
    some = pa.table([pa.array(list(covered), pa.string())], schema=COVERED)
    rows = pa.RecordBatchReader.from_batches(ACTIVITY, _rows(objects, files, places, keep))
    with (
        arrow_table(db, "places", known),
        arrow_table(db, "covered", some),
        arrow_table(db, "activity", rows),
    ):
        db.execute(RUNS.format(last_place=max(places.values(), default=0)))
    dates = {place: day for day, place in places.items()}
    found = query(db, "SELECT user_id, bits FROM runs WHERE bits IS NOT NULL").to_pylist()
    return {
        row["user_id"]: [dates[place] for place, bit in enumerate(row["bits"]) if bit == "1"] for row in found
    }


def dates_of_users(
    objects: Objects, files: Iterable[StoredObject], users: Collection[str]
) -> dict[str, list[date]]:
    """Return some users' active dates in some files, ascending."""
    found: dict[str, set[date]] = {each: set() for each in users}
    if users:
        wanted = pa.array(list(users), pa.string())
        for day, table in _active(objects, files):
            for user in table["user_id"].filter(pc.is_in(table["user_id"], wanted)).to_pylist():
                found[user].add(day)
    return {user: sorted(days) for user, days in found.items()}


def places_of(days: Iterable[date]) -> dict[date, int]:
    """Number dates in their order, and leave a number out where dates are missing between two.

    So bits are at most twice as many as dates, however far apart these are. Example: 1, 2 and 9 March are 0,
    1 and 3.
    """
    places: dict[date, int] = {}
    before, place = 0, -1
    for day in sorted(set(days)):
        place += 1 if day.toordinal() == before + 1 or not places else 2
        places[day], before = place, day.toordinal()
    return places


def _rows(
    objects: Objects,
    files: Iterable[StoredObject],
    places: Mapping[date, int],
    keep: Callable[[pa.Table], pa.Table],
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of all files, those of small files together."""
    waiting: list[pa.Table] = []
    rows = 0
    for day, whole in _active(objects, files):
        table = keep(whole)
        place = pa.array(np.full(table.num_rows, places[day], np.int32))
        waiting.append(pa.table([table["user_id"], place], schema=ACTIVITY))
        rows += table.num_rows
        if rows >= BATCH_ROWS_MIN:
            yield from pa.concat_tables(waiting).combine_chunks().to_batches()
            waiting, rows = [], 0
    yield from pa.concat_tables([ACTIVITY.empty_table(), *waiting]).combine_chunks().to_batches()


def _active(objects: Objects, files: Iterable[StoredObject]) -> Iterator[tuple[date, pa.Table]]:
    """Yield the date of each file, and the users who are active on it: a row of no events was so once.

    A row that does not say how many events it is of is of some.
    """
    for day, table in curated_files.tables(objects, "daily_activity", files, ACTIVE_COLUMNS, READERS):
        yield day, table.filter(pc.fill_null(pc.greater(table["events_count"], 0), True))
