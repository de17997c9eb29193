"""What happens in a round: a seed decides it. A plan is plain data, so that a failure can print and shorten it."""

import random
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

from tests.oracle.calendar_dates import zone_of

Body = dict[str, Any]
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
# When dates begin, by the book of a round.
STARTS = ("00:00", "00:00", "03:00", "05:30")
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
TYPES = ("CHECK_IN", "CONTRIBUTION", "LESSON_COMPLETED", "WORKOUT_COMPLETED", "APP_OPENED")


TIMED = "WORKOUT_COMPLETED"
MINUTES = (0, 0.1, 2.499, 2.5, 2.9, 7.5, 12.501, 29, 31.25, 600)


@dataclass(frozen=True)
class Post:
    """Events to POST /v1/events. door: as whom."""

    bodies: tuple[Body, ...]
    door: str


@dataclass(frozen=True)
class Redeem:
    key: str
    points: int


@dataclass(frozen=True)
class TakeFreeze:
    """door: user (two a month are free) or admin (free; may say from when)."""

    key: str
    door: str
    granted_on: date | None = None


@dataclass(frozen=True)
class Repair:
    """The user repairs the run that has just broken. key: "" for none."""

    key: str


@dataclass(frozen=True)
class Undo:
    """Reverse what a key has bought, if it has bought anything."""

    key: str


@dataclass(frozen=True)
class Pause:
    first: date
    last: date


@dataclass(frozen=True)
class Rest:
    """The user chooses rest days."""

    weekdays: tuple[str, ...]


@dataclass(frozen=True)
class Move:
    zone: str


@dataclass(frozen=True)
class Release:
    """An admin ends a review."""


@dataclass(frozen=True)
class Again:
    """The stream delivers once more what it has delivered before, from the first record on."""

    records: int


@dataclass(frozen=True)
class Reverse:
    """The event with a key is taken back, if it was accepted."""

    key: str


@dataclass(frozen=True)
class Look:
    """Somebody looks, so that what is due is written. how: balance, profile, achievements or hourly."""

    how: str


@dataclass(frozen=True)
class Sweep:
    """DynamoDB deletes what has expired."""


Action = (
    Post
    | Redeem
    | TakeFreeze
    | Repair
    | Undo
    | Pause
    | Rest
    | Move
    | Release
    | Again
    | Sweep
    | Reverse
    | Look
)


@dataclass(frozen=True)
class LaterBook:
    """A second version of the book, published at an instant and in force from then on. See Plan."""

    at: datetime
    repairs: bool
    rests: str
    starts: str


@dataclass(frozen=True)
class Phase:
    """Actions from an instant on. busy: all at once, by several actors; else one after another.

    drain: afterwards all records of the stream are applied, and what they come to is judged, if judge says so.
    """

    at: datetime
    actions: tuple[Action, ...]
    busy: bool
    drain: bool
    judge: bool = True


@dataclass(frozen=True)
class Plan:
    """losses: which answers are lost, "some" or "every". skewed: whether the clocks of machines differ by days.

    batches: of how many records the stream's batches may be.
    """

    seed: int
    style: str
    losses: str
    skewed: bool
    boosted: bool
    by_amount: bool  # whether workouts earn by their minutes
    phases: tuple[Phase, ...]
    batches: tuple[int, ...] = (1, 3, 8, 20)
    repairs: bool = False  # whether the book sells repairs
    rests: str = ""  # "book": weekends are rest days; "chosen": users choose two weekdays; "": neither
    starts: str = "00:00"  # when the book's dates begin
    bonuses: bool = False  # whether the book pays for achievements
    later: LaterBook | None = None

    def __str__(self) -> str:
        title = f"seed {self.seed}: {self.style}, losses={self.losses}, skewed={self.skewed}"
        title += f", boosted={self.boosted}, by_amount={self.by_amount}, rests={self.rests}"
        lines = [
            f"{title}, starts={self.starts}, repairs={self.repairs}, bonuses={self.bonuses}, {self.later}"
        ]
        for phase in self.phases:
            lines.append(
                f"  {phase.at:%Y-%m-%d %H:%M} {'at once' if phase.busy else 'in turn'}, drain={phase.drain}"
            )
            lines += [f"    {action}" for action in phase.actions]
        return "\n".join(lines)


