"""What the curated ledger and profiles say of each user: totals, freezes and settings."""

from dataclasses import dataclass, field
from datetime import date

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from adapters.platform.objects import Objects
from analytics.lake import curated_files
from analytics.lake.duckdb_memory import connect, registered
from rules.engagement.ledger import EntryKind, FreezeNote
from rules.engagement.ledger_doubts import DIGEST_BITS, SEPARATOR

STAMP = "'%Y-%m-%dT%H:%M:%S.%fZ'"
Grants = dict[str, list[tuple[date, int]]]

# Twin of rules.engagement.ledger_doubts.digest_of: these are the values of an entry that it hashes, in order.
HASHED = (
    *("epoch_us(created_at)", "seq", "kind", "points", "balance", "event_id", "event_type", "activity_date"),
    *("reward_id", "reverses", '"freeze"', "freeze_date"),
)
# concat leaves out what is NULL, and keeps the separators.
_TEXTS = f", chr({ord(SEPARATOR)}), ".join(f"{each}::VARCHAR" for each in HASHED)
HASH = f"md5_number_lower(concat({_TEXTS}))"

# An account is sound if its entries are numbered 0, 1, 2 ... and the points add up to the balance.
# The opening entry has no time of its own, so copies of it may lie in two partitions. They count as one.
TOTALS = f"""
CREATE TABLE totals AS
SELECT account_id AS user_id,
  1 + count(*) FILTER (seq > 0) AS entries,
  coalesce(sum(points) FILTER (kind = '{EntryKind.EARN}'), 0)::BIGINT AS total_bestie_points,
  sum(points)::BIGINT AS points,
  arg_max(balance, created_at) AS balance,
  strftime(max(created_at)::TIMESTAMP, {STAMP}) AS ledger_head,
  arg_max(seq, created_at) AS ledger_seq,
  min(seq) = 0 AND sum(seq) = max(seq) * (max(seq) + 1) // 2
    AND 1 + count(*) FILTER (seq > 0) = 1 + max(seq)
    AND sum(points) = arg_max(balance, created_at) AS sound,
  (coalesce(sum({HASH}::HUGEINT) FILTER (seq > 0), 0) % {1 << DIGEST_BITS})::UBIGINT AS digest
FROM ledger GROUP BY account_id
"""  # noqa: S608 (no input)
ENTRY_COLUMNS = (
    *(
        "account_id",
        "created_at",
        "seq",
        "kind",
        "points",
        "balance",
        "event_id",
        "event_type",
        "activity_date",
    ),
    *("reward_id", "reverses", "freeze", "freeze_date"),
)

SETTINGS = ("timezone", "timezone_chosen", "pauses", "skipped_dates", "tz_review", "updated_at")
NEWEST = f"""
CREATE TABLE settings AS
SELECT user_id, max(version) AS version, unnest(arg_max({{{", ".join(f"'{n}': {n}" for n in SETTINGS)}}},
  version)) FROM streaks GROUP BY user_id
"""  # noqa: S608 (no input)


@dataclass(slots=True)
class Totals:
    """A database with the tables `totals` and `settings`, one row per user; and the freezes of all users.

    freezes: by user, (date, +1 for a grant or -1 for a revocation), as rules.engagement.absorbing.absorb
    takes them from the entries.
    """

    db: duckdb.DuckDBPyConnection
    freezes: Grants = field(default_factory=dict)

    @classmethod
    def read(cls, objects: Objects) -> "Totals":
        """Read all curated entries and profiles. Each file is read once."""
        totals = cls(connect())
        rows = totals._noting_freezes(curated_files.reader(objects, "ledger", ENTRY_COLUMNS))
        with registered(totals.db, "ledger", rows):
            totals.db.execute(TOTALS)
        profiles = curated_files.reader(objects, "streaks", ("user_id", "version", *SETTINGS))
        with registered(totals.db, "streaks", profiles):
            totals.db.execute(NEWEST)
        return totals

    def _noting_freezes(self, rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(rows.schema, map(self._note, rows))

    def _note(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        changes = {FreezeNote.GRANTED.value: 1, FreezeNote.REVOKED.value: -1}
        noted = batch.filter(pc.is_in(batch["freeze"], pa.array(list(changes))))
        for row in noted.select(["account_id", "freeze", "freeze_date"]).to_pylist():
            if row["freeze_date"]:
                change = (row["freeze_date"], changes[row["freeze"]])
                self.freezes.setdefault(row["account_id"], []).append(change)
        return batch
