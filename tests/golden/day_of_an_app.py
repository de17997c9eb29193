"""Three weeks of an app: what its users, operators and agents ask of the API, in a fixed order, and each answer."""

import json
import random
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from tests.golden.determinism import CLOCK
from tests.support.gateway import GROUP_AGENTS
from tests.support.published_books import a_document
from tests.support.site import ADMIN, FULFILMENT, PRODUCERS, Site

USERS = [f"golden-{number:02}" for number in range(12)]
ZONES = ("Europe/Berlin", "Asia/Tokyo", "America/Lima", "+05:45", None)
TYPES = ("CHECK_IN", "CONTRIBUTION", "LESSON_COMPLETED", "APP_OPENED", "PURCHASE_COMPLETED", "NO_SUCH_TYPE")
DAYS = 21
BOOK_DAY = 9


def play(site: Site) -> Iterator[str]:
    """Yield a line for each request with its answer."""
    app = _App(site)
    for day in range(DAYS):
        yield from app.day(day)
        CLOCK.at += timedelta(days=1)
    yield from app.reads()


class _App:
    def __init__(self, site: Site) -> None:
        self.site, self.chance = site, random.Random("an app")
        self.sent: list[dict[str, Any]] = []
        self.questions: list[str] = []

    def day(self, number: int) -> Iterator[str]:
        """Events in time, late and again; then one command of each kind; questions and answers."""
        if number == BOOK_DAY:
            yield self.ask("operator", "POST", "/v1/rules", {"book": a_document()}, ADMIN)
        for user in USERS:
            if self.chance.random() < 0.7:
                events = [self.event(user) for _ in range(self.chance.randrange(1, 4))]
                events += self.chance.sample(self.sent, min(1, len(self.sent)))
                self.sent += events
                yield self.ask("producer", "POST", "/v1/events", {"events": events}, PRODUCERS)
        self.site.settle()
        yield from self.commands(number)
        yield from self.polls(number)
        self.site.settle()

    def event(self, user: str) -> dict[str, Any]:
        late = timedelta(days=self.chance.choice((0, 0, 0, 0, 1, 2, 3)), minutes=self.chance.randrange(600))
        zone, kind = self.chance.choice(ZONES), self.chance.choice(TYPES)
        body: dict[str, Any] = {
            "user_id": user,
            "idempotency_key": f"key-{self.chance.randrange(10**9)}",
            "event_type": kind,
            "occurred_at": (CLOCK() - late).isoformat(),
            "source": self.chance.choice(("web", "mobile_app", "whatsapp")),
        }
        if zone:
            body["timezone"] = zone
        if kind == "PURCHASE_COMPLETED":
            note = "n" * self.chance.choice((10, 600))
            body["properties"] = {"amount": "12.50", "currency": "USD", "quantity": 2, "note": note}
        return body

    def commands(self, number: int) -> Iterator[str]:
        user = USERS[number % len(USERS)]
        path, day = f"/v1/users/{user}", CLOCK().date()
        yield self.ask(user, "PUT", f"{path}/timezone", {"timezone": ZONES[number % 4]})
        yield self.ask(user, "PUT", f"{path}/alias", {"alias": f"Golden {number}"})
        pause = {"first": str(day + timedelta(days=2)), "last": str(day + timedelta(days=3))}
        yield self.ask(user, "POST", f"{path}/pauses", pause)
        freeze = {"idempotency_key": f"freeze-{number}"}
        yield self.ask("operator", "POST", f"{path}/freezes", freeze, ADMIN)
        bought = {"points": 5, "reward_id": "mug", "idempotency_key": f"mug-{number}"}
        status, told = self.site.call("shop", "POST", f"{path}/redemptions", bought, FULFILMENT)
        yield self.line("shop", "POST", f"{path}/redemptions", bought, status, told)
        if status == 201 and number % 2:
            undone = f"{path}/redemptions/{told['entry_id']}/reversal"
            yield self.ask("shop", "POST", undone, {}, FULFILMENT)
        kept = {"points": 3, "reward_id": "cap", "idempotency_key": f"cap-{number}"}
        yield self.ask("shop", "POST", f"{path}/holds", kept, FULFILMENT)
        yield self.ask(USERS[0], "GET", path)  # another's, mostly

    def polls(self, number: int) -> Iterator[str]:
        if number % 3 == 0:
            body = {
                "idempotency_key": f"question-{number}",
                "type": "multiple_choice",
                "prompt": f"Which of {number}?",
                "options": ["a", "b", "c"],
                "required_responses": 5,
                "category": "food",
            }
            status, told = self.site.call("agent", "POST", "/v1/questions", body, GROUP_AGENTS)
            yield self.line("agent", "POST", "/v1/questions", body, status, told)
            self.questions.append(told["question_id"])
        for user in self.chance.sample(USERS, 3):
            path = f"/v1/questions/{self.chance.choice(self.questions)}/responses"
            yield self.ask(user, "POST", path, {"selected_option": number % 3, "confidence": 4})

    def reads(self) -> Iterator[str]:
        """Each list and view that a user, an operator and an agent can see."""
        for user in USERS:
            path = f"/v1/users/{user}"
            for view in ("", "/events", "/activity", "/ledger", "/streaks", "/achievements"):
                yield self.ask(user, "GET", path + view)
            for day in range(DAYS):
                date = CLOCK().date() - timedelta(days=day)
                yield self.ask(user, "GET", f"{path}/streak/explain?date={date}")
            for view in ("/balance", "/rewards", "/redemptions", "/answers"):
                yield self.ask(user, "GET", path + view)
            yield self.ask(user, "GET", "/v1/stats")
        for path in ("/v1/review", "/v1/amnesties", "/v1/rewards", "/v1/rules", "/v1/rules/versions"):
            yield self.ask("operator", "GET", path, None, ADMIN)
        for path in ("/v1/questions", "/v1/agents/agent/questions", "/v1/leaderboards/streaks?region=europe"):
            yield self.ask("agent", "GET", path, None, GROUP_AGENTS)

    def ask(self, sub: str, method: str, path: str, body: Any = None, *groups: str) -> str:
        return self.line(sub, method, path, body, *self.site.call(sub, method, path, body, *groups))

    @staticmethod
    def line(sub: str, method: str, path: str, body: Any, status: int, told: Any) -> str:
        asked, answered = (json.dumps(each, sort_keys=True) for each in (body, told))
        return f"{sub} {method} {path} {asked} -> {status} {answered}"
