"""The Python client over a network that breaks off or answers itself, and with properties that are no JSON."""

import json
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from streakline_client import Refused, Reply, Request, Streakline, Unreachable
from streakline_client.queue.clock import Reading
from streakline_client.tracker import Queueing

from tests.unit.clients.test_faulty_disks import Service, client


@contextmanager
def answering(answer: bytes) -> Iterator[str]:
    """A service that answers each request with these bytes, and resets the connection."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                line, _ = server.accept()
            except OSError:
                return
            line.recv(65536)
            line.sendall(answer)
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            line.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join()


@pytest.fixture
def breaking() -> Iterator[str]:
    """A service that begins an error and resets the connection."""
    with answering(b"HTTP/1.1 503 Down\r\ncontent-length: 100\r\n\r\nabc") as url:
        yield url


def test_an_error_that_breaks_off_is_told_as_a_service_that_cannot_be_reached(breaking: str) -> None:
    kinds: list[str] = []
    queue = Queueing(is_sending=False, on_trouble=lambda each: kinds.append(each.kind))
    me = Streakline(breaking, "t", user="ann", queue=queue, sleep=lambda _: None)
    me.track("A")
    assert me.flush() == 1
    assert kinds == ["unreachable"]
    with pytest.raises(Unreachable):
        me.balance()
    me.close()


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_that_is_no_json_is_refused_before_it_is_kept(number: float) -> None:
    me = client(None, Service())
    with pytest.raises(ValueError, match="JSON"):
        me.track("A", {"minutes": number})
    assert me.waiting() == []
    me.close()


INTERIM = {
    "100": b"HTTP/1.1 100 Continue\r\n\r\n",
    "102": b"HTTP/1.1 102 Processing\r\n\r\n",
    "103": b"HTTP/1.1 103 Early Hints\r\nlink: </a>; rel=preload\r\n\r\n",
}


@pytest.mark.parametrize(
    "before", [("100",), ("102",), ("103",), ("102", "100", "103", "103"), ("102",) * 50]
)
def test_interim_answers_are_no_answers(before: tuple[str, ...]) -> None:
    body = b'{"balance": 7}'
    answer = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)
    with answering(b"".join(INTERIM[each] for each in before) + answer) as url:
        me = Streakline(url, "t", user="ann", queue=Queueing(is_sending=False), sleep=lambda _: None)
        assert me.balance()["balance"] == 7
        me.close()


def test_interim_answers_without_end_are_a_service_that_cannot_be_reached() -> None:
    with answering(INTERIM["102"] * 200) as url:
        me = Streakline(url, "t", user="ann", queue=Queueing(is_sending=False), sleep=lambda _: None)
        with pytest.raises(Unreachable):
            me.balance()
        me.close()


HOUR = 3_600_000


class Device:
    """A device whose clock is moved, before a network whose answers are not always the service's."""

    def __init__(self) -> None:
        self.right = round(datetime(2026, 3, 2, 12, tzinfo=UTC).timestamp() * 1000)
        self.moved, self.ticks, self.foreign = 0, 1_000, ""
        self.takes_ms = 0
        self.placed = dict[str, datetime]()

    def read(self) -> Reading:
        return Reading(self.right + self.moved, self.ticks, "", counts_sleep=False)

    def sleep(self, milliseconds: int) -> None:
        self.right += milliseconds

    def __call__(self, request: Request) -> Reply:
        date, wrong, old = (
            {"date": format_datetime(datetime.fromtimestamp(self.right / 1000 + seconds, UTC), usegmt=True)}
            for seconds in (0, 3_600, -10_800)
        )
        body: dict[str, Any] = json.loads(request.body or b"{}")
        if request.method == "GET":
            answer: Any = {"status": "ok"}
        else:
            answer = {"results": [{"status": "accepted"} for _ in body["events"]]}
        if self.foreign == "login page":
            return Reply(200, b"<html>", wrong)
        if self.foreign == "login with JSON":
            return Reply(200, b'{"redirect": "/login"}', wrong)
        if self.foreign == "proxy":
            return Reply(511, b"<html>", wrong)
        if self.foreign == "cache" and request.method == "GET":
            return Reply(200, json.dumps(answer).encode(), {**old, "age": "10800"})
        self.right += self.takes_ms
        for event in body.get("events", []):
            sent_at, occurred_at = (
                datetime.fromisoformat(each) for each in (body["sent_at"], event["occurred_at"])
            )
            now = datetime.fromtimestamp(self.right / 1000, UTC)
            self.placed[event["event_type"]] = occurred_at + (now - sent_at)
        return Reply(202 if body else 200, json.dumps(answer).encode(), date)


