"""Who is told of a question, and when: subscriptions, audiences, intervals and quiet hours.

Audience: a question without tags is for everybody. Otherwise it has a tag in common with those who hear of
it. Example: a person with the tags fr and it hears of a question with it.
Quiet hours follow the person's local clock. If daylight saving repeats a minute, it is quiet both times.
"""

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, time, timedelta

from rules.days import EPOCH, stamp, unstamp, zone

# A person chooses one of these as the minutes between two announcements. They are few, because
# `partitions_to_ask` makes a query for each.
INTERVALS = (0, 15, 30, 60, 120, 240, 480, 720, 1440, 2880, 10080)
# A partition of an index takes 1,000 writes a second; to tell a person is two. So each is cut into shards.
LISTENER_SHARDS = 4
# Sorts before every other stamp, so that people who were never told of a question come first.
NEVER = stamp(EPOCH)
NO_TAGS, SOME_TAGS = "*", "+"


@dataclass(frozen=True, slots=True)
class QuietHours:
    """Wall-clock times: quiet from `since` (included) to `until` (not); they may wrap midnight."""

    since: time
    until: time

    def holds(self, clock: time) -> bool:
        """Whether a wall-clock time is quiet."""
        if self.since < self.until:
            return self.since <= clock < self.until
        return clock >= self.since or clock < self.until


@dataclass(frozen=True, slots=True)
class Subscription:
    """What one person wants to hear on one phone.

    audience: the person's tags. last_notified_at: stamp of the newest announcement, NEVER before the first.
    endpoint_arn: where the push service reaches the phone, "" before the first message.
    """

    subscription_id: str
    owner: str
    fcm_token: str
    audience: tuple[str, ...]
    min_interval_minutes: int
    timezone: str
    quiet_hours: QuietHours | None
    streak_reminders: bool
    created_at: str
    updated_at: str
    last_notified_at: str = NEVER
    endpoint_arn: str = ""
    is_active: bool = True


def quiet_hours(since: str, until: str) -> QuietHours:
    """Read two times HH:MM.

    Raises ValueError, with the reason, unless they are two different times of a day.
    """
    first, last = _clock(since), _clock(until)
    if first == last:
        raise ValueError("must not end when they begin")
    return QuietHours(first, last)


def _clock(text: str) -> time:
    hours, colon, minutes = text.partition(":")
    digits = hours + minutes
    if not (colon and len(hours) == len(minutes) == 2 and digits.isascii() and digits.isdigit()):
        raise ValueError(f"{text!r} is no time HH:MM")
    if int(hours) > 23 or int(minutes) > 59:
        raise ValueError(f"{text} is no time of a day")
    return time(int(hours), int(minutes))


def is_quiet(quiet: QuietHours | None, zone_name: str, now: datetime) -> bool:
    """Whether an instant falls into a person's quiet hours."""
    return quiet is not None and quiet.holds(now.astimezone(zone(zone_name)).time())


def hears_of(audience: Iterable[str], tags: Iterable[str]) -> bool:
    """Whether a person who listens to `audience` hears of a question with `tags`."""
    asked = set(tags)
    return not asked or not asked.isdisjoint(audience)


def last_notified_at_max(min_interval_minutes: int, now: datetime) -> str | None:
    """Return the newest last_notified_at whose interval is over by now; None if any is.

    Example: with 60 minutes, at 10:00, it is 09:00.
    """
    if min_interval_minutes == 0:
        return None
    return stamp(max(now - timedelta(minutes=min_interval_minutes), EPOCH))


def is_eligible(subscription: Subscription, tags: Iterable[str], now: datetime) -> bool:
    """Whether to tell a person, at this instant, of a question with these tags."""
    latest = last_notified_at_max(subscription.min_interval_minutes, now)
    return (
        subscription.is_active
        and hears_of(subscription.audience, tags)
        and (latest is None or subscription.last_notified_at <= latest)
        and not is_quiet(subscription.quiet_hours, subscription.timezone, now)
    )


def shard_of(subscription_id: str) -> int:
    """Return which shard of all partitions a subscription is in: the same in every process."""
    return zlib.crc32(subscription_id.encode()) % LISTENER_SHARDS


def listener_partition(min_interval_minutes: int, listeners: str, shard: int) -> str:
    """Return an index partition: `00060#=it~2` has the interval, who listens, and the shard.

    Shard 0 is not named: subscriptions of the version before are all in it.
    listeners: NO_TAGS, SOME_TAGS, or `tag_listeners` of a tag.
    """
    return f"{min_interval_minutes:05}#{listeners}" + (f"~{shard}" if shard else "")


def tag_listeners(tag: str) -> str:
    """Return what a partition's name says of those who listen to one tag: `=it`."""
    return f"={tag}"


def home_partition(subscription: Subscription) -> str:
    """Return the partition of a subscription's own item. Its marker for a tag is in that tag's partition."""
    listeners = SOME_TAGS if subscription.audience else NO_TAGS
    shard = shard_of(subscription.subscription_id)
    return listener_partition(subscription.min_interval_minutes, listeners, shard)


def partitions_to_ask(tags: Iterable[str], shard: int) -> list[tuple[int, str]]:
    """Return (minutes, partition) pairs that hold exactly those of a shard who hear of a question.

    Their number does not depend on the number of subscribers: 11 intervals, times 2 for a question without
    tags, else times the number of tags.
    """
    listeners = [tag_listeners(tag) for tag in sorted(set(tags))] or [NO_TAGS, SOME_TAGS]
    return [
        (minutes, listener_partition(minutes, each, shard)) for minutes in INTERVALS for each in listeners
    ]


def later_stamp(old: str, now: datetime) -> str:
    """Return the stamp of now, or the next one after `old` if the clock is behind.

    So each version of an item has a stamp of its own.
    """
    return max(stamp(now), stamp(unstamp(old) + timedelta(microseconds=1))) if old else stamp(now)
