"""What Redis holds of the engagement path. It is never the truth.

| key | holds | lives |
|---|---|---|
| streak:{user_id} | the profile, written through, never by an older version | 5 min |
| active:{user_id}:{date} | the day | 24 h |
| leaderboard:{region} | the first 100 by streak, and when they were read from the index | 1 min |
| leaderboard:{region}:points | the same by points | 1 min |
| {board}:NAME:REGION | sorted set, user by negated score: exact ranks | while {board}:ready |
| {board}:lapses | sorted set, user by the moment that the streak shows 0 | " |
| {board}:state | hash, user -> what the sorted sets hold of the user, with its version and round | " |
| {board}:ready | the marker that says that the sorted sets hold everybody | 1 h |
| {board}:building | the lock of who fills the sorted sets: a token | 1 min after its last renewal |
| {board}:round | how far they are filled: `scan:USER` or `sweep:CURSOR`, and the round's name | 1 h after " |
| {board}:lapsing | that a slice of lapsed streaks has just been taken out | 20 ms |
| rate:{user_id}:{minute} | counter | 2 min |
| processed:{user_id}:{ten minutes} | set of ids of events that occurred then and are all applied | 24 h |

`{board}` is literal: the hash tag that keeps these keys in one slot. Redis may be in cluster mode, so no
command and no script has keys of two slots.

Every operation survives a Redis that is absent, slow or empty: reads return that they know nothing, and
writes are dropped. After a dropped write the sorted sets are rebuilt before they are used again.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from adapters.engagement.account_items import day_attributes, profile_attributes, profile_from
from adapters.engagement.rank_sets import (
    BUILDING,
    READY,
    ROUND,
    CacheConnection,
    RankSets,
    place_commands,
    unrank_commands,
)
from adapters.platform.redis import Command
from rules.engagement.account_state import Day, Profile

# The commands that write profiles and event ids to Redis (engagement_cache.py lists the keys).
#
# Redis runs a script with nothing in between. So an older profile never replaces a newer one.


PROFILE_SECONDS = 300
PROCESSED_KEPT = timedelta(days=1)
# An id begins with its event's moment: `2026-03-01T23:58:00.000000Z#...`. This much of it names ten minutes.
BUCKET, BUCKET_DIGITS = timedelta(minutes=10), len("2026-03-01T23:5")

# KEYS: streak:{user}. ARGV: version, JSON, seconds.
KEEP = """
local held = redis.call('GET', KEYS[1])
if held and cjson.decode(held).version > tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[3])
return 1
"""
DAY_SECONDS = 24 * 3600
# A minute, and what the next refresh may be late.
TOP_LIST_SECONDS = 75


def keep_command(profile: Profile) -> Command:
    """Return the command that caches a profile, unless a newer version is there."""
    text = json.dumps(profile_attributes(profile))
    return ["EVAL", KEEP, 1, f"streak:{profile.user_id}", profile.version, text, PROFILE_SECONDS]


def ids_by_bucket(user_id: str, event_ids: Iterable[str]) -> dict[str, list[str]]:
    """Return event ids by the key that holds them: that of the ten minutes in which they occurred.

    A key per user would never expire as long as the user goes on, and would hold all ids of years.
    """
    found: dict[str, list[str]] = {}
    for event_id in event_ids:
        found.setdefault(f"processed:{user_id}:{event_id[:BUCKET_DIGITS]}", []).append(event_id)
    return found


def processed_commands(user_id: str, event_ids: Iterable[str]) -> list[Command]:
    """Return the commands that note event ids as processed."""
    seconds = int(PROCESSED_KEPT.total_seconds())
    made: list[Command] = []
    for key, ids in ids_by_bucket(user_id, event_ids).items():
        made += [["SADD", key, *ids], ["EXPIRE", key, seconds]]
    return made


def forget_commands(user_id: str, now: datetime) -> list[Command]:
    """Return the commands that delete a user's profile and the event ids of the last day: one key each.

    The ids of events that occurred more than a day ago are left; they expire.
    """
    times = [now.astimezone(UTC) - back * BUCKET for back in range(-1, PROCESSED_KEPT // BUCKET + 1)]
    keys = [next(iter(ids_by_bucket(user_id, [each.isoformat()]))) for each in times]
    return [["DEL", key] for key in (f"streak:{user_id}", *keys)]


def list_key(region: str, board: str) -> str:
    """Return the key of a board's first 100."""
    return f"leaderboard:{region}" + ("" if board == "streaks" else f":{board}")


