"""The whole API in the process, with the consumers of its streams: requests as a user, an admin or a group."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.api_stack import stack
from tests.support.engine import Engine
from tests.support.gateway import ask, token
from tests.support.pipeline import Pipeline

ADMIN, PRODUCERS, FULFILMENT = (f"streakline/{name}" for name in ("admin", "producers", "fulfilment"))


class Site:
    """Sends requests through the real handlers; `settle` applies what they stored."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self._pipeline = engine, Pipeline(engine)

    def call(self, sub: str, method: str, path: str, body: Any = None, *groups: str) -> tuple[int, Any]:
        headers = {"authorization": f"Bearer {token(sub, *groups)}"}
        told = ask(method, path, headers, b"" if body is None else json.dumps(body).encode())
        return told.status, json.loads(told.body) if told.body else None

    def admin(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        return self.call("operator", method, path, body, ADMIN)

    def send(self, sub: str, *events: dict[str, Any], groups: tuple[str, ...] = ()) -> Any:
        status, told = self.call(sub, "POST", "/v1/events", {"events": list(events)}, *groups)
        assert status in (202, 403), told
        self.settle()
        return told

    def settle(self) -> None:
        while self._pipeline.step():
            pass

    def profile(self, user: str) -> Any:
        return self.admin("GET", f"/v1/users/{user}")[1]


@contextmanager
def site(engine: Engine, redis_url: str = "", **settings: str) -> Iterator[Site]:
    with stack(engine, redis_url, **settings):
        yield Site(engine)
