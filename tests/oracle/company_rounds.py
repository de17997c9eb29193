"""Plays what several users do together, with lost answers, and hands the facts to the judge."""

import random
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time
from typing import Any

import ingest.engagement.events_api
import ingest.engagement.users_api
import processors.engagement
import processors.ranks
from tests.oracle import company_plans as plans
from tests.oracle.board_reading import Sections
from tests.oracle.calendar_dates import first_date_from, instant
from tests.oracle.company_erasures import Erased, erase
from tests.oracle.company_judging import CompanyJudge
from tests.oracle.facts import BookSaid, Facts
from tests.oracle.league_reading import Place
from tests.oracle.machines import CONTEXT, Machines, Stream, forget_instants
from tests.oracle.plans import WEEKDAYS
from tests.support.books import KnownAt, boosted, resting
from tests.support.engine import Engine
from tests.support.same_thread import SameThread

PLAYED = Counter[int]()
EVER = datetime(1970, 1, 1, tzinfo=UTC)
Since = list[tuple[datetime, Any]]  # values, each from an instant on; by instant


@dataclass
class Life:
    """What the world knows of a user: what was set, and since when."""

    facts: Facts
    hidden: Since = field(default_factory=list)
    groups: Since = field(default_factory=list)
    reviews: Since = field(default_factory=list)  # whether the account is under review
    leagues: Since = field(default_factory=list)  # True: takes part
    places: list[tuple[datetime, Place]] = field(default_factory=list)  # cohorts that were joined
    instants: dict[str, datetime] = field(default_factory=dict)  # when events occurred, by id
    keys: dict[str, str] = field(default_factory=dict)  # events by key
    erased: Erased | None = None


