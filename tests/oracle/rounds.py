"""Plays a plan on the machines, and keeps what callers were told."""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, time
from itertools import count
from typing import Any

from botocore.exceptions import BotoCoreError

import ingest.engagement.events_api
import ingest.engagement.users_api
import processors.engagement
import processors.expiry
from tests.oracle import plans
from tests.oracle.board_reading import BOARDS
from tests.oracle.facts import BookSaid, Facts
from tests.oracle.judging import Judge
from tests.oracle.machines import CONTEXT, Machines, Stream, forget_instants
from tests.oracle.points_reading import ByAmount, TimedBoost
from tests.oracle.repair_reading import RepairTerms
from tests.support.books import KnownAt, achieving, boosted, repairing, resting
from tests.support.engine import Engine

ACTORS_MAX = 3
STEPS_MAX = 2_000
PLAYED = Counter[int]()
RESTS: dict[str, dict[str, Any]] = {
    "": {},
    "book": {"rest_days": ["saturday", "sunday"]},
    "chosen": {"rest_days_chosen": 2},
}
REPAIRS = RepairTerms(price_points=5, within_days=4, dates_max=3, a_year=6)
BOOSTS = (
    TimedBoost(datetime(2011, 1, 1, tzinfo=UTC), datetime(2026, 5, 9, tzinfo=UTC), 2),
    TimedBoost(
        datetime(2026, 3, 18, tzinfo=UTC), datetime(2026, 3, 20, tzinfo=UTC), 3, frozenset({"CONTRIBUTION"})
    ),
)


PAYS = {"withdrawn": "when_untrue"}
STREAKS: dict[str, Any] = {
    "runs": {"per": "day", "needs": {"events": 1}, "freezes": True, "pauses": True, "rest_days": True},
    "weeks": {"per": "week", "needs": {"active_days": 2}, "freezes": True, "pauses": True},
}
BONUSES: dict[str, Any] = {
    "few": {"any": [{"count": each, "at_least": 2} for each in plans.TYPES], "points": 7, **PAYS},
    "rich": {"all": [{"points_earned": 40}], "points": 25, **PAYS},
    "run": {"all": [{"streak": "runs", "at_least": 3}], "points": 11, **PAYS},
    "weeks": {"all": [{"streak": "weeks", "at_least": 2}], "points": 13, **PAYS},
    "both": {
        "all": [{"count": "CHALLENGE_COMPLETED", "at_least": 1}, {"streak": "runs", "at_least": 2}],
        "points": 5,
        "secret": True,
        **PAYS,
    },
}
# What a second book pays besides: a count that is soon reached, and one that has long been.
LATER_BONUSES: dict[str, Any] = {
    "newer": {"any": [{"points_earned": 1}], "points": 3, **PAYS},
    "newer_run": {"all": [{"streak": "runs", "at_least": 4}], "points": 9, **PAYS},
}
LATER_PRICES = {"CHECK_IN": 4, "CONTRIBUTION": 17, "LESSON_COMPLETED": 25}
AMOUNTS = {plans.TIMED: ByAmount(2, "minutes", "2.5", 1)}


@dataclass(frozen=True)
class Told:
    """An answer that reached its caller: of which action, between which steps, by whose clock."""

    action: plans.Action
    status: int
    body: Any
    first_step: int
    last_step: int
    clock: datetime


