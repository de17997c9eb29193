"""Exact ranks from Redis's sorted sets (engagement_cache.py lists the keys), the rounds in which these are
made and renewed, and the connection: what to do while Redis is away, and what to make good afterwards.
"""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any
from uuid import uuid4

from adapters.engagement.account_items import profile_attributes
from adapters.platform.redis import Command, Redis, RedisError, RedisUnsupported
from adapters.platform.tables import chunks
from rules.days import region_of
from rules.engagement.account_state import Profile
from rules.engagement.boards import ALL_REGIONS, BOARDS

# The commands that keep the sorted sets of exact ranks (engagement_cache.py lists the keys).
#
# Redis runs a script with nothing in between. So all sets agree on a user. It also runs nothing else
# meanwhile, so each script does a bounded piece of work: some milliseconds.


# Then the marker expires and the sets are rebuilt, which mends writes dropped by a process that died.
READY_SECONDS = 3600
# The marker of sets that are being renewed lives at least this long after each step.
RENEWED_SECONDS = 900
# A builder that says nothing for this long has lost its lock.
BUILD_SECONDS_MAX = 60
# A round that nobody has continued for this long begins anew.
ROUND_SECONDS = 3600
PLACED_A_SCRIPT = 50
SWEPT_A_SCRIPT = 300
# 200,000 streaks that end at one midnight leave in slices. In between, Redis does other work for this long.
LAPSED_A_SCRIPT = 300
LAPSE_PAUSE_MS = 20

# `{board}` is the hash tag that keeps these keys in one slot. A script may only touch keys that it is given.
READY, BUILDING, ROUND = "{board}:ready", "{board}:building", "{board}:round"
LAPSING = "{board}:lapsing"
STATE = ("{board}:state", "{board}:lapses")
SETS = {board: tuple(f"{{board}}:{board}:{region}" for region in ALL_REGIONS) for board in BOARDS}
EVERY_SET = (*STATE, *SETS["streaks"], *SETS["points"])

# KEYS: ROUND, EVERY_SET. ARGV: 'newer' or 'same', then user, version, region, streak, points, lapses_at of
# each user. Nothing is done for a version that is older than the one held; with 'newer' for the same one too.
PLACE = """
local round = redis.call('HGET', KEYS[1], 'token') or ''
local function place(board, region, score, user)
  for _, where in ipairs({region, 'global'}) do
    local set = '{board}:' .. board .. ':' .. where
    if score > 0 then redis.call('ZADD', set, -score, user) else redis.call('ZREM', set, user) end
  end
end
for first = 2, #ARGV, 6 do
  local user, version, region = ARGV[first], tonumber(ARGV[first + 1]), ARGV[first + 2]
  local held = redis.call('HGET', KEYS[2], user)
  local old = held and cjson.decode(held)
  if not old or version > old.version or (version == old.version and ARGV[1] == 'same') then
    if old and old.region ~= region then
      redis.call('ZREM', '{board}:streaks:' .. old.region, user)
      redis.call('ZREM', '{board}:points:' .. old.region, user)
    end
    redis.call('HSET', KEYS[2], user, cjson.encode({version = version, region = region, round = round}))
    local streak = tonumber(ARGV[first + 3])
    place('streaks', region, streak, user)
    place('points', region, tonumber(ARGV[first + 4]), user)
    if streak > 0 then
      redis.call('ZADD', KEYS[3], ARGV[first + 5], user)
    else
      redis.call('ZREM', KEYS[3], user)
    end
  end
end
return 1
"""
# KEYS: LAPSING, STATE, the sets of streaks. ARGV: now, users at once, milliseconds between two slices.
# Takes some of the streaks that show 0 by now out of their sets; answers how many are left.
LAPSE = """
local left = redis.call('ZCOUNT', KEYS[3], '-inf', ARGV[1])
if left == 0 then return 0 end
if left > tonumber(ARGV[2]) and not redis.call('SET', KEYS[1], '1', 'NX', 'PX', ARGV[3]) then return left end
local due = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])
local gone = {}
for place, held in ipairs(redis.call('HMGET', KEYS[2], unpack(due))) do
  if held then
    local set = '{board}:streaks:' .. cjson.decode(held).region
    gone[set] = gone[set] or {}
    table.insert(gone[set], due[place])
  end
end
for set, users in pairs(gone) do redis.call('ZREM', set, unpack(users)) end
redis.call('ZREM', '{board}:streaks:global', unpack(due))
redis.call('ZREM', KEYS[3], unpack(due))
return left - #due
"""
# KEYS: BUILDING, READY, ROUND, EVERY_SET. ARGV: token, seconds of the lock, seconds of a round.
# Takes the lock; answers how far the round is, null if somebody else has the lock. Where no round is under
# way one begins, with empty sets if nobody reads these.
BEGIN = """
if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'EX', ARGV[2]) then return false end
local reached = redis.call('HGET', KEYS[3], 'reached')
if reached then return reached end
if redis.call('EXISTS', KEYS[2]) == 0 then
  for place = 4, #KEYS do redis.call('UNLINK', KEYS[place]) end
end
redis.call('HSET', KEYS[3], 'token', string.sub(ARGV[1], 1, 8), 'reached', 'scan:')
redis.call('EXPIRE', KEYS[3], ARGV[3])
return 'scan:'
"""
# KEYS: BUILDING, READY, ROUND. ARGV: token, how far the round is, seconds of the lock, the round, the marker.
# Whoever holds the lock keeps it, and notes how far they are. Sets that are read go on to be.
RENEW = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] or redis.call('EXISTS', KEYS[3]) == 0 then return 0 end
redis.call('HSET', KEYS[3], 'reached', ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[3])
redis.call('EXPIRE', KEYS[3], ARGV[4])
if redis.call('TTL', KEYS[2]) < tonumber(ARGV[5]) then redis.call('EXPIRE', KEYS[2], ARGV[5]) end
return 1
"""
# KEYS: BUILDING, ROUND, EVERY_SET. ARGV: token, cursor, users at once. Takes out users whom the round has not
# seen; answers the next cursor, null to who has lost the lock.
SWEEP = """
local round = redis.call('HGET', KEYS[2], 'token')
if redis.call('GET', KEYS[1]) ~= ARGV[1] or not round then return false end
local found = redis.call('HSCAN', KEYS[3], ARGV[2], 'COUNT', ARGV[3])
for place = 1, #found[2], 2 do
  local user, held = found[2][place], cjson.decode(found[2][place + 1])
  if held.round ~= round then
    redis.call('HDEL', KEYS[3], user)
    for set = 4, #KEYS do redis.call('ZREM', KEYS[set], user) end
  end