# ---- styles: where a round begins, and in which zones its user is ----------------------------------

STYLES: dict[str, tuple[str, tuple[str, ...]]] = {
    "at home": ("2026-03-20T12:00", ("Europe/Berlin",)),
    "without a zone": ("2026-02-27T12:00", ()),
    "clocks go forward": ("2026-03-08T18:00", ("America/New_York",)),
    "clocks go back": ("2026-10-25T12:00", ("Europe/Berlin",)),
    "traveller": ("2026-05-11T01:00", ("Australia/Sydney",)),
    "liar": ("2026-05-10T12:00", ("-12:00", "+00:00", "+14:00", "Asia/Tokyo", "America/Lima")),
    "Apia": ("2011-12-29T20:00", ("Pacific/Apia",)),
    "Kwajalein": ("1993-08-20T20:00", ("Pacific/Kwajalein",)),
    "wrong clock": ("2026-06-30T12:00", ("Asia/Kathmandu",)),
    "archive": ("2026-01-05T12:00", ("America/Sao_Paulo",)),
}


# The traveller flew west over the date line: from the evening of the 9th in Los Angeles to the 11th in Sydney.
FLIGHT = datetime(2026, 5, 10, 12, tzinfo=UTC)


class Planner:
    """Makes the plan of a seed."""

    gaps: tuple[timedelta, ...] = (5 * HOUR, DAY, 2 * DAY, 3 * DAY, 5 * DAY)  # after an hour of each day

    def __init__(self, seed: int) -> None:
        self.seed, self.chance = seed, random.Random(f"oracle {seed}")
        self.style = list(STYLES)[seed % len(STYLES)]
        start, self.zones = STYLES[self.style]
        self.now = datetime.fromisoformat(start).replace(tzinfo=UTC) + self.chance.randrange(12) * HOUR / 4
        self.keys = 0
        self.sent: list[Body] = []
        self.bought: list[str] = []
        self.place = self.chance.choice(self.zones) if self.zones else None
        # Few types, so that they meet on a date, and their caps with them.
        self.types = self.chance.sample(TYPES, k=2)
        self.by_amount = seed % 4 == 2
        self.minutes = random.Random(f"minutes {seed}")  # so that all else is as without amounts
        self.rest_chance = random.Random(f"rest {seed}")  # so other plans stay as they are
        self.repair_chance = random.Random(f"repair {seed}")
        self.repairs = self.repair_chance.random() < 0.5
        self.rests = self.rest_chance.choice(("", "book", "chosen"))
        self.starts = random.Random(f"starts {seed}").choice(STARTS)
        self.bonus_chance = random.Random(f"bonus {seed}")
        self.bonuses = self.bonus_chance.random() < 0.6
        self.later_chance = random.Random(f"later {seed}")
        # Machines whose clocks differ by days know a version at different times.
        self.changes = seed % 3 != 1 and self.later_chance.random() < 0.5
        self.later: LaterBook | None = None
        self.first_book = (self.repairs, self.rests, self.starts)

    def plan(self) -> Plan:
        chance = self.chance
        phases = [phase for number in range(chance.choice((1, 2, 2, 2, 3))) for phase in self._days(number)]
        if self.style == "archive":
            phases += self._archive()
        phases[-1] = replace(phases[-1], drain=True)
        losses = "every" if self.seed % 4 == 3 else "some"
        repairs, rests, starts = self.first_book
        return Plan(
            *(self.seed, self.style, losses, self.seed % 3 == 1, self.seed % 5 == 2, self.by_amount),
            tuple(phases),
            repairs=repairs,
            rests=rests,
            starts=starts,
            bonuses=self.bonuses,
            later=self.later,
        )

    def _days(self, number: int) -> list[Phase]:
        """A busy phase, then a quiet one; then days go by."""
        chance, found = self.chance, []
        if number == 0 and chance.random() < 0.5:
            found.append(Phase(self.now, tuple(self._early()), busy=False, drain=False))
        busy: list[Action] = [*self._posts()]
        busy += self._commands(chance.randrange(0, 2))
        if chance.random() < 0.2:
            busy.append(Again(chance.randrange(1, 6)))
        chance.shuffle(busy)
        busy += self._repairs()
        busy += self._looks() + self._reversals()
        found.append(Phase(self.now, tuple(busy), busy=True, drain=chance.random() < 0.4))
        if self.changes and not self.later and self.later_chance.random() < 0.6:
            self._change(self.now + HOUR / 2)
        self.now += HOUR
        quiet = [*self._commands(chance.choice((0, 1, 1, 2))), *self._rare(), *self._repairs()]
        quiet += self._reversals() + self._looks()
        if quiet:
            found.append(Phase(self.now, tuple(quiet), busy=False, drain=chance.random() < 0.3))
        self.now += chance.choice(self.gaps)
        return found

    def _early(self) -> list[Action]:
        """A zone, and freezes, before anything has happened."""
        found: list[Action] = []
        if self.place and self.chance.random() < 0.5:
            found.append(Move(self.place))
        for _ in range(self.chance.randrange(0, 3)):
            found.append(self._freeze())
        return found

    # ---- events

    def _posts(self) -> list[Action]:
        chance = self.chance
        bodies = [self._body() for _ in range(chance.randrange(2, 6))]
        bodies.append(self._repeated(chance.choice(bodies)))
        if chance.random() < 0.3:
            bodies.append({**chance.choice(bodies), "event_type": "CHALLENGE_COMPLETED"})
        if self.sent and chance.random() < 0.6:
            bodies.append(self._repeated(chance.choice(self.sent)))
        chance.shuffle(bodies)
        self.sent += bodies
        found: list[Action] = []
        while bodies:
            size = chance.randrange(2, 6)
            found.append(Post(tuple(bodies[:size]), "producer" if chance.random() < 0.3 else "user"))
            bodies = bodies[size:]
        return found

    def _body(self) -> Body:
        chance, self.keys = self.chance, self.keys + 1
        event_type = "PURCHASE_COMPLETED" if chance.random() < 0.05 else chance.choice(self.types)
        said = {"idempotency_key": f"k{self.keys}", "event_type": event_type, **self._when()}
        if self.by_amount and event_type == TIMED and self.minutes.random() < 0.9:
            said["properties"] = {"minutes": self.minutes.choice(MINUTES)}
        return said

    def _when(self) -> Body:
        """An instant with how it is written, and a zone."""
        chance = self.chance
        ago = chance.choice((0, 1, 5, 20, 24, 30, 47, 60, 70)) * HOUR + chance.randrange(60) * HOUR / 60
        if self.style == "wrong clock":
            ago -= chance.choice((-2, -1, 0, 1, 3)) * DAY
        if chance.random() < 0.08:
            ago += chance.choice((3, 9, 40)) * DAY
        when = self.now - ago
        if self.style == "liar":
            when = self.now.replace(minute=0) - chance.choice((1, 2, 30)) * HOUR
            return written(when, chance.choice(self.zones), chance)
        if self.style == "traveller" and when < FLIGHT:
            return written(when, "America/Los_Angeles", chance)
        if self.style == "archive":
            when -= 10 * DAY
        return written(when, self.place, chance)

    def _repeated(self, body: Body) -> Body:
        """The same once more, said differently, or in the same words."""
        text = body["occurred_at"]
        if text.endswith("Z") and "." not in text and self.chance.random() < 0.3:
            return {**body, "occurred_at": f"{text[:-1]}.000Z"}
        return dict(body)

    # ---- commands

    def _commands(self, number: int) -> list[Action]:
        makers = (self._redeem, self._redeem, self._freeze, self._undo)
        return [self.chance.choice(makers)() for _ in range(number)]

    def _key(self, kind: str) -> str:
        self.keys += 1
        self.bought.append(f"{kind}{self.keys}")
        return self.bought[-1]

    def _redeem(self) -> Action:
        redeemed = [each for each in self.bought if each.startswith("mug")]
        key = self.chance.choice(redeemed) if redeemed and self.chance.random() < 0.2 else self._key("mug")
        return Redeem(key, self.chance.choice((5, 10, 25)))

    def _freeze(self) -> Action:
        door = self.chance.choice(("user", "admin"))
        granted = self.now.date() - self.chance.randrange(6) * DAY
        return TakeFreeze(
            self._key("freeze"), door, granted if door == "admin" and self.chance.random() < 0.5 else None
        )

    def _repairs(self) -> list[Action]:
        """Sometimes two at once, with one key or others."""
        chance = self.repair_chance
        number = chance.choice((0, 1, 1, 2)) if self.repairs else 0
        keys = [chance.choice(("", "repair", f"repair{chance.randrange(99)}")) for _ in range(number)]
        # Where clocks differ by days, a second attempt without a key may find another run to repair.
        return [Repair(key or ("nameless" if self.seed % 3 == 1 else "")) for key in keys]

    def _looks(self) -> list[Action]:
        chance = self.bonus_chance
        number = chance.choice((0, 1, 1, 2, 3)) if self.bonuses else 0
        return [Look(chance.choice(("balance", "profile", "achievements", "hourly"))) for _ in range(number)]

    def _reversals(self) -> list[Action]:
        """Events are taken back, some twice. Not of liars: who claims what then decides which date is whose."""
        chance = self.bonus_chance
        if not self.bonuses or self.style in ("liar", "traveller"):
            return []
        number = chance.choice((0, 0, 1, 2))
        return [Reverse(chance.choice(self.sent)["idempotency_key"]) for _ in range(number)]

    def _change(self, at: datetime) -> None:
        """From an instant on, another book is in force."""
        chance = self.later_chance
        self.repairs, self.rests = chance.random() < 0.5, chance.choice(("", "book", "chosen"))
        self.starts = chance.choice(STARTS)
        self.later = LaterBook(at, self.repairs, self.rests, self.starts)

    def _undo(self) -> Action:
        return Undo(self.chance.choice(self.bought)) if self.bought else self._redeem()

    def _rare(self) -> list[Action]:
        chance, found = self.chance, list[Action]()
        if chance.random() < 0.35:
            first = self.now.date() + chance.randrange(2, 5) * DAY
            found.append(Pause(first, first + chance.choice((0, 2, 60)) * DAY))
        if chance.random() < 0.1:
            first = self.now.date() - 3 * DAY
            found.append(Pause(first, first + DAY))
        if self.rests == "chosen" and self.seed % 3 != 1 and self.rest_chance.random() < 0.6:
            weekdays = self.rest_chance.sample(WEEKDAYS, self.rest_chance.choice((0, 1, 2, 2)))
            found.append(Rest(tuple(sorted(weekdays, key=WEEKDAYS.index))))
        if self.place and chance.random() < 0.2:
            found.append(Move(self.place))
        if chance.random() < 0.3:
            found.append(Again(chance.randrange(1, 9)))
        if self.style == "liar" and chance.random() < 0.2:
            found.append(Release())
        return found

    def _archive(self) -> list[Phase]:
        """More than 90 days later an archive is imported again, also where DynamoDB has deleted what expired."""
        self.now += self.chance.choice((96, 400)) * DAY
        first: list[Action] = [Sweep()] if self.chance.random() < 0.5 else []
        once = {body["idempotency_key"]: body for body in reversed(self.sent)}
        again = Post(tuple(once.values()), "producer")
        return [Phase(self.now, (*first, again, Again(20)), busy=False, drain=True)]


def written(when: datetime, zone: str | None, chance: random.Random) -> Body:
    """How a device may write an instant: with Z, an offset, and the name of its zone or not."""
    when = when.replace(microsecond=0)
    plain = f"{when:%Y-%m-%dT%H:%M:%SZ}"
    if zone is None:
        return {"occurred_at": plain}
    style = chance.randrange(3)
    if style == 0:
        return {"occurred_at": plain, "timezone": zone}
    if style == 1:
        return {"occurred_at": when.astimezone(zone_of(zone)).isoformat(), "timezone": zone}
    return {"occurred_at": when.astimezone(zone_of(zone)).isoformat()}


def planned(seed: int) -> Plan:
    """The plan of a seed."""
    return Planner(seed).plan()
