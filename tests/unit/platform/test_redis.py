"""The Redis client: what it writes to the connection, and what it reads from it."""

import io
import socket
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.platform.redis import Redis, RedisError, _encode


class Wire:
    """Stands in for a connected socket: takes what is sent, answers what was prepared."""

    def __init__(self, answers: bytes) -> None:
        self.sent, self.answers, self.closed = b"", io.BytesIO(answers), False

    def sendall(self, data: bytes) -> None:
        if self.closed:
            raise OSError("closed")
        self.sent += data

    def setsockopt(self, *_: int) -> None:
        pass

    def makefile(self, mode: str) -> io.BytesIO:
        return self.answers

    def close(self) -> None:
        self.closed = True


class Wires:
    """What create_connection hands out, one after the other."""

    def __init__(self, *answers: bytes) -> None:
        self.wires = [Wire(each) for each in answers]
        self.opened: list[tuple[Any, ...]] = []

    def __call__(self, address: tuple[str, int], timeout: float) -> Wire:
        if len(self.opened) >= len(self.wires):
            raise ConnectionRefusedError("nobody listens")
        self.opened.append(address)
        return self.wires[len(self.opened) - 1]


def connected(
    patch: pytest.MonkeyPatch, *answers: bytes, url: str = "redis://cache:7000"
) -> tuple[Redis, Wires]:
    wires = Wires(*answers)
    patch.setattr(socket, "create_connection", wires)
    return Redis(url), wires


