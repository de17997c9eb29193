"""Each eligible subscriber is told of a question once: run twice, at once, killed anywhere."""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from adapters.platform.items import decode_item
from adapters.questions.message_claims import UNCONFIRMED, read_index
from adapters.questions.push import PushReceipt
from adapters.questions.subscription_store import KEY
from processors.questions.messages import MessageOutcome
from rules.days import stamp
from rules.questions.notifications import (
    INTERVALS,
    NEVER,
    PushMessage,
    Subscription,
    is_eligible,
    quiet_hours,
)
from tests.support.dying import Killed
from tests.support.engine import Engine
from tests.support.questions.subscribers import NOW, Phones, World, subscriber, world

ZONES = ("UTC", "Europe/Berlin", "America/Los_Angeles", "Asia/Kathmandu", "+12:00", "Australia/Lord_Howe")
DEAD = 3


@pytest.fixture
def town(engine: Engine) -> Iterator[World]:
    with world(engine) as made:
        yield made


class Mortal(Phones):
    """Phones whose sender dies at a message: before it is claimed, before it is sent, or after."""

    def die(self, step: str, number: int) -> None:
        self.step, self.number, self.is_dead = step, number, False

    def _live(self, step: str) -> None:
        if step == self.step and not self.is_dead:
            self.number -= 1
            self.is_dead = self.number == 0
        if self.is_dead:
            raise Killed

    def prepare(self, token: str) -> PushReceipt:
        self._live("claim")
        return super().prepare(token)

    def send(self, endpoint: str, token: str, message: PushMessage) -> PushReceipt:
        self._live("send")
        receipt = super().send(endpoint, token, message)
        self._live("settle")
        return receipt


def crowd(chance: random.Random) -> list[Subscription]:
    """400 people; about a tenth of them is to be told."""
    return [
        subscriber(
            number,
            tags=tuple(sorted(chance.sample("abcd", chance.choice((0, 0, 1, 2))))),
            min_interval_minutes=chance.choice(INTERVALS) + number % 4,
            timezone=chance.choice(ZONES),
            quiet_hours=chance.choice((None, quiet_hours("22:00", "07:00"), quiet_hours("12:00", "20:00"))),
            last_notified_at=chance.choice(
                (NEVER, *(stamp(NOW - timedelta(minutes=each)) for each in (5, 50, 500, 5000)))
            ),
        )
        for number in range(400)
    ]


def test_many_subscribers_two_runs_at_once_and_three_deaths(town: World) -> None:
    people = crowd(random.Random(7))
    listening = [each.fcm_token for each in people if is_eligible(each, ("a",), NOW)]
    assert 20 < len(listening) < 60
    town.fill(people)
    dead = frozenset(random.Random(1).sample(listening, DEAD))
    town.phones = phones = Mortal(dead)
    asked = town.ask(audience=("a",))
    for step, number in (("claim", 7), ("send", 7), ("settle", 7)):
        phones.die(step, number)
        with pytest.raises(Killed):
            town.announce(asked)
    phones.die("", 0)
    with ThreadPoolExecutor(2) as both:
        runs = [both.submit(town.announce, asked) for _ in range(2)]
    assert all({MessageOutcome.AGAIN, MessageOutcome.FAILED}.isdisjoint(run.result()) for run in runs)
    claims = town.notifier().announcements.claims
    unsettled = claims.stale_keys(NOW + timedelta(hours=1))
    # One died between claim and sending, one between sending and settling: nobody can tell them apart.
    assert len(unsettled) == 2
    lost = {place.split("#")[0] for place in unsettled}
    untold = set(listening) - dead - set(phones.got)
    assert {each.subscription_id for each in people if each.fcm_token in untold} < lost
    assert len(untold) == 1
    assert phones.got == dict.fromkeys(set(listening) - dead - untold, 1)
    _check_dead(town, people, dead)
    assert claims.stale_keys(NOW) == [], "somebody may still be at it"
    assert [claims.give_up(place) for place in unsettled] == [True, True]
    unconfirmed = read_index(claims.store, UNCONFIRMED, stamp(NOW))
    assert sorted(each[KEY] for each in unconfirmed) == sorted(unsettled)
    town.now = NOW + timedelta(minutes=30)
    later = town.announce(asked)
    assert later[MessageOutcome.DEAD] == 0
    assert set(phones.got.values()) == {1}
    assert untold.isdisjoint(phones.got), "sent again it might have come twice"


@pytest.mark.parametrize("tokens", [("t1",), ()])
def test_whoever_comes_late_leaves_no_endpoint_of_a_dead_token(town: World, tokens: tuple[str, ...]) -> None:
    """Two runs read a person; one does its work while the other is about to make the phone's endpoint."""
    town.fill([subscriber(1)])
    asked = town.ask()
    town.phones = phones = Slow(frozenset(tokens), lambda: town.announce(asked))
    assert town.announce(asked) == {MessageOutcome.DUPLICATE: 1}
    assert phones.meanwhile == {MessageOutcome.DEAD if tokens else MessageOutcome.SENT: 1}
    assert set(phones.endpoints.values()) == {"t1"} - set(tokens)
    stored = decode_item(town.scan()[subscriber(1).subscription_id])
    assert stored.get("endpoint_arn") == next(iter(phones.endpoints), None), "the living keep theirs"


class Slow(Phones):
    """Phones whose first sender is overtaken by another before it makes an endpoint."""

    def __init__(self, dead: frozenset[str], overtake: Callable[[], Counter[MessageOutcome]]) -> None:
        super().__init__(dead)
        self.overtake, self.meanwhile = overtake, Counter[MessageOutcome]()
        self.is_overtaken = False

    def prepare(self, token: str) -> PushReceipt:
        if not self.is_overtaken:
            self.is_overtaken = True
            self.meanwhile = self.overtake()
        return super().prepare(token)


def _check_dead(town: World, people: list[Subscription], dead: frozenset[str]) -> None:
    """Out of the index, without token, endpoint or markers, and never tried again."""
    items, phones = town.scan(), town.phones
    buried = [each for each in people if each.fcm_token in dead]
    for each in buried:
        item = decode_item(items[each.subscription_id])
        assert {"active", "fcm_token", "endpoint_arn"}.isdisjoint(item) and item["dead_at"]
        assert [key for key in items if key.startswith(f"{each.subscription_id}#tag")] == []
    assert dead.isdisjoint(phones.endpoints.values())
    assert dict.fromkeys(dead, 1) == {token: phones.tried[token] for token in dead}
