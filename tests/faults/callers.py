"""What happens outside the service in a simulation: callers, what they send, and what they are told."""

import base64
import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import ingest.engagement.events_api
import ingest.engagement.events_stream
import ingest.engagement.users_api

START = datetime(2026, 3, 20, 12, tzinfo=UTC)
KINDS = ("CONTRIBUTION", "CHECK_IN", "LESSON_COMPLETED")
ADMIN = {"sub": "admin", "cognito:groups": "[streakline/admin]"}
CONTEXT = SimpleNamespace(
    function_name="simulated", memory_limit_in_mb=128, invoked_function_arn="arn", aws_request_id="1"
)


@dataclass
class Report:
    """What the outside world has been told."""

    accepted: dict[tuple[str, str], str] = field(default_factory=dict)
    bodies: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    answers: list[tuple[tuple[str, str], dict[str, Any]]] = field(default_factory=list)
    redeemed: dict[tuple[str, str], str] = field(default_factory=dict)
    reversed: set[tuple[str, str]] = field(default_factory=set)
    zones: dict[str, str] = field(default_factory=dict)
    is_judged_anew: bool = False


class Callers:
    """Users who send events, spend points, move and are granted freezes, until they have been answered."""

    chance: random.Random
    users: list[str]
    report: Report
    errors: list[str]
    another_body = "2026-03-18T00:00:00+03:00"  # when it occurred, says who uses a key again
    tasks: list[Callable[[], bool]]

    def workload(self) -> None:
        """Make up what users do; every task is repeated until it has been answered."""
        for user in self.users:
            events = [self._body(user, number) for number in range(self.chance.randrange(5, 15))]
            events += self.chance.choices(events, k=3)
            events.append({**events[0], "occurred_at": self.another_body})  # a conflict
            self.chance.shuffle(events)
            while events:
                size = self.chance.randrange(1, 6)
                some, events = events[:size], events[size:]
                door = self._post if self.chance.random() < 0.7 else self._produce
                self.tasks.append(lambda some=some, door=door: door(some))  # type: ignore[misc]
            for number in range(3):
                points = self.chance.choice((5, 10, 20, 30))
                self.tasks.append(lambda u=user, n=number, p=points: self._redeem(u, f"r{n}", p))  # type: ignore[misc]
            zone = self.chance.choice(("Europe/Berlin", "Asia/Tokyo"))
            self.tasks.append(lambda u=user, z=zone: self._move(u, z))  # type: ignore[misc]
            if self.chance.random() < 0.6:
                day = f"2026-03-{self.chance.randrange(17, 20)}"
                self.tasks.append(lambda u=user, d=day: self._freeze(u, d))  # type: ignore[misc]
        self.chance.shuffle(self.tasks)

    def _body(self, user: str, number: int) -> dict[str, Any]:
        moment = START - timedelta(minutes=self.chance.randrange(0, 60 * 24 * 6))
        return {
            "user_id": user,
            "idempotency_key": f"k{number}",
            "event_type": self.chance.choice(KINDS),
            "occurred_at": moment.isoformat(),
        }

    def _clock(self) -> dict[str, str]:
        """What a batch says of its device's clock."""
        return {}

    def _call(
        self, handler: Any, method: str, path: str, body: Any, claims: Mapping[str, str] = ADMIN
    ) -> tuple[int, Any]:
        event = {
            "version": "2.0",
            "routeKey": f"{method} {path}",
            "rawPath": path,
            "headers": {"content-type": "application/json"},
            "requestContext": {
                "http": {"method": method, "path": path},
                "stage": "$default",
                "requestId": "1",
                "authorizer": {"jwt": {"claims": claims}},
            },
            "body": json.dumps(body),
            "isBase64Encoded": False,
        }
        answer = handler(event, CONTEXT)
        if answer["statusCode"] >= 500:
            self.errors.append(answer["body"])
        return answer["statusCode"], json.loads(answer["body"])

    def _post(self, events: list[dict[str, Any]]) -> bool:
        batch = {"events": events, **self._clock()}
        status, answer = self._call(ingest.engagement.events_api.handler, "POST", "/v1/events", batch)
        if status != 202:
            return False
        for body, result in zip(events, answer["results"], strict=True):
            key = (body["user_id"], body["idempotency_key"])
            self.report.answers.append((key, result))
            if result["status"] in ("accepted", "duplicate"):
                self.report.accepted[key] = result["event_id"]
                self.report.bodies[key] = body
        return all((result.get("error") or {}).get("code") != "unavailable" for result in answer["results"])

    def _produce(self, events: list[dict[str, Any]]) -> bool:
        data = base64.b64encode(json.dumps({"events": events}).encode()).decode()
        record = {"kinesis": {"data": data, "sequenceNumber": "1", "partitionKey": "p"}}
        answer = ingest.engagement.events_stream.handler({"Records": [record]}, CONTEXT)
        return not answer["batchItemFailures"]

    def _redeem(self, user: str, key: str, points: int) -> bool:
        return self._asked_to_redeem(user, key, points)[0] in (201, 409)

    def _asked_to_redeem(self, user: str, key: str, points: int) -> tuple[int, Any]:
        body = {"points": points, "reward_id": "mug", "idempotency_key": key}
        path = f"/v1/users/{user}/redemptions"
        status, answer = self._call(ingest.engagement.users_api.handler, "POST", path, body)
        if status == 201:
            self.report.redeemed[user, key] = answer["entry_id"]
            if self.chance.random() < 0.5:
                for _ in range(2):
                    self.tasks.append(lambda: self._reverse(user, answer["entry_id"]))
        return status, answer

    def _reverse(self, user: str, entry_id: str) -> bool:
        path = f"/v1/users/{user}/redemptions/{entry_id}/reversal"
        status, _ = self._call(ingest.engagement.users_api.handler, "POST", path, {})
        if status in (201, 409):
            self.report.reversed.add((user, entry_id))
        return status in (201, 409)

    def _freeze(self, user: str, day: str) -> bool:
        body = {"granted_on": day, "idempotency_key": "f"}
        status, _ = self._call(ingest.engagement.users_api.handler, "POST", f"/v1/users/{user}/freezes", body)
        return status == 201

    def _move(self, user: str, zone: str) -> bool:
        path = f"/v1/users/{user}/timezone"
        status, _ = self._call(ingest.engagement.users_api.handler, "PUT", path, {"timezone": zone})
        if status == 200:
            self.report.zones[user] = zone
        return status == 200