end
return found[1]
"""
# KEYS: BUILDING, READY, ROUND. ARGV: token, seconds. Whoever holds the lock sets the marker and lets go.
FINISH = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] or redis.call('EXISTS', KEYS[3]) == 0 then return 0 end
redis.call('SET', KEYS[2], '1', 'EX', ARGV[2])
redis.call('DEL', KEYS[1])
redis.call('DEL', KEYS[3])
return 1
"""
RETRY_AFTER_SECONDS = 5
RECOVERED_AT_ONCE = 500
READS = ("GET", "EXISTS", "TTL")
PLACED_AT_ONCE = 500


def place_commands(profiles: Iterable[Profile], at: datetime | None = None) -> list[Command]:
    """Return the commands that put users into the sorted sets, unless they hold a version as new.

    at: of a rebuild, which writes the same version again, and no streak that shows 0 by then.
    """
    made: list[Command] = []
    for chunk in chunks(profiles, PLACED_A_SCRIPT):
        rows = [part for each in chunk for part in _row(each, at)]
        made.append([*_eval(PLACE, ROUND, *EVERY_SET), "same" if at else "newer", *rows])
    return made


def _row(profile: Profile, at: datetime | None) -> tuple[str | int, ...]:
    attributes = profile_attributes(profile)
    streak, lapses_at = attributes.get("current_streak", 0), attributes.get("lapses_at", 0)
    if at and lapses_at <= at.timestamp():
        streak = 0
    region = region_of(profile.zone)
    return profile.user_id, profile.version, region, streak, profile.total_points, lapses_at


def lapse_command(now: datetime) -> Command:
    """Return the command that takes out streaks that show 0 by now; answers how many are left."""
    keys = (LAPSING, *STATE, *SETS["streaks"])
    return [*_eval(LAPSE, *keys), int(now.timestamp()), LAPSED_A_SCRIPT, LAPSE_PAUSE_MS]


