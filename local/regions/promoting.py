"""Makes a region the writer (rule 23): first nobody writes, then the region has all that was sent, then it
writes.

Each step is one change of the register, and then a wait that outlasts every lease. If this dies, it is run
again: it goes on where the register stands, and waits once more.
"""

from collections.abc import Callable
from dataclasses import dataclass

from adapters.platform.fence import Registers
from rules.regions.register import (
    QUIET_SECONDS,
    NotPossible,
    Phase,
    Register,
    close_following,
    open_writing,
    promote_region,
)

DRAIN_SECONDS_MAX = 300.0
LOOK_EVERY_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Promoting:
    """waiting: how many messages of changes are in the region's queue. sleep: waits some seconds."""

    registers: Registers
    region: str
    waiting: Callable[[], int]
    sleep: Callable[[float], None]
    say: Callable[[str], None] = lambda _: None

    def run(self, drain_seconds: float = DRAIN_SECONDS_MAX) -> Register:
        """Promote the region; returns the register. Raises NotPossible, RegisterMoved.

        drain_seconds: how long what was sent may take to arrive. What speaks of entries that never came
        waits for ever, and is found when the old region returns.
        """
        read = self.registers.read()
        if read is None:
            raise NotPossible("there is no register yet: `streakline region start` in the region that writes")
        register = self._to(read, promote_region(read, self.region))
        if register.phase is Phase.OPEN:
            self.say(f"{self.region} writes already, epoch {register.epoch}")
            return register
        if register.phase is Phase.DRAINING:
            self.say(
                f"epoch {register.epoch}: nobody writes; waiting {QUIET_SECONDS:.0f} s for the last lease"
            )
            self.sleep(QUIET_SECONDS)
            self._drain(drain_seconds)
            register = self._to(register, close_following(register))
        self.say(f"nobody follows; waiting {QUIET_SECONDS:.0f} s for the last lease")
        self.sleep(QUIET_SECONDS)
        register = self._to(register, open_writing(register))
        self.say(f"{self.region} writes, epoch {register.epoch}")
        return register

    def _to(self, read: Register, register: Register) -> Register:
        if register != read:
            self.registers.change(read, register)
        return register

    def _drain(self, seconds: float) -> None:
        while (left := self.waiting()) and seconds > 0:
            self.say(f"{left} messages of changes are on their way")
            self.sleep(min(LOOK_EVERY_SECONDS, seconds))
            seconds -= LOOK_EVERY_SECONDS
        if left:
            self.say(f"{left} messages are left: what they tell is found when the old region returns")
