"""The commands that write profiles and event ids to Redis (engagement_cache.py lists the keys).

Redis runs a script with nothing in between. So an older profile never replaces a newer one.
"""

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from adapters.engagement.account_items import profile_attributes
from adapters.platform.redis import Command
from rules.engagement.account_state import Profile

PROFILE_SECONDS = 300
PROCESSED = timedelta(days=1)
# An id begins with its event's moment: `2026-03-01T23:58:00.000000Z#...`. So much of it names ten minutes.
BUCKET, BUCKET_DIGITS = timedelta(minutes=10), len("2026-03-01T23:5")

# KEYS: streak:{user}. ARGV: version, JSON, seconds.
KEEP = """
local held = redis.call('GET', KEYS[1])
if held and cjson.decode(held).version > tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[3])
return 1
"""


def keep_command(profile: Profile) -> Command:
    """Return the command that caches a profile, unless a newer version is there."""
    text = json.dumps(profile_attributes(profile))
    return ["EVAL", KEEP, 1, f"streak:{profile.user_id}", profile.version, text, PROFILE_SECONDS]


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
    made: list[Command] = []
    for key, ids in in_buckets(user_id, event_ids).items():
        made += [["SADD", key, *ids], ["EXPIRE", key, seconds]]
    return made


def forget_commands(user_id: str, now: datetime) -> list[Command]:
    """Return the commands that delete a user's profile and the event ids of the last day: one key each.

    The ids of events that occurred more than a day ago are left; they expire.
    """
    times = [now.astimezone(UTC) - back * BUCKET for back in range(-1, PROCESSED // BUCKET + 1)]
    keys = [next(iter(in_buckets(user_id, [each.isoformat()]))) for each in times]
    return [["DEL", key] for key in (f"streak:{user_id}", *keys)]
