"""The Redis client on the wire, and a cache that survives losing it."""

import io
import json
import socket
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.engagement import engagement_cache as cache_module
from adapters.engagement.account_items import day_attributes, profile_attributes
from adapters.engagement.engagement_cache import READY_SECONDS, RETRY_AFTER_SECONDS, EngagementCache
from adapters.platform.redis import Redis, RedisError, _encode
from rules.engagement.account_state import Day, Profile
from rules.engagement.streaks import Streak

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


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


def test_a_connection_is_kept(patch: pytest.MonkeyPatch) -> None:
    redis, wires = connected(patch, b":1\r\n:2\r\n")
    assert (redis.call("INCR", "a"), redis.call("INCR", "a")) == (1, 2)
    assert len(wires.opened) == 1


def test_password_user_and_database_go_first(patch: pytest.MonkeyPatch) -> None:
    redis, wires = connected(patch, b"+OK\r\n+OK\r\n+PONG\r\n", url="redis://me:p%40ss@cache/3")
    assert redis.call("PING") == "PONG"
    assert wires.opened == [("cache", 6379)]
    assert wires.wires[0].sent == _encode(["AUTH", "me", "p@ss"]) + _encode(["SELECT", "3"]) + _encode(
        ["PING"]
    )


def test_a_password_alone_goes_without_a_user(patch: pytest.MonkeyPatch) -> None:
    redis, wires = connected(patch, b"+OK\r\n+PONG\r\n", url="redis://:secret@cache")
    redis.call("PING")
    assert wires.wires[0].sent == _encode(["AUTH", "secret"]) + _encode(["PING"])


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


