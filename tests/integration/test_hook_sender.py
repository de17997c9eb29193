"""One request to an endpoint over real sockets: only to the address that was checked, and never for long."""

import contextlib
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adapters.outgoing.transports import HookSender
from rules.outgoing.webhooks import Target
from tests.support.hook_receiver import Receiver, receiver
from tests.support.tls_postgres import make_authority


@pytest.fixture
def there() -> Iterator[Receiver]:
    with receiver() as told:
        yield told


def to(told: Receiver, host: str = "hooks.example.com", *, is_secure: bool = False) -> Target:
    return Target(is_secure, host, told.port, "/hook?a=b")


def leading(*addresses: str) -> HookSender:
    """A sender whose names lead to these addresses, of which 127.0.0.1 alone may be called."""
    return HookSender(lambda _host, _port: addresses, lambda each: each == "127.0.0.1", answer_seconds=0.5)


def test_a_message_arrives_as_it_was_signed(there: Receiver) -> None:
    answer = leading("127.0.0.1").post(to(there), {"webhook-id": "msg_1"}, b'{"a":1}')
    assert (answer.status, answer.is_delivered) == (204, True)
    ((headers, body),) = there.received
    assert body == b'{"a":1}'
    assert (headers["webhook-id"], headers["host"]) == ("msg_1", f"hooks.example.com:{there.port}")
    assert headers["content-type"] == "application/json"


def test_a_name_that_leads_to_a_private_address_is_not_called(there: Receiver) -> None:
    """tests/unit/outgoing/test_addresses.py has all kinds of them."""
    for addresses in (
        ["127.0.0.1"],
        ["::1"],
        ["93.184.216.34", "169.254.169.254"],
    ):  # one of several is enough
        answer = HookSender(lambda _host, _port, each=addresses: each).post(to(there), {}, b"{}")  # type: ignore[misc]
        assert (answer.status, answer.is_delivered) == (0, False)
        assert "private or reserved" in answer.reason
    assert there.received == []


def test_what_the_system_s_resolver_makes_of_strange_names_is_not_called(there: Receiver) -> None:
    for name in ("localhost", "localhost.", "2130706433", "0x7f000001", "0177.0.0.1", "127.1"):
        assert not HookSender().post(to(there, name), {}, b"{}").is_delivered
    assert there.received == []


def test_a_name_that_changes_between_check_and_connect_leads_nowhere_else(there: Receiver) -> None:
    """The name is asked once; the second answer of a rebinding server would be another host."""
    with receiver("127.0.0.2") as inner:
        answers = iter([["127.0.0.1"], ["127.0.0.2"], ["127.0.0.2"]])
        sender = HookSender(lambda _host, _port: next(answers), lambda each: each == "127.0.0.1")
        assert sender.post(to(there), {}, b"{}").is_delivered
        assert not sender.post(Target(False, "hooks.example.com", inner.port, "/"), {}, b"{}").is_delivered
        assert (len(there.received), len(inner.received)) == (1, 0)


@pytest.mark.parametrize("status", [302, 308, 410])
def test_a_redirect_is_not_followed_and_410_wants_no_more(there: Receiver, status: int) -> None:
    there.answer = lambda _: status
    answer = leading("127.0.0.1").post(to(there), {}, b"{}")
    assert (answer.status, answer.is_delivered, answer.is_gone) == (status, False, status == 410)
    assert len(there.received) == 1


