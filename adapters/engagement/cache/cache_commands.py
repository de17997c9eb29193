"""The commands that write profiles and exact ranks to Redis (engagement_cache.py lists the keys).

Redis runs a script with nothing in between. So an older profile never replaces a newer one, and all sets
agree on a user.
"""

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from adapters.engagement.account_items import profile_attributes
from adapters.platform.redis import Command
from rules.days import region_of
from rules.engagement.account_state import Profile
from rules.engagement.standings import ALL_REGIONS, BOARDS

PROFILE_SECONDS = 300
PROCESSED = timedelta(days=1)
# An id begins with its event's moment: `2026-03-01T23:58:00.000000Z#...`. So much of it names ten minutes.
BUCKET, BUCKET_DIGITS = timedelta(minutes=10), len("2026-03-01T23:5")
# Then the marker expires and the sets are rebuilt, which mends writes dropped by a process that died.
READY_SECONDS = 3600
# A builder that says nothing for so long has lost its lock.
BUILD_SECONDS_MAX = 60

# `{board}` is the hash tag that keeps these keys in one slot. A script may only touch keys that it is given.
READY, BUILDING = "{board}:ready", "{board}:building"
STATE = ("{board}:state", "{board}:lapses")
SETS = {board: tuple(f"{{board}}:{board}:{region}" for region in ALL_REGIONS) for board in BOARDS}

# KEYS: STATE, all sets. ARGV: user, version, region, streak, points, lapses_at.
# Nothing is done for a version that is not newer than the one held.
PLACE = """
local held = redis.call('HGET', KEYS[1], ARGV[1])
if held then
  local old = cjson.decode(held)
  if old.version >= tonumber(ARGV[2]) then return 0 end
  if old.region ~= ARGV[3] then
    redis.call('ZREM', '{board}:streaks:' .. old.region, ARGV[1])
    redis.call('ZREM', '{board}:points:' .. old.region, ARGV[1])
  end
end
redis.call('HSET', KEYS[1], ARGV[1], cjson.encode({version = tonumber(ARGV[2]), region = ARGV[3]}))
for _, region in ipairs({ARGV[3], 'global'}) do
  if tonumber(ARGV[4]) > 0 then
    redis.call('ZADD', '{board}:streaks:' .. region, -tonumber(ARGV[4]), ARGV[1])
  else
    redis.call('ZREM', '{board}:streaks:' .. region, ARGV[1])
  end
  if tonumber(ARGV[5]) > 0 then
    redis.call('ZADD', '{board}:points:' .. region, -tonumber(ARGV[5]), ARGV[1])
  end
end
redis.call('ZADD', KEYS[2], tonumber(ARGV[6]), ARGV[1])
return 1
"""
# KEYS: STATE, the sets of streaks. ARGV: now. Streaks that show 0 by now leave their sets.
LAPSE = """
local gone = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', ARGV[1])
for _, user in ipairs(gone) do
  local held = redis.call('HGET', KEYS[1], user)
  if held then
    redis.call('ZREM', '{board}:streaks:' .. cjson.decode(held).region, user)
  end
  redis.call('ZREM', '{board}:streaks:global', user)
  redis.call('ZREM', KEYS[2], user)
end
return #gone
"""
# KEYS: streak:{user}. ARGV: version, JSON, seconds.
KEEP = """
local held = redis.call('GET', KEYS[1])
if held and cjson.decode(held).version > tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[3])
return 1
"""
# KEYS: the lock, keys to delete. ARGV: token, seconds. Whoever holds the lock keeps it for so long again.
HOLD = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('EXPIRE', KEYS[1], ARGV[2])
for place = 2, #KEYS do redis.call('DEL', KEYS[place]) end
return 1
"""
# KEYS: the lock, the marker. ARGV: token, seconds. Whoever holds the lock sets the marker and lets go.
FINISH = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[2], '1', 'EX', ARGV[2])
redis.call('DEL', KEYS[1])
return 1
"""


def keep_command(profile: Profile, shards: int) -> Command:
    """Return the command that caches a profile, unless a newer version is there."""
    text = json.dumps(profile_attributes(profile, shards))
    return ["EVAL", KEEP, 1, f"streak:{profile.user_id}", profile.version, text, PROFILE_SECONDS]


def place_command(profile: Profile, shards: int) -> Command:
    """Return the command that puts a user into the sorted sets, unless they hold a version as new."""
    attributes = profile_attributes(profile, shards)
    return [
        *_eval(PLACE, *STATE, *SETS["streaks"], *SETS["points"]),
        *(profile.user_id, profile.version, region_of(profile.zone)),
        *(attributes.get("current_streak", 0), profile.total_points, attributes.get("lapses_at", 0)),
    ]


def lapse_command(now: datetime) -> Command:
    """Return the command that takes out of their sets the streaks that show 0 by now."""
    return [*_eval(LAPSE, *STATE, *SETS["streaks"]), int(now.timestamp())]


def lock_command(token: str) -> Command:
    """Return the command that takes the builder's lock, unless somebody has it; answers None then."""
    return ["SET", BUILDING, token, "NX", "EX", BUILD_SECONDS_MAX]


def clear_command(token: str) -> Command:
    """Return the command by which the lock's holder deletes the marker and all sets; answers 0 to others."""
    keys = (BUILDING, READY, *STATE, *SETS["streaks"], *SETS["points"])
    return [*_eval(HOLD, *keys), token, BUILD_SECONDS_MAX]


def hold_command(token: str) -> Command:
    """Return the command that renews the lock; answers 0 to who has lost it."""
    return [*_eval(HOLD, BUILDING), token, BUILD_SECONDS_MAX]


def finish_command(token: str) -> Command:
    """Return the command by which the lock's holder says that the sets are whole; answers 0 to others."""
    return [*_eval(FINISH, BUILDING, READY), token, READY_SECONDS]


def in_buckets(user_id: str, event_ids: Iterable[str]) -> dict[str, list[str]]:
    """Return event ids by the key that holds them: that of the ten minutes in which they occurred.

    A key per user would never expire as long as the user goes on, and would hold all ids of years.
    """
    found: dict[str, list[str]] = {}
    for event_id in event_ids:
        found.setdefault(f"processed:{user_id}:{event_id[:BUCKET_DIGITS]}", []).append(event_id)
    return found


def processed_commands(user_id: str, event_ids: Iterable[str]) -> list[Command]:
    """Return the commands that note event ids as processed."""
    seconds = int(PROCESSED.total_seconds())
    buckets = in_buckets(user_id, event_ids)
    return [each for key, ids in buckets.items() for each in (["SADD", key, *ids], ["EXPIRE", key, seconds])]


def forget_commands(user_id: str, now: datetime) -> list[Command]:
    """Return the commands that take a user out of the sorted sets and delete the profile: one key each.

    The ids of events that occurred more than a day ago are left; they expire.
    """
    state, lapses = STATE
    sets: list[Command] = [["ZREM", name, user_id] for name in (lapses, *SETS["streaks"], *SETS["points"])]
    times = [now.astimezone(UTC) - back * BUCKET for back in range(-1, PROCESSED // BUCKET + 1)]
    keys = [next(iter(in_buckets(user_id, [each.isoformat()]))) for each in times]
    deleted: list[Command] = [["DEL", key] for key in (f"streak:{user_id}", *keys)]
    return [["HDEL", state, user_id], *sets, *deleted]


def _eval(script: str, *keys: str) -> tuple[str | int, ...]:
    return ("EVAL", script, len(keys), *keys)
