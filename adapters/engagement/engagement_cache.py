"""The cache of the engagement path in Redis. The tables have the truth.

| key | holds | lives |
|---|---|---|
| streak:{user_id} | the profile, written through, never by an older version | 5 min |
| active:{user_id}:{date} | the day, written through | 5 min |
| leaderboard:{region} | the first 100 by streak, and when they were read from the index | 1 min |
| rate:{user_id}:{minute} | counter | 2 min |

Redis may be in cluster mode, so no command and no script has keys of two slots.

Every operation survives a Redis that is absent, slow or empty: reads return that they know nothing, and
writes are dropped. So after a failure of Redis a value may be as old as its key lives.
"""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Any

from adapters.engagement.account_items import day_attributes, profile_attributes, profile_from
from adapters.platform.redis import Command, Redis, RedisError
from rules.engagement.account_state import Day, Profile

KEPT_SECONDS = 300
TOP_LIST_SECONDS = 60
# KEYS: streak:{user}. ARGV: version, JSON, seconds. Redis runs a script with nothing in between. So an older
# profile never replaces a newer one.
KEEP = """
local stored = redis.call('GET', KEYS[1])
if stored and cjson.decode(stored).version > tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[3])
return 1
"""
RETRY_AFTER_SECONDS = 5


class EngagementCache:
    """The cache of one process. url: "" if there is no Redis.

    After a failure, Redis is not called for some seconds, so that it slows nothing down.
    """

    def __init__(self, url: str) -> None:
        self._redis = Redis(url) if url else None
        self._down_until = 0.0

    @property
    def is_configured(self) -> bool:
        """Whether there should be a Redis."""
        return self._redis is not None

    def profile(self, user_id: str) -> Profile | None:
        """Return the cached profile, in one round trip."""
        try:
            attributes = self._get(f"streak:{user_id}")
            return profile_from(attributes) if attributes else None
        except (KeyError, TypeError, ValueError):
            return None  # Written by another version of this code.

    def day(self, user_id: str, day: date) -> dict[str, Any] | None:
        """Return a cached active day's attributes."""
        return self._get(f"active:{user_id}:{day.isoformat()}")

    def write_through(self, profiles: Iterable[Profile], days: Iterable[Day] = ()) -> None:
        """Cache profiles and days that were read or written, in one round trip."""
        if self._redis is None:
            return
        commands: list[Command] = []
        for profile in profiles:
            key, text = f"streak:{profile.user_id}", json.dumps(profile_attributes(profile))
            commands.append(["EVAL", KEEP, 1, key, profile.version, text, KEPT_SECONDS])
        for day in days:
            key = f"active:{day.user_id}:{day.activity_date.isoformat()}"
            commands.append(["SET", key, json.dumps(day_attributes(day)), "EX", KEPT_SECONDS])
        self._run(commands)

    def forget(self, user_id: str) -> bool:
        """Forget a user's profile. Returns False if Redis did not do it."""
        return self._run([["DEL", f"streak:{user_id}"]]) is not None

    def count_events(self, user_id: str, events: int, now: datetime) -> int | None:
        """Add to a user's events of this minute; returns their number, None without Redis."""
        key = f"rate:{user_id}:{int(now.timestamp()) // 60}"
        answers = self._run([["INCRBY", key, events], ["EXPIRE", key, 120]])
        return int(answers[0]) if answers else None

    def top_list(self, region: str) -> dict[str, Any] | None:
        """Return a list of streaks of the last minute, with `as_of` and `entries`."""
        return self._get(top_list_key(region))

    def keep_top_list(self, region: str, top_list: Mapping[str, Any]) -> None:
        """Keep a list of streaks for a minute."""
        self._run([["SET", top_list_key(region), json.dumps(top_list), "EX", TOP_LIST_SECONDS]])

    def _get(self, key: str) -> dict[str, Any] | None:
        answers = self._run([["GET", key]])
        found: dict[str, Any] | None = json.loads(answers[0]) if answers and answers[0] else None
        return found

    def _run(self, commands: Sequence[Command]) -> list[Any] | None:
        """Run commands in one round trip, or return None if Redis cannot be used."""
        if self._redis is None or not commands or time.monotonic() < self._down_until:
            return None
        try:
            return self._redis.pipeline(commands)
        except RedisError:
            self._down_until = time.monotonic() + RETRY_AFTER_SECONDS
            return None


def top_list_key(region: str) -> str:
    """Return the key of a region's first 100 by streak."""
    return f"leaderboard:{region}"
