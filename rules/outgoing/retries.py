"""When a notification is tried again, when it is given up, and when an endpoint is left in peace.

Each user has a *lane* to each endpoint: the next notification goes out when the one before has arrived. What
an endpoint refuses of one user delays no other user. An endpoint that takes nothing is asked now and then.
"""

from datetime import datetime, timedelta

# After so many failures in a row of one lane.
WAITS = tuple(timedelta(seconds=each) for each in (5, 30, 120, 600, 1800, 3600))
# Three days, and long enough that one attempt comes after them.
GIVEN_UP_AFTER = timedelta(hours=76)
# An endpoint that refused so many lanes, and took none, is left in peace: so long, twice as long each time.
REFUSED_MAX = 3
PEACE_MIN, PEACE_MAX = timedelta(seconds=30), timedelta(hours=1)
KEPT = timedelta(days=30)  # a notification, for replays and for endpoints that are disabled


def next_attempt(failures: int, now: datetime) -> datetime:
    """Return when a lane is tried again after so many failures in a row (1 or more)."""
    return now + WAITS[min(failures, len(WAITS)) - 1]


def is_given_up(failing_since: datetime, now: datetime) -> bool:
    """Whether a notification that has just failed is not tried again.

    failing_since: when it happened, or, if that was later, when its lane began to fail.
    """
    return now - failing_since >= GIVEN_UP_AFTER


def peace(failures: int) -> timedelta:
    """Return how long an endpoint is left in peace that has refused so many rounds in a row (1 or more)."""
    longest: timedelta = min(PEACE_MAX, PEACE_MIN * 2 ** min(failures - 1, 16))
    return longest
