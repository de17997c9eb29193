"""The Python client in processes that fork: each child sends what it tracks, and nobody else's events."""

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from streakline_client import Queueing, Reply, Request, Streakline

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork"),
    # Python warns of a fork beside threads: that is what these tests are of.
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]
SECONDS_MAX = 20


class Service:
    """Takes all events, and writes each key with the process that sent it to a file, which all processes share."""

    def __init__(self, path: Path) -> None:
        self.path, self.pause = path, 0.0

    def __call__(self, request: Request) -> Reply:
        events: list[dict[str, Any]] = json.loads(request.body or b"{}").get("events", [])
        lines = "".join(f"{each['idempotency_key']} {os.getpid()}\n" for each in events)
        with self.path.open("a") as file:
            file.write(lines)
        time.sleep(self.pause)
        return Reply(202, json.dumps({"results": [{"status": "accepted"} for _ in events]}).encode())

    def sent(self) -> list[tuple[str, int]]:
        """The (key, process) of each event that arrived."""
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        return [(key, int(process)) for key, process in (line.split() for line in lines)]

    def wait_for(self, number: int) -> list[tuple[str, int]]:
        until = time.monotonic() + SECONDS_MAX
        while len(found := self.sent()) < number and time.monotonic() < until:
            time.sleep(0.02)
        return found


@pytest.fixture
def service(tmp_path: Path) -> Service:
    return Service(tmp_path / "sent")


@contextmanager
def client(service: Service, path: Path | None, **more: Any) -> Iterator[Streakline]:
    me = Streakline("https://x.test", "t", user="ann", queue=Queueing(path=path, **more), transport=service)
    yield me
    me.close()


def forked(work: Callable[[], Any]) -> int:
    """Fork; the child works, and ends without cleaning up. Returns its id."""
    process = os.fork()
    if process:
        return process
    ended = 1
    try:
        signal.alarm(SECONDS_MAX)  # a child that hangs dies
        work()
        ended = 0
    finally:
        os._exit(ended)


def ended_well(process: int) -> None:
    _, status = os.waitpid(process, 0)
    assert os.waitstatus_to_exitcode(status) == 0, "the child hung, or failed"


def track_and_wait(me: Streakline, most_seconds: float = SECONDS_MAX) -> None:
    """Track an event and wait until a thread has sent it."""
    me.track("A")
    until = time.monotonic() + most_seconds
    while me.waiting():
        assert time.monotonic() < until, "nobody sends it"
        time.sleep(0.02)


PATHS = pytest.mark.parametrize("name", ["queue.db", None], ids=["file", "memory"])


def path_of(folder: Path, name: str | None) -> Path | None:
    return folder / name if name else None


@PATHS
def test_a_child_sends_what_it_tracks_by_itself(tmp_path: Path, service: Service, name: str | None) -> None:
    with client(service, path_of(tmp_path, name)) as me:
        track_and_wait(me)
        children = [forked(lambda: track_and_wait(me)) for _ in range(3)]
        for each in children:
            ended_well(each)
        sent = service.sent()
    assert len({key for key, _ in sent}) == len(sent) == 4
    assert name or {process for _, process in sent} == {os.getpid(), *children}


@PATHS
def test_a_parent_in_the_midst_of_its_work_delays_no_child(
    tmp_path: Path, service: Service, name: str | None
) -> None:
    service.pause = 0.002
    with client(service, path_of(tmp_path, name)) as me:
        is_over = threading.Event()

        def work() -> None:
            while not is_over.wait(0.001):
                me.track("A")
                me.waiting()
                me.estimate()

        threads = [threading.Thread(target=work, daemon=True) for _ in range(3)]
        for thread in threads:
            thread.start()

        def in_child() -> None:
            key = me.track("B")
            me.flush()
            assert key in {sent for sent, _ in service.sent()}
            me.close()

        children = [forked(in_child) for _ in range(12)]
        for each in children:
            ended_well(each)
        is_over.set()
        for thread in threads:
            thread.join()
        me.flush()
        keys = [key for key, _ in service.sent()]
    assert len(keys) == len(set(keys)), "an event was sent twice"


