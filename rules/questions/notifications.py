"""Who is told of a question, and when: subscriptions, audiences, intervals and quiet hours.

Audience: a person who listens to no tag in particular hears of every question; a question without tags
is for everybody; in all other cases they need a tag in common.
Quiet hours are told by the clock on the person's wall: a minute that comes twice is quiet both times,
one that does not come is never quiet.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, time, timedelta

from rules.days import EPOCH, stamp, unstamp, zone

# The least minutes between two announcements: few classes, so that an index can be asked for each.
INTERVALS = (0, 15, 30, 60, 120, 240, 480, 720, 1440, 2880, 10080)
# Before every stamp: who was never told of a question comes first.
NEVER = stamp(EPOCH)
EVERYTHING, SOME_TAGS = "*", "+"


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

    last_notified_at: stamp of the newest announcement, NEVER before the first. endpoint_arn: where the
    push service reaches the phone, "" before the first message.
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
    """Read two times HH:MM; raises ValueError, with the reason, if they are no span of a day."""
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
    """Whether the person does not want to be disturbed at an instant."""
    return quiet is not None and quiet.holds(now.astimezone(zone(zone_name)).time())


def hears_of(audience: Iterable[str], tags: Iterable[str]) -> bool:
    """Whether a person who listens to `audience` hears of a question with `tags`."""
    listened, asked = set(audience), set(tags)
    return not listened or not asked or not listened.isdisjoint(asked)


def last_notified_at_max(min_interval_minutes: int, now: datetime) -> str | None:
    """Return the newest last_notified_at whose interval has elapsed; None: any."""
    if min_interval_minutes == 0:
        return None
    return stamp(max(now - timedelta(minutes=min_interval_minutes), EPOCH))


def is_eligible(subscription: Subscription, tags: Iterable[str], now: datetime) -> bool:
    """Whether a person is to be told, at this instant, of a question with these tags."""
    latest = last_notified_at_max(subscription.min_interval_minutes, now)
    return (
        subscription.is_active
        and hears_of(subscription.audience, tags)
        and (latest is None or subscription.last_notified_at <= latest)
        and not is_quiet(subscription.quiet_hours, subscription.timezone, now)
    )


def listener_partition(min_interval_minutes: int, listeners: str) -> str:
    """Return an index partition: an interval class, and who is in it (EVERYTHING, SOME_TAGS or a tag's)."""
    return f"{min_interval_minutes:05}#{listeners}"


def tag_listeners(tag: str) -> str:
    """Return the listeners' part of a partition of those who listen to one tag."""
    return f"={tag}"


def home_partition(subscription: Subscription) -> str:
    """Return the partition that a subscription itself is in; besides, it has a marker in each tag's."""
    listeners = SOME_TAGS if subscription.audience else EVERYTHING
    return listener_partition(subscription.min_interval_minutes, listeners)


def partitions_to_ask(tags: Iterable[str]) -> list[tuple[int, str]]:
    """Return (interval class, partition) pairs: together they hold who hears of a question, and nobody else.

    11 classes, times 2 without tags, else times the number of tags + 1: whatever the number of subscribers.
    """
    listeners = [EVERYTHING, *(map(tag_listeners, sorted(set(tags))) if tags else [SOME_TAGS])]
    return [(minutes, listener_partition(minutes, each)) for minutes in INTERVALS for each in listeners]


def later_stamp(old: str, now: datetime) -> str:
    """Return a stamp later than the old one, whatever the clock says: what a version is told by."""
    return max(stamp(now), stamp(unstamp(old) + timedelta(microseconds=1))) if old else stamp(now)
