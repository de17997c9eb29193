"""The recomputed users, looked up by id: what the lake says of each."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from analytics.recompute.listed_dates import dates_of
from rules.days import stamp
from rules.engagement.streak import Streak


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