def lock_command(token: str) -> Command:
    """Return the command that takes the builder's lock; answers how far the round is, None: it is taken."""
    return [*_eval(BEGIN, BUILDING, READY, ROUND, *EVERY_SET), token, BUILD_SECONDS_MAX, ROUND_SECONDS]


def renew_command(token: str, reached: str) -> Command:
    """Return the command that renews the lock and notes how far the round is; answers 0 to who lost it."""
    seconds = (BUILD_SECONDS_MAX, ROUND_SECONDS, RENEWED_SECONDS)
    return [*_eval(RENEW, BUILDING, READY, ROUND), token, reached, *seconds]


def sweep_command(token: str, cursor: str) -> Command:
    """Return the command that takes out some users whom the round has not seen; answers the next cursor."""
    return [*_eval(SWEEP, BUILDING, ROUND, *EVERY_SET), token, cursor, SWEPT_A_SCRIPT]


def finish_command(token: str) -> Command:
    """Return the command by which the lock's holder says that the sets are whole; answers 0 to others."""
    return [*_eval(FINISH, BUILDING, READY, ROUND), token, READY_SECONDS]


def unrank_commands(user_id: str) -> list[Command]:
    """Return the commands that take a user out of the sorted sets: one key each."""
    state, *sets = EVERY_SET
    return [["HDEL", state, user_id], *(["ZREM", name, user_id] for name in sets)]


def _eval(script: str, *keys: str) -> tuple[str | int, ...]:
    return ("EVAL", script, len(keys), *keys)


# The engagement cache's connection: what to do while Redis is away, and what to make good afterwards.
#
# After a failure Redis is left alone for some seconds, so that it slows nothing down. Keys whose new values
# were lost meanwhile are remembered. They are deleted first when Redis is back, one command a key: in cluster
# mode a command's keys must share a slot. Until a key is deleted, nobody reads it here.


class CacheConnection:
    """One process's connection. url: "" if there is no Redis. always_stale: stale after any lost write."""

    def __init__(self, url: str, always_stale: Iterable[str] = ()) -> None:
        self._redis = Redis(url) if url else None
        self._always_stale = tuple(always_stale)
        self._down_until = self._recover_at = 0.0
        self._dropped: set[str] = set()

    @property
    def is_configured(self) -> bool:
        """Whether there should be a Redis, of a kind that we can use."""
        return self._redis is not None

    def run(self, commands: Sequence[Command], stale: Iterable[str] = ()) -> list[Any] | None:
        """Run commands in one round trip, or return None: Redis cannot be used, or a key may be stale.

        stale: keys that hold old values if the commands are lost.
        """
        if self._redis is None or not commands:
            return None
        if time.monotonic() >= self._down_until:
            try:
                self._recover(self._redis)
                return None if self._asks_for_dropped(commands) else self._redis.pipeline(commands)
            except RedisUnsupported:  # it has said so in the log
                self._redis, self._dropped = None, set()
                return None
            except RedisError:
                self._down_until = time.monotonic() + RETRY_AFTER_SECONDS
        lost = set(stale)
        self._dropped |= lost | set(self._always_stale if lost else ())
        return None

    def _recover(self, redis: Redis) -> None:
        """Delete what is stale. A key whose deletion is refused stays remembered, and holds up no other.

        Raises RedisError if Redis is away again; what has been deleted is done with.
        """
        if not self._dropped or time.monotonic() < self._recover_at:
            return
        self._recover_at = time.monotonic() + RETRY_AFTER_SECONDS
        rest = [key for key in self._dropped if key not in self._always_stale]
        keys = [*self._always_stale, *rest]
        for first in range(0, len(keys), RECOVERED_AT_ONCE):
            chunk = keys[first : first + RECOVERED_AT_ONCE]
            answers = redis.answers([["DEL", key] for key in chunk])
            refused = {key for key, each in zip(chunk, answers, strict=True) if isinstance(each, RedisError)}
            self._dropped -= set(chunk) - refused
        if not self._dropped:
            self._recover_at = 0.0

    def _asks_for_dropped(self, commands: Sequence[Command]) -> bool:
        return bool(self._dropped) and any(
            command[0] in READS and command[1] in self._dropped for command in commands
        )


# The pages of all profiles after a user id: each with the id after which the next page begins, "" at the end.
Pages = Callable[[str], Iterable[tuple[Iterable[Profile], str]]]


