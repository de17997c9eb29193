"""A clock that is wrong by something else each time is evidence for the review list (rules 8 and 16)."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from rules.days import EPOCH, unstamp
from rules.engagement.account_state import Profile
from rules.engagement.clocks.device_time import APPS, skew_between
from rules.engagement.events import Event
from rules.engagement.review import suspected

# Two devices of one person may both be wrong, but hardly by as much as this.
JUMP = timedelta(hours=1)
WINDOW = timedelta(days=1)
JUMPS_MAX = 2
# The skew that was seen first, and one jump more than are allowed.
SKEWS_KEPT_MAX = JUMPS_MAX + 2


def skews_seen(profile: Profile, events: Iterable[Event]) -> Profile:
    """Note by how many minutes the clock was wrong that events came with, where that has jumped.

    Nothing is noted until it was wrong once. An event that arrived before the newest jump is not looked at.
    """
    seen = profile.skews_seen
    for event in sorted(events, key=lambda each: (each.created_at, each.event_id)):
        minutes = _wrong_by(event)
        if minutes is None or not (seen or minutes):
            continue
        is_jump = not seen or abs(minutes - int(seen[-1][1])) * timedelta(minutes=1) > JUMP
        if is_jump and (not seen or event.created_at > seen[-1][0]):
            seen = (*seen, (event.created_at, str(minutes)))[-SKEWS_KEPT_MAX:]
    return replace(profile, skews_seen=seen) if seen != profile.skews_seen else profile


def _wrong_by(event: Event) -> int | None:
    """Return what was added to an event's time, in minutes; None: it says nothing of a device's clock."""
    if event.device_time is not None:
        return round(skew_between(event.device_time, event.occurred_at) / timedelta(minutes=1))
    return None if event.by_server or event.source != APPS else 0


def with_clock_review(profile: Profile, now: datetime) -> Profile:
    """Put an account under review whose clock jumped more than twice in 24 hours."""
    since = datetime.fromisoformat(profile.released_at) if profile.released_at else EPOCH
    jumps = [(unstamp(at), minutes) for at, minutes in profile.skews_seen[1:]]
    jumps = [each for each in jumps if each[0] > since]
    for newest, _ in reversed(jumps):
        near = [minutes for at, minutes in jumps if newest - WINDOW < at <= newest]
        if len(near) > JUMPS_MAX:
            reason = f"the clock jumped {len(near)} times in 24 hours, to {', '.join(near)} minutes"
            return suspected(profile, now, reason)
    return profile
