"""What the curated ledger and profiles say of each user: totals, freezes and settings."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import date

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from adapters.platform.objects import Objects, StoredObject
from analytics.lake import curated_files
from analytics.lake.arrow import arrow_schema
from analytics.lake.curated_files import arrow_table
from rules.engagement.ledger import EARNING, FreezeNote
from rules.engagement.reconciliation import DIGEST_BITS, SEPARATOR
from rules.engagement.streak import YEAR
from rules.lake.entities import STREAKS

Grants = dict[str, list[tuple[date, int]]]

# Twin of rules.engagement.reconciliation.digest_of: the values of an entry that it hashes, in order.
HASHED = (
    *("epoch_us(created_at)", "seq", "kind", "points", "balance", "event_id", "event_type", "activity_date"),
    *("reward_id", "reverses", '"freeze"', "freeze_date", "rules_version", "cap"),
    *("CASE WHEN is_passive THEN 'True' END", "expires_on", "held_at", "reason", "brand", "measures"),
)
# concat leaves out what is NULL, and keeps the separators.
_TEXTS = f", chr({ord(SEPARATOR)}), ".join(f"({each})::VARCHAR" for each in HASHED)
EARNED = "kind IN (" + ", ".join(f"'{each}'" for each in sorted(EARNING)) + ")"
HASH = f"md5_number_lower(concat({_TEXTS}))"

# What some of an account's entries come to. Parts of one account can be added up. numbered: entries but the
# opening one, which has no time of its own: copies of it may lie in two partitions.
PARTS = (
    ("numbered", pa.int64()),
    ("earned", pa.int64()),
    ("points", pa.int64()),
    ("balance", pa.int64()),
    ("head_at", pa.timestamp("us", "UTC")),
    ("ledger_seq", pa.int64()),
    ("first_seq", pa.int64()),
    ("last_seq", pa.int64()),
    ("seq_sum", pa.int64()),
    ("digest", pa.uint64()),
)
TOTALS = f"""
CREATE TABLE totals AS
WITH parts AS (
  SELECT account_id AS user_id, count(*) FILTER (seq > 0) AS numbered,
    coalesce(sum(points) FILTER ({EARNED}), 0) AS earned, sum(points) AS points,
    arg_max(balance, created_at) AS balance, max(created_at) AS head_at,
    arg_max(seq, created_at) AS ledger_seq, min(seq) AS first_seq, max(seq) AS last_seq, sum(seq) AS seq_sum,
    coalesce(sum({HASH}::HUGEINT) FILTER (seq > 0), 0) AS digest
  FROM ledger GROUP BY account_id
  UNION ALL
  SELECT user_id, {", ".join(name for name, _ in PARTS)} FROM settled WHERE head_at IS NOT NULL
)
SELECT user_id, sum(numbered)::BIGINT AS numbered, sum(earned)::BIGINT AS earned,
  sum(points)::BIGINT AS points, arg_max(balance, head_at)::BIGINT AS balance, max(head_at) AS head_at,
  arg_max(ledger_seq, head_at)::BIGINT AS ledger_seq, min(first_seq)::BIGINT AS first_seq,
  max(last_seq)::BIGINT AS last_seq, sum(seq_sum)::BIGINT AS seq_sum,
  (sum(digest) % {1 << DIGEST_BITS})::UBIGINT AS digest
FROM parts GROUP BY user_id
"""  # noqa: S608 (no input)
ENTRY_COLUMNS = (
    *("account_id", "created_at", "seq", "kind", "points", "balance", "event_id", "event_type"),
    *("activity_date", "reward_id", "reverses", "freeze", "freeze_date"),
    *("rules_version", "cap", "is_passive", "expires_on", "held_at", "reason", "brand", "measures"),
)

SETTINGS = (
    *("version", "timezone", "timezone_chosen", "pauses", "skipped_dates", "tz_review", "updated_at"),
    *("archived_until", "opening"),
)
PROFILE = tuple((name, arrow_schema(STREAKS).field(name).type) for name in SETTINGS)
# A profile puts away pauses that ended more than a year before a date: older versions have these.
NEWEST = f"""
CREATE TABLE settings AS
WITH versions AS (
  SELECT user_id, {", ".join(SETTINGS)} FROM profiles
  UNION ALL SELECT user_id, {", ".join(SETTINGS)} FROM settled WHERE version IS NOT NULL
), newest AS (
  SELECT user_id, unnest(arg_max({{{", ".join(f"'{n}': {n}" for n in SETTINGS)}}}, version)) FROM versions
  GROUP BY user_id
), archived AS (SELECT user_id, pauses, archived_until FROM newest WHERE archived_until IS NOT NULL),
listed AS (
  SELECT user_id, pauses, NULL AS until FROM archived UNION SELECT versions.user_id, versions.pauses,
    archived.archived_until - {YEAR.days} FROM versions JOIN archived USING (user_id)
), each AS (
  SELECT DISTINCT user_id, until, unnest(string_split(pauses, ',')) AS pause FROM listed WHERE pauses > ''
), known AS (
  SELECT user_id, string_agg(DISTINCT pause, ',' ORDER BY pause) AS told FROM each
  WHERE until IS NULL OR split_part(pause, '/', 2)::DATE <= until GROUP BY user_id
)
SELECT newest.* REPLACE (coalesce(told, pauses) AS pauses) FROM newest LEFT JOIN known USING (user_id)
"""  # noqa: S608 (no input)


@dataclass(slots=True)
class Totals:
    """A database with the tables `totals` and `settings`, one row per user; and the freezes of all users.

    freezes: by user, (date, +1 for a grant or -1 for a revocation), as rules.engagement.account.apply_entries
    takes them from the entries.
    """

    db: duckdb.DuckDBPyConnection
    freezes: Grants = field(default_factory=dict)

    def read(
        self,
        objects: Objects,
        ledger: Iterable[StoredObject],
        streaks: Iterable[StoredObject],
        rows_of: Callable[[str], Callable[[pa.Table], pa.Table]],
    ) -> None:
        """Add curated entries and profiles to those of the table `settled`. Each file is read once.

        rows_of: see settled_users.UserShare.
        """
        rows = curated_files.reader(
            objects, "ledger", ENTRY_COLUMNS, files=ledger, keep=rows_of("account_id")
        )
        with arrow_table(self.db, "ledger", self._noting_freezes(rows)):
            self.db.execute(TOTALS)
        columns = ("user_id", *SETTINGS)
        profiles = curated_files.reader(objects, "streaks", columns, files=streaks, keep=rows_of("user_id"))
        with arrow_table(self.db, "profiles", profiles):
            self.db.execute(NEWEST)

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
