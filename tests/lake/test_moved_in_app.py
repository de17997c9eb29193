"""A made-up app that moves in by opening positions: the recompute from files equals a direct calculation."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from adapters.platform.objects import FolderObjects
from analytics.lake.arrow import arrow_schema
from analytics.recompute.recompute import recompute
from rules.engagement.ledger import Draft, EntryKind, Setting, append_drafts
from rules.engagement.opening_positions import OpeningPosition, position_of
from rules.lake.entities import ENTITIES
from tests.support.effort import effort

AS_OF, DAY = date(2026, 3, 10), timedelta(days=1)
NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
COMES = [(), (1,), (1, 2, 3), (2, 3), (1, 4), (3, 5, 9), (8,)]  # days after as_of on which somebody comes
CHUNK = 100_000
USERS = effort(1_000, soak=1_000_000)


@dataclass(frozen=True)
class Mover:
    """A user as the other system tells it, and the days on which the user comes afterwards."""

    row: dict[str, Any]
    later: tuple[int, ...]

    def position(self) -> OpeningPosition:
        return position_of(self.row, AS_OF)

    def direct(self) -> tuple[date, int, int, int, int]:
        """Last date, length, longest, active days and points: date by date, without the product's fold."""
        length, left = max(1, self.row["streak"]), self.row["freezes"]
        longest, days = self.row["longest"], self.row["active_days"]
        last = date.fromisoformat(self.row["last_date"])
        for each in self.later:
            day = AS_OF + each * DAY
            missed = (day - last).days - 1
            before_freezes = max(0, (AS_OF - last).days - 1)  # a date before as_of is covered by none
            is_alive = not before_freezes and missed <= left
            left -= 0 if before_freezes else min(left, missed)
            length = length + 1 if is_alive else 1
            longest, days, last = max(longest, length), days + 1, day
        return last, length, longest, days, sum(self.row["lots"].values())


def crowd() -> Iterator[Mover]:
    chance = random.Random(20)
    for number in range(USERS):
        streak = chance.choice((0, 1, 3, 40, 1000))
        gone = chance.choice((0, 1)) if streak else chance.choice((2, 30, 400))
        longest = max(1, streak) + chance.randrange(60)
        yield Mover(
            {
                "user_id": f"user-{number:07}",
                "as_of": AS_OF.isoformat(),
                "last_date": (AS_OF - gone * DAY).isoformat(),
                "streak": streak,
                "longest": longest,
                "active_days": longest + chance.randrange(500),
                "lots": {"2027-01-01": chance.randrange(900), "never": chance.randrange(200_000)},
                "freezes": chance.choice((0, 0, 1, 3)),
            },
            chance.choice(COMES),
        )


def written(objects: FolderObjects, entity: str, place: str, rows: list[dict[str, Any]]) -> None:
    file = BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, arrow_schema(ENTITIES[entity])), file)
    objects.put(f"curated/{entity}/{place}.parquet", file.getvalue())


def test_an_app_that_moved_in_is_recomputed_to_what_a_direct_calculation_says(tmp_path: Path) -> None:
    objects = FolderObjects(tmp_path)
    ledger: list[dict[str, Any]] = []
    profiles: list[dict[str, Any]] = []
    for number, mover in enumerate(crowd(), 1):
        told = mover.position()
        begun = Draft(EntryKind.SETTING, 0, setting=Setting.OPENING, set_to=told.opening.text)
        for entry in append_drafts(told.user_id, None, [*told.drafts(), begun], NOW):
            draft = entry.draft
            ledger.append(
                {
                    "account_id": entry.account_id,
                    "created_at": datetime.fromisoformat(entry.created_at),
                    "seq": entry.seq,
                    "kind": draft.kind.value,
                    "points": draft.points,
                    "balance": entry.balance,
                    "event_id": draft.event_id,
                    "freeze": draft.freeze and draft.freeze.value,
                    "freeze_date": draft.freeze_date and date.fromisoformat(draft.freeze_date),
                    "setting": draft.setting and draft.setting.value,
                    "set_to": draft.set_to,
                }
            )
        profiles.append(
            {"user_id": told.user_id, "version": 1, "opening": told.opening.text, "updated_at": NOW}
        )
        # A date up to last_date is told by the position.
        for each in (*mover.later, *([-1] if told.last_date and told.last_date >= AS_OF - DAY else [])):
            entry = replace(entry, seq=entry.seq + 1)
            event = {"event_id": f"{each}#{number}", "activity_date": AS_OF + each * DAY, "kind": "EARN"}
            at = datetime.fromisoformat(entry.created_at) + entry.seq * timedelta(microseconds=1)
            place = {"account_id": entry.account_id, "created_at": at, "seq": entry.seq}
            ledger.append({**place, **event, "points": 0, "balance": entry.balance})
        if number % CHUNK == 0 or number == USERS:
            written(objects, "ledger", f"dt={AS_OF}/hour-{number // CHUNK:02}", ledger)
            written(objects, "streaks", f"dt={AS_OF}/hour-{number // CHUNK:02}", profiles)
            ledger, profiles = [], []
    names = ("last_activity_date", "current_streak", "longest_streak", "active_days", "total_bestie_points")
    found = recompute(objects, AS_OF + 40 * DAY).table.select(["user_id", "balance", "sound", *names])
    wrong = [
        (row, mover, mover.direct())
        for row, mover in zip(found.to_pylist(), crowd(), strict=True)
        if tuple(row[name] for name in names) != mover.direct()
        or (row["user_id"], row["balance"], row["sound"]) != (mover.row["user_id"], mover.direct()[-1], True)
    ]
    assert not wrong, (len(wrong), wrong[:3])
