"""All users' runs of active dates, by one statement: a bit a date, so that a run of dates is a run of ones.

Without freezes, pauses and skipped dates a missed date always ends a run. For the users who have such cover
the dates themselves are handed on, and the rule folds them (rules.engagement.streaks).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import date

import duckdb
import numpy as np
import pyarrow as pa

from adapters.platform.objects import Objects
from analytics.lake import curated_files
from analytics.lake.duckdb_memory import query, registered
from analytics.lake.layout import curated_files as files_of

READERS = 2
USERS = pa.schema([("user_id", pa.string())])
PLACES = pa.schema([("date", pa.date32()), ("place", pa.int32())])
ACTIVITY = pa.schema([("user_id", pa.string()), ("place", pa.int32())])

RUNS = """
CREATE TABLE runs AS
WITH activity_bits AS (
  SELECT user_id, bitstring_agg(place, 0, {last_place})::VARCHAR AS bits FROM activity GROUP BY user_id
), ended AS (
  SELECT user_id, bits, rtrim(bits, '0') AS until_last FROM activity_bits
)
SELECT user_id, places.date AS last_activity_date,
  (length(until_last) - length(rtrim(until_last, '1')))::INTEGER AS current_streak,
  list_max(list_transform(regexp_extract_all(bits, '1+'), lambda run: length(run)))::INTEGER
    AS longest_streak,
  length(replace(bits, '0', ''))::INTEGER AS active_days,
  CASE WHEN covered.user_id IS NOT NULL THEN bits END AS bits
FROM ended
JOIN places ON places.place = length(until_last) - 1
LEFT JOIN covered USING (user_id)
"""


def create_runs(
    db: duckdb.DuckDBPyConnection, objects: Objects, covered: Collection[str]
) -> dict[str, list[date]]:
    """Create the table `runs`: a row for each user with activity, as if nobody had cover.

    covered: users who have cover; returns the active dates of those who have any, ascending. A row's date is
    that of its partition (see analytics.lake.layout).
    """
    listed = (curated_files.date_of(each) for each in files_of(objects, "daily_activity"))
    places = places_of(date.fromisoformat(each) for each in listed)
    known = pa.table([pa.array(list(places)), pa.array(list(places.values()))], schema=PLACES)
    some = pa.table([pa.array(list(covered), pa.string())], schema=USERS)
    rows = pa.RecordBatchReader.from_batches(ACTIVITY, _rows(objects, places))
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


def _rows(objects: Objects, places: Mapping[date, int]) -> Iterator[pa.RecordBatch]:
    for day, table in curated_files.tables(objects, "daily_activity", ["user_id"], READERS):
        for batch in table.to_batches():
            column = pa.array(np.full(len(batch), places[day], np.int32))
            yield pa.record_batch([batch.column(0), column], schema=ACTIVITY)