@dataclass
class CompanyRound:
    """boards: by the date from which on a version judges. pairs: who are friends, and since when."""

    plan: plans.CompanyPlan
    machines: Machines
    versions: KnownAt
    boards: Sections
    leagues: tuple[tuple[date, Any], ...]
    lives: dict[str, Life]
    pairs: dict[frozenset[str], datetime] = field(default_factory=dict)
    closed: list[datetime] = field(default_factory=list)  # when runs of the schedule that ended well began
    waiting: list[dict[str, Any]] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)  # the user of a plan's name

    def play(self) -> list[str]:
        """Play the whole plan; returns what is wrong."""
        judge = CompanyJudge(self)
        for moment in self.plan.moments:
            self.machines.now = max(self.machines.now, moment.at)
            for action in moment.actions:
                if isinstance(action, plans.Erase):
                    self.erase(action, judge)
                elif not isinstance(action, plans.Close) and self.may_act(action):
                    self.act(action)
            self.poll()
            self.note_reviews()
            while self.waiting and self.machines.chance.random() < moment.deliver:
                self.deliver(judge)
            self.note_reviews()
            for action in moment.actions:
                if isinstance(action, plans.Close):
                    self.close(action.times)
            if moment.look:
                while self.waiting:
                    self.deliver(judge)
                self.note_reviews()
                self.close(1)
                judge.judge()
            if judge.wrong:
                break
        return judge.wrong

    # ---- the stream

    def poll(self) -> None:
        self.waiting += self.machines.stream.new(*self.lives)

    def deliver(self, judge: CompanyJudge) -> None:
        """Apply a batch of what waits: out of order, with some of it twice. Who joins a league is judged."""
        machines, chance = self.machines, self.machines.chance
        chance.shuffle(self.waiting)
        size = chance.choice((1, 3, 8))
        batch, self.waiting = self.waiting[:size], self.waiting[size:]
        left = batch + chance.sample(batch, k=min(len(batch), chance.randrange(0, 2)))
        if chance.random() < 0.1:
            self.waiting += batch[:1]  # once more, later
        users = sorted({each["dynamodb"]["Keys"]["user_id"]["S"] for each in batch})
        before, faults = judge.seats(users), machines.faults_left

        def attempt() -> bool:
            answer = processors.engagement.handler({"Records": left}, CONTEXT)
            again = {each["itemIdentifier"] for each in answer["batchItemFailures"]}
            left[:] = [each for each in left if each["dynamodb"]["SequenceNumber"] in again]
            return not left

        began = machines.now
        machines.alone(attempt)
        judge.joined(before, began, is_sure=machines.faults_left == faults and not machines.every)

    # ---- actions

    def ask(
        self, user: str, method: str, path: str, body: Any = None, door: str = "user", **query: str
    ) -> Any:
        """Ask until there is an answer; returns status and body, and when it was asked for the last time."""
        told: list[Any] = []
        machines = self.machines
        machines.user = user
        handler = ingest.engagement.events_api if path == "/v1/events" else ingest.engagement.users_api

        def attempt() -> bool:
            asked = machines.now
            status, answer = machines.call(handler.handler, method, path, body, door, **query)
            told[:] = [status, answer, asked]
            return bool(status < 500)

        machines.alone(attempt)
        return tuple(told)

    def act(self, action: plans.Action) -> None:
        """Do something, and keep what is known of it."""
        user = self.names[action.user] if not isinstance(action, plans.Close) else ""
        path = f"/v1/users/{user}"
        match action:
            case plans.Send(_, bodies, door):
                events = {"events": [{**each, "user_id": user} for each in bodies]}
                _, told, _ = self.ask(user, "POST", "/v1/events", events, door)
                for body, result in zip(bodies, told["results"], strict=True):
                    if result["status"] in ("accepted", "duplicate"):
                        self.lives[user].instants[result["event_id"]] = instant(body["occurred_at"])
                        self.lives[user].keys[body["idempotency_key"]] = result["event_id"]
            case plans.TakeBack(_, key) if event_id := self.lives[user].keys.get(key):
                body = {"event_id": event_id, "reason": "a refund", "idempotency_key": f"back {key}"}
                self.ask(user, "POST", f"{path}/clawbacks", body, "admin")
            case plans.Grant(_, key, granted):
                body = {"idempotency_key": key, "granted_on": granted.isoformat()}
                self.ask(user, "POST", f"{path}/freezes", body, "admin")
            case plans.Pause(_, first, last):
                body = {"first": first.isoformat(), "last": last.isoformat()}
                status, _, _ = self.ask(user, "POST", f"{path}/pauses", body)
                if status in (200, 201):
                    self.lives[user].facts.pauses.append((first, last))
            case plans.Hide(_, is_hidden):
                self.sure(user, "PUT", f"{path}/boards", {"hidden": is_hidden})
                self.lives[user].hidden.append((self.machines.now, is_hidden))
            case plans.Group(_, value):
                self.sure(user, "PUT", f"{path}/groups", {"class": value} if value else {}, "producer")
                self.lives[user].groups.append((self.machines.now, value))
            case plans.TakePart(_, takes_part):
                self.sure(user, "PUT", f"{path}/league", {"taking_part": takes_part})
                self.lives[user].leagues.append((self.machines.now, takes_part))
            case plans.Pair() | plans.Part():
                self._pair(action, user, self.names[action.other])
            case plans.Zones(_, zones):
                for zone in zones:
                    self.sure(user, "PUT", f"{path}/timezone", {"timezone": zone})
            case plans.Release():
                self.ask(user, "POST", f"/v1/review/{user}/release", {}, "admin")

    @property
    def living(self) -> dict[str, Life]:
        """All who are not erased."""
        return {user: life for user, life in self.lives.items() if life.erased is None}

    def may_act(self, action: Any) -> bool:
        """Whether nobody was erased whom an action names."""
        return all(
            self.names[getattr(action, name, action.user)] in self.living for name in ("user", "other")
        )

    def erase(self, action: plans.Erase, judge: CompanyJudge) -> None:
        """Erase a user, perhaps with a block that is just made."""
        user = self.names[action.user]
        for one, other in ((user, action.blocked), (action.blocking, user)):
            both = [self.names.get(each, each) for each in (one, other)]
            if all(each in self.living for each in both):
                self.sure(both[0], "PUT", f"/v1/users/{both[0]}/blocked/{both[1]}")
        self.note_reviews()
        self.lives[user].erased = erase(self, user, judge.entries(user))
        self.pairs = {pair: since for pair, since in self.pairs.items() if user not in pair}
        judge.forgotten()

    def _pair(self, action: plans.Pair | plans.Part, user: str, other: str) -> None:
        both, path = frozenset((user, other)), f"/v1/users/{user}/friends/{other}"
        if isinstance(action, plans.Part):
            self.sure(user, "DELETE", path)
            self.pairs.pop(both, None)
            return
        if action.since:
            self.sure(user, "PUT", path, {"since": action.since.isoformat()}, "producer")
        else:
            self.sure(user, "PUT", path)
            self.sure(other, "PUT", f"/v1/users/{other}/friends/{user}")
        self.pairs.setdefault(both, action.since or self.machines.now)

    def sure(self, *asked: Any) -> Any:
        status, told, _ = self.ask(*asked)
        assert status == 200, (asked, told)
        return told

    def note_reviews(self) -> None:
        """Look who is under review now. It begins and ends well before and after any end of a period."""
        listed = {each["user_id"] for each in self.look("/v1/review")["accounts"]}
        for user, life in self.living.items():
            if (user in listed) != bool(life.reviews and life.reviews[-1][1]):
                life.reviews.append((self.machines.now, user in listed))

    def look(self, path: str, user: str = "", **query: str) -> Any:
        """Read with nothing in the way: as the user, or as a server that is an admin, too."""
        status, body = self.answer(path, user, **query)
        assert status == 200, (path, query, body)
        return body

    def answer(self, path: str, user: str = "", **query: str) -> tuple[int, Any]:
        """Read as above, whatever is answered."""
        self.machines.user = user
        door = "user" if user else "admin"
        return self.machines.call(ingest.engagement.users_api.handler, "GET", path, None, door, **query)

    def close(self, times: int) -> None:
        """Run the schedule of boards and leagues, by several at once, and until a run has left nothing."""
        machines = self.machines
        for _ in range(times - 1):
            machines.start(self._run, 0, lambda _: None)
        machines.alone(self._run)

    def _run(self) -> bool:
        began, told = self.machines.now, processors.ranks.handler({}, CONTEXT)
        is_well = not told.get("failed") and not told.get("left")
        self.closed += [began] if is_well else []
        return is_well


