"""Opening positions of another system: shown as they were told, and gone on from by events (rule 20)."""

import csv
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from adapters.book_store import BookStore
from adapters.engagement.account_store import AccountStore
from adapters.engagement.achievements import AchievementStore
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.ledger_store import LedgerStore
from adapters.privacy.tombstones import NO_ERASURES
from local.move_in.import_command import MarkStore, move_in
from local.move_in.positions import PositionFiles, PositionImporter
from local.row_files import digest_of_file
from tests.support.books import KnownBooks
from tests.support.dying import Dying, Killed
from tests.support.effort import effort
from tests.support.site import Site

AS_OF = date(2026, 3, 10)
NOW = datetime(2026, 3, 10, 20, tzinfo=UTC)


@dataclass
class Mover:
    api: Site
    path: Path
    leave_refused: bool = False

    def run(self, dynamodb: Any = None) -> int:
        real = self.api.engine.client("dynamodb")
        used = dynamodb or real
        accounts = AccountStore(used, "UserStreaks", "DailyActivity", LedgerStore(used, "RewardsLedger"), 4)
        mover = PositionImporter(
            *(accounts, EngagementCache(""), AchievementStore(used, "DailyActivity"), KnownBooks().books)
        )
        moving = PositionFiles(mover, BookStore(real, "RuleBooks").look(), NO_ERASURES, lambda: NOW)
        return move_in(
            self.path,
            moving,
            MarkStore(used, "IdempotencyKeys", digest_of_file(self.path)),
            leave_refused=self.leave_refused,
        )

    def compared(self) -> list[dict[str, str]]:
        with self.path.with_name(f"{self.path.stem}.compared.csv").open() as lines:
            return list(csv.DictReader(lines))


def app(user: str, users: int) -> list[dict[str, Any]]:
    """A made-up app's users: on a streak, past one, new; with points that last and points that do not."""
    chance, found = random.Random(7), []
    for number in range(users):
        streak = chance.choice([0, 1, 5, 40, 900])
        gone = timedelta(days=chance.choice([0, 1]) if streak else chance.choice([2, 60, 900]))
        lots = {f"2026-{month:02}-01": chance.randrange(1, 500) for month in chance.sample(range(4, 12), 3)}
        lots["never"] = chance.randrange(3) * 70_000
        row = {
            "user_id": f"{user}-{number}",
            "as_of": AS_OF.isoformat(),
            "streak": streak,
            "longest": max(1, streak) + chance.randrange(100),
            "last_date": (AS_OF - gone).isoformat(),
            "active_days": 1100,
            "balance": sum(lots.values()),
            "lots": lots,
            "freezes": chance.randrange(4),
        }
        found.append(
            row if number % 7 else {"user_id": row["user_id"], "as_of": AS_OF.isoformat(), "balance": 12}
        )
    return found


def ndjson(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in rows))
    return path


def event(user: str, day: date, key: str) -> dict[str, Any]:
    return {
        "user_id": user,
        "idempotency_key": key,
        "event_type": "CHECK_IN",
        "occurred_at": f"{day}T09:00:00Z",
    }


def shown(api: Site, user: str, as_of: date) -> tuple[int, int, int, int]:
    told = api.admin("GET", f"/v1/users/{user}?as_of={as_of}")[1]
    return tuple(
        told[name] for name in ("current_streak", "longest_streak", "active_days", "freezes_available")
    )


def test_an_app_moves_in_killed_twice_and_each_user_is_shown_as_told(
    api: Site, user: str, tmp_path: Path
) -> None:
    rows = app(user, effort(60, soak=3_000))
    mover = Mover(api, ndjson(tmp_path / "app.ndjson", rows))
    for dies_at in (3, 20):
        with pytest.raises(Killed):
            mover.run(Dying(api.engine.client("dynamodb"), dies_at, "dies after"))
    assert mover.run() == 0
    assert {each["outcome"] for each in mover.compared()} == {"same"}
    for row in rows[:20]:
        told = tuple(row.get(name, 0) for name in ("streak", "longest", "active_days", "freezes"))
        assert shown(api, row["user_id"], AS_OF) == told
        assert api.profile(row["user_id"])["balance"] <= row["balance"]  # some lots may have expired since
    ledger = LedgerStore(api.engine.client("dynamodb"), "RewardsLedger")
    heads = [ledger.newest(row["user_id"]) for row in rows]
    other = Mover(api, ndjson(tmp_path / "copy.ndjson", [*rows, rows[0]]))
    assert other.run() == 0
    assert [ledger.newest(row["user_id"]) for row in rows] == heads