@pytest.mark.parametrize("foreign", ["login page", "login with JSON", "proxy", "cache", "nothing"])
def test_a_time_that_is_not_the_services_own_moves_no_event(tmp_path: Path, foreign: str) -> None:
    device, happened = Device(), dict[str, int]()

    def opened() -> Streakline:
        how = Queueing(path=tmp_path / "queue.db", is_sending=False, clocks=device.read)
        return Streakline(
            "https://x.test", "t", user="ann", queue=how, transport=device, sleep=lambda _: None
        )

    def track(name: str) -> None:
        happened[name] = device.right
        me.track(name)

    me = opened()
    device.foreign = foreign  # at the first contact
    track("A")
    me.flush()
    track("B")
    device.sleep(3 * HOUR)  # the machine sleeps, or its clock was moved: nobody knows
    track("C")
    me.flush()
    me.close()
    device.sleep(HOUR)
    me = opened()
    track("D")
    device.foreign = ""
    assert me.flush() == 0
    me.close()
    placed = {name: round(at.timestamp() * 1000) for name, at in device.placed.items()}
    assert {name: abs(at - happened[name]) < 2_000 for name, at in placed.items()} == dict.fromkeys(
        "ABCD", True
    )


def test_a_doubt_stays_until_the_service_itself_decides_it() -> None:
    """The clock is moved while the service cannot be asked: a login page between decides nothing."""
    device = Device()
    how = Queueing(is_sending=False, clocks=device.read)
    me = Streakline("https://x.test", "t", user="ann", queue=how, transport=device, sleep=lambda _: None)
    me.flush()
    me.track("A")
    me.flush()
    happened = device.right
    me.track("B")
    device.moved += 5 * HOUR
    device.foreign = "login page"
    me.flush()
    device.foreign = ""
    assert me.flush() == 0
    assert abs(round(device.placed["B"].timestamp() * 1000) - happened) < 2_000
    me.close()


def test_an_answer_through_which_the_machine_slept_tells_an_old_time() -> None:
    device = Device()
    how = Queueing(is_sending=False, clocks=device.read)
    me = Streakline("https://x.test", "t", user="ann", queue=how, transport=device, sleep=lambda _: None)
    me.track("A")
    device.takes_ms = 3 * HOUR
    me.flush()
    device.takes_ms = 0
    tracker = me._tracker
    assert tracker
    assert tracker.queue.state().clock.anchor is None
    me.track("B")
    assert me.flush() == 0
    assert abs(tracker.queue.state().clock.anchor or 0) < 2_000
    me.close()


OWN = {"error": {"code": "c", "message": "m"}}  # words of the service


class Shop:
    """Redeems once for each key; its answers may be lost."""

    def __init__(self) -> None:
        self.entries, self.lost, self.status = dict[str, int](), False, 201
        self.words: object = OWN  # of a refusal; None: a page

    def __call__(self, request: Request) -> Reply:
        body: dict[str, Any] = json.loads(request.body or b"{}")
        if "idempotency_key" not in body:
            return Reply(200, b"{}")
        if self.status == 201:
            self.entries.setdefault(body["idempotency_key"], len(self.entries))
        if self.lost:
            raise Unreachable("the answer was lost")
        if self.status != 201:
            return Reply(self.status, json.dumps(self.words).encode() if self.words else b"<html>Sign in")
        answer = {"points": self.entries.get(body["idempotency_key"])}
        return Reply(self.status, json.dumps({**QUESTION, **answer}).encode())


QUESTION: dict[str, Any] = {
    "question_id": "q",
    "agent_id": "a",
    "type": "text",
    "prompt": "Why?",
    "status": "OPEN",
    "required_responses": 1,
    "current_responses": 0,
    "created_at": "2026-03-02T12:00:00Z",
    "closes_at": "2026-03-02T12:00:00Z",
}


