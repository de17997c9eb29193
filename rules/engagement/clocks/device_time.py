"""How wrong a device's clock is, and when its events happened by a right one (rule 16).

A batch says when it was sent, by the clock that its events were read from. Whatever that clock is off by when
the batch arrives, it was off by when the events happened.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from rules.days import Moment, parse_moment, sent_zone

# A request takes seconds, and on a bad network a minute. Such a delay is no fault of the clock.
STEADY = timedelta(minutes=2)
# The source of an event that an app sends over HTTP and that names no other: it has a device's clock.
APPS = "api"
UTC_OFFSET = "+00:00"


@dataclass(frozen=True, slots=True)
class DeviceClock:
    """What is known of the clock that a batch's events were read from.

    skew: what has to be added to its times.
    """

    skew: timedelta = timedelta()


RIGHT = DeviceClock()


def skew_of(sent_at: Moment, now: datetime) -> timedelta:
    """Return what has to be added to a device's times: nothing for a clock that is right within STEADY."""
    skew = now - sent_at.utc
    return skew if abs(skew) > STEADY else timedelta()


def corrected(device_time: str, skew: timedelta) -> str:
    """Return the RFC 3339 text of a device's time by a right clock, with the offset that it was written with.

    Raises ValueError, with the reason.
    """
    moment = parse_moment(device_time)
    try:
        right = (moment.utc + skew).astimezone(sent_zone(moment.offset or UTC_OFFSET))
        return right.isoformat() if moment.offset else right.replace(tzinfo=None).isoformat() + "Z"
    except OverflowError:
        raise ValueError("is not a time that exists by a right clock") from None


def skew_between(device_time: str, occurred_at: str) -> timedelta:
    """Return by how much a device's time was corrected."""
    return parse_moment(occurred_at).utc - parse_moment(device_time).utc