class RankSets:
    """The sorted sets, over one process's connection."""

    def __init__(self, link: CacheConnection) -> None:
        self._run = link.run

    def ready(self, seconds: int = 0) -> bool:
        """Whether the sorted sets hold everybody, and count for more than so many seconds yet."""
        answers = self._run([["TTL", READY]])
        return bool(answers and answers[0] > seconds)

    def can_tell(self) -> bool:
        """Whether Redis says at all if there are sets: it is there, and knows of no lost writes."""
        return self._run([["EXISTS", READY]]) is not None

    def is_under_way(self) -> bool:
        """Whether a round has begun and is not finished."""
        answers = self._run([["EXISTS", ROUND]])
        return bool(answers and answers[0])

    def top(self, board: str, region: str, limit: int, now: datetime) -> list[tuple[str, int]] | None:
        """Return (user, score), best first, ties by user id; None if Redis cannot tell."""
        flat = self._answer(board, ["ZRANGE", f"{{board}}:{board}:{region}", 0, limit - 1, "WITHSCORES"], now)
        if flat is None:
            return None
        return [(user, -int(float(score))) for user, score in zip(flat[::2], flat[1::2], strict=True)]

    def count_above(self, board: str, region: str, score: int, now: datetime) -> int | None:
        """Return how many have a higher score; None if Redis cannot tell."""
        above = self._answer(board, ["ZCOUNT", f"{{board}}:{board}:{region}", "-inf", f"({-score}"], now)
        return None if above is None else int(above)

    def _answer(self, board: str, question: Command, now: datetime) -> Any:
        """Return the answer of whole sets; None if they are not, or hold streaks that show 0 by now.

        Each question about streaks takes a slice of these out; the next minute's run takes out the rest.
        """
        lapse = [lapse_command(now)] if board == "streaks" else []
        answers = self._run([*lapse, question, ["EXISTS", READY]])
        if not answers:
            return None
        *left, answer, is_ready = answers
        return answer if is_ready and not any(left) else None

    def lapse(self, now: datetime, until: float = math.inf) -> bool:
        """Take out all streaks that show 0 by now, slice by slice; returns whether none is left.

        until: the monotonic second at which to stop.
        """
        while (answers := self._run([lapse_command(now)])) is not None:
            if not answers[0]:
                return True
            if time.monotonic() >= until:
                break
            time.sleep(LAPSE_PAUSE_MS / 1000)
        return False

    def rebuild(self, pages: Pages, now: datetime, until: float = math.inf) -> bool:
        """Make or renew the sets from all profiles; returns whether this has finished it.

        It goes on where the last run stopped. A lock keeps other processes from doing the same. It is renewed
        at each step, and whoever has lost it stops. until: the monotonic second at which to stop.
        """
        token = uuid4().hex
        begun = self._run([lock_command(token)])
        if not begun or begun[0] is None:
            return False
        phase, _, reached = begun[0].partition(":")
        if phase == "scan" and not self._scan(token, reached, pages, now, until):
            return False
        return self._sweep(token, reached if phase == "sweep" else "0", until) and self._run_under_lock(
            [finish_command(token)]
        )

    def _scan(self, token: str, after: str, pages: Pages, now: datetime, until: float) -> bool:
        """Place everybody after a user; returns whether all are placed."""
        for profiles, following in pages(after):
            for chunk in chunks(profiles, PLACED_AT_ONCE):
                places = place_commands(chunk, now)
                if not self._run_under_lock([*places, renew_command(token, f"scan:{after}")]):
                    return False
            after = following
            if not self._run_under_lock([renew_command(token, f"scan:{after}" if after else "sweep:0")]):
                return False
            if time.monotonic() >= until:
                return False
        return True

    def _sweep(self, token: str, cursor: str, until: float) -> bool:
        """Take out whom the round has not seen; returns whether all were looked at."""
        while time.monotonic() < until:
            answers = self._run([sweep_command(token, cursor)])
            if (
                not answers
                or answers[0] is None
                or not self._run_under_lock([renew_command(token, f"sweep:{answers[0]}")])
            ):
                return False
            cursor = answers[0]
            if cursor == "0":
                return True
        return False

    def _run_under_lock(self, commands: Sequence[Command]) -> bool:
        """Run commands; returns whether the last of them still found the lock held."""
        answers = self._run(commands)
        return bool(answers and answers[-1])