@dataclass
class Round:
    """books: those of the whole round; the facts have those that are published.

    unanswered: actions of which an attempt brought no answer. told: since the last judgement.

    applied: events by id, with the step at which a delivery of them was first confirmed.
    """

    plan: plans.Plan
    machines: Machines
    facts: Facts
    books: tuple[BookSaid, ...]
    told: list[Told] = field(default_factory=list)
    unanswered: list[plans.Action] = field(default_factory=list)
    waiting: list[dict[str, Any]] = field(default_factory=list)
    seen: list[dict[str, Any]] = field(default_factory=list)
    bought: dict[str, str] = field(default_factory=dict)
    applied: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.judge = Judge(self)

    def play(self) -> list[str]:
        """Play the whole plan; returns what is wrong."""
        for phase in self.plan.phases:
            self.play_phase(phase)
            if self.judge.wrong:
                break
        return self.judge.wrong

    def play_phase(self, phase: plans.Phase) -> None:
        """Play the next phase, and judge it."""
        judge = self.judge
        self.machines.now = max(self.machines.now, phase.at)
        self.facts.books = tuple(each for each in self.books if each.since <= self.machines.now)
        if phase.busy:
            self._at_once(phase)
        else:
            for action in phase.actions:
                self.machines.alone(self._attempt(action))
                judge.hear(self.told, self.unanswered)
        judge.hear(self.told, self.unanswered)
        if phase.drain:
            self._drain()
        if phase.drain and phase.judge:
            judge.judge(whole=phase is self.plan.phases[-1])

    def _at_once(self, phase: plans.Phase) -> None:
        """Several actors, and deliveries of the stream between them, in any order."""
        chance, turns = self.machines.chance, self.machines.turns
        tasks = [(self._attempt(each), 0) for each in phase.actions]
        for steps in count():
            assert steps < STEPS_MAX, "it does not come to an end"
            while turns.alive < ACTORS_MAX:
                if tasks and chance.random() < 0.7:
                    self._start(tasks, tasks.pop(chance.randrange(len(tasks))))
                elif chance.random() < 0.5 and (batch := self._batch()):
                    self._start(tasks, (self._delivery(batch), 0))
                elif tasks:
                    self._start(tasks, tasks.pop())
                else:
                    break
            if not turns.step() and not tasks:
                return

    def _start(self, tasks: list[Any], task: tuple[Callable[[], bool], int]) -> None:
        attempt, number = task
        self.machines.start(
            attempt, number, lambda done: None if done else tasks.append((attempt, number + 1))
        )

    # ---- the stream

    def _poll(self) -> None:
        new = self.machines.stream.new(self.machines.user)
        self.seen += new
        self.waiting += new

    def _batch(self) -> list[dict[str, Any]]:
        """Look at a batch of what waits: out of order, with some of it twice."""
        chance = self.machines.chance
        if not self.waiting or chance.random() < 0.2:
            self._poll()
        chance.shuffle(self.waiting)
        batch = self.waiting[: chance.choice(self.plan.batches)]
        return batch + chance.sample(batch, k=min(len(batch), chance.randrange(0, 2)))

    def _delivery(self, batch: list[dict[str, Any]]) -> Callable[[], bool]:
        """Deliver records until they are applied."""
        self.waiting = [each for each in self.waiting if each not in batch]
        left = list(batch)

        def attempt() -> bool:
            answer = processors.engagement.handler({"Records": left}, CONTEXT)
            again = {each["itemIdentifier"] for each in answer["batchItemFailures"]}
            for each in left:
                if each["dynamodb"]["SequenceNumber"] not in again:
                    self.applied.setdefault(each["dynamodb"]["Keys"]["event_id"]["S"], self.machines.step)
            left[:] = [each for each in left if each["dynamodb"]["SequenceNumber"] in again]
            return not left

        return self._survived(attempt)

    def _survived(self, attempt: Callable[[], bool]) -> Callable[[], bool]:
        def run() -> bool:
            try:
                return attempt()
            except BotoCoreError:
                return False  # Lambda sends the batch again.

        return run

    def _drain(self) -> None:
        while batch := self._batch():
            self.machines.alone(self._delivery(batch))

    # ---- actions

    def _attempt(self, action: plans.Action) -> Callable[[], bool]:
        """Return an attempt of an action, which says whether it is done."""
        if isinstance(action, plans.Again):
            return self._delivery(self.seen[: action.records]) if self.seen else lambda: True
        if isinstance(action, plans.Sweep):
            return self._sweep
        machines = self.machines

        def attempt() -> bool:
            self.unanswered.append(action)
            first = machines.step
            answer = self._send(action)
            if answer is None:
                self.unanswered.remove(action)
                return True
            status, body = answer
            if status >= 500 or machines.chance.random() < 0.08:
                return False
            if isinstance(action, plans.Post) and status == 202:
                codes = {(each.get("error") or {}).get("code") for each in body["results"]}
                if "unavailable" in codes:
                    return False
            self.unanswered.remove(action)
            if isinstance(action, plans.Redeem | plans.TakeFreeze) and status == 201:
                self.bought[action.key] = body["entry_id"]
            self.told.append(Told(action, status, body, first, machines.step, machines.actor.clock))
            return True

        return attempt

    def _send(self, action: plans.Action) -> tuple[int, Any] | None:
        """Send an action's request; None if there is nothing to send."""
        machines, user = self.machines, f"/v1/users/{self.machines.user}"
        handler = ingest.engagement.users_api.handler
        match action:
            case plans.Post(bodies, door):
                events = {"events": [{**each, "user_id": machines.user} for each in bodies]}
                return machines.call(ingest.engagement.events_api.handler, "POST", "/v1/events", events, door)
            case plans.Redeem(key, points):
                body = {"points": points, "reward_id": key, "idempotency_key": key}
                return machines.call(handler, "POST", f"{user}/redemptions", body)
            case plans.TakeFreeze(key, door, granted):
                when = {"granted_on": granted.isoformat()} if granted else {}
                return machines.call(
                    handler, "POST", f"{user}/freezes", {"idempotency_key": key, **when}, door
                )
            case plans.Repair(key):
                repair_body = {"idempotency_key": key} if key else {}
                return machines.call(handler, "POST", f"{user}/streak/repair", repair_body, "user")
            case plans.Undo(key):
                path = f"{user}/redemptions/{self.bought.get(key)}/reversal"
                return machines.call(handler, "POST", path, {}) if key in self.bought else None
            case plans.Pause(first, last):
                body = {"first": first.isoformat(), "last": last.isoformat()}
                return machines.call(handler, "POST", f"{user}/pauses", body, "user")
            case plans.Rest(weekdays):
                rest_body = {"rest_days": list(weekdays)}
                return machines.call(handler, "PUT", f"{user}/rest-days", rest_body, "user")
            case plans.Reverse(key):
                held = self.facts.keys.get(key)
                if held is None:
                    return None
                self.facts.reversed_keys.add(held.event_id)
                reversal = {"event_id": held.event_id, "reason": "a refund", "idempotency_key": f"back {key}"}
                return machines.call(handler, "POST", f"{user}/clawbacks", reversal)
            case plans.Look(how):
                if how == "hourly":
                    return 200, processors.expiry.handler({}, CONTEXT)
                path = {"balance": "/balance", "profile": "", "achievements": "/achievements"}[how]
                return machines.call(handler, "GET", f"{user}{path}", None, "user")
            case plans.Move(zone):
                return machines.call(handler, "PUT", f"{user}/timezone", {"timezone": zone}, "user")
            case plans.Release():
                return machines.call(handler, "POST", f"/v1/review/{machines.user}/release", {})
        raise AssertionError(action)

    def _sweep(self) -> bool:
        """Delete what has expired, as DynamoDB does in its own time."""
        dynamodb, until = self.machines.stream.real, self.machines.now
        for table, name in (("BPEvents", "event_id"), ("IdempotencyKeys", "idempotency_key")):
            wanted = {":user": {"S": self.machines.user}}
            found = dynamodb.query(
                TableName=table, KeyConditionExpression="user_id = :user", ExpressionAttributeValues=wanted
            )
            for each in found["Items"]:
                if int(each["ttl"]["N"]) < until.timestamp():
                    dynamodb.delete_item(
                        TableName=table, Key={part: each[part] for part in ("user_id", name)}
                    )
        return True


