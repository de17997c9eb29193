"""Histories are taken into a system that is in use: checked first, killed twice, compared, twice (rule 20)."""

import csv
import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adapters.book_store import BookStore
from adapters.engagement.ledger_store import LedgerStore
from adapters.platform.aws import client
from adapters.platform.keyed_hash import KeyedHash
from adapters.privacy.tombstones import Tombstones, erasure_log_puts
from local.cloud.patience import Patience
from local.event_sources import from_purchases
from local.move_in.histories import HistoryFiles
from local.move_in.import_command import MarkStore, move_in
from local.row_files import digest_of_file
from local.verify import expect
from rules.days import stamp
from rules.engagement.ledger import EntryKind
from rules.privacy.tombstones import Act, ErasureLogEntry, user_subject
from tests.support.dynamodb_engine import SECRET
from tests.support.effort import effort
from tests.support.memory import forget
from tests.support.real_input import PURCHASES
from tests.support.site import Site

NOW = datetime(2026, 4, 20, 12, tzinfo=UTC)


class Killed(BaseException):
    """The process is gone."""


@dataclass
class Door:
    """The API as an admin calls it; it may die at a call, before or after it. live: happens meanwhile."""

    api: Site
    dies_at: int = 0
    before: bool = True
    live: Callable[[int], object] = field(default=lambda _: None)
    calls: int = 0
    lock: Any = field(default_factory=threading.Lock)

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        with self.lock:
            self.calls += 1
            is_dead = 0 < self.dies_at <= self.calls
            if is_dead and (self.before or self.calls > self.dies_at):
                raise Killed
            self.live(self.calls)
            told = self.api.admin(method, path, body)
            if is_dead:
                raise Killed
            return told


@dataclass
class Mover:
    """An operator's machine."""

    api: Site
    path: Path
    leave_refused: bool = False
    said: list[str] = field(default_factory=list)

    def run(self, door: Door | None = None) -> int:
        dynamodb = self.api.engine.client("dynamodb")

        def patience() -> Patience:
            self.api.settle()
            return Patience(0.0, say=lambda _: None)

        moving = HistoryFiles(
            door or Door(self.api),
            LedgerStore(dynamodb, "RewardsLedger"),
            BookStore(dynamodb, "RuleBooks").look(),
            NOW,
            patience,
            Tombstones(dynamodb, "Erasures", KeyedHash(lambda: client("secretsmanager"), SECRET)),
            pause_seconds=0,
        )
        marks = MarkStore(dynamodb, "IdempotencyKeys", digest_of_file(self.path))
        return move_in(self.path, moving, marks, leave_refused=self.leave_refused)

    def compared(self) -> list[dict[str, str]]:
        with self.path.with_name(f"{self.path.stem}.compared.csv").open() as lines:
            return list(csv.DictReader(lines))


def history(user: str, users: int = 3, events: int = 60) -> list[dict[str, Any]]:
    """Events of years ago, several a date, in the zones of two continents."""
    found = []
    for number in range(events):
        at = datetime(2016, 3, 1, 9, tzinfo=UTC) + timedelta(days=number * 5 // 3, hours=number % 5)
        zone = ("Europe/Berlin", "America/New_York")[number % users % 2]
        kind = ("LESSON_COMPLETED", "CHECK_IN", "PURCHASE_COMPLETED")[number % 3]
        found.append(
            {
                "user_id": f"{user}-{number % users}",
                "event_type": kind,
                "occurred_at": at.isoformat().replace("+00:00", "Z"),
                "timezone": zone,
                "idempotency_key": f"k{number}",
            }
        )
    return found


def ndjson(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in rows))
    return path


def shown(api: Site, rows: Sequence[dict[str, Any]], as_of: date) -> dict[str, tuple[int, ...]]:
    names = ("active_days", "longest_streak", "current_streak", "total_bestie_points")
    users = {each["user_id"] for each in rows}
    found = {user: api.admin("GET", f"/v1/users/{user}?as_of={as_of}")[1] for user in users}
    return {user: tuple(each[name] for name in names) for user, each in found.items()}


def direct(rows: Sequence[dict[str, Any]], as_of: date) -> dict[str, tuple[int, ...]]:
    """By brute force over the file alone."""
    return {
        user: (each.active_days, each.longest_streak, each.current_streak, each.total_bestie_points)
        for user, each in expect(rows, as_of).items()
    }


@pytest.mark.parametrize("kind", [".ndjson", ".csv", ".parquet"])
def test_a_history_of_years_ago_counts_as_if_it_had_come_in_time(
    api: Site, user: str, tmp_path: Path, kind: str
) -> None:
    rows, path = history(user), tmp_path / f"old{kind}"
    if kind == ".csv":
        with path.open("w", newline="") as out:
            lines = csv.DictWriter(out, list(rows[0]))
            lines.writeheader()
            lines.writerows(rows)
    elif kind == ".parquet":
        told = [{**each, "occurred_at": datetime.fromisoformat(each["occurred_at"])} for each in rows]
        pq.write_table(pa.Table.from_pylist(told), path)
    else:
        ndjson(path, rows)
    mover = Mover(api, path)
    assert mover.run() == 0
    at = date(2016, 12, 1)
    assert shown(api, rows, at) == direct(rows, at)
    assert {each["outcome"] for each in mover.compared()} == {"same"}
    assert len(mover.compared()) == len(rows)