@pytest.mark.parametrize("behaviour", ["silent", "trickling", "dragging on", "garbage", "closing"])
def test_an_endpoint_cannot_hold_us(there: Receiver, behaviour: str) -> None:
    def behave(handler: Any) -> None:
        if behaviour == "silent":
            time.sleep(1.5)
        elif behaviour == "garbage":
            handler.wfile.write(b"\x00" * 1000 + b"\r\n\r\n")
        elif behaviour in {"trickling", "dragging on"}:
            begin, rest = b"HTTP/1.1 200 OK\r\nx: ", b"y" * 30
            parts = [begin] if behaviour == "dragging on" else [bytes([each]) for each in begin]
            try:
                for part in (*parts, *(bytes([each]) for each in rest)):
                    handler.wfile.write(part)
                    handler.wfile.flush()
                    time.sleep(0.05)
            except OSError:
                pass

    there.behave = behave
    began = time.monotonic()
    answer = leading("127.0.0.1").post(to(there), {}, b"{}")
    assert (answer.status, answer.is_delivered) == (0, False)
    assert answer.reason
    assert time.monotonic() - began < 1.4


@pytest.mark.parametrize(
    "interim", [[100], [102], [103], [102, 103, 102], [103, 100], [104], [199], [102] * 10]
)
@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize("is_slow", [True, False])
def test_interim_answers_are_no_answer(
    there: Receiver, interim: list[int], status: int, is_slow: bool
) -> None:
    def behave(handler: Any) -> None:
        parts = [f"HTTP/1.1 {each} Wait\r\nLink: </a.css>\r\n\r\n".encode() for each in interim]
        parts.append(f"HTTP/1.1 {status} Done\r\nContent-Length: 2\r\n\r\nok".encode())
        for part in parts if is_slow else [b"".join(parts)]:
            handler.wfile.write(part)
            handler.wfile.flush()
            time.sleep(0.02 if is_slow else 0)

    there.behave = behave
    assert leading("127.0.0.1").post(to(there), {}, b"{}").status == status


@pytest.mark.parametrize(
    "interim",
    [
        b"HTTP/1.1 103\r\n\r\n",
        b"HTTP/1.0 103 Early Hints\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 102 Processing\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\n\n",
    ],
)
@pytest.mark.parametrize(
    "last", [b"Content-Length: 2\r\n\r\nok", b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"]
)
def test_what_an_interim_answer_says_of_itself_says_nothing_of_the_answer(
    there: Receiver, interim: bytes, last: bytes
) -> None:
    there.behave = lambda handler: handler.wfile.write(interim + b"HTTP/1.1 200 OK\r\n" + last)
    assert leading("127.0.0.1").post(to(there), {}, b"{}").status == 200
    assert len(there.received) == 1


def test_interim_answers_alone_are_too_late(there: Receiver) -> None:
    def behave(handler: Any) -> None:
        with contextlib.suppress(OSError):
            for _ in range(60):
                handler.wfile.write(b"HTTP/1.1 102 Processing\r\n\r\n")
                handler.wfile.flush()
                time.sleep(0.02)

    there.behave = behave
    answer = leading("127.0.0.1").post(to(there), {}, b"{}")
    assert (answer.status, answer.reason) == (0, "no answer in 0.5 seconds")


def test_an_endpoint_that_is_not_there_and_a_name_that_is_none() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        nobody = Target(False, "hooks.example.com", unused.getsockname()[1], "/")
        assert "refused" in leading("127.0.0.1").post(nobody, {}, b"{}").reason
    assert "no address" in leading().post(nobody, {}, b"{}").reason


def test_the_certificate_must_be_that_of_the_name_and_not_of_the_address(tmp_path: Path) -> None:
    authority, server = make_authority(tmp_path, "hooks.example.com")
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(server)
    with receiver(context=serving) as told:
        trusting = ssl.create_default_context(cafile=str(authority))
        sender = HookSender(lambda _host, _port: ["127.0.0.1"], lambda _: True, trusting)
        assert sender.post(to(told, is_secure=True), {}, b"{}").is_delivered
        wrong = sender.post(to(told, "other.example.com", is_secure=True), {}, b"{}")
        assert "certificate" in wrong.reason.lower()
        unknown = HookSender(lambda _host, _port: ["127.0.0.1"], lambda _: True)
        assert "certificate" in unknown.post(to(told, is_secure=True), {}, b"{}").reason.lower()
        assert len(told.received) == 1
