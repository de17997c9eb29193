"""Outgoing webhooks get there: dead, slow, moody and closed endpoints, with a clock that is moved."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from adapters.engagement.account_items import profile_attributes
from adapters.outgoing.endpoint_store import ENDED, EndpointStore
from adapters.outgoing.lane_store import LaneStore, WorkerLeases
from adapters.outgoing.outbox_store import LANE_SHARDS, OutboxStore
from adapters.outgoing.transports import HookSender, SendAnswer
from adapters.platform.items import encode_item
from adapters.platform.queues import FailureQueue
from processors.outgoing.delivery import GONE_REASON, Deliverer
from processors.outgoing.notifications import NotificationWriter
from rules.days import stamp
from rules.engagement.account_state import Profile
from rules.engagement.ledger import Head
from rules.engagement.streak import Cover, fold
from rules.outgoing.derivation import profile_view
from rules.outgoing.notices import Endpoint, Notification
from rules.outgoing.webhooks import Target
from tests.support.engine import Engine, lean_client
from tests.support.hook_receiver import receiver

START = datetime(2026, 3, 2, 12, tzinfo=UTC)
DAY = timedelta(days=1)


@dataclass
class World:
    """Users whose profiles change, endpoints that answer as they like, and a clock that is moved."""

    dynamodb: Any
    now: datetime = START
    profiles: dict[str, Profile] = field(default_factory=dict)
    mood: dict[str, Callable[[Notification], SendAnswer]] = field(default_factory=dict)
    got: dict[str, list[Notification]] = field(default_factory=dict)
    calls: dict[str, int] = field(default_factory=dict)
    kept: list[Any] = field(default_factory=list)
    woken: set[tuple[str, int]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.endpoints = EndpointStore(self.dynamodb, "WebhookEndpoints")
        self.teller = NotificationWriter(
            self.dynamodb, "UserStreaks", OutboxStore(self.dynamodb, "Notifications"), self.endpoints
        )
        self.lanes = LaneStore(self.dynamodb, "Notifications")
        sqs = SimpleNamespace(
            send_message=lambda **message: self.kept.append(json.loads(message["MessageBody"]))
        )
        self.deliverer = Deliverer(
            self.endpoints,
            self.lanes,
            WorkerLeases(self.dynamodb, "Notifications"),
            self._send,
            FailureQueue(lambda: sqs, "failures"),
            lambda: self.now,
            4,
        )

    def open(
        self, name: str, mood: Callable[[Notification], SendAnswer] | None = None, **more: Any
    ) -> Endpoint:
        made = Endpoint(name, "acme", f"https://{name}.example.com/", created_at=stamp(self.now), **more)
        self.endpoints.put(made)
        self.endpoints._refresh.end()
        self.mood[name] = mood or (lambda _: SendAnswer(200))
        self.got[name] = []
        return made

    def _send(self, endpoint: Endpoint, notification: Notification, _now: datetime) -> SendAnswer:
        name = endpoint.endpoint_id
        self.calls[name] = self.calls.get(name, 0) + 1
        answer = self.mood[name](notification)
        if answer.is_delivered:
            self.got[name].append(notification)
        return answer

    def change(self, user: str, **changes: Any) -> None:
        profile = self.profiles.get(user, Profile(user))
        changed = replace(profile, version=profile.version + 1, updated_at=stamp(self.now), **changes)
        self.profiles[user] = changed
        image = encode_item(profile_attributes(changed))
        self.dynamodb.put_item(TableName="UserStreaks", Item=image)
        number = str(len(self.calls) + changed.version)
        record = {"eventName": "MODIFY", "dynamodb": {"NewImage": image, "SequenceNumber": number}}
        outcome = self.teller.write([record, record], self.now)  # streams repeat themselves
        assert (outcome.again, outcome.poison) == ([], [])
        self.woken |= outcome.shares

    def earn(self, user: str, points: int = 5) -> None:
        profile = self.profiles.get(user, Profile(user))
        total = profile.total_points + points
        self.change(user, total_points=total, head=Head(stamp(self.now), profile.version, total))

    def act(self, user: str, *days: int) -> None:
        dates = {START.date() + day * DAY for day in days}
        self.change(user, streak=fold(dates, Cover()))

    def deliver(self) -> None:
        """Serve whoever was woken."""
        for endpoint_id, share in sorted(self.woken):
            self.deliverer.run(endpoint_id, share, lambda: False)
        self.woken.clear()

    def minute(self, deliver: Callable[[], None] | None = None) -> None:
        """What the schedule does: time alone, then all that is due."""
        self.woken |= self.teller.sweep(self.now, lambda: False)
        places = ((name, share) for name in self.got for share in range(LANE_SHARDS))
        self.woken |= {each for each in places if self.lanes.due(*each, self.now, limit=1)}
        (deliver or self.deliver)()

    def wait(self, some: timedelta, step: timedelta = timedelta(minutes=10)) -> None:
        until = self.now + some
        while self.now < until:
            self.now = min(until, self.now + step)
            self.minute()

    def serve(self) -> None:
        """Let a function serve each share that was woken, side by side. The pauses of each move the clock."""
        began, ended = self.now, self.now
        for endpoint_id, share in sorted(self.woken):
            self.now = began
            self.deliverer.serve(
                endpoint_id, share, lambda: self.now >= began + timedelta(seconds=85), self._pause
            )
            ended = max(ended, self.now)
        self.now = ended
        self.woken.clear()

    def behind(self, endpoint_id: str) -> int:
        """How many users' notifications wait."""
        return sum(self.lanes.get(user, endpoint_id) is not None for user in self.profiles)

    def waiting(self, endpoint_id: str) -> int:
        """How many notifications wait."""
        lanes = [self.lanes.get(user, endpoint_id) for user in self.profiles]
        return sum(lane.newest - lane.delivered for lane in lanes if lane)

    def _pause(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def numbers(self, name: str, user: str) -> list[int]:
        return [each.number for each in self.got[name] if each.holder == user]


@pytest.fixture
def world(engine: Engine) -> Iterator[World]:
    dynamodb = lean_client(engine, "dynamodb")
    for table, keys in (
        ("WebhookEndpoints", ("registry", "endpoint_id")),
        ("Notifications", ("holder", "place")),
        ("UserStreaks", ("user_id",)),
    ):
        for each in dynamodb.scan(TableName=table)["Items"]:
            dynamodb.delete_item(TableName=table, Key={name: each[name] for name in keys})
    yield World(dynamodb)


def users(count: int) -> list[str]:
    return [f"user{number}" for number in range(count)]


def folded(found: list[Notification], user: str) -> dict[str, Any]:
    known: dict[str, Any] = {}
    for each in found:
        if each.holder == user:
            known |= each.notice.data["profile"]
    return known


def refusing(_: Notification) -> SendAnswer:
    return SendAnswer(503, "HTTP 503")


def test_a_change_arrives_at_once_and_only_once(world: World) -> None:
    world.open("shop")
    world.earn("ann")
    world.deliver()
    (got,) = world.got["shop"]
    assert (got.notice.type, got.number, got.notice.data["change"]) == ("points.changed", 1, 5)
    world.wait(timedelta(hours=1))
    assert len(world.got["shop"]) == 1
    assert (
        world.dynamodb.query(
            TableName="Notifications",
            KeyConditionExpression="holder = :ann AND begins_with(place, :to)",
            ExpressionAttributeValues=encode_item({":ann": "ann", ":to": "to/"}),
        )["Items"]
        == []
    ), "a lane in which nothing waits is gone"


def test_an_endpoint_that_is_dead_for_three_days_delays_no_other_and_gets_everything_in_order(
    world: World,
) -> None:
    world.open("alive")
    world.open("dead", refusing)
    for round_number in range(1, 4):
        for user in users(6):
            world.earn(user)
        world.deliver()
        assert len(world.got["alive"]) == 6 * round_number, "at once, whatever the other does"
        world.wait(timedelta(hours=24), timedelta(hours=2))
    assert world.now - START == timedelta(days=3)
    assert world.got["dead"] == []
    world.mood["dead"] = world.mood["alive"]
    world.wait(timedelta(hours=2), timedelta(minutes=20))
    for user in users(6):
        assert world.numbers("dead", user) == world.numbers("alive", user) == [1, 2, 3]
    assert {each.message_id for each in world.got["dead"]} == {each.message_id for each in world.got["alive"]}
    assert world.kept == []


def test_an_endpoint_that_takes_nothing_is_asked_with_one_user_of_each_share_an_hour(world: World) -> None:
    world.open("dead", refusing)
    for user in users(32):
        world.earn(user)
    world.deliver()
    world.wait(timedelta(hours=4), timedelta(minutes=30))
    before = world.calls["dead"]
    world.wait(timedelta(hours=6), timedelta(minutes=30))
    assert world.calls["dead"] - before <= LANE_SHARDS * 6
    world.mood["dead"] = lambda _: SendAnswer(200)
    world.wait(timedelta(hours=2), timedelta(minutes=30))
    assert len(world.got["dead"]) == 32


def test_a_slow_one_delays_no_other_and_gets_everything_in_order(world: World) -> None:
    def slowly(_: Notification) -> SendAnswer:
        world.now += timedelta(seconds=15)
        return SendAnswer(200)

    world.open("slow", slowly)
    world.open("alive")
    world.deliverer = replace(world.deliverer, writers=1)
    for _ in range(3):
        for user in users(6):
            world.earn(user)
    shares = sorted(world.woken)
    for each in (one for one in shares if one[0] == "alive"):
        world.deliverer.run(*each, lambda: False)
    assert len(world.got["alive"]) == 18
    for _ in range(20):  # a function has two minutes, and gives back what it has not come to
        for each in (one for one in shares if one[0] == "slow"):
            until = world.now + timedelta(seconds=85)
            world.deliverer.run(*each, lambda until=until: world.now >= until)  # type: ignore[misc]
    for user in users(6):
        assert world.numbers("slow", user) == [1, 2, 3]


def test_what_is_refused_of_one_user_delays_no_other_user_and_is_kept_after_three_days(world: World) -> None:
    world.open("picky", lambda each: SendAnswer(400 if (each.holder, each.number) == ("user0", 2) else 200))
    for _ in range(3):
        for user in users(5):
            world.earn(user)
        world.deliver()
    assert [world.numbers("picky", user) for user in users(5)] == [[1], *[[1, 2, 3]] * 4]
    world.wait(timedelta(days=3), timedelta(hours=1))
    assert (world.numbers("picky", "user0"), world.kept) == ([1], [])
    world.wait(timedelta(hours=8), timedelta(hours=1))
    assert world.numbers("picky", "user0") == [1, 3], "what comes after it goes on"
    (kept,) = world.kept
    assert (kept["consumer"], kept["record"]) == (
        "deliveries",
        {"endpoint_id": "picky", "user_id": "user0", "number": 2},
    )


@pytest.mark.parametrize("seed", range(3))
def test_a_listener_that_fails_now_and_then_has_everything_soon_after_it_is_sound(
    world: World, seed: int
) -> None:
    """Over HTTP: 600 changes of 30 users in a minute; it refuses 15 % of all attempts, for three minutes."""
    randomness, sender = Random(seed), HookSender(is_allowed=lambda _: True)
    with receiver() as listener:
        listener.answer = lambda _: 500 if randomness.random() < 0.15 else 204
        target = Target(False, "127.0.0.1", listener.port, "/")
        world.open("shop", lambda each: sender.post(target, {}, each.body))
        for second in range(60):
            world.now = START + timedelta(seconds=second)
            for _ in range(10):
                world.earn(f"user{randomness.randrange(30)}")
            world.deliver()
        at_end, waits = world.behind("shop"), world.waiting("shop")
        for minute in range(1, 4):
            world.now = max(world.now, START + timedelta(minutes=minute))
            world.minute(world.serve)
        listener.answer = lambda _: 204
        sound_at, refused = world.now, world.calls["shop"] - len(world.got["shop"])
        behind = world.behind("shop")
        while world.behind("shop") and world.now < sound_at + timedelta(hours=2):
            world.now += timedelta(minutes=1)
            world.minute(world.serve)
        print(
            f"refused {refused}; at the traffic's end {waits} notifications of {at_end} users waited, two minutes"
            f" later those of {behind} users, and none {world.now - sound_at} after it was sound"
        )
    assert refused > 60
    for user in users(30):
        numbers = world.numbers("shop", user)
        assert sorted(set(numbers)) == list(range(1, numbers[-1] + 1)), "nothing is lost"
        assert folded(world.got["shop"], user) == profile_view(world.profiles[user], world.now)
    assert (world.endpoints.get("shop").disabled, world.kept) == ("", [])


def test_410_ends_an_endpoint_until_an_admin_enables_it_and_nothing_is_lost(world: World) -> None:
    world.open("alive")
    world.open("closed", lambda _: SendAnswer(410, "HTTP 410"))
    for _ in range(2):
        for user in users(3):
            world.earn(user)
        world.deliver()
    assert world.endpoints.get("closed").disabled == GONE_REASON
    calls = world.calls["closed"]
    world.wait(timedelta(days=5), timedelta(hours=6))
    assert world.calls["closed"] == calls, "it is not asked again"
    assert len(world.got["alive"]) == 6
    world.mood["closed"] = world.mood["alive"]
    world.endpoints.set_disabled("closed", "")
    world.minute()
    for user in users(3):
        assert world.numbers("closed", user) == [1, 2]


def test_an_endpoint_that_ends_while_it_answers_410_stays_ended(world: World) -> None:
    def end(_: Notification) -> SendAnswer:
        world.endpoints.set_disabled("closed", ENDED)
        return SendAnswer(410, "HTTP 410")

    world.open("closed", end)
    world.earn("ann")
    world.deliver()
    assert world.endpoints.get("closed").disabled == ENDED


def test_time_alone_tells_of_a_streak_at_risk_and_lost_and_a_late_event_corrects_it(world: World) -> None:
    world.open("app", types=frozenset({"streak.at_risk", "streak.lost", "streak.corrected"}))
    world.act("ann", 0)
    world.deliver()
    assert world.got["app"] == []
    world.wait(timedelta(days=2), timedelta(hours=1))
    assert [each.notice.type for each in world.got["app"]] == ["streak.at_risk", "streak.lost"]
    world.act("ann", 0, 1, 2)
    world.deliver()
    assert world.got["app"][-1].notice.type == "streak.corrected"
    assert folded(world.got["app"], "ann") == profile_view(world.profiles["ann"], world.now)


def test_a_profile_that_the_stream_has_not_brought_yet_is_not_told_by_the_clock(world: World) -> None:
    world.open("app")
    world.act("ann", 0)
    world.deliver()
    ahead = replace(world.profiles["ann"], version=2, streak=fold([START.date(), date(2026, 3, 3)], Cover()))
    world.dynamodb.put_item(TableName="UserStreaks", Item=encode_item(profile_attributes(ahead)))
    world.wait(timedelta(days=3), timedelta(hours=6))
    assert [each.notice.type for each in world.got["app"]] == ["streak.extended"]


def test_two_workers_and_two_tellers_at_once_keep_the_order(world: World) -> None:
    world.open("app")
    for number in range(8):
        world.earn("ann", number + 1)
    shares = sorted(world.woken)
    inner: list[int] = []

    def answer(_: Notification) -> SendAnswer:
        inner.append(
            sum(world.deliverer.run(*each, lambda: False) for each in shares)
        )  # another worker comes
        return SendAnswer(200)

    world.mood["app"] = answer
    world.deliver()
    assert world.numbers("app", "ann") == list(range(1, 9))
    assert set(inner) == {0}


def test_a_worker_that_dies_has_its_lanes_served_again_with_the_same_ids(world: World) -> None:
    class Death(BaseException):
        pass

    world.open("app")
    world.earn("ann")
    world.earn("ann")
    seen: list[str] = []

    def dying(each: Notification) -> SendAnswer:
        seen.append(each.message_id)
        if len(seen) == 2:
            raise Death
        return SendAnswer(200)

    world.mood["app"] = dying
    with pytest.raises(Death):
        world.deliver()
    world.mood["app"] = lambda _: SendAnswer(200)
    world.wait(timedelta(minutes=10), timedelta(minutes=1))
    assert world.numbers("app", "ann") == [1, 1, 2], "nobody knows whether it arrived, so it comes again"
    assert list(dict.fromkeys(each.message_id for each in world.got["app"])) == seen
