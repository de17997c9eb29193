"""All users of a share as the lake has them: the result of a nightly recompute, one row a user."""

import json
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property
from io import BytesIO
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from adapters.engagement.account_items import profile_from
from adapters.platform.objects import Objects
from analytics.lake.curated_files import parquet_bytes
from analytics.recompute.user_fold import dates_of
from analytics.recompute.user_shares import ALL, UserShare
from rules.days import stamp
from rules.engagement.account_state import Profile
from rules.engagement.streak import Streak

RESULT = "streaks.parquet"  # of a run and a share
# profile: the attributes of the profile that the entries lead to, but for the streak, as JSON
ROWS = pa.schema(
    [
        ("user_id", pa.string()),
        ("last_activity_date", pa.date32()),
        *((name, pa.int32()) for name in ("current_streak", "longest_streak", "active_days")),
        ("freezes_spent", pa.string()),
        ("lapses_on", pa.date32()),
        *((name, pa.int64()) for name in ("entries", "total_bestie_points", "points", "balance")),
        ("ledger_head", pa.string()),
        ("ledger_seq", pa.int64()),
        ("sound", pa.bool_()),
        ("digest", pa.uint64()),
        ("profile", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True)
class LakeUser:
    """One user's figures and settings, as the lake has them."""

    streak: Streak | None
    total_points: int  # ever earned
    balance: int
    head: str | None  # created_at of the newest ledger entry; None if the lake has no entry
    seq: int | None  # of that entry
    entries: int  # the number of ledger entries
    points: int  # the sum of all entries
    digest: int  # of all entries
    is_sound: bool  # the entries are complete, and their points add up to the balance
    profile: Profile  # by all entries, but for the streak; its version and other kept values are blank


@dataclass(frozen=True)
class LakeUsers:
    """The users of one recompute, looked up by id."""

    table: pa.Table  # with the columns ROWS, by user_id

    def save(self, objects: Objects, run_id: str, share: UserShare = ALL) -> str:
        """Store the table as a nightly run's result of a share; returns its key."""
        key = share.key(run_id, RESULT)
        objects.put(key, parquet_bytes(self.table))
        return key

    @staticmethod
    def is_stored(objects: Objects, run_id: str, share: UserShare) -> bool:
        """Whether a nightly run has stored its result of a share."""
        return objects.etag(share.key(run_id, RESULT)) is not None

    @classmethod
    def load(cls, objects: Objects, run_id: str, share: UserShare = ALL) -> "LakeUsers":
        """Read a nightly run's result of a share. Raises NoObject if there is none."""
        return cls(pq.read_table(BytesIO(objects.get(share.key(run_id, RESULT)))))

    @cached_property
    def ids(self) -> list[str]:
        """The users' ids, in the order of the rows."""
        ids: list[str] = self._columns["user_id"].to_pylist()
        return ids

    def touched(self, since: datetime) -> set[str]:
        """Return the users with a ledger entry of that instant or later."""
        has_entry = pc.greater_equal(self._columns["ledger_head"], stamp(since))
        return set(self._columns["user_id"].filter(has_entry).to_pylist())

    def lapsing(self, first: date, last: date) -> set[str]:
        """Return the users whose streak becomes 0 between two dates, both included, if they do nothing."""
        lapses_on = self._columns["lapses_on"]
        is_lapsing = pc.and_(pc.greater_equal(lapses_on, first), pc.less_equal(lapses_on, last))
        return set(self._columns["user_id"].filter(is_lapsing).to_pylist())

    def user(self, user_id: str) -> LakeUser | None:
        """Return a user, or None if the lake does not know the user."""
        index = self._row_of_user.get(user_id)
        if index is None:
            return None
        row: dict[str, Any] = {name: column[index].as_py() for name, column in self._columns.items()}
        return LakeUser(
            streak=_streak(row) if row["last_activity_date"] else None,
            total_points=row["total_bestie_points"] or 0,
            balance=row["balance"] or 0,
            head=row["ledger_head"],
            seq=row["ledger_seq"],
            entries=row["entries"] or 0,
            points=row["points"] or 0,
            digest=row["digest"] or 0,
            is_sound=row["sound"] is not False,
            profile=profile_from(json.loads(row["profile"])),
        )

    @cached_property
    def _columns(self) -> dict[str, pa.Array]:
        return {name: self.table[name].combine_chunks() for name in self.table.column_names}

    @cached_property
    def _row_of_user(self) -> dict[str, int]:
        return {user: index for index, user in enumerate(self.ids)}


def _streak(row: dict[str, Any]) -> Streak:
    return Streak(
        row["last_activity_date"],
        row["current_streak"],
        row["longest_streak"],
        row["active_days"],
        dates_of(row["freezes_spent"]),
    )
