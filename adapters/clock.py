"""The one clock. Handlers ask here; rules get the time as an argument."""

from datetime import UTC, datetime

from rules.days import EPOCH, MICROSECOND


def now() -> datetime:
    """Return the current instant, in UTC."""
    return datetime.now(UTC)


def first_version() -> int:
    """Return the version that a new item begins with: the microseconds since 1970.

    Each write adds 1. An item that is deleted and made anew begins higher than it ended, so in the lake its
    newest version is the newest.
    """
    return (now() - EPOCH) // MICROSECOND
