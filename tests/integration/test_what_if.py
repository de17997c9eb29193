"""What the lake predicts of another book is what the real handlers show after the same history under it."""

import copy
import json
import random
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from io import BytesIO
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adapters import book as book_store
from adapters.book import DOCUMENTS, shipped_document
from adapters.platform.items import decode_item, encode_item
from adapters.platform.objects import FolderObjects
from adapters.platform.tables import query_all
from analytics.lake.arrow import arrow_schema
from analytics.what_if.what_if import WhatIfQuestion, what_if
from rules.book.document import read_book
from rules.lake.entities import ENTITIES, rows_of
from rules.lake.valid_row import read_row
from tests.integration.test_expiry import BEGIN, KEYS, Shop
from tests.support.effort import effort
from tests.support.memory import forget
from tests.support.site import PRODUCERS, Site

KINDS = ("LESSON_COMPLETED", "CONTRIBUTION", "CHECK_IN")
ZONES = ("Europe/Berlin", "America/Lima", "Asia/Tokyo")
TABLES = {"BPEvents": "events", "RewardsLedger": "ledger", "UserStreaks": "streaks"}
KEY = {"BPEvents": "user_id", "RewardsLedger": "account_id", "UserStreaks": "user_id"}
NAMES = count()
Act = tuple[datetime, str, Any]


def some_book(chance: random.Random) -> dict[str, Any]:
    made = copy.deepcopy(shipped_document())
    for kind in KINDS:
        points = chance.choice((3, 7, 10))
        cap = chance.choice(({"points": points * 2, "per": "week"}, {"events": 2, "per": "day"}))
        made["event_types"][kind] |= {"points": points, "cap": cap, "keeps_streak": chance.random() < 0.7}
    since = BEGIN + timedelta(days=chance.randrange(4))
    until = since + timedelta(days=2)
    made["boosts"] = [{"since": since.isoformat(), "until": until.isoformat(), "factor": 2}]
    made["freezes"] = {
        "held_max": 2,
        "free_a_month": chance.choice((0, 1)),
        "price_points": chance.choice((4, 9)),
    }
    if chance.random() < 0.6:
        made["expiry"] = {"after_days": chance.choice((2, 4))}
    return made


class Life:
    """One user's acts through the doors, under one book that is in force from the beginning."""

    def __init__(self, api: Site, patch: pytest.MonkeyPatch, book: dict[str, Any]) -> None:
        self.shop = Shop(api, f"what-if-{next(NAMES)}-{next(KEYS)}", patch)
        self.entries: dict[int, str] = {}
        self.refused: list[str] = []
        dynamodb = api.engine.client("dynamodb")
        for each in dynamodb.scan(TableName="RuleBooks")["Items"]:
            dynamodb.delete_item(
                TableName="RuleBooks", Key={name: each[name] for name in ("book", "version")}
            )
        forget()
        self.shop.now = BEGIN
        status, told = api.admin("POST", "/v1/rules", {"book": book, "effective": "now"})
        assert status == 201, told

    def do(self, number: int, act: Act) -> bool:
        """Carry an act out; returns whether it was possible."""
        self.shop.now, what, said = act
        return bool(getattr(self, what)(number, said))

    def earn(self, number: int, sent: list[dict[str, Any]]) -> bool:
        events = [{**each, "user_id": self.shop.user} for each in sent]
        self.shop.api.send("server", *events, groups=(PRODUCERS,))
        return True

    def spend(self, number: int, points: int) -> bool:
        body = {"points": points, "reward_id": "mug", "idempotency_key": f"a{number}"}
        return self._noted(number, "redemption", *self.shop.ask("POST", "/redemptions", body))

    def freeze(self, number: int, _: None) -> bool:
        return self._noted(
            number, "freeze", *self.shop.ask("POST", "/freezes", {"idempotency_key": f"a{number}"})
        )

    def _noted(self, number: int, what: str, status: int, told: Any) -> bool:
        if status == 201:
            self.entries[number] = told["entry_id"]
        else:
            assert status == 409, told
            self.refused.append(what)
        return status == 201

    def give_back(self, number: int, which: int) -> bool:
        if (entry := self.entries.pop(which, None)) is None:
            return False
        status, told = self.shop.ask("POST", f"/redemptions/{entry}/reversal", {}, "streakline/fulfilment")
        assert status == 201, told
        return True

    # ---- what it shows

    def shown(self, now: datetime) -> dict[str, int]:
        self.shop.now = now
        self.shop.balance()
        told = self.shop.api.profile(self.shop.user)
        names = {"earned": "total_bestie_points", "balance": "balance", "shown": "current_streak"}
        names |= {"longest": "longest_streak", "active_days": "active_days"}
        return {ours: told[theirs] for ours, theirs in names.items()}

    def items(self, table: str) -> list[dict[str, Any]]:
        found = query_all(
            self.shop.api.engine.client("dynamodb"),
            TableName=table,
            KeyConditionExpression=f"{KEY.get(table, 'user_id')} = :user",
            ExpressionAttributeValues=encode_item({":user": self.shop.user}),
        )
        return [decode_item(each) for each in found]

    def into(self, folder: Path) -> FolderObjects:
        """Write the user's items, and the versions of the book, as curated files."""
        objects, rows = FolderObjects(folder), defaultdict[tuple[str, str], list[Any]](list)
        found = [(entity, each) for table, entity in TABLES.items() for each in self.items(table)]
        books = self.shop.api.engine.client("dynamodb").scan(TableName="RuleBooks")["Items"]
        found += [("rules", each) for each in map(decode_item, books) if each["book"] == DOCUMENTS]
        for entity, each in found:
            for row in rows_of(ENTITIES[entity], each, self.shop.now):
                read = read_row(json.dumps(row).encode(), ENTITIES[entity], row["dt"], row["hour"])
                rows[entity, row["dt"]].append(read)
        for (entity, day), some in rows.items():
            data = BytesIO()
            pq.write_table(pa.Table.from_pylist(some, arrow_schema(ENTITIES[entity])), data)
            objects.put(f"curated/{entity}/dt={day}/day.parquet", data.getvalue())
        return objects