def played(engine: Engine, stream: Stream, plan: plans.Plan, patch: Any) -> list[str]:
    """Play a plan under a new name; returns what is wrong."""
    with patch.context() as wiring:
        user = f"o{plan.seed}-{PLAYED[plan.seed]}"  # A seed that is replayed alone gets the same name.
        PLAYED[plan.seed] += 1
        try:
            return round_of(engine, stream, plan, user, wiring).play()
        finally:
            forget_instants()


def round_of(engine: Engine, stream: Stream, plan: plans.Plan, user: str, wiring: Any) -> Round:
    """Return a plan's round. wiring: a MonkeyPatch, which puts the machines' clients into the handlers."""
    boosts, amounts = BOOSTS if plan.boosted else (), AMOUNTS if plan.by_amount else {}
    first = boosted(boosts, amounts)
    versions = list[Any]()
    for number, each in enumerate(editions(plan), 1):
        repairs = vars(REPAIRS) if each.repairs else {}
        version = repairing(resting(first, daily_of(each), BOARDS), repairs)
        version = achieving(version, paid_by(plan, number), STREAKS, prices_of(number))
        if isinstance(each, plans.LaterBook):
            version = replace(version, number=number, effective_at=each.at, published_at=each.at)
        versions.append(version)
    machines = machines_of(engine, stream, plan, user, wiring, versions)
    return Round(plan, machines, Facts(boosts, amounts, streaks=STREAKS), books_said(plan))


def machines_of(
    engine: Engine, stream: Stream, plan: plans.Plan, user: str, wiring: Any, versions: Sequence[Any]
) -> Machines:
    """Return the machines of a plan, which know these versions of the book."""
    chance = random.Random(f"machines {plan.seed}")
    losses = plan.losses == "every"
    return Machines(engine, stream, user, chance, losses, plan.skewed, wiring, KnownAt(versions))


def editions(plan: plans.Plan) -> "list[plans.Plan | plans.LaterBook]":
    """Return what a plan says of its first book, and of its second one."""
    return [plan, plan.later] if plan.later else [plan]


def daily_of(edition: "plans.Plan | plans.LaterBook") -> dict[str, Any]:
    """Return the section `daily` of a book."""
    return {**RESTS[edition.rests], "day_starts_at": edition.starts}


def paid_by(plan: plans.Plan, number: int) -> dict[str, Any]:
    """Return the achievements of a plan's first or second book."""
    return (BONUSES if number == 1 else {**BONUSES, **LATER_BONUSES}) if plan.bonuses else {}


def prices_of(number: int) -> dict[str, int]:
    """Return the points of types by which the first or the second book differs from the shipped one."""
    return LATER_PRICES if number == 2 else {}


def books_said(plan: plans.Plan) -> tuple[BookSaid, ...]:
    """Return what a plan's books say, for the oracle."""
    found = []
    for number, each in enumerate(editions(plan), 1):
        daily = daily_of(each)
        said = BookSaid(
            rest=frozenset(map(plans.WEEKDAYS.index, daily.get("rest_days", ()))),
            rest_chosen=daily.get("rest_days_chosen", 0),
            day_start=time.fromisoformat(each.starts),
            repairs=REPAIRS if each.repairs else None,
            prices=prices_of(number),
            paying=paid_by(plan, number),
        )
        found.append(replace(said, since=each.at) if isinstance(each, plans.LaterBook) else said)
    return tuple(found)
