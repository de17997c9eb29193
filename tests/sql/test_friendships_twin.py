"""Pairs of friends: what the mart says of each is what a plain reading of both users' wishes says (rule 26).

They act on the real table, whose stream goes through publisher and curation.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from adapters.engagement.friend_store import FriendStore
from adapters.platform.items import decode_item
from adapters.platform.publishing import DeliveryStream
from adapters.privacy.erasers import partition_eraser
from adapters.privacy.stores import TieEraser
from analytics.curation.curate import curate
from analytics.lake.layout import Partition
from analytics.warehouse.build import build
from analytics.warehouse.models import check_model, models
from processors.publisher import Publisher
from rules.days import stamp
from rules.engagement.friends import Consent, FriendsRefused, befriend, block, part, unblock
from rules.lake.entities import FRIENDSHIPS
from rules.lake.packed_records import HEADER
from rules.privacy.erasures import Person
from tests.sql.conftest import Lake, family
from tests.support.dynamodb_engine import Engine, running
from tests.support.effort import effort
from tests.support.firehose import Firehose
from tests.support.pipeline import Stream

MART = "marts.friendships"
PEOPLE = ("ann", "bob", "cem", "dee", "eve")
START = datetime(2026, 1, 1, 12, tzinfo=UTC)


@dataclass
class Pair:
    """A pair by a plain reading."""

    began_on: date
    asked_by: str | None
    ended_on: date | None = None
    ended_by: str | None = None
    ending: str | None = None


@dataclass
class Wishes:
    """Who has asked and blocked whom, and what pairs this has led to."""

    asked: set[tuple[str, str]] = field(default_factory=set)
    blocked: set[tuple[str, str]] = field(default_factory=set)
    pairs: list[tuple[frozenset[str], Pair]] = field(default_factory=list)

    def live(self, one: str, other: str) -> Pair | None:
        return next((p for who, p in self.pairs if who == {one, other} and not p.ended_on), None)

    def befriend(self, one: str, other: str, day: date, *, by_server: bool) -> None:
        if self.live(one, other) or (one, other) in self.blocked:
            return
        if not by_server and (other, one) not in self.asked:
            self.asked.add((one, other))
        elif (other, one) not in self.blocked:
            self.asked -= {(one, other), (other, one)}
            self.pairs.append((frozenset((one, other)), Pair(day, None if by_server else other)))

    def end(self, one: str, other: str, day: date, ending: str) -> None:
        if pair := self.live(one, other):
            pair.ended_on, pair.ended_by, pair.ending = day, one, ending
        if (one, other) not in self.blocked:
            self.asked -= {(one, other), (other, one)}
        if ending == "block":
            self.blocked.add((one, other))

    def unblock(self, one: str, other: str) -> None:
        if (one, other) in self.blocked:
            self.blocked.discard((one, other))
            self.asked.discard((other, one))

    def erase(self, user: str, day: date) -> None:
        for who, pair in self.pairs:
            if user in who and not pair.ended_on:
                pair.ended_on, pair.ending = day, "erasure"

    def rows(self, gone: str) -> list[tuple[Any, ...]]:
        """The mart's rows, without the name of who was erased."""

        def seen(name: str | None) -> str | None:
            return None if name == gone else name

        found = []
        for who, pair in self.pairs:
            one, other = [*sorted(who - {gone}), None][:2]
            # Who was erased had a row that said why: it is gone.
            ending = pair.ending if pair.ended_by != gone else None
            dates = pair.began_on, pair.ended_on
            found.append((one, other, *dates, seen(pair.asked_by), seen(pair.ended_by), ending))
        return sorted(found, key=repr)


COLUMNS = "user_id, friend_id, began_on, ended_on, asked_by, ended_by, ending"


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with running() as started:
        yield started