def company_played(engine: Engine, stream: Stream, plan: plans.CompanyPlan, patch: Any) -> list[str]:
    """Play a plan with new users, and nobody else in the engine's boards; returns what is wrong."""
    with patch.context() as wiring:
        empty(stream.real)
        PLAYED[plan.seed] += 1
        try:
            return company_round(engine, stream, plan, f"{plan.seed}-{PLAYED[plan.seed]}", wiring).play()
        finally:
            forget_instants()


def empty(dynamodb: Any) -> None:
    """Delete boards, profiles and erasures of earlier rounds."""
    keys = {"UserStreaks": ("user_id",), "Boards": ("board", "part"), "Erasures": ("part", "place")}
    for table, key in keys.items():
        for item in dynamodb.scan(TableName=table)["Items"]:
            dynamodb.delete_item(TableName=table, Key={name: item[name] for name in key})


def company_round(
    engine: Engine, stream: Stream, plan: plans.CompanyPlan, name: str, wiring: Any
) -> CompanyRound:
    """Return a plan's round. wiring: a MonkeyPatch, which puts the machines' clients into the handlers."""
    versions, said = list[Any](), list[BookSaid]()
    boards, leagues = list[Any](), list[Any]()
    for number, each in enumerate(plan.editions, 1):
        daily = {"day_starts_at": each.starts, **({"rest_days": list(each.rest)} if each.rest else {})}
        version = resting(boosted(()), daily, each.boards, each.leagues)
        if each.at:
            version = replace(version, number=number, effective_at=each.at, published_at=each.at)
        versions.append(version)
        rest = frozenset(map(WEEKDAYS.index, each.rest))
        said.append(BookSaid(each.at or EVER, rest, 0, time.fromisoformat(each.starts)))
        since = first_date_from(each.at) if each.at else date.min
        boards.append((since, each.boards))
        leagues.append((since, each.leagues))
    chance = random.Random(f"company machines {plan.seed}")
    known = KnownAt(versions)
    machines = Machines(engine, stream, "", chance, plan.seed % 4 == 3, False, wiring, known)
    for module in ("processors.ranks", "adapters.engagement.leagues"):
        wiring.setattr(f"{module}.ThreadPoolExecutor", SameThread)
    for module in ("boards", "period_boards"):
        wiring.setattr(f"adapters.engagement.{module}.FRESH_SECONDS", 0)
    names = {user: f"c{name}-{user}" for user in plan.users}
    lives = {each: Life(Facts(books=tuple(said))) for each in names.values()}
    return CompanyRound(plan, machines, known, tuple(boards), tuple(leagues), lives, names=names)