def test_it_speaks_over_a_real_socket_too(patch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        patch.setattr(ours.__class__, "setsockopt", lambda *_: None)
        patch.setattr(socket, "create_connection", lambda *_, **__: ours)
        theirs.sendall(b"$5\r\nhello\r\n")
        redis = Redis("redis://cache")
        assert redis.call("GET", "a") == "hello"
        assert theirs.recv(100) == _encode(["GET", "a"])
        redis.close()
        assert theirs.recv(100) == b""


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


@settings(deadline=None)
@given(st.lists(replies, min_size=1, max_size=4))
def test_any_reply_reads_back(values: list[Any]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        redis, _ = connected(patch, b"".join(map(reply, values)))
        assert redis.pipeline([["X"]] * len(values)) == values


@settings(deadline=None)
@given(st.binary(max_size=40))
def test_any_bytes_are_an_answer_or_a_redis_error(wire: bytes) -> None:
    with pytest.MonkeyPatch.context() as patch:
        redis, _ = connected(patch, wire)
        try:
            redis.call("PING")
        except RedisError as error:
            assert str(error) is not None


class Fake:
    """A Redis that is there or is not, and notes what it is asked."""

    def __init__(self) -> None:
        self.down = False
        self.asked: list[list[Any]] = []
        self.tried = 0
        self.answers: dict[str, Any] = {}

    def call(self, *command: Any) -> Any:
        return self.pipeline([command])[0]

    def pipeline(self, commands: Sequence[Sequence[Any]]) -> list[Any]:
        self.tried += 1
        if self.down:
            raise RedisError("gone")
        self.asked += [list(each) for each in commands]
        return [self.answers.get(str(each[0])) for each in commands]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    moment = [1000.0]
    monkeypatch.setattr(cache_module, "time", SimpleNamespace(monotonic=lambda: moment[0]))
    yield moment


@pytest.fixture
def redis(monkeypatch: pytest.MonkeyPatch) -> Fake:
    fake = Fake()
    monkeypatch.setattr(cache_module, "Redis", lambda url: fake)
    return fake


@pytest.fixture
def cache(redis: Fake, clock: list[float]) -> EngagementCache:
    return EngagementCache("redis://cache")


PROFILE = Profile("u", version=3, streak=Streak(date(2026, 6, 1), 4, 9, 30), total_points=50)
DAY = Day("u", date(2026, 6, 1), "e", 2, 20, {"CHECK_IN": 5}, "h", "c")


def read_everything(cache: EngagementCache) -> list[Any]:
    return [
        cache.profile("u"),
        cache.day("u", date(2026, 6, 1)),
        cache.top_list("global", "streaks", 10),
        cache.count_events("u", 5, NOW),
        cache.top("streaks", "global", 10, NOW),
        cache.count_above("streaks", "global", 3, NOW),
        cache.processed({"u": ["a", "b"]}) or None,
        cache.ranks_ready() or None,
    ]


def write_everything(cache: EngagementCache) -> None:
    cache.remember(PROFILE)
    cache.write_through([PROFILE], [DAY], {"u": ["a"]})
    cache.keep_top_list("global", "streaks", 10, [])
    cache.rebuild_ranks([PROFILE])


def test_without_a_redis_every_read_knows_nothing_and_every_write_is_dropped() -> None:
    cache = EngagementCache("")
    assert not cache.is_configured
    assert read_everything(cache) == [None] * 8
    write_everything(cache)


def test_a_redis_that_raises_is_like_none(cache: EngagementCache, redis: Fake) -> None:
    redis.down = True
    assert cache.is_configured
    assert read_everything(cache) == [None] * 8
    write_everything(cache)
    assert redis.asked == []


def test_each_operation_survives_the_redis_that_raises_on_it(redis: Fake, clock: list[float]) -> None:
    redis.down = True
    for number in range(8):
        assert read_everything(EngagementCache("redis://cache"))[number] is None
    writes: list[Callable[[EngagementCache], None]] = [
        lambda each: each.remember(PROFILE),
        lambda each: each.write_through([PROFILE], [DAY], {"u": ["a"]}),
        lambda each: each.keep_top_list("global", "streaks", 10, []),
        lambda each: each.rebuild_ranks([PROFILE]),
    ]
    for write in writes:
        write(EngagementCache("redis://cache"))


def test_after_a_failure_redis_is_left_alone_for_some_seconds(
    cache: EngagementCache, redis: Fake, clock: list[float]
) -> None:
    redis.down = True
    cache.profile("u")
    cache.profile("u")
    assert redis.tried == 1
    clock[0] += RETRY_AFTER_SECONDS
    cache.profile("u")
    assert redis.tried == 2


def test_what_was_not_written_is_deleted_first_when_redis_is_back(
    cache: EngagementCache, redis: Fake, clock: list[float]
) -> None:
    redis.down = True
    cache.write_through([PROFILE], [DAY])
    cache.write_through([Profile("v", version=1)])
    redis.down = False
    clock[0] += RETRY_AFTER_SECONDS
    cache.profile("u")
    first, second = redis.asked
    assert first[:2] == ["DEL", "{board}:ready"]
    assert set(first[2:]) == {"streak:u", "streak:v", "active:u:2026-06-01"}
    assert second == ["GET", "streak:u"]
    cache.profile("u")
    assert redis.asked[2:] == [["GET", "streak:u"]]


def test_a_write_dropped_while_redis_rests_is_remembered_too(
    cache: EngagementCache, redis: Fake, clock: list[float]
) -> None:
    redis.down = True
    cache.profile("u")
    redis.down = False
    cache.write_through([PROFILE])
    assert redis.asked == []
    clock[0] += RETRY_AFTER_SECONDS
    cache.profile("u")
    assert redis.asked[0] == ["DEL", "{board}:ready", "streak:u"]


def test_stale_keys_stay_remembered_until_they_are_deleted(
    cache: EngagementCache, redis: Fake, clock: list[float]
) -> None:
    redis.down = True
    cache.write_through([PROFILE])
    for _attempt in range(3):
        clock[0] += RETRY_AFTER_SECONDS
        assert cache.profile("u") is None
    redis.down = False
    clock[0] += RETRY_AFTER_SECONDS
    cache.profile("v")
    assert redis.asked[0] == ["DEL", "{board}:ready", "streak:u"]


def test_a_failed_read_makes_nothing_stale(cache: EngagementCache, redis: Fake, clock: list[float]) -> None:
    redis.down = True
    read_everything(cache)
    redis.down = False
    clock[0] += RETRY_AFTER_SECONDS
    cache.profile("u")
    assert redis.asked == [["GET", "streak:u"]]


def test_what_is_cached_is_answered(cache: EngagementCache, redis: Fake) -> None:
    redis.answers["GET"] = json.dumps(profile_attributes(PROFILE, 1))
    assert cache.profile("u") == PROFILE
    redis.answers["GET"] = json.dumps(day_attributes(DAY))
    assert cache.day("u", DAY.activity_date) == day_attributes(DAY)
    redis.answers |= {"GET": "[]", "INCRBY": 6, "EXISTS": 1, "SMISMEMBER": [1, 0]}
    assert cache.top_list("global", "streaks", 10) == []
    assert cache.count_events("u", 5, NOW) == 6
    assert cache.ranks_ready()
    assert cache.processed({"u": ["a", "b"], "v": []}) == {"u": {"a"}}


def test_ranks_are_answered_only_while_they_are_whole(cache: EngagementCache, redis: Fake) -> None:
    redis.answers |= {"ZRANGE": ["a", "-7", "b", "-3"], "ZCOUNT": 4, "EXISTS": 1}
    assert cache.top("streaks", "global", 10, NOW) == [("a", 7), ("b", 3)]
    assert cache.count_above("streaks", "global", 3, NOW) == 4
    redis.answers["EXISTS"] = 0
    assert cache.top("streaks", "global", 10, NOW) is None
    assert cache.count_above("streaks", "global", 3, NOW) is None


def test_a_write_through_is_one_round_trip(cache: EngagementCache, redis: Fake) -> None:
    cache.write_through([PROFILE], [DAY], {"u": ["a", "b"]})
    assert redis.tried == 1
    assert [each[0] for each in redis.asked] == ["EVAL", "EVAL", "SET", "SADD", "EXPIRE"]
    assert redis.asked[0][3:5] == ["streak:u", 3]


def test_ranks_are_rebuilt_by_one_process_at_a_time(cache: EngagementCache, redis: Fake) -> None:
    cache.rebuild_ranks([PROFILE])
    assert [each[:2] for each in redis.asked] == [["SET", "{board}:building"]]
    redis.answers["SET"] = "OK"
    cache.rebuild_ranks([PROFILE])
    assert redis.asked[-2:] == [
        ["SET", "{board}:ready", "1", "EX", READY_SECONDS],
        ["DEL", "{board}:building"],
    ]
    assert redis.asked[2][:2] == ["DEL", "{board}:ready"]


def test_a_rebuild_that_breaks_off_does_not_say_that_it_is_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Breaking(Fake):
        def pipeline(self, commands: Sequence[Sequence[Any]]) -> list[Any]:
            self.down = self.tried == 1
            return super().pipeline(commands)

    fake = Breaking()
    fake.answers["SET"] = "OK"
    monkeypatch.setattr(cache_module, "Redis", lambda url: fake)
    crowd = (Profile(str(number), version=1) for number in range(1200))
    moments = iter(range(0, 10**6, 100))
    monkeypatch.setattr(cache_module, "time", SimpleNamespace(monotonic=lambda: float(next(moments))))
    EngagementCache("redis://cache").rebuild_ranks(crowd)
    assert fake.tried == 2
    assert not any(each[:2] == ["SET", "{board}:ready"] for each in fake.asked)