def act(chance: random.Random, store: FriendStore, wishes: Wishes, now: datetime) -> None:
    """Let somebody wish something of somebody."""
    one, other = chance.sample(PEOPLE, 2)
    kind = chance.choice(("ask", "ask", "ask", "vouch", "part", "block", "unblock"))
    day = now.date()
    try:
        if kind in ("ask", "vouch"):
            since = now - timedelta(days=chance.randrange(40)) if kind == "vouch" else now
            consent = Consent(now, 50, uuid4().hex, kind == "vouch", since=stamp(since))
            wishes.befriend(one, other, since.date(), by_server=kind == "vouch")
            store.change(one, other, lambda mine, theirs: befriend(mine, theirs, consent), now)
        elif kind == "unblock":
            wishes.unblock(one, other)
            store.change(one, other, lambda mine, theirs: unblock(mine, theirs, now), now)
        else:
            wishes.end(one, other, day, "parting" if kind == "part" else "block")
            change = part if kind == "part" else block
            store.change(one, other, lambda mine, theirs: change(mine, theirs, now), now)
    except FriendsRefused as refused:
        assert refused.code == "blocked"


def publish(stream: Stream, lake: Lake) -> list[Partition]:
    """Bring what the stream has into the lake; returns where it lies."""
    box, places = Firehose(), set()
    publisher = Publisher({"Friends": [(FRIENDSHIPS, DeliveryStream(box, "d"))]})
    while records := stream.read():
        outcome = publisher.publish([*records])
        assert (outcome.poison, outcome.again) == ([], [])
    for data in box.taken:
        head = HEADER.match(data)
        assert head
        place = Partition("friendships", head[0][7:17].decode(), head[0][27:29].decode())
        key = f"raw/friendships/arrived=2026-03-01/dt={place.dt}/hour={place.hour}/{uuid4()}"
        lake.objects.put(key, data)
        places.add(place)
    for place in sorted(places, key=str):
        curate(lake.objects, place)
    return sorted(places, key=str)


def rows(warehouse: Any) -> list[tuple[Any, ...]]:
    found = warehouse.rows(f"SELECT {COLUMNS} FROM {MART}")
    return sorted((tuple(row.values()) for row in found), key=repr)


def test_the_mart_has_the_pairs_that_are_live_and_those_that_were(engine: Engine, lake: Lake) -> None:
    chance, wishes, now = random.Random(3), Wishes(), START
    dynamodb, stream = engine.client("dynamodb"), Stream(engine, "Friends")
    store = FriendStore(dynamodb, "Friends")
    for night in range(2):
        for _ in range(effort(60, soak=300)):
            now += timedelta(hours=chance.randrange(1, 40))
            act(chance, store, wishes, now)
        places = publish(stream, lake)
        lake.load(f"night{night}", places)
    own, marks = (
        partition_eraser(dynamodb, "Friends", ("user_id", "friend_id"), of)
        for of in (lambda _: ["cem"], lambda _: ["cem#kept"])
    )
    eraser = TieEraser(dynamodb, "Friends", own.key, own.items, marks.items, now)
    wishes.erase("cem", now.date())
    eraser.remove(eraser.find(Person("digest", "cem")))
    lake.load("erased", publish(stream, lake))
    items = list(map(decode_item, dynamodb.scan(TableName="Friends")["Items"]))
    assert not [each for each in items if "cem" in each.values() or "cem#kept" in each.values()]
    live = {(each["user_id"], each["friend_id"]) for each in items if each.get("state") == "friend"}
    assert live
    assert live == {(friend, user) for user, friend in live}
    kinds = {pair.ending for _, pair in wishes.pairs}
    assert kinds == {None, "parting", "block", "erasure"}, "the story has all of them"
    for warehouse in lake.warehouses:
        build(warehouse, family(MART))
        assert rows(warehouse) == wishes.rows("")
        assert check_model(warehouse, models()[MART]) == []
        # As the night lets rows of who was erased leave the warehouse (analytics/forgetting).
        warehouse.run(["DELETE FROM lake.friendships WHERE user_id = 'cem'"])
        build(warehouse, family(MART), full=True)
        assert rows(warehouse) == wishes.rows("cem")
        pairs = warehouse.rows(f"SELECT user_id, friend_id FROM {MART} WHERE ended_on IS NULL")
        assert {(row["user_id"], row["friend_id"]) for row in pairs} == {
            pair for pair in live if pair[0] < pair[1]
        }
        assert check_model(warehouse, models()[MART]) == []
