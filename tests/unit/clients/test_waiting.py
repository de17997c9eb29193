"""Who waits learns what an event did, and a profile is confirmed only when it has all events that were sent."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from streakline_client import Applied, Queueing, Reply, Request, Streakline
from streakline_client.profile import new_profile

from adapters import clock


class Service:
    """A service that takes all, and applies it when it is not late."""

    def __init__(self) -> None:
        self.keys, self.prefers, self.late = set[str](), list[str | None](), 0

    def __call__(self, request: Request) -> Reply:
        if request.method == "GET":
            return self._reply(200, self._profile(len(self.keys) - 1))  # without the newest event
        events = json.loads(request.body or b"")["events"]
        self.keys |= {event["idempotency_key"] for event in events}
        self.prefers.append(request.headers.get("Prefer"))
        today = clock.now().date().isoformat()
        results = [
            {
                "idempotency_key": event["idempotency_key"],
                "status": "accepted",
                "points": 10,
                "activity_date": today,
            }
            for event in events
        ]
        self.late -= 1
        if not self.prefers[-1] or self.late >= 0:
            return self._reply(202, {"results": results})
        more: dict[str, Any] = {
            "profile": self._profile(len(self.keys)),
            "new_achievements": [],
            "new_level": None,
        }
        return self._reply(200, {"results": results, **more})

    def _profile(self, events: int) -> dict[str, Any]:
        today = clock.now().date().isoformat()
        streak = {"current_streak": 1, "streak_status": "active", "last_activity_date": today, "as_of": today}
        return {**new_profile("ann"), **streak, "total_bestie_points": 10 * events}

    def _reply(self, status: int, body: Any) -> Reply:
        return Reply(status, json.dumps(body).encode(), {})


def client(service: Service, **queueing: Any) -> Streakline:
    queue = Queueing(zone="UTC", **queueing)
    return Streakline("https://x.test", "t", user="ann", queue=queue, transport=service, sleep=lambda _: None)


@pytest.fixture
def service() -> Iterator[Service]:
    yield Service()


@pytest.mark.parametrize("is_sending", [True, False])
def test_who_waits_learns_what_the_event_did(service: Service, is_sending: bool) -> None:
    with closing(client(service, is_sending=is_sending)) as me:
        for number in (1, 2, 3):
            tracked = me.track("A", wait=5)
            assert tracked.applied is not None
            assert tracked.applied["profile"]["total_bestie_points"] == 10 * number
            assert [each.get("points") for each in tracked.applied["results"]] == [10]
            shown = me.estimate()
            assert (shown["total_bestie_points"], shown["is_estimate"]) == (10 * number, False)
    assert service.prefers == ["wait=2"] * 3


def test_nobody_waits_so_the_service_need_not(service: Service) -> None:
    with closing(client(service, is_sending=False)) as me:
        key = me.track("A")
        assert key in {event["idempotency_key"] for event in me.waiting()}
        me.flush()
        assert service.prefers == [None]
        assert me.estimate()["is_estimate"]
        shown = me.profile()  # which asks what the event did
        assert (shown["total_bestie_points"], shown["is_estimate"]) == (10, False)
        assert service.prefers == [None, "wait=2"]
        assert service.keys == {key}


def test_a_profile_that_may_lack_an_event_is_an_estimate(service: Service) -> None:
    service.late = 2
    with closing(client(service, is_sending=False)) as me:
        me.track("A")
        me.flush()
        shown = me.profile()
        assert (shown["total_bestie_points"], shown["is_estimate"]) == (0, True), (
            "its date is known, not its points"
        )
        shown = me.profile()
        assert (shown["total_bestie_points"], shown["is_estimate"]) == (10, False)


def test_waiting_ends(service: Service) -> None:
    service.late = 100
    with closing(client(service)) as me:
        begun = time.monotonic()
        tracked = me.track("A", wait=0.5)
        assert tracked.applied is None
        assert tracked.key in service.keys
        assert 0.4 < time.monotonic() - begun < 5


def test_many_wait_at_once(service: Service) -> None:
    told = list[Applied]()
    with closing(client(service, on_applied=told.append)) as me:
        found = dict[int, Any]()

        def wait(number: int) -> None:
            found[number] = me.track("A", {"number": number}, wait=10)

        threads = [threading.Thread(target=wait, args=[number]) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert {each.key for each in found.values()} == service.keys
        for each in found.values():
            assert each.key in {result["idempotency_key"] for result in each.applied["results"]}
        assert sum(len(applied["results"]) for applied in told) == 8
        assert me.estimate()["total_bestie_points"] == 80


def test_waiting_is_for_seconds(service: Service) -> None:
    with (
        closing(client(service, is_sending=False)) as me,
        pytest.raises(ValueError, match="wait must be seconds"),
    ):
        me.track("A", wait=-1)
    assert not service.keys


def test_a_late_service_is_asked_again(service: Service) -> None:
    service.late = 3
    with closing(client(service)) as me:
        tracked = me.track("A", wait=20)
    assert tracked.applied is not None
    assert service.prefers == ["wait=2"] * 4


def test_nobody_waits_for_an_event_that_is_refused() -> None:
    def refusing(request: Request) -> Reply:
        (event,) = json.loads(request.body or b"")["events"]
        error = {"code": "unknown_type", "field": "event_type", "message": "no"}
        result = {"idempotency_key": event["idempotency_key"], "status": "rejected", "error": error}
        return Reply(202, json.dumps({"results": [result]}).encode(), {})

    refused = list[Any]()
    queue = Queueing(zone="UTC", on_refused=refused.append)
    with closing(Streakline("https://x.test", "t", user="ann", queue=queue, transport=refusing)) as me:
        begun = time.monotonic()
        assert me.track("A", wait=30).applied is None
        assert time.monotonic() - begun < 10
    assert len(refused) == 1


def test_an_answer_of_before_confirms_no_event_that_came_after_it(service: Service) -> None:
    """While the service is asked what the first event did, a second one is taken."""
    with closing(client(service, is_sending=False)) as me:
        me.track("A")
        me.flush()

        def with_second(request: Request) -> Reply:
            reply = service(request)
            if request.headers.get("Prefer") and len(service.keys) == 1:
                me.track("A")
                me.flush()
            return reply

        me._calls._send = with_second
        first = me.profile()
        assert (first["total_bestie_points"], first["is_estimate"]) == (10, True), "it lacks the second event"
        second = me.profile()
        assert (second["total_bestie_points"], second["is_estimate"]) == (20, False)


def test_an_older_answer_is_no_newer_profile(service: Service) -> None:
    """While the service is asked what the first event did, a second one is applied, and its answer is first."""
    told = list[Applied]()
    with closing(client(service, is_sending=False, on_applied=told.append)) as me:
        service.late = 1
        me.track("A")
        me.flush()

        def with_second(request: Request) -> Reply:
            reply = service(request)
            if len(service.keys) == 1:
                me.track("A")
                me.flush()
            return reply

        me._calls._send = with_second
        shown = me.profile()
        assert (shown["total_bestie_points"], shown["is_estimate"]) == (20, False)
        assert len(told) == 2


def test_a_profile_of_before_replaces_no_newer_one(service: Service) -> None:
    with closing(client(service, is_sending=False, on_applied=lambda _: None)) as me:

        def with_event(request: Request) -> Reply:
            reply = service(request)
            if request.method == "GET":
                me.track("A")
                me.flush()
            return reply

        me._calls._send = with_event
        shown = me.profile()
        assert (shown["total_bestie_points"], shown["is_estimate"]) == (10, False)


def test_what_another_process_has_sent_is_still_ahead(service: Service, tmp_path: Path) -> None:
    with (
        closing(client(service, is_sending=False, path=tmp_path / "queue")) as one,
        closing(client(service, is_sending=False, path=tmp_path / "queue")) as other,
    ):
        one.track("A")
        one.flush()

        def with_other(request: Request) -> Reply:
            reply = service(request)
            other.track("A")
            other.flush()
            return reply

        one._calls._send = with_other
        shown = one.profile()
        assert (shown["total_bestie_points"], shown["is_estimate"]) == (10, True)
        shown = other.profile()
        assert (shown["total_bestie_points"], shown["is_estimate"]) == (20, False)
