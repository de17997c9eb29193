"""Three days of a device, at random: offline, its clock moved, its pages killed, its storage full, its owner travelling.

`plan` makes the steps, `Story` plays them on the pages of any client and remembers what has to come of it.
"""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol
from zoneinfo import ZoneInfo

HOUR = 3_600_000
LENGTH_HOURS = 69.0  # 72 hours is how late an event of anybody may be
NEAR_MIDNIGHT_SECONDS = 240
ZONES = ("Europe/Berlin", "Europe/Athens", "Asia/Kolkata")
PATIENCE_SECONDS = 60
SETTLED_SECONDS = 0.4
Step = tuple[str, Any]


class Page(Protocol):
    """A process or a tab with a client in it."""

    def tell(self, command: dict[str, Any]) -> dict[str, Any]: ...

    def tell_and_kill(self, command: dict[str, Any]) -> None: ...


def plan(
    seed: int, steps: int = 36, forward_max: int = 4, sleeps_max: int = 0, has_spare: bool = False
) -> list[Step]:
    """The steps between the first contact and the last one.

    forward_max, sleeps_max: how often the clock is moved forward, and how often the machine sleeps.
    has_spare: whether the device has another place to store things where storage is full, as browsers have.
    """
    chance = random.Random(seed)
    made: list[Step] = []
    forward, sleeps, is_full = 0, 0, False
    for number in range(steps):
        kind = chance.choices(
            ("track", "pass", "jump", "kill", "net", "zone", "full", "sleep"),
            (12, 6, 3, 3, 2, 1, 1.5, 2 if sleeps < sleeps_max else 0),
        )[0]
        if kind == "jump":
            hours = round(chance.uniform(0.5, 30), 2) * chance.choice((-1, 1))
            if (
                is_full and not has_spare
            ):  # who noticed it cannot store it, and may be killed: docs/clients.md, "Not known"
                continue
            if hours > 0 and forward == forward_max:
                hours = -hours
            forward += hours > 0
            made.append(("jump", hours))
        elif kind == "net":
            made.append(("net", chance.choice(("off", "off", "lossy"))))
        elif kind == "track":
            made.append(("track", (chance.randrange(2), f"e{number}")))
        elif kind == "kill":
            made.append(("kill", (chance.randrange(2), chance.choice(("idle", "tracking")), f"k{number}")))
        elif kind != "sleep" or not is_full or has_spare:
            is_full ^= kind == "full"
            sleeps += kind == "sleep"
            made.append((kind, chance.uniform(0.1, 1)))
    return made


@dataclass
class Story:
    """A device with two pages. placed: name of each event that is kept -> its date. perhaps: killed while tracking."""

    opened: Callable[[], Page]
    seed: int
    elapsed: float = -LENGTH_HOURS * HOUR
    jump: float = 0.0
    slept: float = 0.0
    zone: str = ZONES[0]
    net: str = "on"
    is_full: bool = False
    unkept: int = 0
    must_stay: set[int] = field(default_factory=set)
    pages: list[Page] = field(default_factory=list)
    placed: dict[str, str] = field(default_factory=dict)
    perhaps: dict[str, str] = field(default_factory=dict)

    def play(self, steps: list[Step]) -> None:
        """Reach the service once, play the steps, and come online at last."""
        self.pages = [self.opened(), self.opened()]
        self.track(0, "first")
        self.flush()
        self.net = "off"
        share = (LENGTH_HOURS - 1) / sum(amount for kind, amount in steps if kind in ("pass", "sleep"))
        for kind, told in steps:
            if kind in ("pass", "sleep"):
                self.elapsed += told * share * HOUR
                self.slept += told * share * HOUR if kind == "sleep" else 0
                self._look()
            elif kind == "jump":
                self.jump += told * HOUR
                self._look()
            elif kind == "track":
                self.track(*told)
            elif kind == "kill":
                self._kill(*told)
            elif kind == "net":
                self._reach(told)
            elif kind == "zone":
                self.zone = ZONES[int(told * len(ZONES))]
            elif kind == "full":
                self.is_full = not self.is_full
        self.elapsed, self.is_full = 0.0, False
        self._look()
        time.sleep(SETTLED_SECONDS)  # an attempt that began before this leap of time fails offline
        self.flush()

    def track(self, page: int, name: str) -> None:
        day = self._day()
        told = self._tell(page, do="track", name=name)
        assert told["key"]
        self.placed[name] = day
        if not told["kept"]:
            self.must_stay.add(page)
            self.unkept += 1

    def _kill(self, page: int, how: str, name: str) -> None:
        if page in self.must_stay:  # what storage did not take ends with its page, as the app was told
            return
        if how == "tracking" and not self.is_full:
            self.perhaps[name] = self._day()
            self.pages[page].tell_and_kill(self._command(do="track", name=name))
        else:
            self.pages[page].tell_and_kill({})
        self._tell(1 - page, do="look")  # the other one is alive, and sees what the clock does
        self.pages[page] = self.opened()
        self._tell(page, do="look")

    def _reach(self, net: str) -> None:
        """Be online for one attempt. Time leaps in this story: so nothing may be under way when it does."""
        self.net = net
        assert self._tell(0, do="flush")["refused"] == []
        self.net = "off"
        self._look()

    def flush(self) -> None:
        """Send all from both pages."""
        for page in (0, 1):
            self._until_empty(page)

    def _until_empty(self, page: int) -> None:
        net, self.net = self.net, "on"
        until = time.monotonic() + PATIENCE_SECONDS
        while (told := self._tell(page, do="flush"))["waiting"]:
            assert time.monotonic() < until, told
            time.sleep(0.05)
        assert told["refused"] == [], told
        self.net = net

    def _day(self) -> str:
        """Today's date at this place, by the right time; a few minutes later, if midnight is too near to tell."""
        while True:
            now = datetime.now(UTC) + timedelta(milliseconds=self.elapsed)
            local = now.astimezone(ZoneInfo(self.zone))
            seconds = local.hour * 3600 + local.minute * 60 + local.second
            if NEAR_MIDNIGHT_SECONDS < seconds < 86_400 - NEAR_MIDNIGHT_SECONDS:
                return local.date().isoformat()
            self.elapsed += 2 * NEAR_MIDNIGHT_SECONDS * 1000

    def _look(self) -> None:
        """Both pages are there while the clock is moved."""
        for page in (0, 1):
            self._tell(page, do="look")

    def _command(self, **told: Any) -> dict[str, Any]:
        times = {"elapsed": int(self.elapsed), "jump": int(self.jump), "slept": int(self.slept)}
        return {"world": {**times, "net": self.net, "full": self.is_full}, "zone": self.zone, **told}

    def _tell(self, page: int, **told: Any) -> dict[str, Any]:
        return self.pages[page].tell(self._command(**told))

    def check(self, stored: list[dict[str, Any]]) -> None:
        """Each event that was kept is stored once, on the date of its place. stored: what the service has."""
        names = [each["properties"]["name"] for each in stored]
        assert len(names) == len(set(names)), f"seed {self.seed}: an event landed twice"
        dates = dict(zip(names, (each["activity_date"] for each in stored), strict=True))
        assert self.placed.keys() <= dates.keys(), (
            f"seed {self.seed}: lost {self.placed.keys() - dates.keys()}"
        )
        assert dates.keys() <= self.placed.keys() | self.perhaps.keys()
        wanted = {**self.perhaps, **self.placed}
        wrong = {name: (day, wanted[name]) for name, day in dates.items() if day != wanted[name]}
        assert not wrong, f"seed {self.seed}: (stored, wanted) {wrong}"
