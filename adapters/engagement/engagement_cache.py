"""The cache of the engagement path in Redis. The tables have the truth.

| key | holds | lives |
|---|---|---|
| streak:{user_id} | the profile, written through, never by an older version | 5 min |
| active:{user_id}:{date} | the day | 24 h |
| leaderboard:{region} | the first 100 by streak, and when they were read from the index | 1 min |
| processed:{user_id}:{ten minutes} | set of ids of events that occurred then and are all applied | 24 h |

Redis may be in cluster mode, so no command and no script has keys of two slots.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from adapters.engagement.account_items import day_attributes, profile_attributes, profile_from
from adapters.platform.redis import Command
from adapters.platform.redis_cache import RedisCache
from rules.engagement.account_state import Day, Profile

PROFILE_SECONDS = 300
DAY_SECONDS = 24 * 3600
PROCESSED_KEPT = timedelta(days=1)
# An id begins with its event's moment: `2026-03-01T23:58:00Z#...`. This much of it names ten minutes.
BUCKET, BUCKET_DIGITS = timedelta(minutes=10), len("2026-03-01T23:5")
# A minute, and some seconds by which the next refresh may be late.
TOP_LIST_SECONDS = 75
# KEYS: streak:{user}. ARGV: version, JSON, seconds. Redis runs a script with nothing in between. So an older
# profile never replaces a newer one.
KEEP = """
local stored = redis.call('GET', KEYS[1])
if stored and cjson.decode(stored).version > tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[3])
return 1
"""


class EngagementCache(RedisCache):
    """The cache of one process."""

    def profile(self, user_id: str) -> Profile | None:
        """Return the cached profile, in one round trip."""
        try:
            attributes = self.get(f"streak:{user_id}")
            return profile_from(attributes) if attributes else None
        except (KeyError, TypeError, ValueError):
            return None  # Written by another version of this code.

    def day(self, user_id: str, day: date) -> dict[str, Any] | None:
        """Return a cached active day's attributes."""
        return self.get(f"active:{user_id}:{day.isoformat()}")

    def remember(self, profile: Profile) -> None:
        """Cache a profile that was read."""
        self.run([_keep_command(profile)])

    def write_through(
        self,
        profiles: Iterable[Profile],
        days: Iterable[Day] = (),
        processed: Mapping[str, Iterable[str]] | None = None,
    ) -> None:
        """Cache profiles and days that were written, and ids of applied events by user, in one round trip."""
        if not self.is_configured:
            return
        stale: list[str] = []
        commands: list[Command] = []
        for profile in profiles:
            stale.append(f"streak:{profile.user_id}")
            commands.append(_keep_command(profile))
        for day in days:
            key = f"active:{day.user_id}:{day.activity_date.isoformat()}"
            stale.append(key)
            commands.append(["SET", key, json.dumps(day_attributes(day)), "EX", DAY_SECONDS])
        for user, event_ids in (processed or {}).items():
            for key, ids in ids_by_bucket(user, event_ids).items():
                commands += [["SADD", key, *ids], ["EXPIRE", key, int(PROCESSED_KEPT.total_seconds())]]
        self.run(commands, stale)

    def forget(self, user_id: str, now: datetime) -> bool:
        """Forget a user's profile and events of the last day. Returns False if Redis did not do it."""
        return self.run([["DEL", key] for key in recent_keys(user_id, now)]) is not None

    def processed(self, event_ids: Mapping[str, Sequence[str]]) -> dict[str, set[str]]:
        """Return, per user, those event ids that are known to be fully applied. event_ids: by user."""
        buckets = [
            (user, key, ids)
            for user in event_ids
            for key, ids in ids_by_bucket(user, event_ids[user]).items()
        ]
        answers = self.run([["SMISMEMBER", key, *ids] for _, key, ids in buckets])
        if answers is None:
            return {}
        processed: dict[str, set[str]] = {user: set() for user, _, _ in buckets}
        for (user, _, ids), flags in zip(buckets, answers, strict=True):
            processed[user] |= {event_id for event_id, is_member in zip(ids, flags, strict=True) if is_member}
        return processed

    def top_list(self, region: str) -> dict[str, Any] | None:
        """Return a list of streaks of the last minute, with `as_of` and `entries`."""
        return self.get(top_list_key(region))

    def keep_top_list(self, region: str, top_list: Mapping[str, Any]) -> None:
        """Keep a list of streaks until the next refresh."""
        self.run([["SET", top_list_key(region), json.dumps(top_list), "EX", TOP_LIST_SECONDS]])


def top_list_key(region: str) -> str:
    """Return the key of a region's first 100 by streak."""
    return f"leaderboard:{region}"


def ids_by_bucket(user_id: str, event_ids: Iterable[str]) -> dict[str, list[str]]:
    """Return event ids by their key, which is of the ten minutes in which they occurred.

    With one key for each user, the key of an active user would never expire, and would hold the ids of years.
    """
    by_key: dict[str, list[str]] = {}
    for event_id in event_ids:
        by_key.setdefault(f"processed:{user_id}:{event_id[:BUCKET_DIGITS]}", []).append(event_id)
    return by_key


def recent_keys(user_id: str, now: datetime) -> list[str]:
    """Return the keys of a user's profile and of the event ids of the last day.

    The ids of events that occurred more than a day ago are left out; they expire.
    """
    times = [now.astimezone(UTC) - back * BUCKET for back in range(-1, PROCESSED_KEPT // BUCKET + 1)]
    return [f"streak:{user_id}", *ids_by_bucket(user_id, (each.isoformat() for each in times))]


def _keep_command(profile: Profile) -> Command:
    text = json.dumps(profile_attributes(profile))
    return ["EVAL", KEEP, 1, f"streak:{profile.user_id}", profile.version, text, PROFILE_SECONDS]
