"""What is known of the device's clock, while it is moved (rule 16). The twin of
client/typescript/src/clock.ts.

The service corrects a wrong clock by `sent_at`: "now, by the clock that occurred_at was read from". Between
an event and its sending somebody may have moved the clock. So each event keeps the sum of all moves until
then, its `shift`, and `sent_at` is now without the moves since. All times are milliseconds.

Moves are seen by ticks, a count of milliseconds that nobody can move. On some systems these stand still
while the machine sleeps. So time that is missing there is a *doubt*: sleep, or a move forward. So is the
time for which no process ran. The service's own time, at the next contact, decides which.
"""

import os
import re
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from itertools import combinations
from pathlib import Path
from zoneinfo import ZoneInfo

# A smaller difference is no move: systems also correct their clocks slowly.
STILL = 30_000
# A smaller difference from the service's time may be the delay of a request (rule 16).
STEADY = 120_000
DOUBTS_MAX = 12  # all combinations of which are tried
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
# A machine may have no time zone database: Windows, and small images of Linux.
UTC_NAMES = frozenset({"UTC", "UCT", "Universal", "Zulu", "Greenwich", "GMT", "GMT0", "GMT+0", "GMT-0"})
NO_ZONES = frozenset({"Etc/Unknown", "Factory"})
OFFSET = re.compile(r"[+-]\d\d:\d\d$")


@dataclass(frozen=True, slots=True)
class Doubt:
    """Time that may be a move of the clock."""

    start: int  # the number of the first event after it
    most: int  # milliseconds
    exact: bool  # True: it is a move by `most`, or none. False: a move by any time up to `most`


@dataclass(frozen=True, slots=True)
class Fix:
    """A move that was found later. It belongs to the shift of events from `start` up to before `until`."""

    start: int  # numbers of events
    until: int
    by: int  # milliseconds


@dataclass(frozen=True, slots=True)
class Reading:
    """One reading of the clock and of the ticks."""

    wall: int  # what the clock says
    ticks: int
    run: str  # names the run of the machine or the process: ticks begin anew with another one
    counts_sleep: bool  # whether the ticks go on while the machine sleeps


@dataclass(frozen=True, slots=True)
class Watch:
    """What one process remembers between two looks."""

    base: int  # the clock minus the ticks
    noticed: int  # see ClockState


@dataclass(slots=True)
class ClockState:
    """All that is stored. All processes of a user share it."""

    shift: int = 0  # the sum of all moves
    noticed: int = 0  # the sum of all moves and doubts that were noticed
    seen: int | None = None  # the clock without its moves, when somebody last looked
    anchor: int | None = None  # the service's time minus the clock without its moves; None: no contact yet
    doubts: list[Doubt] = field(default_factory=list)
    fixes: list[Fix] = field(default_factory=list)
    run: str = ""  # of the newest reading
    base: int = 0  # the clock minus the ticks, at the newest reading

    @property
    def is_in_doubt(self) -> bool:
        """Whether the service should be asked for its time before anything is sent."""
        return bool(self.doubts) and self.anchor is not None


def look(state: ClockState, watch: Watch | None, now: Reading, following: int) -> Watch:
    """Notice whether the clock was moved; changes the state, and returns what to remember.

    following: the number of the next event.
    """
    base = now.wall - now.ticks
    watched = Watch(state.base, state.noticed) if state.run == now.run else watch
    steady_base = base
    if watched is None:
        _begin(state, now.wall, following)
    else:
        gap = base - watched.base
        rest = gap - (state.noticed - watched.noticed)
        if abs(gap) <= STILL:
            steady_base = watched.base  # so small moves add up, until they are noticed together
        elif abs(rest) > STILL:
            state.noticed += rest
            if rest < 0 or now.counts_sleep:
                state.shift += rest
            else:
                _doubt(state, Doubt(following, rest, exact=True))
    state.run, state.base, state.seen = now.run, steady_base, now.wall - state.shift
    return Watch(steady_base, state.noticed)


def move_between(then: Reading, now: Reading) -> int:
    """Return by how much somebody has moved the clock between two readings of one process.

    If the clock went on by 3,610 s and the ticks by 10 s, it was moved by 3,600,000 ms. Where the ticks do
    not count sleep, a move forward is left to `look`: the machine may have slept.
    """
    move = (now.wall - now.ticks) - (then.wall - then.ticks)
    return move if abs(move) > STILL and (move < 0 or now.counts_sleep) else 0