class EngagementCache:
    """The cache of one process. url: "" if there is no Redis."""

    def __init__(self, url: str) -> None:
        # A lost write makes the ranks wrong, and those too that somebody is just building.
        self._link = CacheConnection(url, always_stale=(READY, BUILDING, ROUND))
        self._run = self._link.run
        self.ranks = RankSets(self._link)

    @property
    def is_configured(self) -> bool:
        """Whether there should be a Redis, of a kind that we can use."""
        return self._link.is_configured

    def profile(self, user_id: str) -> Profile | None:
        """Return the cached profile, in one round trip."""
        answers = self._run([["GET", f"streak:{user_id}"]])
        try:
            return profile_from(json.loads(answers[0])) if answers and answers[0] else None
        except (KeyError, TypeError, ValueError):
            return None  # Written by another version of this code.

    def day(self, user_id: str, day: date) -> dict[str, Any] | None:
        """Return a cached active day's attributes."""
        answers = self._run([["GET", f"active:{user_id}:{day.isoformat()}"]])
        found: dict[str, Any] | None = json.loads(answers[0]) if answers and answers[0] else None
        return found

    def remember(self, profile: Profile) -> None:
        """Cache a profile that was read."""
        self._run([keep_command(profile)])

    def write_through(
        self,
        profiles: Iterable[Profile],
        days: Iterable[Day] = (),
        processed: Mapping[str, Iterable[str]] | None = None,
    ) -> None:
        """Cache what was written, in one round trip: profiles, ranks, days, event ids per user."""
        if not self.is_configured:
            return
        placed = list(profiles)
        stale = [f"streak:{each.user_id}" for each in placed]
        commands = [keep_command(each) for each in placed]
        commands += place_commands(placed)
        for day in days:
            key = f"active:{day.user_id}:{day.activity_date.isoformat()}"
            stale.append(key)
            commands.append(["SET", key, json.dumps(day_attributes(day)), "EX", DAY_SECONDS])
        for user, event_ids in (processed or {}).items():
            commands += processed_commands(user, event_ids)
        self._run(commands, stale)

    def forget(self, user_ids: Iterable[str], now: datetime) -> bool:
        """Take users out of the ranks, forget their profiles and their events of the last day.

        Returns False if Redis did not do it.
        """
        commands = [
            each for user in user_ids for each in (*unrank_commands(user), *forget_commands(user, now))
        ]
        return self._run(commands) is not None

    def processed(self, event_ids: Mapping[str, Sequence[str]]) -> dict[str, set[str]]:
        """Return, per user, those event ids that are known to be fully applied."""
        asked = [
            (user, key, ids)
            for user in event_ids
            for key, ids in ids_by_bucket(user, event_ids[user]).items()
        ]
        answers = self._run([["SMISMEMBER", key, *ids] for _, key, ids in asked])
        if answers is None:
            return {}
        found: dict[str, set[str]] = {user: set() for user, _, _ in asked}
        for (user, _, ids), flags in zip(asked, answers, strict=True):
            found[user] |= {event_id for event_id, known in zip(ids, flags, strict=True) if known}
        return found

    def count_events(self, user_id: str, events: int, now: datetime) -> int | None:
        """Add to a user's events of this minute; returns their number, None without Redis."""
        key = f"rate:{user_id}:{int(now.timestamp()) // 60}"
        answers = self._run([["INCRBY", key, events], ["EXPIRE", key, 120]])
        return int(answers[0]) if answers else None

    def top_list(self, region: str, board: str) -> dict[str, Any] | None:
        """Return a top list of the last minute, with `as_of` and `entries`."""
        answers = self._run([["GET", list_key(region, board)]])
        found = json.loads(answers[0]) if answers and answers[0] else None
        return found if isinstance(found, dict) else None  # other versions of this code write lists

    def keep_top_list(self, region: str, board: str, made: dict[str, Any]) -> None:
        """Keep a top list until the next refresh."""
        self._run([["SET", list_key(region, board), json.dumps(made), "EX", TOP_LIST_SECONDS]])
