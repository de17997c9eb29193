"""All users' runs of active dates, by one statement: a bit a date, so that a run of dates is a run of ones.

Without freezes, pauses and skipped dates a missed date always ends a run. For the users who have such cover
the dates themselves are handed on, and the rule folds them (rules.engagement.streaks).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import date

import duckdb
import numpy as np
import pyarrow as pa

from adapters.platform.objects import Objects, StoredObject
from analytics.lake import curated_files
from analytics.lake.duckdb_memory import query, registered
from analytics.lake.layout import curated_files as files_of

READERS = 2
BATCH_ROWS_MIN = 100_000
USERS = pa.schema([("user_id", pa.string())])
PLACES = pa.schema([("date", pa.date32()), ("place", pa.int32())])
ACTIVITY = pa.schema([("user_id", pa.string()), ("place", pa.int32())])

RUNS = """
CREATE TABLE runs AS
WITH activity_bits AS (
  SELECT user_id, max(place) AS last, bitstring_agg(place, 0, {last_place}) AS bits
  FROM activity GROUP BY user_id
), activity_runs AS (
  SELECT user_id, last, bits, regexp_extract_all(bits::VARCHAR, '1+') AS runs FROM activity_bits
)
SELECT user_id, places.date AS last_activity_date, length(runs[-1])::INTEGER AS current_streak,
  list_max(list_transform(runs, lambda run: length(run)))::INTEGER AS longest_streak,
  bit_count(bits)::INTEGER AS active_days,
  CASE WHEN covered.user_id IS NOT NULL THEN bits::VARCHAR END AS bits
FROM activity_runs JOIN places ON places.place = last LEFT JOIN covered USING (user_id)
"""


def create_runs(
    db: duckdb.DuckDBPyConnection, objects: Objects, covered: Collection[str]
) -> dict[str, list[date]]:
    """Create the table `runs`: a row for each user with activity, as if nobody had cover.

    covered: users who have cover; returns the active dates of those who have any, ascending. A row's date is
    that of its partition (see analytics.lake.layout).
    """
    files = files_of(objects, "daily_activity")
    places = places_of(date.fromisoformat(curated_files.date_of(each)) for each in files)
    known = pa.table([pa.array(list(places)), pa.array(list(places.values()))], schema=PLACES)
    some = pa.table([pa.array(list(covered), pa.string())], schema=USERS)
    rows = pa.RecordBatchReader.from_batches(ACTIVITY, _rows(objects, files, places))
    with registered(db, "places", known), registered(db, "covered", some), registered(db, "activity", rows):
        db.execute(RUNS.format(last_place=max(places.values(), default=0)))
    dates = {place: day for day, place in places.items()}
    found = query(db, "SELECT user_id, bits FROM runs WHERE bits IS NOT NULL").to_pylist()
    return {
        row["user_id"]: [dates[place] for place, bit in enumerate(row["bits"]) if bit == "1"] for row in found
    }


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
    objects: Objects, files: Iterable[StoredObject], places: Mapping[date, int]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of all files, those of small files together."""
    waiting: list[pa.Table] = []
    rows = 0
    for day, table in curated_files.tables(objects, "daily_activity", files, ["user_id"], READERS):
        place = pa.array(np.full(table.num_rows, places[day], np.int32))
        waiting.append(pa.table([table["user_id"], place], schema=ACTIVITY))
        rows += table.num_rows
        if rows >= BATCH_ROWS_MIN:
            yield from pa.concat_tables(waiting).combine_chunks().to_batches()
            waiting, rows = [], 0
    yield from pa.concat_tables([ACTIVITY.empty_table(), *waiting]).combine_chunks().to_batches()
