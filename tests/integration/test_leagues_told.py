"""league.closed: each member is notified once that the week's league has closed, whoever closes it, and when."""

from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from adapters.outgoing.endpoint_store import EndpointStore
from adapters.outgoing.lane_store import LaneStore
from adapters.outgoing.outbox_store import OutboxStore
from adapters.platform.tables import scan_all
from adapters.privacy.tombstones import subject_of
from processors.outgoing.notifications import NoticeSteps, NotificationWriter, _profile_of
from rules.days import stamp
from rules.outgoing.notices import Endpoint, NoticeType
from rules.privacy.tombstones import user_subject
from rules.user_ids import user_holder
from tests.support.engine import Engine
from tests.support.league_town import CLOSED_W48, FOREVER, IN_W48, IN_W49, W48, W49, LeagueTown, player
from tests.support.message_schema import problems
from tests.support.template import table_definition

WANTED = frozenset({NoticeType.LEAGUE_CLOSED})
SCORES = {"ann": 90, "bob": 80, "cid": 0, "dan": 70}


class ToldTown(LeagueTown):
    """Leagues whose places go through a stream to an app's endpoint."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for table in ("Notifications", "WebhookEndpoints"):
            self.dynamodb.create_table(**table_definition(table, self.table(table)))
        self.stream = self.streamed()

    def listen(self, types: frozenset[NoticeType] = WANTED) -> None:
        endpoint = Endpoint("app", "acme", "https://a.example.com/", types=types)
        EndpointStore(self.dynamodb, self.table("WebhookEndpoints")).put(endpoint)

    def tell(self, now: datetime) -> None:
        """Hand the stream's records to a new process, each of them twice."""
        books: Any = SimpleNamespace(daily_terms=lambda: self.terms)  # all that is asked of it
        profiles = self.table("UserStreaks")
        steps = NoticeSteps(books=books, profile_of=lambda user: _profile_of(self.dynamodb, profiles, user))
        endpoints = EndpointStore(self.dynamodb, self.table("WebhookEndpoints"))
        store = OutboxStore(self.dynamodb, self.table("Notifications"))
        writer = NotificationWriter(self.dynamodb, profiles, store, endpoints, steps)
        twice = [each for each in self.stream.records for _ in range(2)]
        outcome = writer.write(twice, now)
        assert (outcome.again, outcome.poison) == ([], [])

    def told(self, user: str) -> list[dict[str, Any]]:
        lanes = LaneStore(self.dynamodb, self.table("Notifications"))
        found = list(lanes.log(user_holder(user), 0))
        assert [problems(each.body) for each in found] == [[]] * len(found)
        assert {each.notice.type for each in found} <= WANTED
        return [dict(each.notice.data) for each in found]

    def close(self, now: datetime = CLOSED_W48) -> None:
        self.process(self.stream).close_due(now, FOREVER)

    def play_all(self) -> None:
        self.play(W48, SCORES, IN_W48, self.process(self.stream))


@pytest.fixture
def town(engine: Engine) -> ToldTown:
    made = ToldTown(engine.client("dynamodb"))
    made.listen()
    return made


def test_each_member_is_told_once_however_often_the_league_is_closed(town: ToldTown) -> None:
    town.play_all()
    town.tell(CLOSED_W48)
    assert town.told("ann") == [], "the league is open"
    for late in range(3):
        town.close(CLOSED_W48 + timedelta(days=late))
        town.tell(CLOSED_W48 + timedelta(days=late))
    (told,) = town.told("ann")
    shown = {name: value for name, value in told.items() if name != "profile"}
    assert shown == {
        "week": "2026-W48",
        "first": "2026-11-23",
        "last": "2026-11-29",
        "division": "bronze",
        "rank": 1,
        "points": 90,
        "zone": "up",
        "members": 3,
        "division_after": "silver",
        "closed_at": "2026-11-30T18:00:00.000000Z",
    }
    assert told["profile"]["user_id"] == "ann"
    assert [[each["rank"] for each in town.told(user)] for user in SCORES] == [[1], [2], [], [3]]


def test_who_plays_on_is_told_by_the_own_joining_and_not_again(town: ToldTown) -> None:
    town.play_all()
    town.play(W49, {"bob": 5}, IN_W49, town.process(town.stream))
    town.tell(IN_W49)
    assert [(each["week"], each["rank"]) for each in town.told("bob")] == [("2026-W48", 2)]
    town.close(IN_W49)
    town.tell(IN_W49)
    week = timedelta(days=7)
    town.close(CLOSED_W48 + week)
    town.tell(CLOSED_W48 + week)
    assert [each["week"] for each in town.told("bob")] == ["2026-W48", "2026-W49"]
    assert [each["week"] for each in town.told("dan")] == ["2026-W48"]


def test_who_is_under_review_has_left_or_is_gone_is_not_told(town: ToldTown) -> None:
    town.play_all()
    closing = stamp(IN_W48 + timedelta(days=1))
    town.put([player("ann", {W48: 90}, tz_review=True, review_since=closing)])
    town.process(town.stream).take_part("bob", IN_W48, takes_part=False)
    town.close()
    town.dynamodb.delete_item(TableName=town.table("UserStreaks"), Key={"user_id": {"S": "dan"}})
    town.tell(CLOSED_W48)
    assert [town.told(user) for user in SCORES] == [[]] * 4
    images = [each["dynamodb"]["NewImage"] for each in town.stream.records]
    assert {subject_of(each) for each in images} == {user_subject(user) for user in ("ann", "bob", "dan")}


def test_a_new_endpoint_hears_of_no_old_week(town: ToldTown) -> None:
    town.play_all()
    town.close()
    for days, count in ((40, 0), (17, 1)):
        town.tell(CLOSED_W48 + timedelta(days=days))
        assert len(town.told("ann")) == count


def test_where_nobody_asks_for_it_nothing_is_written(town: ToldTown) -> None:
    town.listen(frozenset({NoticeType.STREAK_LOST}))
    town.play_all()
    town.close()
    town.tell(CLOSED_W48)
    assert list(scan_all(town.dynamodb, TableName=town.table("Notifications"))) == []