def shopper(shop: Shop, path: Path | None = None) -> Streakline:
    how = Queueing(path=path, is_sending=False)
    return Streakline("https://x.test", "t", user="ann", queue=how, transport=shop, sleep=lambda _: None)


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_redemption_whose_answer_was_lost_is_the_same_when_it_is_asked_for_again(
    tmp_path: Path, is_restarted: bool
) -> None:
    shop = Shop()
    me = shopper(shop, tmp_path / "queue.db")
    shop.lost = True
    with pytest.raises(Unreachable):
        me.redeem("mug", price_points=120)
    if is_restarted:
        me.close()
        me = shopper(shop, tmp_path / "queue.db")
    shop.lost = False
    assert me.redeem("mug", price_points=120)["points"] == 0
    assert len(shop.entries) == 1
    assert me.redeem("mug", price_points=120)["points"] == 1, "who has the answer may want another one"
    assert me.redeem("mug", price_points=100)["points"] == 2
    assert me.redeem("mug", price_points=100, key="my-own")["points"] == 3
    assert "my-own" in shop.entries
    me.close()


@pytest.mark.parametrize(
    ("status", "words", "is_kept"),
    [
        *((status, OWN, True) for status in (500, 503, 429, 401)),
        *((status, OWN, False) for status in (422, 409, 403, 404)),
        # Not the service has refused these: somebody on the way, perhaps after an attempt that arrived.
        *((status, None, True) for status in (400, 403, 404, 407, 422, 451)),
        (403, {"message": "Forbidden"}, True),
    ],
)
def test_a_redemption_that_was_refused_has_another_key_the_next_time(
    status: int, words: object, is_kept: bool
) -> None:
    shop, keys = Shop(), list[str]()
    shop.words = words

    def noted(request: Request) -> Reply:
        keys.append(json.loads(request.body or b"{}")["idempotency_key"])
        return shop(request)

    how = Queueing(is_sending=False)
    me = Streakline("https://x.test", "t", user="ann", queue=how, transport=noted, sleep=lambda _: None)
    shop.status = status
    with pytest.raises(Refused):
        me.redeem("mug")
    shop.status = 201
    me.redeem("mug")
    assert (keys[0] == keys[-1]) is is_kept
    me.close()


def test_what_somebody_on_the_way_answers_is_no_redemption(tmp_path: Path) -> None:
    """A network's login may answer with JSON, too. The redemption may have arrived before."""
    shop, answers = Shop(), iter([Reply(200, b'{"portal": "sign in"}')])
    me = shopper(shop, tmp_path / "queue.db")
    me._calls._send = lambda request: next(answers, None) or shop(request)
    with pytest.raises(Unreachable):
        me.redeem("mug")
    shop.lost = True
    with pytest.raises(Unreachable):
        me.redeem("mug")
    shop.lost = False
    assert me.redeem("mug")["points"] == 0
    assert len(shop.entries) == 1
    me.close()


def test_what_somebody_on_the_way_answers_is_no_profile(tmp_path: Path) -> None:
    me = client(tmp_path / "queue.db", Service())
    me._calls._send = lambda _: Reply(200, b'{"portal": "sign in"}')
    assert me.profile()["current_streak"] == 0
    me.track("A")
    assert me.estimate()["current_streak"] == 1
    me.close()


def test_two_redemptions_at_once_are_two(tmp_path: Path) -> None:
    shop, both = Shop(), threading.Barrier(2)

    def slow(request: Request) -> Reply:
        both.wait(10)
        return shop(request)

    how = Queueing(path=tmp_path / "queue.db", is_sending=False)
    me = Streakline("https://x.test", "t", user="ann", queue=how, transport=slow, sleep=lambda _: None)
    threads = [threading.Thread(target=me.redeem, args=("mug",)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(shop.entries) == 2
    me.close()


@pytest.mark.parametrize("more", [{}, {"closes_in": 3600}, {"closes_in": timedelta(days=1)}])
def test_a_question_whose_answer_was_lost_is_asked_once(more: dict[str, Any]) -> None:
    shop, bodies = Shop(), list[bytes | None]()

    def noted(request: Request) -> Reply:
        bodies.append(request.body)
        return shop(request)

    people = Streakline("https://x.test", "t", transport=noted, sleep=lambda _: None)
    shop.lost = True
    with pytest.raises(Unreachable):
        people.ask("Why?", **more)
    shop.lost = False
    people.ask("Why?", **more)
    assert len(shop.entries) == 1
    assert len(set(bodies)) == 1, "the service refuses another body with the same key"
    people.ask("Why?", **more)
    assert len(shop.entries) == 2