def some_acts(chance: random.Random) -> Iterator[Act]:
    now, zone = BEGIN, chance.choice(ZONES)
    for number in range(26):
        now += timedelta(hours=chance.randrange(1, 14), minutes=chance.randrange(60))
        what = chance.choice(("earn",) * 6 + ("spend", "spend", "freeze", "give_back"))
        if what == "earn":
            if chance.random() < 0.1:
                zone = chance.choice(ZONES)
            late = chance.choice((0, 0, 0, 5, 30, 60))
            yield (
                now,
                what,
                [
                    event(f"a{number}-{n}", chance, max(BEGIN, now - timedelta(hours=late + n)), zone)
                    for n in range(3)
                ],
            )
        else:
            said = {
                "spend": chance.randrange(2, 40),
                "freeze": None,
                "give_back": chance.randrange(number + 1),
            }
            yield now, what, said[what]


def event(key: str, chance: random.Random, at: datetime, zone: str) -> dict[str, Any]:
    kind = chance.choice(KINDS)
    return {"idempotency_key": key, "event_type": kind, "occurred_at": at.isoformat(), "timezone": zone}


@pytest.mark.parametrize("seed", range(effort(2, soak=200)))
def test_the_prediction_is_what_a_replay_shows(
    api: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, seed: int
) -> None:
    monkeypatch.setattr(book_store, "FRESH_SECONDS", 0)
    chance = random.Random(seed)
    was, candidate = some_book(chance), some_book(chance)
    one = Life(api, monkeypatch, was)
    acts = [(number, act) for number, act in enumerate(some_acts(chance)) if one.do(number, act)]
    now = one.shop.now + timedelta(days=1)
    before, lake = one.shown(now), one.into(tmp_path)

    found = what_if(lake, WhatIfQuestion(read_book(candidate), now, since=BEGIN))
    again = Life(api, monkeypatch, candidate)
    for number, act in acts:
        again.do(number, act)
    (row,) = found.users.to_pylist()
    assert {name: row[f"{name}_before"] for name in before} == before
    after = again.shown(now)
    assert {name: row[f"{name}_after"] for name in after} == after
    assert [each.what for each in found.figures.impossible] == again.refused
    in_force = what_if(lake, WhatIfQuestion(read_book(was), now, since=BEGIN))
    (same,) = in_force.users.to_pylist()
    assert {name: same[f"{name}_after"] for name in before} == before
    assert not in_force.largest_changes


@pytest.mark.parametrize(("freezes", "zone"), [(0, "America/Lima"), (1, "America/Lima"), (0, "Asia/Tokyo")])
def test_a_streak_lives_by_the_user_s_own_date(
    api: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, freezes: int, zone: str
) -> None:
    monkeypatch.setattr(book_store, "FRESH_SECONDS", 0)
    book = copy.deepcopy(shipped_document()) | {"expiry": {"after_days": 400}}
    one = Life(api, monkeypatch, book)
    at = datetime(2027, 2, 6, 1, tzinfo=UTC)
    one.do(0, (at, "earn", [{**event("a", random.Random(1), at, zone), "event_type": "LESSON_COMPLETED"}]))
    for number in range(freezes):
        one.do(1 + number, (at, "freeze", None))
    for now in (at + timedelta(hours=hours) for hours in (20, 27, 35, 45, 51, 59)):
        shown, lake = one.shown(now), one.into(tmp_path)
        found = what_if(lake, WhatIfQuestion(read_book(copy.deepcopy(shipped_document())), now))
        (row,) = found.users.to_pylist()
        assert (row["shown_before"], row["shown_after"]) == (shown["shown"], shown["shown"]), now
