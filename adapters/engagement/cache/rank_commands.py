"""The commands that keep the sorted sets of exact ranks (engagement_cache.py lists the keys).

Redis runs a script with nothing in between. So all sets agree on a user. It also runs nothing else meanwhile,
so each script does a bounded piece of work: some milliseconds.
"""

from collections.abc import Iterable
from datetime import datetime

from adapters.engagement.account_items import profile_attributes
from adapters.platform.redis import Command
from adapters.platform.tables import chunks
from rules.days import region_of
from rules.engagement.account_state import Profile
from rules.engagement.boards import ALL_REGIONS, BOARDS

# Then the marker expires and the sets are rebuilt, which mends writes dropped by a process that died.
READY_SECONDS = 3600
# The marker of sets that are being renewed lives at least so long after each step.
RENEWED_SECONDS = 900
# A builder that says nothing for so long has lost its lock.
BUILD_SECONDS_MAX = 60
# A round that nobody has continued for so long begins anew.
ROUND_SECONDS = 3600
PLACED_A_SCRIPT = 50
SWEPT_A_SCRIPT = 300
# 200,000 streaks that end at one midnight leave in slices. In between, Redis does other work for so long.
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
HOLD = """
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


def begin_command(token: str) -> Command:
    """Return the command that takes the builder's lock; answers how far the round is, None: it is taken."""
    return [*_eval(BEGIN, BUILDING, READY, ROUND, *EVERY_SET), token, BUILD_SECONDS_MAX, ROUND_SECONDS]


def hold_command(token: str, reached: str) -> Command:
    """Return the command that renews the lock and notes how far the round is; answers 0 to who lost it."""
    seconds = (BUILD_SECONDS_MAX, ROUND_SECONDS, RENEWED_SECONDS)
    return [*_eval(HOLD, BUILDING, READY, ROUND), token, reached, *seconds]


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
