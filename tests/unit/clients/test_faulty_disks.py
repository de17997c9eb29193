"""The Python client when its file is damaged, its disk full, or what the app has given it fails."""

import json
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing, nullcontext
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from streakline_client import Reply, Streakline
from streakline_client.queue.clock import DeviceClocks, Reading
from streakline_client.queue.event_queue import EventQueue
from streakline_client.queue.sender import RefusedEvent, Trouble
from streakline_client.tracker import Queueing
from streakline_client.transport import Request, Unreachable

from tests.support.full_disks import full_disk

NOBODY = 65_534


class Service:
    """Takes all but what is of type NO, while it is online."""

    def __init__(self, *, is_online: bool = True) -> None:
        self.is_online, self.keys = is_online, list[str]()

    def __call__(self, request: Request) -> Reply:
        if not self.is_online:
            raise Unreachable("offline")
        events: list[dict[str, Any]] = json.loads(request.body or b"{}").get("events", [])
        self.keys += [each["idempotency_key"] for each in events]
        error = {"code": "unknown_type", "field": "event_type", "message": "is in no book"}
        refused, taken = {"status": "rejected", "error": error}, {"status": "accepted"}
        results = [refused if each["event_type"] == "NO" else taken for each in events]
        return Reply(202, json.dumps({"results": results}).encode())


def client(path: Path | None, service: Service, **more: Any) -> Streakline:
    queue = Queueing(path=path, is_sending=False, **more)
    return Streakline("https://x.test", "t", user="ann", queue=queue, transport=service, sleep=lambda _: None)


def filled(path: Path, events: int = 3) -> list[str]:
    before = client(path, Service(is_online=False))
    keys = [before.track("A", {"text": "x" * 3000}) for _ in range(events)]
    before.close()
    return keys


