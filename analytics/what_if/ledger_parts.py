"""The curated ledger, once through DuckDB: what a judgement needs of each entry, in parts by user.

A part holds the whole ledgers of some users, in order, and fits into memory.
"""

# ruff: noqa: S608 (no input but instants, which are written as stamps)

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import pyarrow as pa

from adapters.platform.objects import Objects
from analytics.lake.curated_files import table_of
from analytics.lake.duckdb_memory import THREADS, connect, query, registered
from analytics.lake.layout import curated_files
from rules.engagement.ledger import EntryKind, FreezeNote

EARN, REDEEM, REVERSE, EXPIRE, CLAWBACK, RERATE, OTHER = range(7)
KINDS = {
    EntryKind.EARN: EARN,
    EntryKind.REDEEM: REDEEM,
    EntryKind.REVERSE: REVERSE,
    EntryKind.EXPIRE: EXPIRE,
    EntryKind.CLAWBACK: CLAWBACK,
    EntryKind.RERATE: RERATE,
}
GRANTED, REVOKED = 1, 2
# A part on disk is some 240,000 entries. It is read in pieces: a judgement takes ten times their memory.
PART_BYTES, PARTS_MAX, PIECES = 10_000_000, 250, 2
# All parts are written at once: each holds a row group in memory.
OPEN_ROWS, ROW_GROUP_MIN = 500_000, 2_048
MEMORY = "300MB"
EVENTS = pa.schema([("user_id", pa.string()), ("event_id", pa.string())])
INSTANT = "epoch_us(try_strptime({}, '%Y-%m-%dT%H:%M:%S.%fZ'))"
# Points that were held are spent from then on. undone_at: when a reversal counts for what expires. reward: of
# a redemption at a price of the book.
ENTRIES = f"""
SELECT account_id, epoch_us(created_at) AS created_at,
  coalesce(CASE kind WHEN '{EntryKind.REDEEM}' THEN {INSTANT.format("held_at")} END, epoch_us(created_at))
    AS counts_at,
  CASE kind {" ".join(f"WHEN '{kind}' THEN {code}" for kind, code in KINDS.items())}
    ELSE {OTHER} END::UTINYINT AS what,
  points, event_type, coalesce(rules_version, 0)::INTEGER AS version, cap,
  coalesce(is_passive, false) AS is_passive, activity_date AS day, expires_on,
  CASE WHEN reverses IS NOT NULL THEN {INSTANT.format("coalesce(held_at, reverses)")} END AS undone_at,
  CASE "freeze" WHEN '{FreezeNote.GRANTED}' THEN {GRANTED} WHEN '{FreezeNote.REVOKED}' THEN {REVOKED} ELSE 0
    END::UTINYINT AS freeze,
  freeze_date,
  CASE WHEN kind = '{EntryKind.REDEEM}' AND rules_version IS NOT NULL AND "freeze" IS NULL THEN reward_id END
    AS reward,
  {{segment}}::SMALLINT AS segment, {{broken}} AS is_broken, {{undone}} AS is_reversed{{goals}}
FROM ledger {{join}}
WHERE kind <> '{EntryKind.OPEN}'
  AND (kind <> '{EntryKind.EARN}' OR (activity_date IS NOT NULL AND event_id IS NOT NULL))
"""
UNDONE = f"""SELECT DISTINCT account_id AS user_id, event_id FROM ledger
WHERE kind = '{EntryKind.CLAWBACK}' AND event_id IS NOT NULL"""
MARKED = """LEFT JOIN (SELECT DISTINCT user_id AS {name}_user, event_id AS {name}_id FROM {name})
      ON {name}_user = account_id AND {name}_id = event_id"""
PARTED = "hash(account_id) % {parts}"
PART = (
    "SELECT * EXCLUDE (part) FROM read_parquet('{folder}/part={part}/*.parquet')"
    " WHERE hash(account_id) // {parts} % {pieces} = {piece} ORDER BY account_id, counts_at, created_at"
)