@PATHS
def test_a_child_of_a_parent_that_is_sending_waits_for_no_lock_of_its_own(
    tmp_path: Path, service: Service, name: str | None
) -> None:
    service.pause = 1.0
    with client(service, path_of(tmp_path, name), is_sending=False) as me:
        me.track("A")
        sender = threading.Thread(target=me.flush)
        sender.start()
        service.wait_for(1)

        def in_child() -> None:
            me.track("B")
            assert me.flush() == 0

        child = forked(in_child)
        sender.join()
        ended_well(child)
        first, second = service.sent()
        assert (first[1], first[0] != second[0]) == (os.getpid(), True)
        assert name or second[1] == child


def test_a_child_does_not_keep_its_parents_lock_when_the_parent_is_killed(
    tmp_path: Path, service: Service
) -> None:
    """A parent that is killed while it sends has a child: somebody else can send at once."""
    path = tmp_path / "queue.db"

    def in_parent() -> None:
        with client(service, path, is_sending=False) as me:
            me.track("A")
            service.pause = SECONDS_MAX
            threading.Thread(target=me.flush).start()
            service.wait_for(1)
            (tmp_path / "child").write_text(str(forked(lambda: time.sleep(SECONDS_MAX))))
            os.kill(os.getpid(), signal.SIGKILL)

    os.waitpid(forked(in_parent), 0)
    started = time.monotonic()
    with client(service, path, is_sending=False) as me:
        assert me.flush() == 0
    assert time.monotonic() - started < SECONDS_MAX / 2
    os.kill(int((tmp_path / "child").read_text()), signal.SIGKILL)


@PATHS
def test_what_waits_in_the_parent_is_not_sent_twice(
    tmp_path: Path, service: Service, name: str | None
) -> None:
    with client(service, path_of(tmp_path, name), is_sending=False) as me:
        key = me.track("A")

        def in_child() -> None:
            assert me.flush() == 0

        ended_well(forked(in_child))
        assert [each["idempotency_key"] for each in me.waiting()] == ([] if name else [key])
        assert me.flush() == 0
        assert [sent for sent, _ in service.sent()] == [key]


@PATHS
def test_a_child_of_a_child_sends_also_if_its_parent_never_used_the_client(
    tmp_path: Path, service: Service, name: str | None
) -> None:
    with client(service, path_of(tmp_path, name)) as me:
        for first in (lambda: None, lambda: track_and_wait(me)):

            def in_child(first: Callable[[], None] = first) -> None:
                first()
                ended_well(forked(lambda: track_and_wait(me)))
                first()

            ended_well(forked(in_child))
        keys = [key for key, _ in service.sent()]
    assert len(keys) == len(set(keys)) == 4


def test_what_a_child_left_that_ended_at_once_is_sent_by_its_parent(
    tmp_path: Path, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streakline_client.tracker.LEFT_SECONDS", 0.1)
    with client(service, tmp_path / "queue.db") as me:
        track_and_wait(me)
        ended_well(forked(lambda: me.track("A")))
        assert len(service.wait_for(2)) == 2


def test_a_client_that_the_child_never_uses_or_only_closes_changes_nothing(
    tmp_path: Path, service: Service
) -> None:
    with client(service, tmp_path / "queue.db") as me:
        track_and_wait(me)
        ended_well(forked(lambda: None))
        ended_well(forked(me.close))
        process = get_context("fork").Process(target=me.estimate)  # it ends as Python does
        process.start()
        process.join()
        assert process.exitcode == 0
        track_and_wait(me)
        assert len(service.sent()) == 2


def test_who_was_closed_stays_closed_in_a_child(tmp_path: Path, service: Service) -> None:
    with client(service, tmp_path / "queue.db") as me:
        me.close()

        def in_child() -> None:
            with pytest.raises(Exception, match="closed"):
                me.track("A")

        ended_well(forked(in_child))


def test_a_fork_without_python_s_hooks_is_noticed_too(
    tmp_path: Path, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As servers in C fork: nobody calls the hooks. Here the process seems to have another id."""
    with client(service, tmp_path / "queue.db", is_sending=False) as me:
        before = me._tracker
        me.track("A")
        monkeypatch.setattr("os.getpid", lambda: 4711)
        me.track("B")
        assert me._tracker is not before
        assert (len(me.waiting()), me.flush(), len(service.sent())) == (2, 0, 2)
