"""Reads what the lake's events say and the ledger does not: contradictory dates, and properties."""

import json
from typing import Any

import pyarrow as pa

from adapters.platform.objects import Objects
from adapters.platform.schema_check import first_problem
from analytics.lake.curated_files import arrow_table, query, table_of
from analytics.lake.layout import curated_files
from analytics.lake.user_rows import small_database
from rules.book.book import Book

EVENTS = pa.schema([("user_id", pa.string()), ("event_id", pa.string())])
PART_BYTES = 300_000_000  # of curated files, for one part of the users: some five million events
# In one calendar a later instant never has an earlier date, and three dates take more than a day.
DOUBTFUL = """
WITH dates AS (
  SELECT user_id, activity_date AS day, min(occurred_at) AS first, max(occurred_at) AS last
  FROM events WHERE hash(user_id) % ? = ? GROUP BY user_id, activity_date
), beside AS (
  SELECT user_id, day, last, lead(day) OVER per_user AS next_day, lead(first) OVER per_user AS next_first,
    lead(day, 2) OVER per_user AS third_day, lead(first, 2) OVER per_user AS third_first
  FROM dates WINDOW per_user AS (PARTITION BY user_id ORDER BY day)
)
SELECT DISTINCT user_id FROM beside
WHERE next_first <= last OR (next_day >= day + 2 AND next_first < last + INTERVAL 1 DAY)
  OR third_first < last + INTERVAL 1 DAY
"""
PROPERTIES = """SELECT DISTINCT event_type, properties FROM events
WHERE event_type IN (SELECT event_type FROM contracts)"""
REFUSED_EVENTS = """SELECT user_id, event_id FROM events SEMI JOIN refused
ON refused.event_type = events.event_type AND refused.properties IS NOT DISTINCT FROM events.properties"""


def doubtful_users(objects: Objects) -> set[str]:
    """Return users whose events have dates that no single calendar gives: after a flight, or by wrong zones.

    One part of the users is read after the other, because the dates of all do not fit into memory.
    """
    parts = sum(file.size for file in curated_files(objects, "events")) // PART_BYTES + 1
    users: set[str] = set()
    with table_of(db := small_database(), "events", objects, "events"):
        for part in range(parts):
            users |= set(query(db, DOUBTFUL, [parts, part])["user_id"].to_pylist())
    return users


def broken_contracts(objects: Objects, book: Book | None) -> pa.Table:
    """Return the events whose properties a book refuses, as a table with the columns EVENTS.

    Equal properties are checked once.
    """
    types = book.event_types.items() if book else ()
    contracts = {name: rule.properties for name, rule in types if rule.properties}
    if not contracts:
        return EVENTS.empty_table()
    with table_of(db := small_database(), "events", objects, "events"):
        with arrow_table(db, "contracts", pa.table({"event_type": list(contracts)})):
            texts = query(db, PROPERTIES).to_pylist()
        refused = []
        for text in texts:
            contract = {"type": "object", **contracts[text["event_type"]]}
            if first_problem(contract, _read_json(text["properties"])):
                refused.append(text)
        schema = pa.schema([("event_type", pa.string()), ("properties", pa.string())])
        with arrow_table(db, "refused", pa.Table.from_pylist(refused, schema)):
            return query(db, REFUSED_EVENTS).cast(EVENTS)


def _read_json(text: str | None) -> Any:
    try:
        return json.loads(text or "{}")
    except ValueError:
        return {}
