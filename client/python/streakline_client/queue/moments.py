"""Times as the API writes them, the place where they were read, and ticks that nobody can move."""

import os
import time
import uuid
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

from streakline_client.queue.clock import Reading

LOCALTIME = Path("/etc/localtime")
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
ZONES = "zoneinfo/"


class DeviceClocks:
    """The clocks of this machine. Linux counts the time that it sleeps, for all processes alike."""

    def __init__(self) -> None:
        self._boot = hasattr(time, "CLOCK_BOOTTIME") and BOOT_ID.exists()
        self._run = BOOT_ID.read_text().strip() if self._boot else str(uuid.uuid4())

    def read(self) -> Reading:
        """Read both clocks, in milliseconds."""
        ticks = time.clock_gettime(time.CLOCK_BOOTTIME) if self._boot else time.monotonic()
        return Reading(int(time.time() * 1000), int(ticks * 1000), self._run, self._boot)


@dataclass(frozen=True, slots=True)
class Place:
    """Where something happens: minutes east of UTC at that moment, and the zone's name if it is known."""

    offset: int
    zone: str | None = None


def here(wall: int, zone: str | None = None) -> Place:
    """Return the place of a moment: in a named zone, else this machine's own."""
    name = zone or own_zone()
    local = datetime.fromtimestamp(wall / 1000, ZoneInfo(name) if name else None).astimezone(
        ZoneInfo(name) if name else None
    )
    return Place(round((local.utcoffset() or timedelta()).total_seconds() / 60), name)


def own_zone() -> str | None:
    """Return the IANA name of this machine's zone; None if it does not tell. Then the offset decides."""
    named = os.environ.get("TZ", "").removeprefix(":")
    if not named and LOCALTIME.is_symlink():
        named = str(LOCALTIME.resolve()).partition(ZONES)[2]
    try:
        return ZoneInfo(named).key if named else None
    except (ValueError, OSError, KeyError):
        return None


def written(instant: int, offset: int) -> str:
    """Write an instant with an offset: 2026-03-01T23:30:00.123-05:00."""
    return at(instant, offset).isoformat(timespec="milliseconds")


def at(instant: int, offset: int) -> datetime:
    """Return an instant (milliseconds since 1970) at an offset (minutes)."""
    there = timezone(timedelta(minutes=offset))
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=instant)).astimezone(there)


def date_at(instant: int, offset: int) -> date:
    """Return the date that an instant has at an offset."""
    return at(instant, offset).date()


def offset_of(text: str) -> int:
    """Return the minutes east of UTC that a time was written with."""
    told = datetime.fromisoformat(text).utcoffset() or timedelta()
    return round(told.total_seconds() / 60)
