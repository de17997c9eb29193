"""The Python client keeps the newest receipt of its own user's requests, and sends it with what happened then."""

import json
from pathlib import Path
from typing import Any

from streakline_client import Reply, Streakline
from streakline_client.profile import new_profile
from streakline_client.queue.clock import DeviceClocks
from streakline_client.queue.event_queue import EventQueue, Proof
from streakline_client.tracker import Queueing
from streakline_client.transport import Request, Unreachable


class Service:
    """Gives a receipt with each answer, in any order that is wanted."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, str | None]] = []
        self.given = 0
        self.is_online = True
        self.status = 200

    def __call__(self, request: Request) -> Reply:
        if not self.is_online:
            raise Unreachable("offline")
        body: dict[str, Any] = json.loads(request.body) if request.body else {}
        self.requests.append((request.path, request.headers["Streakline-Device"], body.get("receipt")))
        self.given += 1
        results = [{"status": "accepted"} for _ in body.get("events", [])]
        answer: Any = {"results": results} if body else new_profile("ann")
        headers = {"streakline-time-receipt": f"1.{self.given}.o.s"}
        return Reply(202 if body else self.status, json.dumps(answer).encode(), headers)

    @property
    def sent(self) -> list[str | None]:
        return [receipt for path, _, receipt in self.requests if path == "/v1/events"]


def client(path: Path | None, service: Service) -> Streakline:
    queue = Queueing(path=path, is_sending=False)
    return Streakline("https://x.test", "t", user="ann", queue=queue, transport=service, sleep=lambda _: None)


def test_an_event_has_the_newest_receipt_also_in_another_process(tmp_path: Path) -> None:
    service = Service()
    before, other = (client(tmp_path / "queue", service) for _ in range(2))
    before.track("A")
    before.flush()
    service.is_online = False
    before.track("A")
    before.close()
    other.track("A")
    service.is_online = True
    other.flush()
    other.track("A")
    other.flush()
    assert service.sent == [None, "1.1.o.s", "1.2.o.s"]
    assert len({device for _, device, _ in service.requests}) == 1
    other.close()


def test_only_answers_that_are_surely_the_user_s_own_give_receipts() -> None:
    service = Service()
    me = client(None, service)
    me.leaderboard("streaks")
    me.track("A")
    me.flush()
    me.profile()
    me.track("A")
    me.flush()
    # `profile` sends the first event again, which is not confirmed. Its own answer is the fourth.
    assert service.sent == [None, None, "1.4.o.s"]


def test_who_is_closed_can_still_ask() -> None:
    me = client(None, Service())
    me.close()
    assert me.balance()


def test_a_batch_of_many_receipts_carries_the_oldest() -> None:
    service = Service()
    me = client(None, service)
    for _ in range(3):
        me.profile()
        me.track("A")
    me.flush()
    assert service.sent == ["1.1.o.s"]


def test_another_device_s_receipt_is_not_kept() -> None:
    queue = EventQueue(None, DeviceClocks().read, None, 10)
    queue.store_receipt(Proof("somebody-else", "1.9.o.s"))
    queue.store_receipt(Proof(queue.device(), "1.5.o.s"))
    queue.store_receipt(Proof(queue.device(), "1.4.o.s"))
    queue.add("A", None, "ann")
    batch = queue.batch(100, queue.newest())
    assert batch
    assert batch.proof == Proof(queue.device(), "1.5.o.s")