@pytest.mark.parametrize("damage", ["text", "header", "middle"])
def test_a_damaged_file_is_put_aside_and_told_of_and_the_client_goes_on(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "queue.db"
    filled(path, 10)
    content = path.read_bytes()
    damaged = {
        "text": b"no database at all" * 100,
        "header": b"\x00" * 100 + content[100:],
        "middle": content[:4096] + b"\xff" * 12_288 + content[16_384:],
    }[damage]
    path.write_bytes(damaged)
    troubles: list[Trouble] = []
    me = client(path, Service(), on_trouble=troubles.append)
    key = me.track("A")
    assert [each["idempotency_key"] for each in me.waiting()] == [key]
    assert me.flush() == 0
    me.close()
    [trouble] = troubles
    [aside] = tmp_path.glob("queue.db.damaged-*")
    assert (trouble.kind, str(aside) in trouble.reason) == ("damaged", True)
    assert aside.read_bytes() == damaged
    again = client(path, Service(), on_trouble=troubles.append)
    again.close()
    assert len(troubles) == 1


def test_a_sound_file_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "queue.db"
    keys = filled(path)
    me = client(path, Service())
    assert [each["idempotency_key"] for each in me.waiting()] == keys
    me.close()
    assert not list(tmp_path.glob("*damaged*"))


def as_somebody(work: Callable[[], None]) -> None:
    """Work in a process without root's right to write everywhere."""
    process = os.fork()
    if process == 0:
        ended = 1
        try:
            if os.getuid() == 0:
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            work()
            ended = 0
        finally:
            os._exit(ended)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0


def makes(folder: Path, kind: str) -> Path:
    """A path at which nobody can have a queue's file: (its kind) -> the path."""
    path = folder / "queue.db"
    if kind == "a folder":
        path.mkdir()
    elif kind == "below a file":
        (folder / "file").touch()
        return folder / "file" / "below" / "queue.db"
    elif kind == "nowhere":
        return Path("/proc/nowhere/queue.db")
    elif kind == "a name that is too long":
        return folder / ("x" * 300)
    elif kind == "a damaged file in a folder that takes nothing":
        path.write_text("no database at all" * 100)
    elif kind == "a file that may not be read":
        path.touch(0o000)
    elif kind == "another program's database":
        with closing(sqlite3.connect(path)) as other:
            other.execute("CREATE TABLE kept (a)")
        path.chmod(0o666)
    is_open = kind in ("a file that may not be read", "another program's database")
    folder.chmod(0o777 if is_open else 0o555)
    return path


@pytest.mark.parametrize(
    "kind",
    [
        "a folder",
        "below a file",
        "nowhere",
        "a name that is too long",
        "a folder that takes nothing",
        "a damaged file in a folder that takes nothing",
        "a file that may not be read",
        "another program's database",
    ],
)
def test_a_client_that_can_have_no_file_keeps_events_in_memory_says_so_and_sends_them(kind: str) -> None:
    # Not below pytest's own folder, which is closed to others.
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        path = makes(Path(folder), kind)

        def work() -> None:
            unkept, service = list[str](), Service(is_online=False)
            me = client(path, service, on_unkept=lambda event: unkept.append(event["idempotency_key"]))
            keys = [me.track("A"), me.track("A")]
            assert (unkept, me.flush(), me.estimate()["current_streak"]) == (keys, 2, 1)
            service.is_online = True
            assert (me.flush(), service.keys) == (0, keys)
            me.close()

        before = sorted(Path(folder).rglob("*"))
        as_somebody(work)
        left = [each for each in Path(folder).rglob("*") if each.suffix != ".sender"]
        assert sorted(left) == before


def test_events_of_a_file_that_may_not_be_written_are_sent(tmp_path: Path) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "queue.db"
        keys = filled(path)
        path.chmod(0o444)
        Path(folder).chmod(0o555)

        def work() -> None:
            unkept, service = list[str](), Service()
            me = client(path, service, on_unkept=lambda event: unkept.append(event["idempotency_key"]))
            keys.append(me.track("A"))
            assert (me.flush(), service.keys, unkept) == (0, keys, keys[3:])

        as_somebody(work)


def test_a_file_that_another_process_has_locked_delays_no_event_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system without locks, or a process that stands still, does that."""
    monkeypatch.setattr("streakline_client.queue.queue_file.BUSY_SECONDS_MAX", 0.1)
    path, unkept, service = tmp_path / "queue.db", list[str](), Service()
    keys = filled(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        for how in ("IMMEDIATE", "EXCLUSIVE"):
            other.execute(f"BEGIN {how}")
            me = client(path, service, on_unkept=lambda event: unkept.append(event["idempotency_key"]))
            keys.append(me.track("A"))
            assert (unkept, len(me.waiting())) == (keys[-1:], 4 if how == "IMMEDIATE" else 1)
            other.execute("COMMIT")
            assert [each["idempotency_key"] for each in me.waiting()] == keys
            me.close()
            unkept.clear()
    assert client(path, service).flush() == 0
    assert service.keys == keys


@pytest.mark.parametrize("how", ["removed", "emptied", "damaged"])
def test_a_file_that_is_gone_while_it_is_used_is_made_again(tmp_path: Path, how: str) -> None:
    path, troubles = tmp_path / "below" / "queue.db", list[Trouble]()
    me = client(path, Service(is_online=False), on_trouble=troubles.append)
    keys = [me.track("A", {"text": "x" * 5000}) for _ in range(3)]
    if how == "removed":
        path.unlink()
        path.parent.rmdir()
    elif how == "emptied":
        os.truncate(path, 0)
    else:
        path.write_bytes(b"no database at all" * 1000)
    keys += [me.track("A") for _ in range(3)]
    found = [each["idempotency_key"] for each in me.waiting()]
    me.close()
    again = client(path, Service())
    assert [each["idempotency_key"] for each in again.waiting()] == found
    assert found[-2:] == keys[-2:]
    assert [each.kind for each in troubles] == (["damaged"] if how == "damaged" else [])
    again.close()


def test_a_file_of_a_newer_client_is_read_by_an_older_one(tmp_path: Path) -> None:
    """An app that goes back to an older version finds a state with fields that it does not know."""
    path, service = tmp_path / "queue.db", Service()
    keys = filled(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        [text] = file.execute("SELECT value FROM kept WHERE name = 'state'").fetchone()
        state = json.loads(text)
        clock = {**state["clock"], "doubts": [{"start": 1, "most": 0, "exact": False, "new": 1}], "new": 1}
        newer = json.dumps({**state, "clock": clock, "new": [1]})
        file.execute("UPDATE kept SET value = ? WHERE name = 'state'", (newer,))
    me = client(path, service)
    keys.append(me.track("A"))
    assert (me.flush(), service.keys) == (0, keys)
    me.close()


def test_events_that_waited_for_a_file_are_placed_by_its_clock(tmp_path: Path) -> None:
    """The file knows of a move of the clock that this process never saw, as it could not open the file."""
    path, real, moved = tmp_path / "queue.db", DeviceClocks(), 0

    def read() -> Reading:
        now = real.read()
        return replace(now, wall=now.wall + moved)

    first = EventQueue(path, read, None, 10)
    first.add("A", None, "ann")
    moved = -7_200_000
    first.add("A", None, "ann")
    first.close()
    path.rename(tmp_path / "away")
    path.mkdir()
    second = EventQueue(path, read, None, 10)
    second.add("B", None, "ann")
    moved = 3_600_000
    second.add("C", None, "ann")
    path.rmdir()
    (tmp_path / "away").rename(path)
    waiting = second.waiting()
    assert [each.event["event_type"] for each in waiting] == ["A", "A", "B", "C"]
    shift = second.state().clock.shift
    assert [round((each.shift - shift) / 1000) for each in waiting] == [-3_600, -10_800, -10_800, 0]
    second.close()


def test_an_app_s_own_errors_stop_no_sending_and_are_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[Any] = []

    def failing(value: Any) -> None:
        told.append(value)
        raise RuntimeError("an app's own")

    service = Service()
    me = client(
        tmp_path / "queue.db", service, most=3, on_refused=failing, on_dropped=failing, on_trouble=failing
    )
    service.is_online = False
    dropped = me.track("A")
    keys = [me.track("A"), me.track("NO"), me.track("A")]
    assert me.flush() == 3
    service.is_online = True
    with caplog.at_level(logging.ERROR, "streakline_client"):
        assert me.flush() == 0
    me.close()
    first, second, third = told
    assert first["idempotency_key"] == dropped
    assert isinstance(second, Trouble)
    assert isinstance(third, RefusedEvent)
    assert (third.code, third.field, third.event["idempotency_key"]) == (
        "unknown_type",
        "event_type",
        keys[1],
    )
    assert service.keys == keys
    assert "an app's own" in caplog.text


def test_a_full_disk_keeps_events_in_memory_says_so_and_takes_them_when_it_has_room(tmp_path: Path) -> None:
    path, unkept = tmp_path / "queue.db", list[str]()
    service = Service(is_online=False)
    me = client(path, service, on_unkept=lambda event: unkept.append(event["idempotency_key"]))
    keys = [me.track("A", {"text": "x" * 5000}) for _ in range(3)]
    with full_disk():
        keys += [me.track("A", {"text": "x" * 5000}) for _ in range(3)]
        assert [each["idempotency_key"] for each in me.waiting()] == keys
        assert (unkept, me.flush(), me.estimate()["current_streak"]) == (keys[3:], 6, 1)
    keys.append(me.track("A"))
    assert len(unkept) == 3
    me.close()
    again = client(path, Service())
    assert [each["idempotency_key"] for each in again.waiting()] == keys, "in their order, each once"
    assert again.flush() == 0
    again.close()


def test_what_a_full_disk_did_not_take_is_sent_from_memory_and_is_not_sent_again(tmp_path: Path) -> None:
    path, service = tmp_path / "queue.db", Service()
    me = client(path, service)
    keys = [me.track("A")]
    with full_disk():
        keys.append(me.track("A", {"text": "x" * 5000}))
        assert me.flush() == 0
        assert service.keys == keys
        keys.append(me.track("B", {"text": "x" * 5000}))
    assert [each["event_type"] for each in me.waiting()] == ["B"]
    assert me.flush() == 0
    me.close()
    again = client(path, service)
    assert (again.waiting(), service.keys) == ([], keys)
    again.close()


def test_two_processes_at_a_full_disk_lose_nothing_of_each_other(tmp_path: Path) -> None:
    path, service = tmp_path / "queue.db", Service()
    one, other = client(path, service), client(path, service)
    keys = {one.track("A")}
    with full_disk():
        keys |= {one.track("A", {"text": "x" * 5000}), other.track("A", {"text": "y" * 5000})}
    keys |= {other.track("A"), one.track("A")}
    assert {each["idempotency_key"] for each in one.waiting()} == keys
    assert (one.flush(), other.flush(), set(service.keys), len(service.keys)) == (0, 0, keys, 5)
    one.close()
    other.close()


def test_a_file_that_begins_on_a_full_disk_is_made_when_there_is_room(tmp_path: Path) -> None:
    path = tmp_path / "queue.db"
    with full_disk():
        me = client(path, Service(is_online=False))
        key = me.track("A")
    me.close()
    again = client(path, Service())
    assert [each["idempotency_key"] for each in again.waiting()] == [key]
    again.close()


def test_a_flush_ends_although_events_go_on(tmp_path: Path) -> None:
    me = client(tmp_path / "queue.db", Service())
    send = me._calls._send

    def slow(request: Request) -> Reply:
        me.track("A")  # another thread does, before each answer
        return send(request)

    me._calls._send = slow
    me.track("A")
    ended = list[int]()
    threading.Thread(target=lambda: ended.append(me.flush()), daemon=True).start()
    until = time.monotonic() + 10
    while not ended and time.monotonic() < until:
        time.sleep(0.02)
    me._calls._send = send
    assert ended == [1]
    assert me.flush() == 0
    me.close()


def test_a_full_queue_whose_events_are_under_way_never_drops_the_newest() -> None:
    queue = EventQueue(None, DeviceClocks().read, None, 1)
    queue.add("A", None, "ann")
    batch = queue.batch(100, queue.newest())
    assert batch
    second, dropped = queue.add("B", None, "ann")
    assert dropped == []
    third, dropped = queue.add("C", None, "ann")
    assert dropped == [second]
    queue.settle(batch.events)
    assert [each.event for each in queue.waiting()] == [third]


@pytest.mark.parametrize("error", [Unreachable("offline"), OSError("an app's own"), KeyboardInterrupt()])
def test_events_whose_request_got_no_answer_are_under_way_no_more(error: BaseException) -> None:
    dropped: list[str] = []

    class Offline(Service):
        def __call__(self, _: Request) -> Reply:
            raise error

    me = client(None, Offline(), most=3, on_dropped=lambda event: dropped.append(event["idempotency_key"]))
    keys = [me.track("A") for _ in range(3)]
    expected = nullcontext() if isinstance(error, Unreachable) else pytest.raises(type(error))
    with expected:
        assert me.flush() == 3
    keys += [me.track("A") for _ in range(2)]
    assert dropped == keys[:2]
    assert [each["idempotency_key"] for each in me.waiting()] == keys[2:]
    me.close()


def test_a_thread_that_is_closed_right_after_its_look_ends() -> None:
    tracker = client(None, Service())._tracker
    assert tracker
    closed, woken = tracker._closed, tracker._woken

    class Look(threading.Event):
        def is_set(self) -> bool:
            try:
                return closed.is_set()
            finally:
                closed.set()
                woken.set()

    class Wait(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            assert self.is_set(), "it waits for ever"
            return True

    woken = tracker._woken = Wait()
    tracker._closed = Look()
    tracker._work()