@pytest.mark.parametrize("first", ["events", "position"])
def test_events_go_on_from_a_position_whichever_comes_first(
    api: Site, user: str, tmp_path: Path, first: str
) -> None:
    row = {"user_id": user, "as_of": "2026-03-10", "streak": 30, "longest": 90, "last_date": "2026-03-10"}
    row |= {"active_days": 400, "freezes": 2, "balance": 500}
    days = [AS_OF + timedelta(days=each) for each in (-1, 0, 1, 2, 5)]
    events = [event(user, day, f"k{day}") for day in days]
    mover = Mover(api, ndjson(tmp_path / "one.ndjson", [row]))
    if first == "position":
        assert mover.run() == 0
    api.send("operator", *events, groups=("streakline/admin",))
    if first == "events":
        assert mover.run() == 0
    assert shown(api, user, AS_OF + timedelta(days=5)) == (33, 90, 403, 0)
    assert api.profile(user)["total_bestie_points"] == 500 + 5 * 5
    before = AS_OF - timedelta(days=1)  # another system knows of that time
    assert shown(api, user, before) == (0, 0, 0, 0)
    assert (
        api.admin("GET", f"/v1/users/{user}/streak/explain?date={before}")[1]["reason"]
        == "before_first_activity"
    )
    assert api.admin("GET", f"/v1/users/{user}/streak/explain?date={AS_OF}")[1]["streak_length"] == 30
    assert mover.run() == 0
    assert {each["outcome"] for each in mover.compared()} == {"same, and moved on"}


def test_points_ever_earned_bring_their_level_along_and_cannot_be_spent(
    api: Site, user: str, tmp_path: Path
) -> None:
    row = {"user_id": user, "as_of": "2026-03-10", "balance": 500, "earned": 3000}
    mover = Mover(api, ndjson(tmp_path / "one.ndjson", [row]))
    assert mover.run() == 0
    for _ in range(2):
        shown_now = api.profile(user)
        assert (shown_now["total_bestie_points"], shown_now["balance"]) == (3000, 500)
        assert shown_now["level"]["name"] == "gold"
        assert {each["outcome"] for each in mover.compared()} == {"same"}
        assert api.admin("GET", f"/v1/users/{user}/balance")[1]["available"] == 500
    assert mover.run() == 0


def test_who_has_a_history_here_or_another_position_is_refused(api: Site, user: str, tmp_path: Path) -> None:
    api.send("operator", event(user, date(2026, 1, 5), "old"), groups=("streakline/admin",))
    row = {"user_id": user, "as_of": "2026-03-10", "streak": 3, "longest": 3, "last_date": "2026-03-10"}
    other = {**row, "user_id": f"{user}-b"}
    leave = True
    assert Mover(api, ndjson(tmp_path / "a.ndjson", [row, other]), leave).run() == 1
    kept = json.loads((tmp_path / "a.refused.ndjson").read_text())
    assert (kept["refused_line"], kept["refused_field"]) == (1, "user_id")
    assert "a history here since 2026-01-05" in kept["refused_reason"]
    again = Mover(api, ndjson(tmp_path / "b.ndjson", [{**other, "streak": 2}]))
    assert again.run() == 1
    assert shown(api, f"{user}-b", AS_OF)[0] == 3


@pytest.mark.parametrize("dies_at", range(1, 7))
@pytest.mark.parametrize("how", ["dies before", "dies after"])
def test_a_position_is_there_wholly_or_not_at_all(
    api: Site, user: str, tmp_path: Path, dies_at: int, how: str
) -> None:
    row = {"user_id": user, "as_of": "2026-03-10", "streak": 3, "longest": 4, "last_date": "2026-03-09"}
    row |= {"lots": {"2026-05-01": 10, "never": 7}, "freezes": 1}
    mover = Mover(api, ndjson(tmp_path / "one.ndjson", [row]))
    try:
        mover.run(Dying(api.engine.client("dynamodb"), dies_at, how))
    except Killed:
        ledger = LedgerStore(api.engine.client("dynamodb"), "RewardsLedger").newest(user)
        profile = api.profile(user)
        assert (profile["longest_streak"] == 0) == (ledger is None)
    assert mover.run() == 0
    # Whoever has looked at the profile has had the lot that is over expire: then the account has moved on.
    assert [each["outcome"] for each in mover.compared()] in (["same"], ["same, and moved on"])
    assert shown(api, user, AS_OF) == (3, 4, 4, 1)


def test_achievements_stay_with_their_instants_and_unknown_ones_are_refused(
    api: Site, user: str, tmp_path: Path
) -> None:
    told = api.admin("GET", f"/v1/users/{user}/achievements")[1]["achievements"]
    name = told[0]["name"]
    row = {
        "user_id": user,
        "as_of": "2026-03-10",
        "balance": 1,
        "achievements": {name: "2021-05-06T07:08:09Z"},
    }
    other = {**row, "user_id": f"{user}-b", "achievements": {"of_no_book": "2021-05-06T07:08:09Z"}}
    leave = True
    assert Mover(api, ndjson(tmp_path / "a.ndjson", [row, other]), leave).run() == 1
    kept = json.loads((tmp_path / "a.refused.ndjson").read_text())
    assert (kept["user_id"], kept["refused_field"]) == (f"{user}-b", "achievements")
    after = api.admin("GET", f"/v1/users/{user}/achievements")[1]["achievements"]
    (mine,) = (each for each in after if each["name"] == name)
    assert mine["achieved_at"] == "2021-05-06T07:08:09.000000Z"