@pytest.mark.parametrize("before", [False, True])
def test_it_is_killed_twice_while_events_come_in_and_a_second_import_changes_nothing(
    api: Site, user: str, tmp_path: Path, before: bool
) -> None:
    rows = history(user, events=effort(150, soak=2000))
    mover = Mover(api, ndjson(tmp_path / "old.ndjson", rows))
    live = [
        {**each, "idempotency_key": f"live{number}", "occurred_at": f"2026-03-{number + 1:02}T10:00:00Z"}
        for number, each in enumerate(rows[:9])
    ]

    def meanwhile(call: int) -> None:
        if call % 2:
            api.admin("POST", "/v1/events", {"events": [live[call % 9]]})
            api.settle()

    for dies_at in (1, 2):
        with pytest.raises(Killed):
            mover.run(Door(api, dies_at, before, meanwhile))
    assert mover.run(Door(api, live=meanwhile)) == 0
    assert api.admin("POST", "/v1/events", {"events": live})[0] == 202
    api.settle()
    at = date(2026, 3, 10)
    assert shown(api, rows, at) == direct([*rows, *live], at)
    ledger = LedgerStore(api.engine.client("dynamodb"), "RewardsLedger")
    users = sorted({each["user_id"] for each in rows})
    heads = [ledger.newest(each) for each in users]
    again = Door(api)
    assert mover.run(again) == 0
    assert again.calls == 0
    other = Mover(api, ndjson(tmp_path / "copy.ndjson", [*rows, rows[0]]))  # another file: nothing is noted
    assert other.run() == 0
    assert [ledger.newest(each) for each in users] == heads
    for each in users:
        earned = [e.draft.event_id for e in ledger.after(each, "0")[0] if e.draft.kind is EntryKind.EARN]
        assert len(set(earned)) == len(earned)


def test_all_lines_are_checked_first_and_the_refused_ones_can_be_mended(
    api: Site, user: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = history(user, events=12)
    bad = [dict(each) for each in rows]
    bad[1]["occurred_at"] = "2016-03-01 09:00:00"
    bad[2]["event_type"] = "JUGGLED"
    bad[3]["timezone"] = "Europe/Atlantis"
    bad[4]["points"] = 500
    del bad[5]["user_id"]
    bad[6]["occurred_at"] = "1969-12-31T23:00:00Z"
    path = ndjson(tmp_path / "old.ndjson", bad)
    with path.open("a") as out:
        out.write("{no json\n")
    door = Door(api)
    with pytest.raises(RuntimeError, match="nothing is taken in"):
        Mover(api, path).run(door)
    assert door.calls == 0
    kept = path.with_name("old.refused.ndjson")
    told = [json.loads(line) for line in kept.read_text().splitlines()]
    assert [(each["refused_line"], each["refused_field"]) for each in told] == [
        (2, "occurred_at"),
        (3, "event_type"),
        (4, "timezone"),
        (5, "body"),
        (6, "user_id"),
        (7, "occurred_at"),
        (13, "line"),
    ]
    assert "line 3: event_type JUGGLED is in no book" in capsys.readouterr().out
    leave = Mover(api, path, True)
    assert leave.run() == 7
    mended = [{**each, **row} for each, row in zip(told[:6], rows[1:7], strict=True)]
    for each in mended:
        each.pop("points", None)
    assert Mover(api, ndjson(tmp_path / "mended.ndjson", mended)).run() == 0
    at = date(2016, 12, 1)
    assert shown(api, rows, at) == direct(rows, at)


def test_an_erased_person_does_not_come_back(api: Site, user: str, tmp_path: Path) -> None:
    rows = history(user, users=2, events=20)
    assert api.admin("DELETE", f"/v1/users/{user}-0")[0] == 202
    leave = True
    assert Mover(api, ndjson(tmp_path / "old.ndjson", rows), leave).run() == 10
    kept = [json.loads(line) for line in (tmp_path / "old.refused.ndjson").read_text().splitlines()]
    assert {(each["user_id"], each["refused_field"]) for each in kept} == {(f"{user}-0", "user_id")}
    ledger = LedgerStore(api.engine.client("dynamodb"), "RewardsLedger")
    assert ledger.newest(f"{user}-0") is None
    assert ledger.newest(f"{user}-1") is not None


def test_who_comes_anew_brings_nothing_of_before(api: Site, user: str, tmp_path: Path) -> None:
    """The same file with the same keys: its events are of before the erasure, whenever they are sent."""
    rows = history(user, users=1, events=6)
    name = rows[0]["user_id"]
    leave = True
    path = ndjson(tmp_path / "old.ndjson", rows)
    assert Mover(api, path).run() == 0
    assert api.admin("DELETE", f"/v1/users/{name}")[0] == 202
    assert Mover(api, path, leave).run() == len(rows)
    dynamodb = api.engine.client("dynamodb")
    digest = Tombstones(dynamodb, "Erasures", KeyedHash(lambda: client("secretsmanager"), SECRET)).digest(
        user_subject(name)
    )
    lifted = ErasureLogEntry(stamp(datetime.now(UTC)), digest, Act.LIFTED, "e")
    dynamodb.transact_write_items(TransactItems=erasure_log_puts("Erasures", [lifted]))
    forget()
    assert Mover(api, ndjson(tmp_path / "copy.ndjson", [*rows, rows[0]]), leave).run() == len(rows) + 1
    kept = (tmp_path / "copy.refused.ndjson").read_text().splitlines()
    assert {json.loads(each)["refused_reason"] for each in kept} == {"was erased"}


def test_customers_purchases_of_the_nineties_are_their_histories(api: Site, tmp_path: Path) -> None:
    customers = effort(80, soak=100_000)
    bodies = [each for each in from_purchases(PURCHASES) if int(each["user_id"][-5:]) <= customers]
    mover = Mover(api, ndjson(tmp_path / "cdnow.ndjson", bodies))
    assert mover.run() == 0
    at = date(1998, 7, 1)
    assert shown(api, bodies, at) == direct(bodies, at)
    assert {each["outcome"] for each in mover.compared()} == {"same"}
