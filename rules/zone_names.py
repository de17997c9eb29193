"""Zones as devices spell them: `GMT+03:00`, `posix/Europe/Berlin`, `europe/berlin`, `America/New York`.

Days are counted by the names that rules/days.py knows: this module finds the one that is meant.
"""

import re
from functools import cache
from zoneinfo import available_timezones

from rules.days import UnknownZone, sent_zone

LENGTH_MAX = 128
# A file of the tz database. right/ counts leap seconds, and would be half a minute off.
# SystemV/ is Java's.
FOLDERS = re.compile(r"^:?(?:/.*/zoneinfo/)?(?:posix/|right/|SystemV/)*")
# The sign is as people write it: GMT+3 is Moscow. In the tz database's Etc/GMT-3 it is the other way round.
OFFSET = re.compile(
    r"(?:UTC|GMT|UT)? *([+\-\u2212\u2013]) *(\d{1,2})(?::?(\d{2}))?(?::?00)?", re.ASCII | re.IGNORECASE
)
# POSIX's zone without summer time: PST8 is eight hours behind. With a sign, people mean the other one.
BEHIND = re.compile(r"(?!GMT|UTC)[A-Z]{3,5}(\d{1,2})|UTC0", re.ASCII)
# Names of the machine that reads them, or of none.
NO_ZONES = frozenset({"localtime", "posixrules", "factory"})


def find_zone(text: str) -> str:
    """Return the name of the zone that a text names: an IANA name, or an offset such as +03:00.

    Raises UnknownZone, also for an offset where nobody lives, and for the names of other systems: Windows'
    `W. Europe Standard Time`, POSIX's `CET-1CEST`.
    """
    if len(text) > LENGTH_MAX:
        raise UnknownZone(f"must have at most {LENGTH_MAX} characters")
    name = FOLDERS.sub("", text.strip(), count=1)
    if name.lower() in NO_ZONES:
        raise UnknownZone(f"{name} is no zone")
    try:
        sent_zone(name)
    except UnknownZone:
        found = _names().get(name.lower().replace(" ", "_")) or _offset(name)
        if found is None:
            raise
        sent_zone(found)
        return found
    return name


def _offset(name: str) -> str | None:
    """Return an offset as rules/days.py spells it; None for what is none."""
    if behind := BEHIND.fullmatch(name):
        return f"-{int(behind[1] or 0):02}:00"
    match = OFFSET.fullmatch(name)
    if match is None:
        return None
    sign, hours, minutes = match.groups()
    return f"{'+' if sign == '+' else '-'}{int(hours):02}:{minutes or '00'}"


@cache
def _names() -> dict[str, str]:
    """Return the names of the tz database, by what they are in small letters."""
    return {"z": "UTC"} | {name.lower(): name for name in available_timezones()}
