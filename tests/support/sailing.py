"""Devices that are offline for days, their clocks wrong, against the real handlers at instants of our choice."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.support.gateway import ask, token
from tests.support.site import Site


class World:
    """The service and its clock."""

    def __init__(self, site: Site, patch: pytest.MonkeyPatch, now: datetime) -> None:
        self.site, self.now = site, now
        patch.setattr("adapters.clock.now", lambda: self.now)

    def wait(self, time: timedelta) -> None:
        self.now += time

    def request(self, user: str, method: str, path: str, body: Any, headers: Mapping[str, str]) -> Any:
        """Returns the status, the receipt (None: there is none), and the body."""
        every = {"authorization": f"Bearer {token(user)}", **headers}
        told = ask(method, path, every, b"" if body is None else json.dumps(body).encode())
        return told.status, told.headers.get("Streakline-Time-Receipt"), json.loads(told.body)


@dataclass
class Device:
    """A device: it keeps the newest receipt, and each event with the one it had then. wrong: its clock's error."""

    world: World
    user: str
    name: str = "device-1"
    wrong: timedelta = timedelta()
    receipt: str | None = None
    waiting: list[tuple[dict[str, Any], str | None]] = field(default_factory=list)
    count: int = 0

    def text(self, at: datetime) -> str:
        return (at + self.wrong).isoformat().replace("+00:00", "Z")

    def look(self) -> None:
        """Read the profile: any answer gives a receipt."""
        path = f"/v1/users/{self.user}"
        _, self.receipt, _ = self.world.request(self.user, "GET", path, None, self._headers)

    def track(self, at: datetime | None = None) -> str:
        """Something happens now; or a liar says that it did at another instant."""
        self.count += 1
        key = f"{self.name} {self.count}"
        occurred = self.text(at or self.world.now)
        body = {"idempotency_key": key, "event_type": "CHECK_IN", "occurred_at": occurred}
        self.waiting.append((body, self.receipt))
        return key

    def send(self, most: int = 100, **said: str | None) -> list[str]:
        """Send what waits. said: another `receipt` or `device`. Returns what became of each event."""
        batch, self.waiting = self.waiting[:most], self.waiting[most:]
        return self.send_again([body for body, _ in batch], **{"receipt": batch[0][1], **said})

    def send_again(self, bodies: Sequence[Any], **said: str | None) -> list[str]:
        receipt = said.get("receipt")
        body = {"events": bodies, "sent_at": self.text(self.world.now)}
        headers = {"streakline-device": said.get("device") or self.name}
        status, given, told = self.world.request(
            said.get("user") or self.user,
            "POST",
            "/v1/events",
            {**body, "receipt": receipt} if receipt else body,
            headers,
        )
        assert status in (202, 403, 410), told
        self.receipt = given or self.receipt
        results = told["results"] if status == 202 else told["error"]["details"]
        return [_said(each) for each in results]

    @property
    def _headers(self) -> dict[str, str]:
        return {"streakline-device": self.name}


def _said(result: Mapping[str, Any]) -> str:
    error = result.get("error")
    return f"{error['code']}: {error['message']}" if error else str(result["status"])