# What streaks and achievements need of an entry beside that.
OF_GOALS = ", event_id, measures"
SENT = """SELECT user_id, event_id, properties, hash(user_id) % {parts} AS part FROM events
WHERE properties IS NOT NULL AND event_type IN ({types})"""
WITH_SENT = """SELECT entries.*, sent.properties FROM ({entries}) AS entries
LEFT JOIN (SELECT user_id, event_id, any_value(properties) AS properties
    FROM read_parquet('{folder}/part={part}/*.parquet') GROUP BY user_id, event_id) AS sent
  ON sent.user_id = entries.account_id AND sent.event_id = entries.event_id
ORDER BY entries.account_id, entries.counts_at, entries.created_at"""


class LedgerParts:
    """Entries in a temporary folder; sent: where the properties of their events are, None for none."""

    def __init__(self, folder: Path, parts: int, sent: Path | None = None) -> None:
        self._folder, self.parts, self._sent = folder, parts, sent

    def __iter__(self) -> Iterator[pa.Table]:
        """Yield the entries (ENTRIES) of some users after those of others, by user and place."""
        for part, piece in product(range(self.parts), range(PIECES)):
            if any((self._folder / f"part={part}").glob("*.parquet")):
                place = {"folder": self._folder, "part": part, "parts": self.parts}
                entries = PART.format(**place, piece=piece, pieces=PIECES)
                if self._sent and any((self._sent / f"part={part}").glob("*.parquet")):
                    entries = WITH_SENT.format(entries=entries, folder=self._sent, part=part)
                found = query(small(), entries)
                if found.num_rows:
                    yield found


def small() -> duckdb.DuckDBPyConnection:
    """Return an empty database that leaves memory to what works on the rows."""
    db = connect()
    db.execute(f"SET memory_limit = '{MEMORY}'")
    db.execute(f"SET threads = {THREADS}")
    return db


@contextmanager
def ledger_parts(
    objects: Objects, stamps: list[str], broken: pa.Table, summed: Collection[str] | None = None
) -> Iterator[LedgerParts]:
    """Read the ledger once; its parts are there for the length of a `with` block.

    stamps: boundaries of segments: an entry's segment is the number of them that its event is not before.
    broken: events whose properties the candidate refuses (EVENTS). summed: the event types whose properties
    streaks and achievements sum; None: nobody asks for these.
    """
    size = sum(each.size for each in curated_files(objects, "ledger"))
    parts = min(PARTS_MAX, size // PART_BYTES + 1)
    with TemporaryDirectory() as folder, table_of(db := small(), "ledger", objects, "ledger"):
        db.execute("SET preserve_insertion_order = false")
        db.execute(f"SET partitioned_write_max_open_files = {PARTS_MAX + 50}")
        undone = query(db, UNDONE).cast(EVENTS)
        with registered(db, "broken", broken), registered(db, "undone", undone):
            rows_a_part = max(ROW_GROUP_MIN, OPEN_ROWS // parts)
            to = f"(FORMAT parquet, COMPRESSION snappy, PARTITION_BY (part), ROW_GROUP_SIZE {rows_a_part})"
            marks = [name for name, some in (("broken", broken), ("undone", undone)) if some.num_rows]
            rows = entries_query(stamps, marks, OF_GOALS if summed is not None else "")
            db.execute(
                f"COPY (SELECT *, {PARTED.format(parts=parts)} AS part FROM ({rows}))"
                f" TO '{folder}/parts' {to}"
            )
        if summed:
            with table_of(db, "events", objects, "events"):
                types = ", ".join(
                    f"'{each}'" for each in sorted(summed)
                )  # names of a book: no quotation marks
                db.execute(f"COPY ({SENT.format(parts=parts, types=types)}) TO '{folder}/sent' {to}")
        yield LedgerParts(Path(folder, "parts"), parts, Path(folder, "sent") if summed else None)


def entries_query(stamps: list[str], marks: Collection[str], goals: str) -> str:
    """Return the query for the entries that a judgement needs, with their segments.

    marks: which of the tables of events, broken and undone, have rows. goals: further columns.
    """
    segment = " + ".join(f"(event_id >= '{each}')::SMALLINT" for each in stamps) or "0"
    join = " ".join(MARKED.format(name=name) for name in marks)
    broken, undone = (f"{name}_id IS NOT NULL" if name in marks else "false" for name in ("broken", "undone"))
    return ENTRIES.format(segment=segment, join=join, broken=broken, undone=undone, goals=goals)
