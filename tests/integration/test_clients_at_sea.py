"""The Python client at sea for a week, its clock wrong and moved, against the real handlers (rule 16)."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from email.utils import format_datetime

import pytest
from streakline_client import RefusedEvent, Reply, Streakline
from streakline_client.queue.clock import Reading
from streakline_client.tracker import Queueing
from streakline_client.transport import Request, Unreachable

from tests.support.engine import Engine
from tests.support.gateway import ask, token
from tests.support.sailing import World
from tests.support.site import Site, site

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
USERS = iter(f"skipper{number}" for number in range(1000))
SECOND = timedelta(seconds=1)


@pytest.fixture(scope="module")
def api(engine: Engine) -> Iterator[Site]:
    with site(engine) as made:
        yield made


@pytest.fixture
def world(api: Site, monkeypatch: pytest.MonkeyPatch) -> World:
    noon = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)
    return World(api, monkeypatch, noon)


class Phone:
    """A phone with the client: on or off the network, its clock wrong by what we say."""

    def __init__(self, world: World, wrong: timedelta) -> None:
        self.world, self.wrong, self.user = world, wrong, next(USERS)
        self.is_online, self.begun = True, world.now
        self.refused: list[RefusedEvent] = []
        self.client = self.started()

    def started(self) -> Streakline:
        queue = Queueing(zone="UTC", is_sending=False, clocks=self._clocks, on_refused=self.refused.append)
        return Streakline(
            "https://x.test",
            lambda: token(self.user),
            user=self.user,
            queue=queue,
            transport=self._transport,
            sleep=lambda _: None,
        )

    def _clocks(self) -> Reading:
        wall = round((self.world.now + self.wrong).timestamp() * 1000)
        ticks = round((self.world.now - self.begun) / timedelta(milliseconds=1))
        return Reading(wall, ticks, "boot", counts_sleep=True)

    def _transport(self, request: Request) -> Reply:
        if not self.is_online:
            raise Unreachable("at sea")
        told = ask(request.method, request.path, request.headers, request.body or b"")
        headers = {name.lower(): value for name, value in told.headers.items()}
        return Reply(told.status, told.body, {**headers, "date": format_datetime(self.world.now)})

    def sail(self, days: int) -> list[date]:
        self.is_online, dates = False, []
        for _ in range(days):
            self.world.wait(DAY)
            self.client.track("CHECK_IN")
            self.client.flush()
            dates.append(self.world.now.date())
        self.is_online = True
        return dates

    def active(self) -> list[date]:
        self.world.site.settle()
        found = self.world.site.admin("GET", f"/v1/users/{self.user}/activity?limit=100")[1]
        return sorted(date.fromisoformat(each["activity_date"]) for each in found["activity"])


@pytest.mark.parametrize("hours", [-26, -5, 0, 26])
def test_an_honest_week_at_sea_counts_on_its_true_dates(world: World, hours: int) -> None:
    phone = Phone(world, hours * HOUR)
    phone.client.profile()
    dates = phone.sail(7)
    assert phone.client.flush() == 0
    assert (phone.active(), phone.refused) == (dates, [])


def test_also_if_the_clock_is_moved_on_the_way(world: World) -> None:
    phone = Phone(world, timedelta())
    phone.client.profile()
    dates = phone.sail(3)
    for hours in (-9, 20):
        phone.wrong += hours * HOUR
        dates += phone.sail(2)
    assert phone.client.flush() == 0
    assert (phone.active(), phone.refused) == (dates, [])


def test_week_after_week(world: World) -> None:
    phone = Phone(world, 3 * HOUR)
    phone.client.profile()
    dates = []
    for _ in range(3):
        dates += phone.sail(6)
        assert phone.client.flush() == 0
    assert (phone.active(), phone.refused) == (dates, [])


def test_a_queue_that_drains_by_and_by_loses_nothing(world: World) -> None:
    """The first batch is taken, the network goes for a day, twice; what happens meanwhile counts, too."""
    phone = Phone(world, -2 * HOUR)
    phone.client.profile()
    phone.is_online = False
    count = 0
    for _ in range(8):
        world.wait(DAY)
        for _ in range(40):
            world.wait(SECOND)
            phone.client.track("CHECK_IN")
            count += 1
    phone.is_online = True
    tracker = phone.client._tracker
    assert tracker
    for _ in range(3):
        tracker._sender._step(tracker._sender._queue.newest())
        phone.is_online = False
        world.wait(20 * HOUR)
        phone.client.track("CHECK_IN")
        count += 1
        phone.is_online = True
    while phone.client.flush():
        pass
    assert phone.refused == []
    told = world.site.admin("GET", f"/v1/users/{phone.user}/events?limit=500")[1]["events"]
    assert len(told) == count


def test_without_a_contact_before_there_is_no_proof_and_the_app_is_told(world: World) -> None:
    phone = Phone(world, timedelta())
    dates = phone.sail(6)
    phone.client.flush()
    assert [each.code for each in phone.refused] == ["backfill_forbidden"] * 2
    assert phone.active() == dates[2:]
