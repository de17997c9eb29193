"""How long a process may go by what it has read of the register (rule 23).

No two machines' clocks are compared. A process counts the seconds since it *began* to read. Whoever changes
the register waits, after the change, for longer than anybody may count: then no process goes by what was
before.

    a process:   |--- may write ---------------|
                 began to read          LEASE_SECONDS
    a promotion:      |--- waits ------------------------------------|
                      has written                        QUIET_SECONDS
"""

from dataclasses import dataclass

from rules.regions.register import Register

LEASE_SECONDS = 10.0
# A reading is renewed long before it ends: so one failed attempt stops nobody.
LOOK_SECONDS = 4.0
# Clocks run at different speeds, by far less than this allows.
QUIET_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Clocks:
    """Two clocks of one machine, in seconds. steady: never set, but may stand still while a process is
    frozen.

    wall: goes on then, but may be set.
    """

    steady: float
    wall: float

    def since(self, before: "Clocks") -> float:
        """Return the seconds since an earlier reading: by the clock that tells more."""
        return max(self.steady - before.steady, self.wall - before.wall)


@dataclass(frozen=True, slots=True)
class Reading:
    """What a process has read. began: when it asked."""

    register: Register
    began: Clocks

    def is_stale(self, now: Clocks) -> bool:
        """Whether it is time to read again."""
        return now.since(self.began) > LOOK_SECONDS

    def holds(self, now: Clocks) -> bool:
        """Whether a process may go by it still."""
        return now.since(self.began) <= LEASE_SECONDS