@pytest.fixture
def patch(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    return monkeypatch


def test_commands_are_written_as_arrays_of_counted_bytes() -> None:
    assert _encode(["SET", "é", 1, 0.5]) == b"*4\r\n$3\r\nSET\r\n$2\r\n\xc3\xa9\r\n$1\r\n1\r\n$3\r\n0.5\r\n"
    assert _encode(["GET", "a\r\nDEL b"]) == b"*2\r\n$3\r\nGET\r\n$8\r\na\r\nDEL b\r\n"


@pytest.mark.parametrize(
    ("wire", "value"),
    [
        (b"+OK\r\n", "OK"),
        (b":42\r\n", 42),
        (b":-1\r\n", -1),
        (b"$5\r\nhello\r\n", "hello"),
        (b"$2\r\n\xc3\xa9\r\n", "é"),
        (b"$0\r\n\r\n", ""),
        (b"$4\r\n\r\n\r\n\r\n", "\r\n\r\n"),
        (b"$-1\r\n", None),
        (b"*-1\r\n", None),
        (b"*0\r\n", []),
        (b"*3\r\n:1\r\n$1\r\na\r\n*1\r\n$-1\r\n", [1, "a", [None]]),
    ],
)
def test_each_kind_of_reply_is_read(patch: pytest.MonkeyPatch, wire: bytes, value: Any) -> None:
    redis, wires = connected(patch, wire)
    assert redis.call("PING") == value
    assert wires.opened == [("cache", 7000)]


def test_a_pipeline_is_one_write_and_its_answers_come_in_order(patch: pytest.MonkeyPatch) -> None:
    redis, wires = connected(patch, b":1\r\n:2\r\n+OK\r\n")
    assert redis.pipeline([["INCR", "a"], ["INCR", "b"], ["PING"]]) == [1, 2, "OK"]
    assert wires.wires[0].sent == _encode(["INCR", "a"]) + _encode(["INCR", "b"]) + _encode(["PING"])


@pytest.mark.parametrize(
    ("url", "first"),
    [
        ("redis://me:p%40ss@cache/3", [["AUTH", "me", "p@ss"], ["SELECT", "3"]]),
        ("redis://:secret@cache", [["AUTH", "secret"]]),
        ("redis://cache/0", []),
    ],
)
def test_password_user_and_database_go_first(
    patch: pytest.MonkeyPatch, url: str, first: list[list[str]]
) -> None:
    redis, wires = connected(patch, b"+OK\r\n" * len(first) + b"+PONG\r\n", url=url)
    assert redis.call("PING") == "PONG"
    assert wires.opened == [("cache", 6379)]
    assert wires.wires[0].sent == b"".join(map(_encode, [*first, ["PING"]]))


def test_a_connection_whose_login_was_refused_is_not_used(patch: pytest.MonkeyPatch) -> None:
    redis, wires = connected(
        patch, b"-LOADING try later\r\n:1\r\n", b"+OK\r\n+PONG\r\n", url="redis://cache/3"
    )
    with pytest.raises(RedisError, match="LOADING"):
        redis.call("PING")
    assert redis.call("PING") == "PONG"
    assert len(wires.opened) == 2
    assert b"SET" not in wires.wires[0].sent.replace(_encode(["SELECT", "3"]), b"")


def test_a_refused_command_is_told_after_all_answers_are_read(patch: pytest.MonkeyPatch) -> None:
    redis, wires = connected(patch, b":1\r\n-ERR no\r\n:3\r\n:4\r\n")
    with pytest.raises(RedisError, match="ERR no"):
        redis.pipeline([["INCR", "a"], ["BAD"], ["INCR", "b"]])
    assert redis.call("INCR", "c") == 4
    assert len(wires.opened) == 1


@pytest.mark.parametrize("answer", [b"-MOVED 3999 10.0.0.2:6379\r\n", b"-ASK 3999 10.0.0.2:6379\r\n"])
def test_a_cluster_of_several_nodes_is_told_once_and_not_used(
    patch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, answer: bytes
) -> None:
    redis, wires = connected(patch, b":1\r\n" + answer, b":7\r\n")
    for _attempt in range(3):
        with pytest.raises(RedisError, match="several nodes, which is not supported"):
            redis.pipeline([["INCR", "a"], ["INCR", "b"]])
    assert len(wires.opened) == 1
    assert wires.wires[0].closed
    (told,) = caplog.messages
    assert "10.0.0.2" in told
    assert "goes on without a cache" in told


def test_a_refused_database_is_told_once(patch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    refusal = b"-ERR SELECT is not allowed in cluster mode\r\n"
    redis, _ = connected(patch, refusal, refusal, url="redis://cache/3")
    for _attempt in range(2):
        with pytest.raises(RedisError, match="SELECT"):
            redis.call("PING")
    assert len(caplog.messages) == 1


@pytest.mark.parametrize(
    "wire",
    [
        b"",
        b"+OK",
        b":x\r\n",
        b"?what\r\n",
        b"$x\r\n",
        b"\r\n",
        b"$2\r\n\xff\xff\r\n",
        b"*2\r\n:1\r\n",
        b"$5\r\nhel",
        b"$5\r\nhello",
    ],
)
def test_a_broken_reply_drops_the_connection_and_the_next_call_opens_another(
    patch: pytest.MonkeyPatch, wire: bytes
) -> None:
    redis, wires = connected(patch, wire, b":7\r\n")
    with pytest.raises(RedisError):
        redis.call("GET", "a")
    assert wires.wires[0].closed
    assert redis.call("INCR", "a") == 7


def test_a_redis_that_does_not_listen_is_a_redis_error(patch: pytest.MonkeyPatch) -> None:
    redis, _ = connected(patch)
    for _attempt in range(2):
        with pytest.raises(RedisError, match="nobody listens"):
            redis.call("PING")


@pytest.mark.parametrize("url", ["", "cache:6379", "http://cache", "redis://", "memcached://cache"])
def test_a_url_that_is_none_of_redis_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="REDIS_URL"):
        Redis(url)


scalars = st.none() | st.integers(-(2**40), 2**40) | st.text(max_size=8)
replies = st.recursive(scalars, lambda inner: st.lists(inner, max_size=4), max_leaves=8)


def reply(value: Any) -> bytes:
    if value is None:
        return b"$-1\r\n"
    if isinstance(value, int):
        return b":%d\r\n" % value
    if isinstance(value, str):
        return b"$%d\r\n%b\r\n" % (len(value.encode()), value.encode())
    return b"*%d\r\n" % len(value) + b"".join(map(reply, value))


@given(st.lists(replies, min_size=1, max_size=4))
def test_any_reply_reads_back(values: list[Any]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        redis, _ = connected(patch, b"".join(map(reply, values)))
        assert redis.pipeline([["X"]] * len(values)) == values


@given(st.binary(max_size=40))
def test_any_bytes_are_an_answer_or_a_redis_error(wire: bytes) -> None:
    with pytest.MonkeyPatch.context() as patch:
        redis, _ = connected(patch, wire)
        try:
            redis.call("PING")
        except RedisError as error:
            assert str(error) is not None
