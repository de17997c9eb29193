"""The commands that write profiles and exact ranks to Redis (engagement_cache.py lists the keys).

Redis runs a script with nothing in between. So an older profile never replaces a newer one, and all sets
agree on a user.
"""

import json
from datetime import datetime

from adapters.engagement.account_items import profile_attributes
from adapters.platform.redis import Command
from rules.days import OTHER_REGION, REGIONS, region_of
from rules.engagement.account_state import Profile

GLOBAL = "global"
BOARDS = ("streaks", "points")
PROFILE_SECONDS = 300

# KEYS: {board}:state, {board}:lapses. ARGV: user, version, region, streak, points, lapses_at.
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
# KEYS: {board}:state, {board}:lapses. ARGV: now. Streaks that show 0 by now leave their sets.
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


def keep_command(profile: Profile, shards: int) -> Command:
    """Return the command that caches a profile, unless a newer version is there."""
    text = json.dumps(profile_attributes(profile, shards))
    return ["EVAL", KEEP, 1, f"streak:{profile.user_id}", profile.version, text, PROFILE_SECONDS]


def place_command(profile: Profile, shards: int) -> Command:
    """Return the command that puts a user into the sorted sets, unless they hold a version as new."""
    attributes = profile_attributes(profile, shards)
    return [
        *("EVAL", PLACE, 2, "{board}:state", "{board}:lapses"),
        *(profile.user_id, profile.version, region_of(profile.zone)),
        *(attributes.get("current_streak", 0), profile.total_points, attributes.get("lapses_at", 0)),
    ]


def lapse_command(now: datetime) -> Command:
    """Return the command that takes out of their sets the streaks that show 0 by now."""
    return ["EVAL", LAPSE, 2, "{board}:state", "{board}:lapses", int(now.timestamp())]


def clear_command() -> Command:
    """Return the command that deletes all sorted sets, and the marker that says that they are whole."""
    sets = [f"{{board}}:{board}:{region}" for board in BOARDS for region in (*REGIONS, OTHER_REGION, GLOBAL)]
    return ["DEL", "{board}:ready", "{board}:state", "{board}:lapses", *sets]
