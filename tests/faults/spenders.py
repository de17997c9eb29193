"""Schedules in which points are money: they expire, are held, captured and released, while rules change."""

import copy
from datetime import datetime, timedelta
from typing import Any

import ingest.engagement.users_api
import processors.expiry
from adapters.book_store import BookStore, Publication, PublicationConflict, shipped_document
from adapters.engagement.account_store import ExpiryIndex
from tests.faults.callers import CONTEXT, KINDS, START
from tests.faults.promises import Promises
from tests.faults.simulation import Simulation
from tests.support.engine import Engine

REWARD = "cup"  # what holds are for; redemptions without a hold are for another
WORTH_MAX = 30
SURELY = timedelta(minutes=1)  # of clocks


class Spenders(Simulation):
    """One schedule with an expiring book, of which a second version is published on the way."""

    book_fresh_seconds = 0.0
    refusals: tuple[str, ...] = ("hold_ended",)  # of a capture

    def __init__(self, engine: Engine, seed: int, patch: Any) -> None:
        super().__init__(engine, seed, patch)
        self.promises = Promises()
        self.is_publishing = False
        self.balances: dict[str, dict[str, Any]] = {}
        for each in self.real.scan(TableName="RuleBooks")["Items"]:
            self.real.delete_item(
                TableName="RuleBooks", Key={name: each[name] for name in ("book", "version")}
            )
        self._publish(self.real, START - timedelta(days=30))

    def _wire(self, patch: Any) -> None:
        patch.setattr(processors.expiry._parts, "client", {"dynamodb": self.faults}.__getitem__)
        real_due = ExpiryIndex.due
        patch.setattr(
            ExpiryIndex,
            "due",
            lambda *arguments: (each for each in real_due(*arguments) if each in self.users),
        )
        # A process that cannot read the book goes on with the old one for five seconds of its own clock. Here
        # they would be days, so a door that cannot read it refuses.
        patch.setattr("adapters.platform.tables.Unavailable", ())
        super()._wire(patch)

    def _new_process(self) -> None:
        super()._new_process()
        processors.expiry._parts.cache_clear()

    def workload(self) -> None:
        """Everything that other schedules do; and time passes, so that lots expire on the way."""
        super().workload()
        for user in self.users:
            for number in range(self.chance.randrange(2, 5)):
                points, hours = self.chance.choice((5, 10, 25)), self.chance.randrange(1, 100)
                self.tasks.append(lambda u=user, n=number, p=points, h=hours: self._hold(u, f"h{n}", p, h))  # type: ignore[misc]
            later = [self._later(user, number) for number in range(3)]
            self.tasks += [lambda body=body: self._post_when_due(body) for body in later]  # type: ignore[misc]
            self.tasks.append(lambda u=user: self._balance(u))  # type: ignore[misc]
        self.tasks += [self._sweep, self._sweep, self._publish_now]
        for _ in range(4):
            hours = self.chance.randrange(4, 30)
            self.tasks.append(lambda h=hours: self._pass_time(timedelta(hours=h)))  # type: ignore[misc]
        self.chance.shuffle(self.tasks)

    def run(self) -> None:
        """Run everything; then, on a quiet day when all holds have ended, each user asks for the balance."""
        super().run()
        self.rest()

    def rest(self) -> None:
        """A quiet day."""
        self.faults.left = 0
        self._pass_time(timedelta(days=8))
        self.tasks += [lambda u=user: self._balance(u) for user in self.users]  # type: ignore[misc]
        self._drain()

    def _later(self, user: str, number: int) -> dict[str, Any]:
        moment = START + timedelta(minutes=self.chance.randrange(0, 60 * 24 * 3))
        kind = self.chance.choice(KINDS)
        return {
            "user_id": user,
            "idempotency_key": f"later{number}",
            "event_type": kind,
            "occurred_at": moment.isoformat(),
        }

    def _post_when_due(self, body: dict[str, Any]) -> bool:
        """Send an event once it has happened. If nothing else lets time pass, this does."""
        if self.now <= datetime.fromisoformat(body["occurred_at"]):
            self._pass_time(timedelta(hours=1))
            return False
        return self._post([body])

    def _pass_time(self, some: timedelta) -> bool:
        """Not while a version is published: it says from when it is in force before it is there."""
        if self.is_publishing:
            return False
        self.now += some
        return True

    def _book(self) -> dict[str, Any]:
        made: dict[str, Any] = copy.deepcopy(shipped_document())
        made["expiry"] = {"after_days": self.chance.randrange(1, 9)}
        for kind in made["event_types"].values():
            kind["points"] = self.chance.randrange(1, WORTH_MAX)
            kind["cap"] = {"points": kind["points"] * self.chance.randrange(1, 5), "per": "day"}
        return made

    def _publish_now(self) -> bool:
        self.is_publishing = True
        try:
            return self._publish(self.faults, self.now)
        finally:
            self.is_publishing = False

    def _publish(self, dynamodb: Any, effective: datetime) -> bool:
        made = self._book()
        store = BookStore(dynamodb, "RuleBooks")
        store.look()
        try:
            store.publish(Publication(made, effective, effective, "desk", ""))
        except PublicationConflict:
            return False
        return True

    def _sweep(self) -> bool:
        told = processors.expiry.handler({}, CONTEXT)
        return bool(told["is_whole"])

    def _balance(self, user: str) -> bool:
        status, told = self._call(
            ingest.engagement.users_api.handler, "GET", f"/v1/users/{user}/balance", None
        )
        self.balances[user] = told
        return status == 200

    # ---- holds ------------------------------------------------------------------------------------

    def _hold(self, user: str, key: str, points: int, hours: int) -> bool:
        body = {"points": points, "reward_id": REWARD, "idempotency_key": key, "seconds": hours * 3600}
        status, told = self._ask(user, "/holds", body)
        if status == 201:
            hold = (user, told["hold_id"])
            self.promises.held[hold] = points
            if not told.get("duplicate"):
                self.promises.open_until[hold] = datetime.fromisoformat(told["until"])
            ends = [
                lambda: self._capture(hold, points),
                lambda: self._capture(hold, points),
                lambda: self._release(hold),
            ]
            self.tasks += self.chance.sample(ends, k=self.chance.randrange(0, 4))
        return status in (201, 409)

    def _capture(self, hold: tuple[str, str], points: int) -> bool:
        self.promises.open_until.pop(hold, None)
        status, told = self._ask(hold[0], f"/holds/{hold[1]}/capture", {})
        if status == 201:
            self.promises.captured.setdefault(hold, set()).add(told["entry_id"])
            if told["points"] != -points:
                self.promises.broken.append(f"{hold} captured {told['points']} of {points}")
        elif status == 409 and told["error"]["code"] not in self.refusals:
            self.promises.broken.append(f"{hold}: {told['error']}")
        return status in (201, 409)

    def _release(self, hold: tuple[str, str]) -> bool:
        self.promises.open_until.pop(hold, None)
        status, told = self._ask(hold[0], f"/holds/{hold[1]}/release", {})
        if status == 200 and told["status"] == "released":
            self.promises.released.add(hold)
        return status in (200, 409)

    def _redeem(self, user: str, key: str, points: int) -> bool:
        before = set(self.promises.open_until)
        status, told = self._asked_to_redeem(user, key, points)
        if status == 201 and not told.get("duplicate"):
            held = self._held(user, before)
            if told["balance"] < held:
                self.promises.broken.append(f"{user}: {told} leaves less than the {held} that are held")
        return status in (201, 409)

    def _held(self, user: str, among: set[tuple[str, str]]) -> int:
        """The points that holds have reserved all the while."""
        until = self.promises.open_until
        still = [hold for hold in among if hold[0] == user and until.get(hold, self.now) > self.now + SURELY]
        return sum(self.promises.held[hold] for hold in still)

    def _ask(self, user: str, path: str, body: Any) -> tuple[int, Any]:
        return self._call(ingest.engagement.users_api.handler, "POST", f"/v1/users/{user}{path}", body)
