"""Messages to phones, about a question or a streak that ends tonight: who gets one, when, and its text."""

import zlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from rules.book.daily import day_starts
from rules.book.reminders import ReminderText, clock
from rules.days import AT_MIDNIGHT, DAY, EPOCH, DayStarts, local_date, stamp, start_of, unstamp, zone
from rules.engagement.streak import Cover, Streak, StreakStatus, shown_streak
from rules.questions.questions import Question, is_in_audience

# A person chooses the minutes between two announcements, up to 30 days; 0: each one is sent. The index has
# partitions for these alone, because a reader makes a query for each (partitions_to_ask). A person is in the
# partition of the largest that is not above the own minutes.
INTERVAL_MINUTES_MAX = 43200
INTERVALS = (0, 15, 30, 60, 120, 240, 480, 720, 1440, 2880, 10080)
# A partition of an index takes 1,000 writes a second, and an announcement to a person is two. So each
# partition of listeners is cut into shards.
LISTENER_SHARDS = 4
# The last_notified_at of a person before the first announcement. It sorts before every other stamp.
NEVER = stamp(EPOCH)
# In a partition's name: its listeners have no tags, or have some.
NO_TAGS, SOME_TAGS = "*", "+"
QUESTION_TITLE = "A new question"
# How long the push service keeps a reminder for a phone that is off.
STREAK_SECONDS_MAX = 3 * 3600
# An operator can see a claim for this long after the last instant at which its message may go out.
CLAIM_KEPT = timedelta(days=7)
# Reminders wait in this many index partitions. A single one would be too hot in the evening of a large zone.
REMINDER_SHARDS = 4
# So many dates after today are tried for the next reminder. Today's may be over, and the zone may skip the
# next date, so two are needed. One more is to spare.
DATES_AHEAD = 3


@dataclass(frozen=True, slots=True)
class QuietHours:
    """Wall-clock times: quiet from `since`, included, to `until`, not included, maybe over midnight."""

    since: time
    until: time

    def contains(self, clock: time) -> bool:
        """Whether a wall-clock time is quiet."""
        if self.since < self.until:
            return self.since <= clock < self.until
        return clock >= self.since or clock < self.until


@dataclass(frozen=True, slots=True)
class Subscription:
    """The messages that one person wants on one phone."""

    subscription_id: str
    owner: str  # the user's id
    fcm_token: str
    tags: tuple[str, ...]  # the person hears of questions for these tags, and of questions for everybody
    min_interval_minutes: int
    timezone: str  # of the quiet hours
    quiet_hours: QuietHours | None
    streak_reminders: bool
    created_at: str
    updated_at: str
    last_notified_at: str = NEVER  # stamp of the newest announcement, NEVER before the first
    endpoint_arn: str = ""  # the phone's address in the push service; "" before the first message
    is_active: bool = True
    reminders_at: time | None = None  # a wall clock's, in the zone of the owner's dates; None: the book's
    language: str = ""  # of the reminders, such as pt-BR; "": the book's default


def quiet_hours(since: str, until: str) -> QuietHours:
    """Read two times HH:MM.

    Raises ValueError, with the reason, unless they are two different times of a day.
    """
    quiet = QuietHours(clock(since), clock(until))
    if quiet.since == quiet.until:
        raise ValueError("must not end when they begin")
    return quiet


def is_quiet(quiet: QuietHours | None, zone_name: str, now: datetime) -> bool:
    """Whether an instant falls into a person's quiet hours."""
    return quiet is not None and quiet.contains(now.astimezone(zone(zone_name)).time())


def last_notified_at_max(min_interval_minutes: int, now: datetime) -> str | None:
    """Return the newest last_notified_at whose interval is over by now; None if any is.

    Example: with 60 minutes, at 10:00, it is 09:00.
    """
    if min_interval_minutes == 0:
        return None
    return stamp(max(now - timedelta(minutes=min_interval_minutes), EPOCH))


