"""The Python client over a network that breaks off, and with properties that are no JSON."""

import socket
import struct
import threading
from collections.abc import Iterator

import pytest
from streakline_client import Streakline, Unreachable
from streakline_client.tracker import Queueing

from tests.unit.clients.test_faulty_disks import Service, client


@pytest.fixture
def breaking() -> Iterator[str]:
    """A service that begins an error and resets the connection."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                line, _ = server.accept()
            except OSError:
                return
            line.recv(65536)
            line.sendall(b"HTTP/1.1 503 Down\r\ncontent-length: 100\r\n\r\nabc")
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            line.close()

    thread = threading.Thread(target=serve)
    thread.start()
    yield f"http://127.0.0.1:{server.getsockname()[1]}"
    server.shutdown(socket.SHUT_RDWR)
    server.close()
    thread.join()


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
