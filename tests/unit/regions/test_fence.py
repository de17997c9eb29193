"""The fence: a process writes while it has read, lately, that its region may, and not a moment longer."""

import re
from typing import Any

import pytest

from adapters.platform.aws import free_client
from adapters.platform.fence import WRITES, Fence, RegionFenced, guard_client
from rules.regions.register import LEASE_SECONDS, LOOK_SECONDS, Clocks, Phase, Register, may_write
from tests.support.template import ROOT


class World:
    """A register that may be out of reach, and clocks that are set by hand."""

    def __init__(self) -> None:
        self.register: Register | None = Register(1, "west")
        self.now = Clocks(0.0, 0.0)
        self.is_away = False
        self.reads = 0
        self.fence = Fence(self.read, "west", lambda: self.now)

    def read(self) -> Register | None:
        self.reads += 1
        if self.is_away:
            raise ConnectionError
        return self.register

    def writes(self) -> bool:
        try:
            self.fence.check(may_write)
        except RegionFenced:
            return False
        return True


def test_a_writer_reads_now_and_then_and_stops_when_another_is_promoted() -> None:
    world = World()
    assert all(world.writes() for _ in range(100))
    assert world.reads == 1
    world.register = Register(2, "east", Phase.DRAINING, former="west")
    assert world.writes(), "it does not know yet"
    world.now = Clocks(LOOK_SECONDS + 0.1, 0.0)
    assert not world.writes()


@pytest.mark.parametrize("later", [Clocks(LEASE_SECONDS + 0.1, 0.0), Clocks(0.0, LEASE_SECONDS + 0.1)])
def test_a_writer_that_cannot_renew_its_lease_stops_by_either_clock(later: Clocks) -> None:
    world = World()
    assert world.writes()
    world.is_away = True
    world.now = Clocks(LEASE_SECONDS, LEASE_SECONDS)
    assert world.writes(), "one failed attempt stops nobody"
    world.now = later
    assert not world.writes()
    world.is_away = False
    assert world.writes(), "and it goes on when it may"


def test_a_lease_counts_from_when_the_question_was_asked() -> None:
    world = World()
    read = world.read

    def slow() -> Register | None:
        world.now = Clocks(world.now.steady + LEASE_SECONDS + 1, 0.0)
        return read()

    world.fence = Fence(slow, "west", lambda: world.now)
    assert not world.writes()


def test_without_a_register_nobody_writes() -> None:
    world = World()
    world.register = None
    assert not world.writes()


def test_each_kind_of_write_asks_before_it_is_sent_and_no_read_does() -> None:
    asked: dict[str, Any] = {}

    class Events:
        def register(self, name: str, handler: Any, unique_id: str) -> None:
            asked[name] = handler

    class Client:
        class meta:  # noqa: N801 (botocore's name)
            events = Events()

    world = World()
    guard_client(Client(), world.fence, may_write)
    assert set(asked) == {f"before-send.dynamodb.{each}" for each in WRITES}
    world.register = Register(2, "east")
    with pytest.raises(RegionFenced, match="the region west may not write now: east writes, epoch 2"):
        asked["before-send.dynamodb.PutItem"](request=None, event_name="x")


def test_a_client_that_is_guarded_twice_asks_once() -> None:
    world, asked = World(), list[str]()
    dynamodb = free_client("dynamodb", region="us-east-1")

    def allowed(_: Register, region: str) -> bool:
        asked.append(region)
        return True

    assert guard_client(guard_client(dynamodb, world.fence, allowed), world.fence, allowed) is dynamodb
    for each in WRITES:
        dynamodb.meta.events.emit(f"before-send.dynamodb.{each}", request=None)
    assert asked == ["west"] * len(WRITES)
    with pytest.raises(ValueError, match="another rule"):
        guard_client(dynamodb, world.fence, may_write)


def test_no_client_of_dynamodb_but_that_of_the_bootstrap_is_made_for_functions() -> None:
    """That one is fenced (tests/unit/platform/test_bootstrap.py). The fence reads the register without a fence."""
    made = re.compile(r'(\w+)\(free_client\("dynamodb"')
    found: dict[str, set[str]] = {}
    for top in ("adapters", "analytics", "ingest", "processors"):
        for path in (ROOT / top).rglob("*.py"):
            text = path.read_text()
            around = made.findall(text)
            assert len(around) == text.count('free_client("dynamodb"'), path
            for name in around:
                found.setdefault(name, set()).add(path.name)
    assert found == {"RegisterStore": {"fence.py"}, "fence_follower": {"region_follower.py"}}