def _begin(state: ClockState, wall: int, following: int) -> None:
    """Note that a process starts: nobody knows for how long none ran. A clock that went back was moved."""
    if state.seen is None:
        return
    passed = wall - state.shift - state.seen
    if passed < -STILL:
        state.shift += passed
        state.noticed += passed
    _doubt(state, Doubt(following, max(0, passed), exact=False))


def _doubt(state: ClockState, doubt: Doubt) -> None:
    state.doubts = [*state.doubts, doubt][-DOUBTS_MAX:]


def contact(state: ClockState, server_time: int, wall: int, following: int) -> None:
    """Take the service's time: it decides all doubts. wall: the clock then."""
    now = server_time - (wall - state.shift)
    ahead = 0 if state.anchor is None else state.anchor - now
    for doubt, by in _moves_of(state.doubts, ahead):
        state.fixes.append(Fix(doubt.start, following, by))
        state.shift += by
    state.seen = wall - state.shift
    state.anchor = server_time - state.seen
    state.doubts = []


def _moves_of(doubts: Sequence[Doubt], ahead: int) -> list[tuple[Doubt, int]]:
    """Return which doubts were moves, and by how much. ahead: of the clock without its known moves."""
    if abs(ahead) <= STEADY:
        return []
    exact = [doubt for doubt in doubts if doubt.exact]
    best: tuple[Doubt, ...] = ()
    for number in range(1, len(exact) + 1):
        best = min(best, *combinations(exact, number), key=lambda moves: _unexplained(moves, ahead))
    if _unexplained(best, ahead) <= STEADY:
        return [(doubt, doubt.most) for doubt in best]
    idle = [doubt for doubt in doubts if not doubt.exact and ahead <= doubt.most + STEADY]
    return [(idle[-1], ahead)] if idle else []


def _unexplained(moves: Sequence[Doubt], ahead: int) -> int:
    return abs(ahead - sum(doubt.most for doubt in moves))


def shift_of(state: ClockState, number: int, shift: int) -> int:
    """Return the sum of the clock's moves until an event, as it is known now."""
    return shift + sum(fix.by for fix in state.fixes if fix.start <= number < fix.until)


def sent_at(state: ClockState, shift: int, wall: int) -> int:
    """Return what time it is now by the clock that an event was read from."""
    return wall - (state.shift - shift)


def right_time(state: ClockState, wall: int, shift: int) -> int:
    """Return the right time of what the clock said, as far as it is known. shift: of that moment."""
    return wall if state.anchor is None else wall - shift + state.anchor


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
    local = datetime.fromtimestamp(wall / 1000, UTC).astimezone(zone_of(name) if name else None)
    offset = local.utcoffset() or timedelta()
    return Place(round(offset.total_seconds() / 60), name if is_zone_name(name or "") else None)


def zone_of(name: str) -> tzinfo:
    """Return the zone of an IANA name. Raises ValueError for a name that this machine does not know."""
    if name.removeprefix("Etc/") in UTC_NAMES:
        return UTC
    try:
        return ZoneInfo(name)
    except (OSError, KeyError) as error:
        raise ValueError(str(error)) from error


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
        return named if is_zone_name(named) and zone_of(named) else None
    except ValueError:
        return None


def instant_text(instant: int, offset: int) -> str:
    """Write an instant with an offset: 2026-03-01T23:30:00.123-05:00."""
    return instant_at(instant, offset).isoformat(timespec="milliseconds")


def instant_at(instant: int, offset: int) -> datetime:
    """Return an instant (milliseconds since 1970) at an offset (minutes)."""
    there = timezone(timedelta(minutes=offset))
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=instant)).astimezone(there)


def date_at(instant: int, offset: int, start: str = "00:00") -> date:
    """Return the date that an instant has at an offset. start: when dates begin by the clock there."""
    local = instant_at(instant, offset)
    return local.date() - timedelta(days=local.strftime("%H:%M") < start)


def offset_of(text: str) -> int:
    """Return the minutes east of UTC that a time was written with."""
    offset = datetime.fromisoformat(text).utcoffset() or timedelta()
    return round(offset.total_seconds() / 60)
