"""A device whose clock is moved while its events wait: told as a story, played on the Python client's clock."""

from collections.abc import Sequence
from typing import Any

from streakline_client.queue.clock import ClockState, Reading, Watch, contact, look, sent_at, shift_of

HOUR = 3_600_000
BEGINNING = 1_772_426_096_000


class MovedClock:
    """The right time, the device's clock and its ticks, in milliseconds; and what the client makes of them."""

    def __init__(self, *, counts_sleep: bool = False) -> None:
        self.right, self.moved, self.ticks = BEGINNING, 0, 1_000
        self.counts_sleep, self.state, self.next = counts_sleep, ClockState(), 1
        self.pages: dict[str, Watch] = {}
        self.events: dict[str, tuple[int, int, int, int]] = {}

    @property
    def wall(self) -> int:
        return self.right + self.moved

    def play(self, story: Sequence[Sequence[Any]]) -> None:
        for name, *told in story:
            getattr(self, name)(*told)

    def jump(self, hours: float) -> None:
        self.moved += int(hours * HOUR)

    def run(self, hours: float) -> None:
        self.right += int(hours * HOUR)
        self.ticks += int(hours * HOUR)

    def sleep(self, hours: float) -> None:
        self.right += int(hours * HOUR)
        self.ticks += int(hours * HOUR) if self.counts_sleep else 0

    def look(self, page: str) -> None:
        run = "boot" if self.counts_sleep else page
        reading = Reading(self.wall, self.ticks, run, self.counts_sleep)
        self.pages[page] = look(self.state, self.pages.get(page), reading, self.next)

    open = look

    def close(self, page: str) -> None:
        del self.pages[page]

    def track(self, page: str, name: str) -> None:
        self.look(page)
        self.events[name] = (self.next, self.state.shift, self.wall, self.right)
        self.next += 1

    def contact(self, page: str) -> None:
        self.look(page)
        contact(self.state, self.right, self.wall, self.next)

    def misplaced(self) -> dict[str, float]:
        """By how many hours the service places each event wrongly, when all are sent now (rule 16)."""
        last = next(reversed(self.pages))
        self.contact(last)
        found = {}
        for name, (number, shift, wall, happened) in self.events.items():
            sent = sent_at(self.state, shift_of(self.state, number, shift), self.wall)
            found[name] = round((wall + self.right - sent - happened) / HOUR, 3)
        return found


setattr(MovedClock, "pass", MovedClock.run)