def is_interval_over(subscription: Subscription, now: datetime) -> bool:
    """Whether the minutes that a person chose have gone by since the newest announcement."""
    latest = last_notified_at_max(subscription.min_interval_minutes, now)
    return latest is None or subscription.last_notified_at <= latest


def is_eligible(subscription: Subscription, audience: Collection[str], now: datetime) -> bool:
    """Whether to tell a person, at this instant, of a question for this audience."""
    return (
        subscription.is_active
        and is_in_audience(audience, subscription.tags)
        and is_interval_over(subscription, now)
        and not is_quiet(subscription.quiet_hours, subscription.timezone, now)
    )


def shard_of(subscription_id: str) -> int:
    """Return the shard of listeners that a subscription is in: the same in every process."""
    return zlib.crc32(subscription_id.encode()) % LISTENER_SHARDS


def listener_partition(min_interval_minutes: int, listeners: str, shard: int) -> str:
    """Return an index partition: `00060#=it~2` has the interval, who listens, and the shard.

    Its interval is the largest of INTERVALS that is not above the minutes: 60 for 60 to 119. Shard 0 has no
    suffix. listeners: NO_TAGS, SOME_TAGS, or `tag_listeners` of a tag.
    """
    interval = max(each for each in INTERVALS if each <= min_interval_minutes)
    return f"{interval:05}#{listeners}" + (f"~{shard}" if shard else "")


def tag_listeners(tag: str) -> str:
    """Return the part of a partition's name for the listeners to one tag: `=it`."""
    return f"={tag}"


def home_partition(subscription: Subscription) -> str:
    """Return the partition of a subscription's own item.

    Each tag of the subscription also has a marker item, in the partition of the tag's listeners.
    """
    listeners = SOME_TAGS if subscription.tags else NO_TAGS
    shard = shard_of(subscription.subscription_id)
    return listener_partition(subscription.min_interval_minutes, listeners, shard)


def partitions_to_ask(audience: Iterable[str], shard: int) -> list[tuple[int, str]]:
    """Return the partitions with exactly the people of a shard who hear of a question, as (minutes, name).

    The minutes are the fewest that anybody in the partition chose (is_interval_over is each person's). The
    number of partitions does not depend on the number of subscribers: 11 intervals, times 2 for a question
    for everybody, else times the number of tags in its audience.
    """
    listeners = [tag_listeners(tag) for tag in sorted(set(audience))] or [NO_TAGS, SOME_TAGS]
    return [
        (minutes, listener_partition(minutes, listener, shard))
        for minutes in INTERVALS
        for listener in listeners
    ]


def later_stamp(old: str, now: datetime) -> str:
    """Return the stamp of now, or the next one after `old` if the clock is behind.

    So each version of an item has a stamp of its own.
    """
    return max(stamp(now), stamp(unstamp(old) + timedelta(microseconds=1))) if old else stamp(now)


@dataclass(frozen=True, slots=True)
class PushMessage:
    """A message to a phone: the text that it shows, and data for its app."""

    title: str
    body: str
    data: Mapping[str, str]
    ttl_seconds: int  # how long the push service keeps it for a phone that is off


def message_of_question(question: Question, now: datetime) -> PushMessage:
    """Return the message about a question. It lives as long as the question takes answers."""
    seconds = int((unstamp(question.closes_at) - now).total_seconds())
    data = {"type": "question", "question_id": question.question_id, "question_type": question.type.value}
    return PushMessage(QUESTION_TITLE, question.prompt, data, seconds)


def message_of_streak(
    length: int, text: ReminderText, now: datetime, zone_name: str, starts: DayStarts
) -> PushMessage:
    """Return the reminder of a streak of so many days: it lives until the date ends, 3 hours at most.

    zone_name: of the user's dates. starts: when these begin (Books.day_starts).
    """
    tomorrow = local_date(now, zone_name, starts) + DAY
    seconds = int((start_of(tomorrow, zone_name, starts) - now).total_seconds())
    data = {"type": "streak", "length": str(length)}
    return PushMessage(text.title, text.body(length), data, min(STREAK_SECONDS_MAX, seconds))


