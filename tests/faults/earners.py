"""Schedules with a book that pays for achievements: users look, the hourly run comes, and events are taken back."""

import math
from collections import Counter
from datetime import date, timedelta
from typing import Any

import ingest.engagement.users_api
import processors.expiry
from adapters.book_store import shipped_version
from adapters.engagement.account_store import ExpiryIndex
from tests.faults.callers import CONTEXT, KINDS
from tests.faults.money import rows
from tests.faults.simulation import Simulation
from tests.oracle.bonus_reading import Declared, History, bonuses_due
from tests.oracle.streak_reading import Protection
from tests.support.books import KnownAt, achieving
from tests.support.engine import Engine

PAYS = {"withdrawn": "when_untrue"}
BONUSES: dict[str, Any] = {
    **{f"two_{each}": {"all": [{"count": each, "at_least": 2}], "points": 7, **PAYS} for each in KINDS},
    "rich": {"any": [{"points_earned": 50}], "points": 100, **PAYS},
    "richer": {"all": [{"points_earned": 120}, {"count": "CHECK_IN", "at_least": 1}], "points": 9, **PAYS},
}


class Earners(Simulation):
    """One schedule."""

    # A date that a flight has left out stays so when one of its events is taken back, so here nobody flies.
    another_body = "2026-03-18T00:00:00Z"

    def __init__(self, engine: Engine, seed: int, patch: Any) -> None:
        super().__init__(engine, seed, patch)
        self.balances: dict[str, int] = {}

    def _wire(self, patch: Any) -> None:
        books = KnownAt([achieving(shipped_version(), BONUSES, {}, {})]).at(self.now)
        patch.setattr("adapters.book_store.BookStore.look", lambda _: books)
        patch.setattr("adapters.book_store.BookStore.books", lambda _: books)
        terms = "adapters.engagement.daily_terms_store.DailyTermsStore"
        patch.setattr(f"{terms}.pay_bonuses", lambda _: True)
        patch.setattr("adapters.engagement.daily_terms_store.FRESH_SECONDS", math.inf)
        patch.setattr(processors.expiry._parts, "client", {"dynamodb": self.faults}.__getitem__)
        due = ExpiryIndex.due
        patch.setattr(ExpiryIndex, "due", lambda *given: (each for each in due(*given) if each in self.users))
        super()._wire(patch)

    def _new_process(self) -> None:
        super()._new_process()
        processors.expiry._parts.cache_clear()

    def workload(self) -> None:
        """Everything that other schedules do; and looks, and events that are taken back."""
        super().workload()
        for user in self.users:
            for _ in range(self.chance.randrange(2, 6)):
                self.tasks.append(lambda u=user: self._balance(u))  # type: ignore[misc]
            for number in self.chance.sample(range(5), k=3):
                self.tasks.append(lambda u=user, n=number: self._take_back(u, f"k{n}"))  # type: ignore[misc]
        self.tasks += [self._sweep] * 3
        self.chance.shuffle(self.tasks)

    def run(self) -> None:
        """Run everything; then, on a quiet day, the hourly run comes, and each user asks for the balance."""
        super().run()
        self.faults.left = 0
        self.now += timedelta(days=1)
        self.tasks.append(self._sweep)
        self._drain()
        self.tasks += [lambda u=user: self._balance(u) for user in self.users]  # type: ignore[misc]
        self._drain()

    def _balance(self, user: str) -> bool:
        handler = ingest.engagement.users_api.handler
        status, told = self._call(handler, "GET", f"/v1/users/{user}/balance", None)
        if status == 200:
            self.balances[user] = told["balance"]
        return status == 200

    def _sweep(self) -> bool:
        return bool(processors.expiry.handler({}, CONTEXT)["is_whole"])

    def _take_back(self, user: str, key: str) -> bool:
        event_id = self.report.accepted.get((user, key))
        if event_id is None:
            return True  # nobody was told of it yet
        body = {"event_id": event_id, "reason": "a refund", "idempotency_key": f"back {key}"}
        handler = ingest.engagement.users_api.handler
        return self._call(handler, "POST", f"/v1/users/{user}/clawbacks", body)[0] in (201, 404, 409)


def bonus_violations(schedule: Earners, user: str) -> list[str]:
    """What is wrong with a user's bonuses; nothing is the answer."""
    entries = rows(schedule, "RewardsLedger", "account_id", user)
    gone = {each["event_id"] for each in entries if each["kind"] == "CLAWBACK"}
    events, points, sums = dict[date, Counter[str]](), Counter[date](), Counter[tuple[str, date]]()
    for each in entries:
        day = date.fromisoformat(each.get("activity_date", "1970-01-01"))
        if each["kind"] == "BONUS":
            sums[each["reward_id"], day] += each["points"]
        elif each["kind"] in ("EARN", "CLAWBACK", "RERATE"):
            points[day] += each["points"]
            if each["kind"] == "EARN" and each["event_id"] not in gone:
                events.setdefault(day, Counter())[each["event_type"]] += 1
    declared = {name: Declared(section, date.min) for name, section in BONUSES.items()}
    due = bonuses_due(declared, History(events, points, Protection(), {}))
    left = sorted((name, day, change) for (name, day), change in sums.items() if change)
    expected = sorted((name, day, worth) for name, (day, worth) in due.items())
    wrong = [] if left == expected else [f"{user}: bonuses {left} should be {expected}"]
    balance = sum(each["points"] for each in entries)
    if schedule.balances.get(user) != balance:
        wrong.append(f"{user}: the balance is {balance}, and the user saw {schedule.balances.get(user)}")
    return wrong
