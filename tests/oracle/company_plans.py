"""What several users do in some weeks together: a seed decides it, as in plans.py.

Instants of settings lie away from the ends of periods; events, and their application, do not.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from tests.oracle.calendar_dates import zone_of
from tests.oracle.plans import Body, written

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)
# The Friday before a week ends, with which a round begins.
BEGINS = {
    "ordinary weeks": date(2026, 11, 20),
    "week 53": date(2026, 12, 25),
    "29 February": date(2028, 2, 18),
    "clocks go forward": date(2026, 3, 20),
}
DATES = 24
ZONES = (
    "-12:00",
    "Etc/GMT+12",
    "Pacific/Kiritimati",
    "+14:00",
    "Europe/Berlin",
    "America/New_York",
    "+00:00",
)
TYPES = ("CHECK_IN", "LESSON_COMPLETED", "WORKOUT_COMPLETED")
CLASSES = ("4b", "4c")
NAMES = ("ann", "bob", "cid", "dan", "eve", "fay", "gus", "hal")


@dataclass(frozen=True)
class Send:
    user: str
    bodies: tuple[Body, ...]
    door: str


@dataclass(frozen=True)
class TakeBack:
    """An admin takes an event back that was accepted."""

    user: str
    key: str


@dataclass(frozen=True)
class Grant:
    """An admin grants a freeze."""

    user: str
    key: str
    granted: date


@dataclass(frozen=True)
class Pause:
    user: str
    first: date
    last: date


@dataclass(frozen=True)
class Hide:
    """Leave the boards, or come back."""

    user: str
    is_hidden: bool


@dataclass(frozen=True)
class Group:
    """A server says of which class a user is; "": of none."""

    user: str
    value: str


@dataclass(frozen=True)
class TakePart:
    """Leave the leagues, or come back."""

    user: str
    takes_part: bool


@dataclass(frozen=True)
class Pair:
    """Both ask, or a server says that they have agreed since an instant."""

    user: str
    other: str
    since: datetime | None = None


@dataclass(frozen=True)
class Part:
    user: str
    other: str


@dataclass(frozen=True)
class Zones:
    """A user's zone is set, to one after the other: of several, the account is under review afterwards."""

    user: str
    zones: tuple[str, ...]


@dataclass(frozen=True)
class Release:
    """An admin ends a review, if there is one."""

    user: str


@dataclass(frozen=True)
class Close:
    """The schedule of boards and leagues runs, by so many at once."""

    times: int


@dataclass(frozen=True)
class Erase:
    """A user is erased. blocked: whom the user has blocked just before, or who has blocked the user."""

    user: str
    blocked: str = ""
    blocking: str = ""


Action = (
    Erase | Send | TakeBack | Grant | Pause | Hide | Group | TakePart | Pair | Part | Zones | Release | Close
)


@dataclass(frozen=True)
class Moment:
    """deliver: how much of what waits in the stream is applied afterwards, from 0 to 1. look: all is judged."""

    at: datetime
    actions: tuple[Action, ...]
    deliver: float
    look: bool = False


@dataclass(frozen=True)
class Edition:
    """A version of the book, published at an instant and in force from then on. The first one is older than all."""

    at: datetime | None
    boards: Mapping[str, Any]
    leagues: Mapping[str, Any] | None
    starts: str
    rest: tuple[str, ...]


@dataclass(frozen=True)
class CompanyPlan:
    """misses: whether nobody closes anything before the end."""

    seed: int
    style: str
    misses: bool
    users: tuple[str, ...]
    editions: tuple[Edition, ...]
    moments: tuple[Moment, ...]

    def __str__(self) -> str:
        lines = [f"seed {self.seed}: {self.style}, misses={self.misses}, {self.users}"]
        lines += [str(each) for each in self.editions]
        for moment in self.moments:
            lines.append(f"  {moment.at:%a %Y-%m-%d %H:%M:%S} deliver={moment.deliver} look={moment.look}")
            lines += [f"    {action}" for action in moment.actions]
        return "\n".join(lines)


