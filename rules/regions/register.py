"""The register (docs/rules.md, rule 23): one item that says which region writes, and how it changes.

A process uses what it has read of the register for LEASE_SECONDS, counted from when it *began* to read. A
promotion waits for a longer time after each change of the register. Then no process uses the earlier state
any more. Each waits by its own clock, so no clocks of two machines are compared.

    a process:   |--- may write ---------------|
                 began to read          LEASE_SECONDS
    a promotion:      |--- waits ------------------------------------|
                      has written                        QUIET_SECONDS
"""

from dataclasses import dataclass, replace
from enum import StrEnum

NOBODY = ""
LEASE_SECONDS = 10.0
# A process reads again long before its lease ends, so that one failed attempt does not stop it.
LOOK_SECONDS = 4.0
# Twice the lease. The speeds of two clocks differ by far less.
QUIET_SECONDS = 20.0


class Phase(StrEnum):
    """How far a promotion is."""

    OPEN = "open"  # none is under way
    DRAINING = "draining"  # nobody writes; the new writer still takes over what the former one has sent
    CLOSED = "closed"  # nobody writes, and nothing more is taken over


class NotPossible(ValueError):
    """The register does not allow this change; the text says why."""


@dataclass(frozen=True, slots=True)
class Register:
    """Who writes, and who follows."""

    epoch: int
    writer: str  # the region that writes, or is about to
    phase: Phase = Phase.OPEN
    standby: str = NOBODY  # the region that follows it; "" after a promotion
    is_filled: bool = False  # whether the standby has all that the writer had when it began to follow
    former: str = NOBODY  # the writer of before a promotion that is under way


def may_write(register: Register, region: str) -> bool:
    """Whether functions of a region may write to its tables."""
    return register.phase is Phase.OPEN and register.writer == region


def may_follow(register: Register, region: str) -> bool:
    """Whether a region may take over what another one has sent."""
    if register.phase is Phase.DRAINING:
        return register.writer == region
    return register.phase is Phase.OPEN and register.standby == region


def followed_epoch(register: Register, region: str) -> int | None:
    """Return the epoch whose changes a region may take over now; None: it may take over nothing."""
    if not may_follow(register, region):
        return None
    return register.epoch - 1 if register.phase is Phase.DRAINING else register.epoch


def sent_epoch(register: Register, region: str) -> int | None:
    """Return the epoch of what a region sends now; None: nobody follows it."""
    if register.phase is Phase.OPEN and register.writer == region and register.standby:
        return register.epoch
    return register.epoch - 1 if register.phase is Phase.DRAINING and register.former == region else None


def promote_region(register: Register, region: str) -> Register:
    """Return the register once a region is to become the writer; again it changes nothing.

    Raises NotPossible for a region that does not follow: it would begin without what it never had.
    """
    if register.writer == region:
        return register
    _check_open(register)
    if register.standby != region:
        raise NotPossible(f"{region} does not follow {register.writer}: `streakline region return` lets it")
    if not register.is_filled:
        raise NotPossible(f"{region} is being filled: let `streakline region return` end first")
    return Register(register.epoch + 1, region, Phase.DRAINING, former=register.writer)


def close_following(register: Register) -> Register:
    """Return the register once nothing more is followed. Raises NotPossible while nobody is promoted."""
    if register.phase is Phase.OPEN:
        raise NotPossible("nobody is being promoted")
    return replace(register, phase=Phase.CLOSED)


def open_writing(register: Register) -> Register:
    """Return the register once the new writer may write; nobody follows it yet.

    Raises NotPossible unless the register is closed.
    """
    if register.phase is not Phase.CLOSED:
        raise NotPossible(f"the register is {register.phase}, not closed")
    return Register(register.epoch, register.writer)


def join_region(register: Register, region: str) -> Register:
    """Return the register once a region begins to follow, which has nothing yet. Raises NotPossible."""
    _check_open(register)
    if register.writer == region:
        raise NotPossible(f"{region} writes: it follows nobody")
    if register.standby not in (NOBODY, region):
        raise NotPossible(f"{register.standby} follows already")
    return Register(register.epoch + 1, register.writer, standby=region)


def mark_filled(register: Register, region: str) -> Register:
    """Return the register once a region that follows has all that was there before."""
    if register.standby != region:
        raise NotPossible(f"{region} does not follow {register.writer}")
    return replace(register, is_filled=True)


def _check_open(register: Register) -> None:
    if register.phase is not Phase.OPEN:
        raise NotPossible(f"{register.writer} is being promoted: let that end first")


@dataclass(frozen=True, slots=True)
class Clocks:
    """Two clocks of one machine, in seconds."""

    steady: float  # never set, but may stand still while a process is frozen
    wall: float  # goes on then, but may be set

    def since(self, before: "Clocks") -> float:
        """Return the seconds since an earlier reading: by the clock that shows more."""
        return max(self.steady - before.steady, self.wall - before.wall)


@dataclass(frozen=True, slots=True)
class RegisterReading:
    """The register as a process has read it."""

    register: Register
    began: Clocks  # when the process began to read

    def is_stale(self, now: Clocks) -> bool:
        """Whether it is time to read again."""
        return now.since(self.began) > LOOK_SECONDS

    def holds(self, now: Clocks) -> bool:
        """Whether a process may still use what it has read."""
        return now.since(self.began) <= LEASE_SECONDS
