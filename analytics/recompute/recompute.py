"""The nightly recompute: every user's streak, totals and balance, from the curated lake alone.

The result is one row per user that the lake knows: a file for each share of the users. A row has what was
computed (last_activity_date to digest) and the settings of the newest profile, which cannot be computed from
anything else. What older partitions come to is kept (settled_users.py); a night reads the later ones.
"""

from dataclasses import dataclass
from datetime import date
from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq

from adapters.platform.objects import Objects
from analytics.lake.duckdb_memory import STAMP, connect, query, registered
from analytics.lake.shares import UserShare
from analytics.recompute.activity_runs import STREAK
from analytics.recompute.ledger_totals import PROFILE
from analytics.recompute.settled_users import ALL, SETTLED_AFTER, LakeFiles, SettledUsers, etags_digest
from analytics.recompute.user_fold import folded

RESULT = "streaks.parquet"
# An account is sound if its entries are numbered 0, 1, 2 ... and the points add up to the balance.
RECOMPUTED = f"""
SELECT user_id, {", ".join(name for name, _ in STREAK)},
  1 + numbered AS entries, earned AS total_bestie_points, points, balance,
  strftime(head_at::TIMESTAMP, {STAMP}) AS ledger_head, ledger_seq,
  first_seq = 0 AND seq_sum = last_seq * (last_seq + 1) // 2 AND numbered = last_seq AND points = balance
    AS sound,
  digest, {", ".join(name for name, _ in PROFILE)}
FROM users ORDER BY user_id
"""  # noqa: S608 (no input)


@dataclass(frozen=True, slots=True)
class Recomputed:
    """The result: one row per user, by user_id."""

    table: pa.Table

    def save(self, objects: Objects, run_id: str, share: UserShare = ALL) -> str:
        """Store the table as the nightly run's result; returns its key."""
        data = BytesIO()
        pq.write_table(self.table, data, compression="zstd")
        key = share.key(run_id, RESULT)
        objects.put(key, data.getvalue())
        return key

    @classmethod
    def load(cls, objects: Objects, run_id: str, share: UserShare = ALL) -> "Recomputed":
        """Read a nightly run's result. Raises adapters.platform.objects.NoObject if there is none."""
        return cls(pq.read_table(BytesIO(objects.get(share.key(run_id, RESULT)))))


def recompute(
    objects: Objects,
    today: date,
    *,
    anew: bool = False,
    share: UserShare = ALL,
    files: LakeFiles | None = None,
) -> Recomputed:
    """Recompute the users of a share. today: UTC; what is old enough by then is settled for the next time.

    anew: from all partitions, whatever is settled. files: None for all users at once.
    """
    files, until = files or LakeFiles.of_all(objects), today - SETTLED_AFTER
    settled = SettledUsers() if anew else SettledUsers.load(objects, files.whole, share)
    if settled.until is None or settled.until < until:
        table = folded(objects, settled, files, until)
        settled = SettledUsers(until, table, etags_digest(files.whole, until))
        settled.save(objects, share)
    db = connect()
    with registered(db, "users", folded(objects, settled, files, None)):
        return Recomputed(query(db, RECOMPUTED))