class CompanyPlanner:
    """Makes the plan of a seed."""

    def __init__(self, seed: int) -> None:
        self.seed, self.chance = seed, random.Random(f"company {seed}")
        self.style = list(BEGINS)[seed % len(BEGINS)]
        self.begin = datetime.combine(BEGINS[self.style], time(), UTC)
        self.users = NAMES[: self.chance.randrange(3, len(NAMES) + 1)]
        self.zones = {user: self.chance.choice(ZONES) for user in self.users}
        self.misses = seed % 3 == 0
        self.keys = 0
        self.sent: list[Send] = []

    def plan(self) -> CompanyPlan:
        editions = self._editions()
        instants = sorted({*self._instants(), *self._edges(editions[0].starts)})
        moments = [self._moment(at) for at in instants]
        end = moments[-1].at + self.chance.choice((HOUR, 3 * DAY, 8 * DAY))
        moments.append(Moment(end, (Close(1),), deliver=1, look=True))
        self._erase(moments)
        return CompanyPlan(self.seed, self.style, self.misses, self.users, editions, tuple(moments))

    # ---- the book

    def _editions(self) -> tuple[Edition, ...]:
        chance, editions = self.chance, [self._edition(None)]
        if chance.random() < 0.6:
            at = self.begin + chance.randrange(1, 16) * DAY + chance.randrange(0, 24) * HOUR
            editions.append(self._edition(at))
        return tuple(editions)

    def _edition(self, at: datetime | None) -> Edition:
        chance = self.chance
        first = self.begin.date() + chance.randrange(-3, 9) * DAY
        boards = {
            "weekly": {"per": "week"},
            "monthly": {"per": "month"},
            "classes": {"per": chance.choice(("week", "month")), "group": "class"},
            "season": {"from": str(first), "until": str(first + chance.choice((0, 3, 6, 10)) * DAY)},
        }
        kept = {name: each for name, each in boards.items() if chance.random() < 0.85}
        leagues = None
        if "weekly" in kept and chance.random() < 0.9:
            size = chance.choice((2, 3, 5))
            divisions = chance.choice((["bronze", "silver"], ["bronze", "silver", "gold"], ["tin", "gold"]))
            moving = chance.choice((1, size // 2))
            leagues = {"board": "weekly", "divisions": divisions, "size": size, "up": moving, "down": moving}
        rest = chance.choice(((), (), ("saturday", "sunday")))
        return Edition(at, kept, leagues, chance.choice(("00:00", "00:00", "03:00", "05:30")), rest)

    # ---- instants

    def _instants(self) -> list[datetime]:
        chance = self.chance
        return [
            self.begin + number * DAY + chance.randrange(24) * HOUR + chance.randrange(20, 40) * MINUTE
            for number in range(DATES)
            for _ in range(chance.choice((0, 1, 1, 2)))
        ]

    def _edges(self, starts: str) -> list[datetime]:
        """Just before weeks end, are closed and are final."""
        began = time.fromisoformat(starts)
        later = timedelta(hours=began.hour, minutes=began.minute)
        monday = self.begin + 3 * DAY
        ends = [monday + number * 7 * DAY + 12 * HOUR + later for number in range(3)]
        edges = [end + after - SECOND for end in ends for after in (timedelta(), 6 * HOUR, 3 * DAY)]
        edges += [end - later - 26 * HOUR - SECOND for end in ends]  # the first midnight on earth
        return [each for each in edges if self.chance.random() < 0.6]

    # ---- what happens

    def _moment(self, at: datetime) -> Moment:
        chance, is_edge = self.chance, at.second != 0
        found: list[Action] = [
            self._send(user, at) for user in self.users if chance.random() < (0.7 if is_edge else 0.45)
        ]
        if not is_edge:
            found += [
                each for user in self.users if chance.random() < 0.3 and (each := self._other(user, at))
            ]
        chance.shuffle(found)
        closes = not self.misses and not is_edge and chance.random() < 0.4
        if closes:
            found.append(Close(chance.choice((1, 1, 2))))
        return Moment(at, tuple(found), chance.choice((0, 0.5, 1, 1)), closes and chance.random() < 0.4)

    def _send(self, user: str, at: datetime) -> Send:
        chance = self.chance
        bodies = [self._body(user, at) for _ in range(chance.randrange(1, 4))]
        mine = [body for each in self.sent if each.user == user for body in each.bodies]
        if mine and chance.random() < 0.4:
            bodies.append(chance.choice(mine))
        send = Send(user, tuple(bodies), "producer")
        self.sent.append(send)
        return send

    def _body(self, user: str, at: datetime) -> Body:
        chance, self.keys = self.chance, self.keys + 1
        zone = self.zones[user] if chance.random() < 0.95 else chance.choice(ZONES)
        ago = chance.choice((0, 0, 1, 5, 20, 24, 47, 70)) * HOUR + chance.randrange(1, 50) * MINUTE
        if chance.random() < 0.08:
            ago += chance.choice((4, 9)) * DAY
        when = at - ago
        if chance.random() < 0.2:  # the last second of a date there, or the first one of the next
            local = when.astimezone(zone_of(zone))
            edge = chance.choice((time(), time(23, 59, 59), time(2, 59, 59), time(3)))
            there = datetime.combine(local.date(), edge, local.tzinfo).astimezone(UTC)
            when = there if there <= at else when
        key = f"k{self.keys}"
        return {"idempotency_key": key, "event_type": chance.choice(TYPES), **written(when, zone, chance)}

    def _other(self, user: str, at: datetime) -> Action | None:
        chance, self.keys = self.chance, self.keys + 1
        others = [each for each in self.users if each != user]
        roll = chance.random()
        if roll < 0.2:
            since = at - chance.randrange(1, 12) * DAY if chance.random() < 0.5 else None
            return Pair(user, chance.choice(others), since)
        if roll < 0.25:
            return Part(user, chance.choice(others))
        if roll < 0.4:
            mine = [body for each in self.sent if each.user == user for body in each.bodies]
            return TakeBack(user, chance.choice(mine)["idempotency_key"]) if mine else None
        if roll < 0.5:
            return Grant(user, f"freeze{self.keys}", at.date() - chance.randrange(5) * DAY)
        if roll < 0.55:
            first = at.date() + chance.randrange(2, 5) * DAY
            return Pause(user, first, first + chance.randrange(3) * DAY)
        if roll < 0.65:
            return Hide(user, chance.random() < 0.5)
        if roll < 0.75:
            return Group(user, chance.choice((*CLASSES, "")))
        if roll < 0.87:
            return TakePart(user, chance.random() < 0.5)
        if roll < 0.92:
            own = self.zones[user]
            if chance.random() < 0.5:
                return Zones(user, (own,))
            return Zones(user, ("Asia/Tokyo", "America/Lima", "Asia/Tokyo", "Africa/Lagos", own))
        return Release(user)

    # ---- erasures, by a chance of their own: all else is planned as without them

    def _erase(self, moments: list[Moment]) -> None:
        """Let some users be erased between what happens; their later actions are left out when they are due."""
        fate = random.Random(f"company erasures {self.seed}")
        for user in fate.sample(self.users, fate.choice((0, 0, 0, 1, 1, 2))):
            number = fate.randrange(len(moments) // 4, len(moments) - 1)
            moment, other = moments[number], fate.choice([each for each in self.users if each != user])
            blocked, blocking = fate.choice((("", ""), (other, ""), ("", other)))
            actions = list(moment.actions)
            actions.insert(fate.randrange(len(actions) + 1), Erase(user, blocked, blocking))
            moments[number] = replace(moment, actions=tuple(actions))


def company_planned(seed: int) -> CompanyPlan:
    """The plan of a seed."""
    return CompanyPlanner(seed).plan()
