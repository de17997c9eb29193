"""Levels through the real handlers: the profile's, and what is told when points change it."""

import copy
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

import processors.outgoing.notifications as telling
from adapters.book_store import shipped_document
from tests.integration.test_achievements_told import DAY, FIRST, WORKOUT, Told
from tests.support.engine import lean_client
from tests.support.moved_site import event, published, send
from tests.support.site import Site

LEVELS = [
    {"name": "newcomer", "from": 0},
    {"name": "silver", "from": 30, "title": "Silver"},
    {"name": "gold", "from": 60, "title": "Gold"},
]


class Climber(Told):
    """A user who earns 15 points a workout, and an app that hears of levels."""

    def work_out(self, day: int, *dates: int) -> list[tuple[str | None, str | None, str]]:
        """On a day, let workouts of some dates come; returns what is told of levels."""
        self.at(FIRST + day * DAY)
        send(self.api, self.user, *(event(WORKOUT, FIRST + each * DAY) for each in dates))
        return self.changed()

    def changed(self) -> list[tuple[str | None, str | None, str]]:
        before = len(self.log())
        self.hear()
        told = [each["data"] for each in self.log()[before:] if each["type"] == "level.changed"]
        return [(each["level_before"], each["level"], each["direction"]) for each in told]

    def level(self) -> Any:
        return self.api.call(self.user, "GET", f"/v1/users/{self.user}")[1]["level"]

    def take_back(self, number: int) -> None:
        """Reverse the user's newest event."""
        entries = self.api.admin("GET", f"/v1/users/{self.user}/ledger")[1]["entries"]
        earned = next(each for each in entries if each["kind"] == "EARN" and not each.get("reversed_by"))
        body = {"event_id": earned["event_id"], "reason": "refunded", "idempotency_key": f"c{number}"}
        status, answer = self.api.admin("POST", f"/v1/users/{self.user}/clawbacks", body)
        assert status == 201, answer

    def publish(self, levels: list[dict[str, Any]]) -> None:
        status, told = self.api.admin("POST", "/v1/rules", {"book": a_book(levels)})
        assert status == 201, told


def a_book(levels: list[dict[str, Any]]) -> dict[str, Any]:
    return copy.deepcopy(shipped_document()) | {"levels": levels}


@pytest.fixture
def climber(api: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[Climber]:
    monkeypatch.setattr("adapters.outgoing.endpoint_store.FRESH_SECONDS", -1.0)
    monkeypatch.setattr(telling._parts, "client", lambda name: lean_client(api.engine, name))
    telling._parts.cache_clear()
    with published(api, a_book(LEVELS), FIRST - DAY, monkeypatch) as at:
        made = Climber(api, at)
        for each in made.endpoints.all():
            made.endpoints.remove(each.endpoint_id)
        monkeypatch.setattr("adapters.outgoing.outbox_store.DeliveryInvoker.wake", lambda *_: None)
        yield made
    telling._parts.cache_clear()


def test_a_level_is_reached_exactly_lost_by_a_clawback_and_reached_again(climber: Climber) -> None:
    climber.at(FIRST)
    climber.listen("level.changed")
    assert climber.level() == {
        "name": "newcomer",
        "title": "",
        "from": 0,
        "next": {"name": "silver", "title": "Silver", "from": 30, "missing": 30},
    }
    assert climber.work_out(0, 0) == []
    assert climber.level()["next"]["missing"] == 15
    assert climber.work_out(2, 1) == [("newcomer", "silver", "up")], "30 points, and an event of a past date"
    assert climber.level()["name"] == "silver"
    climber.take_back(1)
    assert climber.changed() == [("silver", "newcomer", "down")]
    assert climber.work_out(2, 2) == [("newcomer", "silver", "up")]
    assert climber.work_out(4, 3, 4) == [("silver", "gold", "up")]
    assert climber.level() == {"name": "gold", "title": "Gold", "from": 60, "next": None}


def test_levels_are_of_points_ever_earned_not_of_those_that_are_left(climber: Climber) -> None:
    climber.listen()
    climber.work_out(2, 0, 1)
    body = {"points": 25, "reward_id": "mug", "idempotency_key": "r1"}
    status, answer = climber.api.admin("POST", f"/v1/users/{climber.user}/redemptions", body)
    assert status == 201, answer
    assert (climber.changed(), climber.level()["name"]) == ([], "silver")


def test_a_book_that_moves_and_renames_levels_changes_all_answers_and_tells_nobody(climber: Climber) -> None:
    climber.listen()
    assert climber.work_out(2, 0, 1) == [("newcomer", "silver", "up")]
    climber.publish(
        [{"name": "newcomer", "from": 0}, {"name": "steel", "from": 20}, {"name": "gold", "from": 25}]
    )
    assert climber.level()["name"] == "gold"
    assert climber.work_out(3, 3) == [], "45 points are gold, as 30 are by this book"
    climber.publish([{"name": "steel", "from": 46}])
    assert climber.level() is None
    assert climber.work_out(4, 4) == [(None, "steel", "up")]
    climber.publish([])
    assert climber.level() is None
    assert climber.work_out(5, 5) == []


def test_whoever_asks_for_levels_alone_hears_of_nothing_else(climber: Climber) -> None:
    climber.listen("points.changed")
    climber.work_out(0, 0)
    assert {each["type"] for each in climber.log()} == {"streak.extended", "points.changed"}
    assert climber.work_out(2, 1) == [], "without an endpoint for levels the book is not read"


def test_the_level_is_of_the_version_in_force_now(climber: Climber) -> None:
    climber.work_out(2, 0, 1)
    planned = {"book": a_book([{"name": "late", "from": 1}]), "effective": (FIRST + 9 * DAY).isoformat()}
    assert climber.api.admin("POST", "/v1/rules", planned)[0] == 201
    assert climber.level()["name"] == "silver"
    climber.at(FIRST + 9 * DAY - timedelta(seconds=1))
    assert climber.level()["name"] == "silver"
    climber.at(FIRST + 9 * DAY)
    assert climber.level()["name"] == "late"
