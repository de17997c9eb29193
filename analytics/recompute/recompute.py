"""The nightly recompute: every user's streak, totals and balance, from the curated lake alone.

The result is one row per user that the lake knows: a file for each share of the users. A row has what was
computed (last_activity_date to digest) and the settings of the newest profile, which cannot be computed from
anything else. What older partitions come to is kept (settled_users.py); a night reads the later ones.
"""

import json
from dataclasses import dataclass
from datetime import date, datetime
from functools import reduce
from io import BytesIO
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from adapters.platform.objects import Objects
from analytics.lake.curated_files import STAMP, arrow_table, connect, query
from analytics.recompute.activity_runs import STREAK, dates_of, pauses_of
from analytics.recompute.ledger_totals import PROFILE
from analytics.recompute.settled_users import (
    ALL,
    SETTLED_AFTER,
    SettledUsers,
    UserShare,
    etags_digest,
    fold_users,
    lake_files,
)
from rules.days import DAY, stamp
from rules.engagement.streak import Cover, Streak, lapse_date

RESULT = "streaks.parquet"
COVER = ("freezes", "pauses", "skipped_dates")
# An account is sound if its entries are numbered 0, 1, 2 ... and the points add up to the balance.
RECOMPUTED = f"""
SELECT user_id, {", ".join(name for name, _ in STREAK)},
  1 + numbered AS entries, earned AS total_bestie_points, points, balance,
  strftime(head_at::TIMESTAMP, {STAMP}) AS ledger_head, ledger_seq,
  first_seq = 0 AND seq_sum = last_seq * (last_seq + 1) // 2 AND numbered = last_seq AND points = balance
    AS sound,
  digest, freezes, {", ".join(name for name, _ in PROFILE)}
FROM users ORDER BY user_id
"""  # noqa: S608 (no input)


@dataclass(frozen=True, slots=True)
class RecomputedUsers:
    """The result: one row per user, by user_id."""

    table: pa.Table

    def save(self, objects: Objects, run_id: str, share: UserShare = ALL) -> str:
        """Store the table as the nightly run's result; returns its key."""
        data = BytesIO()
        pq.write_table(self.table, data, compression="zstd")
        key = share.key(run_id, RESULT)
        objects.put(key, data.getvalue())
        return key

    @staticmethod
    def is_there(objects: Objects, run_id: str, share: UserShare) -> bool:
        """Whether a nightly run has a result of a share."""
        return objects.etag(share.key(run_id, RESULT)) is not None

    @classmethod
    def load(cls, objects: Objects, run_id: str, share: UserShare = ALL) -> "RecomputedUsers":
        """Read a nightly run's result. Raises adapters.platform.objects.NoObject if there is none."""
        return cls(pq.read_table(BytesIO(objects.get(share.key(run_id, RESULT)))))


def recompute(
    objects: Objects, today: date, *, anew: bool = False, share: UserShare = ALL
) -> RecomputedUsers:
    """Recompute the users of a share. today: UTC; what is old enough by then is settled for the next time.

    anew: from all partitions, whatever is settled.
    """
    files, until = lake_files(objects), today - SETTLED_AFTER
    settled = SettledUsers() if anew else SettledUsers.load(objects, files, share)
    if settled.until is None or settled.until < until:
        table = fold_users(objects, settled, files, until, share)
        settled = SettledUsers(until, table, etags_digest(files, until))
        settled.save(objects, share)
    db = connect()
    with arrow_table(db, "users", fold_users(objects, settled, files, None, share)):
        return RecomputedUsers(query(db, RECOMPUTED))


# The recomputed users, looked up by id: what the lake says of each.


@dataclass(frozen=True, slots=True)
class LakeUser:
    """What the lake says of one user.

    head, seq: of the newest ledger entry, None if the lake has no entry. entries, points, digest: of the
    ledger, 0 then.
    is_sound: whether the entries are complete and their points add up to the balance.
    version to updated_at: of the newest profile; version is None if the lake has no profile.
    """

    streak: Streak | None
    total_points: int
    balance: int
    head: str | None
    seq: int | None
    entries: int
    points: int
    digest: int
    is_sound: bool
    version: int | None
    zone: str | None
    chosen: str | None
    pauses: str | None
    skipped: str | None
    review: bool
    updated_at: datetime | None
    opening: str | None = None


class Snapshot:
    """All users of one recompute."""

    def __init__(self, table: pa.Table) -> None:
        self._columns = {name: table[name].combine_chunks() for name in table.column_names}
        self.ids: list[str] = self._columns["user_id"].to_pylist()
        self.places = {user: place for place, user in enumerate(self.ids)}

    def touched(self, since: datetime) -> set[str]:
        """Return the users with a ledger entry or a profile of that instant or later."""
        entry = pc.greater_equal(self._columns["ledger_head"], stamp(since))
        profile = pc.greater_equal(self._columns["updated_at"], since)
        return set(self._columns["user_id"].filter(pc.or_kleene(entry, profile)).to_pylist())

    def lapsing(self, first: date, last: date) -> set[str]:
        """Return the users whose streak becomes 0 on one of these dates, both included, as things stand."""
        active = self._columns["last_activity_date"]
        is_plain = pc.and_(pc.greater_equal(active, first - 2 * DAY), pc.less_equal(active, last - 2 * DAY))
        is_covered = reduce(pc.or_, (pc.is_valid(self._columns[each]) for each in COVER))
        may = pc.fill_null(pc.or_kleene(is_plain, pc.and_(is_covered, pc.is_valid(active))), False)
        columns = ("user_id", "last_activity_date", "freezes_spent", *COVER)
        found = set()
        for user, day, spent, freezes, pauses, skipped in zip(
            *(self._columns[each].filter(may).to_pylist() for each in columns), strict=True
        ):
            changes = tuple((date.fromisoformat(on), change) for on, change in json.loads(freezes or "[]"))
            cover = Cover(changes, pauses_of(pauses), frozenset(dates_of(skipped)))
            if first <= lapse_date(Streak(day, 1, 1, 1, dates_of(spent)), cover) <= last:
                found.add(user)
        return found

    def user(self, user_id: str) -> LakeUser | None:
        """Return a user, or None if the lake does not know the user."""
        place = self.places.get(user_id)
        if place is None:
            return None
        row: dict[str, Any] = {name: column[place].as_py() for name, column in self._columns.items()}
        return LakeUser(
            _streak(row) if row["last_activity_date"] else None,
            row["total_bestie_points"] or 0,
            row["balance"] or 0,
            row["ledger_head"],
            row["ledger_seq"],
            row["entries"] or 0,
            row["points"] or 0,
            row["digest"] or 0,
            row["sound"] is not False,
            row["version"],
            row["timezone"],
            row["timezone_chosen"],
            row["pauses"] or None,
            row["skipped_dates"] or None,
            bool(row["tz_review"]),
            row["updated_at"],
            row["opening"] or None,
        )


def _streak(row: dict[str, Any]) -> Streak:
    return Streak(
        row["last_activity_date"],
        row["current_streak"],
        row["longest_streak"],
        row["active_days"],
        dates_of(row["freezes_spent"]),
    )