def claim_expires_at(last: datetime) -> int:
    """Return when a claim on a message is forgotten, in epoch seconds.

    last: the last instant at which the message may go out.
    """
    return int((last + CLAIM_KEPT).timestamp())


@dataclass(frozen=True, slots=True)
class ReminderClock:
    """At which hour of each date one phone's reminder is due."""

    at: time | None  # a wall clock's, in zone_name; None: no book has reminders
    zone_name: str  # of the user's dates
    quiet: QuietHours | None = None
    quiet_zone: str = "UTC"
    starts: DayStarts = AT_MIDNIGHT  # when dates begin (Books.day_starts)

    def due_on(self, day: date) -> datetime | None:
        """Return the instant (UTC) at which a date's reminder is due; None: not on that date.

        If the hour is quiet, it is due when the quiet hours end, if that is on the same date. If clocks are
        set back, the first of two equal hours counts. If they are set forward, a time that does not exist is
        right after the jump. A date that the zone skips has no reminder.
        """
        if self.at is None:
            return None
        # Where a date begins later than at midnight, its small hours are those of the next calendar date.
        for calendar_day in (day, day + DAY):
            at = datetime.combine(calendar_day, self.at, zone(self.zone_name)).astimezone(UTC)
            if self._date(at) == day:
                due = self._end_of_quiet(at)
                return due if self._date(due) == day else None
        return None

    def _date(self, instant: datetime) -> date:
        return local_date(instant, self.zone_name, self.starts)

    def _end_of_quiet(self, instant: datetime) -> datetime:
        """Return the first instant from this one on that is not quiet."""
        if self.quiet is None or not is_quiet(self.quiet, self.quiet_zone, instant):
            return instant
        local = instant.astimezone(zone(self.quiet_zone))
        day = local.date() if local.time() < self.quiet.until else local.date() + DAY
        end = datetime.combine(day, self.quiet.until, local.tzinfo).replace(fold=local.fold)
        return end.astimezone(UTC)

    def next_look(self, after: datetime) -> datetime:
        """Return when to look at the phone again: at its first reminder after an instant.

        A day later, if no reminder is to come: the book in force then may have another hour.
        """
        dates = (self._date(after) + timedelta(days=days) for days in range(DATES_AHEAD + 1))
        dues = (due for due in map(self.due_on, dates) if due is not None and due > after)
        return next(dues, after + DAY)

    def is_due(self, registered: datetime, now: datetime) -> bool:
        """Whether today's reminder may be sent now.

        Who registered a phone, or changed its settings, after the hour is reminded from tomorrow on.
        """
        due = self.due_on(self._date(now))
        return due is not None and registered < due <= now and not is_quiet(self.quiet, self.quiet_zone, now)


def streak_at_risk(streak: Streak | None, cover: Cover, zone_name: str, now: datetime) -> int:
    """Return the length of a streak if it is at risk today, else 0.

    It is not at risk if today is active or paused, or if the streak has lapsed. zone_name: of the user's
    dates.
    """
    if streak is None:
        return 0
    today = local_date(now, zone_name, day_starts(cover.rest.terms))
    shown = shown_streak(streak, cover, max(today, streak.last))
    return shown.current if shown.status is StreakStatus.AT_RISK else 0


def reminder_partition(subscription_id: str) -> str:
    """Return the index partition that a subscription's reminders wait in."""
    return f"reminder#{zlib.crc32(subscription_id.encode()) % REMINDER_SHARDS}"


def reminder_partitions() -> list[str]:
    """Return all index partitions that reminders wait in."""
    return [f"reminder#{shard}" for shard in range(REMINDER_SHARDS)]
