"""The device's clocks and its time zone, and instants as the API writes them."""

import os
import re
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
# Names of the time zone database: an area with a place, EST5EDT, or a word. Devices also have GMT+3,
# SystemV/PST8, posix/Europe/Berlin or localtime, which a service does not know, or takes for its own zone.
AREAS = (
    "Africa|America|Antarctica|Arctic|Asia|Atlantic|Australia|Brazil|Canada|Chile|Etc|Europe|Indian|Mexico"
    "|Pacific|US"
)
ZONE_NAME = re.compile(rf"({AREAS})/[\w+/-]+|[A-Z]{{3}}\dS?[A-Z]{{3}}|[A-Z][A-Za-z-]*", re.ASCII)
NO_ZONES = frozenset({"Etc/Unknown", "Factory"})
OFFSET = re.compile(r"[+-]\d\d:\d\d$")


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
    """Where something happens."""

    offset: int  # minutes east of UTC, at that moment
    zone: str | None = None  # the zone's IANA name; None: a service would not know the name


def place_at(wall: int, zone: str | None = None) -> Place:
    """Return the place of an event at an instant (milliseconds since 1970).

    zone: an IANA name; None: this machine's zone.
    """
    name = zone or own_zone()
    # Without a name astimezone takes the machine's own zone.
    local = datetime.fromtimestamp(wall / 1000, UTC).astimezone(ZoneInfo(name) if name else None)
    offset = local.utcoffset() or timedelta()
    return Place(round(offset.total_seconds() / 60), name if is_zone_name(name or "") else None)


def is_zone_name(name: str) -> bool:
    """Whether a machine's name of a zone is one that a service may know."""
    return ZONE_NAME.fullmatch(name) is not None and name not in NO_ZONES


def offset_text(text: str) -> str:
    """Return the offset that a time was written with, as text; "": it has none."""
    offset = OFFSET.search(text)
    return offset[0] if offset else ""


def own_zone() -> str | None:
    """Return the IANA name of this machine's zone; None if it is unknown. Then the offset decides."""
    named = os.environ.get("TZ", "").removeprefix(":")
    if not named and LOCALTIME.is_symlink():
        named = str(LOCALTIME.resolve()).partition(ZONES)[2]
    try:
        return ZoneInfo(named).key if is_zone_name(named) else None
    except (ValueError, OSError, KeyError):
        return None


def instant_text(instant: int, offset: int) -> str:
    """Write an instant with an offset: 2026-03-01T23:30:00.123-05:00."""
    return instant_at(instant, offset).isoformat(timespec="milliseconds")


def instant_at(instant: int, offset: int) -> datetime:
    """Return an instant (milliseconds since 1970) at an offset (minutes)."""
    there = timezone(timedelta(minutes=offset))
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=instant)).astimezone(there)


def date_at(instant: int, offset: int) -> date:
    """Return the date that an instant has at an offset."""
    return instant_at(instant, offset).date()


def offset_of(text: str) -> int:
    """Return the minutes east of UTC that a time was written with."""
    offset = datetime.fromisoformat(text).utcoffset() or timedelta()
    return round(offset.total_seconds() / 60)
