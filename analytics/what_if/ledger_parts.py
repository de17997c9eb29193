"""The curated ledger, once through DuckDB: what a judgement needs of each entry, in parts by user.

A part holds the whole ledgers of some users, in order, and fits into memory.
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapters.platform.objects import Objects
from analytics.lake.curated_files import THREADS, arrow_table, connect, query, table_of
from analytics.lake.layout import curated_files
from rules.book.point_rules import EXPIRES_AT
from rules.engagement.ledger import EntryKind, FreezeNote

# ruff: noqa: S608 (no input but instants, which are written as stamps)


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
                found = query(small_database(), entries)
                if found.num_rows:
                    yield found


def small_database() -> duckdb.DuckDBPyConnection:
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
    with TemporaryDirectory() as folder, table_of(db := small_database(), "ledger", objects, "ledger"):
        db.execute("SET preserve_insertion_order = false")
        db.execute(f"SET partitioned_write_max_open_files = {PARTS_MAX + 50}")
        undone = query(db, UNDONE).cast(EVENTS)
        with arrow_table(db, "broken", broken), arrow_table(db, "undone", undone):
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


# What caps leave of each entry's points, entry by entry in the order of the ledger, in columns.
#
# Twin of rules.engagement.earnings.awards: the same points for each event, and not only the same sums,
# because the balance at an instant, and what expires when, follow from the order.


Numbers = NDArray[np.int64]
UNLIMITED = 1 << 60


def earned_points(groups: Numbers, points: Numbers, limit: Numbers) -> Numbers:
    """Return each entry's points.

    groups: equal for the entries of one user, type and period of a cap. All arrays are in the order in which
    entries were written. limit: the entry's cap, UNLIMITED for none.
    """
    given = points.copy()
    capped = np.flatnonzero(limit < UNLIMITED)
    if not len(capped):
        return given
    order = capped[np.argsort(groups[capped], kind="stable")]
    keys, worth, most = groups[order], points[order], limit[order]
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    sizes = np.diff(np.append(starts, len(keys)))
    mixed = np.minimum.reduceat(most, starts) != np.maximum.reduceat(most, starts)
    before = np.cumsum(worth) - worth
    before -= np.repeat(before[starts], sizes)
    result = np.minimum(before + worth, most) - np.minimum(before, most)
    if mixed.any():
        _fill_mixed_caps(result, worth, most, starts[mixed], sizes[mixed])
    given[order] = result
    return given


def _fill_mixed_caps(result: Numbers, worth: Numbers, most: Numbers, starts: Numbers, sizes: Numbers) -> None:
    """Work out the groups with several caps: the first entries of all of them, then the second ones ...

    had: by group and cap what entries with this cap or a lower one have earned. A cap that no entry has had
    yet binds no more than the next lower one does.
    """
    caps = [np.unique(most[start : start + size]) for start, size in zip(starts, sizes, strict=True)]
    limits = np.full((len(caps), max(map(len, caps))), UNLIMITED, np.int64)
    for row, some in enumerate(caps):
        limits[row, : len(some)] = some
    had = np.zeros_like(limits)
    for step in range(int(sizes.max())):
        rows = np.flatnonzero(sizes > step)
        at = starts[rows] + step
        binds = limits[rows] >= most[at, None]
        left = np.where(binds, limits[rows] - had[rows], UNLIMITED).min(axis=1)
        result[at] = np.clip(np.minimum(worth[at], left), 0, None)
        had[rows] += binds * result[at, None]


# What has expired of all users' points, in columns (docs/rules.md, rule 11).
#
# expired(lot) = max(0, earned with an expiry up to this lot's - spent until then - expired before). Added up,
# that is the greatest of `earned up to a lot - spent until then` of the lots up to one, and at least 0.


DAY_BITS, DAY_ZERO = 24, 1 << 23
MS_BITS = 43
MS_A_DAY = 86_400_000
NOON_MS = EXPIRES_AT.hour * 3_600_000
NEVER = np.iinfo(np.int32).max  # as a day: the points last


def running_sums(values: Numbers, users: Numbers) -> Numbers:
    """Return running sums that begin anew with each user. users: ascending."""
    sums = np.cumsum(values)
    starts = np.flatnonzero(np.append(True, users[1:] != users[:-1])) if len(users) else users
    base = (sums - values)[starts]
    return sums - np.repeat(base, np.diff(np.append(starts, len(users))))


@dataclass(frozen=True, slots=True)
class ExpiredPoints:
    """By user and date of expiry, ascending: what has expired up to it in all. keys: user << 24 | day."""

    keys: Numbers
    gone: Numbers

    @classmethod
    def of(
        cls, lots: tuple[Numbers, Numbers, Numbers], moves: tuple[Numbers, Numbers, Numbers]
    ) -> "ExpiredPoints":
        """Work out all lots. lots: users, days on which they expire, points.

        moves: users, when points were spent (microseconds since 1970), how many; below 0: given back.
        """
        keys, place = np.unique((lots[0] << DAY_BITS) + lots[1] + DAY_ZERO, return_inverse=True)
        if not len(keys):
            return cls(keys, keys)
        points = np.zeros(len(keys), np.int64)
        np.add.at(points, place, lots[2])
        users = keys >> DAY_BITS
        noon = ((keys & (1 << DAY_BITS) - 1) - DAY_ZERO) * MS_A_DAY + NOON_MS
        over = running_sums(points, users) - _spent_until(users, noon, moves)
        # The users' running maxima, in one pass: each user's values lie above those of the user before.
        step = int(np.abs(over).max()) + 1
        shift = (users - users[0]) * 2 * step
        return cls(keys, np.maximum.accumulate(np.maximum(over, 0) + shift) - shift)

    def by(self, users: Numbers, days: Numbers) -> Numbers:
        """Return what had expired of users' points in all, up to dates."""
        if not len(self.keys):
            return np.zeros(len(users), np.int64)
        place = np.searchsorted(self.keys, (users << DAY_BITS) + days + DAY_ZERO, side="right") - 1
        known = (place >= 0) & (self.keys[place] >> DAY_BITS == users)
        return np.where(known, self.gone[place], 0)


def _spent_until(users: Numbers, until_ms: Numbers, moves: tuple[Numbers, Numbers, Numbers]) -> Numbers:
    """Return what each user has spent until an instant, which is a whole millisecond."""
    who, when, points = moves
    keys = (who << MS_BITS) + -(-when // 1000)
    order = np.argsort(keys, kind="stable")
    sums = np.append(0, running_sums(points[order], who[order]))
    asked = (users << MS_BITS) + until_ms
    place = np.searchsorted(keys[order], asked, side="right")
    is_same = np.append(-1, who[order])[place] == users
    return np.where(is_same, sums[place], 0)


def last_expired(at: Numbers) -> Numbers:
    """Return the newest days on which points have expired by instants, in microseconds since 1970."""
    return (at // 1000 - NOON_MS) // MS_A_DAY
